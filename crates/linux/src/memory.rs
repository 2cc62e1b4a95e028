//! How much memory this process may use.

use outlast_base::units::ByteCount;
use std::fs;
use std::path::Path;

/// Where the hierarchies of control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// The machine's memory, or less where a control group of this process is limited to less.
#[must_use]
pub fn of_this_process() -> ByteCount {
    let machine = rustix::system::sysinfo();
    // `as`: the kernel's number is as wide as the machine's addresses.
    let machine = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit).max(1));
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = membership.lines();
    let least = limits
        .flat_map(|line| limits_by(Path::new(GROUPS), line))
        .min();
    ByteCount(least.map_or(machine, |limit| limit.min(machine)))
}

/// The limits of a group and of those that it is in, by a line of `/proc/self/cgroup`:
/// `NUMBER:CONTROLLERS:/GROUP`, without controllers in the unified hierarchy (cgroups(7)).
fn limits_by(groups: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (root, file) = match parts.next() {
        Some("") => (groups.to_owned(), "memory.max"),
        Some(names) if names.split(',').any(|name| name == "memory") => {
            (groups.join("memory"), "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let group = parts.next().unwrap_or_default().trim_start_matches('/');
    let limit = |group: &Path| {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        // "max" is no limit.
        text.trim().parse().ok()
    };
    Path::new(group).ancestors().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory() {
        assert!(of_this_process() > ByteCount(1 << 20));
    }

    #[test]
    fn every_group_above_counts_in_either_hierarchy() {
        let root = tempfile::tempdir().expect("a directory");
        let slice = "system.slice/outlast@wwan0.service";
        for (place, name) in [("", "memory.max"), ("memory", "memory.limit_in_bytes")] {
            let place = root.path().join(place);
            fs::create_dir_all(place.join(slice)).expect("below ours");
            fs::write(place.join(slice).join(name), "max\n").expect("a file");
            fs::write(place.join("system.slice").join(name), "33554432\n").expect("a file");
        }
        let limits = |line: &str| limits_by(root.path(), line);
        assert_eq!(limits(&format!("0::/{slice}")), [33_554_432]);
        assert_eq!(limits(&format!("4:cpu,memory:/{slice}")), [33_554_432]);
        assert!(limits(&format!("5:cpu:/{slice}")).is_empty());
        assert!(limits("0::/").is_empty() && limits("").is_empty());
    }
}
