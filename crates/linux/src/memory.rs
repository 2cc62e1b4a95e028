//! How much memory this process may use.

use outlast_core::units::ByteCount;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the unified hierarchy of control groups is.
const GROUPS: &str = "/sys/fs/cgroup";

/// The machine's memory, or less where a control group of this process is limited to less.
#[must_use]
pub fn of_this_process() -> ByteCount {
    let machine = rustix::system::sysinfo();
    // `as`: the kernel's numbers are as wide as the machine's addresses.
    let machine = (machine.totalram as u64).saturating_mul(u64::from(machine.mem_unit).max(1));
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group(&membership).map(|group| limits(Path::new(GROUPS), &group));
    let least = limits.into_iter().flatten().min();
    ByteCount(least.map_or(machine, |limit| limit.min(machine)))
}

/// The process's group in the unified hierarchy, by its `/proc/self/cgroup`.
fn group(membership: &str) -> Option<PathBuf> {
    let line = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(line))
}

/// `memory.max` of a group and of those that it is in, where they have one.
fn limits(root: &Path, group: &Path) -> Vec<u64> {
    let limit = |group: &Path| {
        let text = fs::read_to_string(root.join(group).join("memory.max")).ok()?;
        // "max" is no limit.
        text.trim().parse().ok()
    };
    group.ancestors().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory() {
        assert!(of_this_process() > ByteCount(1 << 20));
    }

    #[test]
    fn every_group_above_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let inner = root.path().join("system.slice/outlast@wwan0.service");
        fs::create_dir_all(&inner).expect("below ours");
        fs::write(inner.join("memory.max"), "max\n").expect("a file");
        fs::write(root.path().join("system.slice/memory.max"), "33554432\n").expect("a file");
        let group = group("1:name=x:/\n0::/system.slice/outlast@wwan0.service\n");
        let group = group.expect("the unified hierarchy's line");
        assert_eq!(limits(root.path(), &group), [33_554_432]);
        assert!(limits(root.path(), Path::new("")).is_empty());
        assert_eq!(super::group("2:cpu:/a\n"), None);
    }
}
