//! What the gateway takes of a small machine's memory: here, of a control group with a limit.

use crate::support::Place;
use outlast_skip::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group with a limit of memory. It is gone when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Where a group can be made here, by either version of control groups; what the kernel says if
    /// it cannot.
    fn limited_to(bytes: u64) -> std::io::Result<Self> {
        let groups = Path::new("/sys/fs/cgroup");
        let name = format!("outlast-test-{}", std::process::id());
        let (place, limit) = match groups.join("cgroup.controllers").exists() {
            true => (groups.join(name), "memory.max"),
            false => (groups.join("memory").join(name), "memory.limit_in_bytes"),
        };
        fs::create_dir(&place)?;
        let group = Self(place);
        fs::write(group.0.join(limit), bytes.to_string())?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nobody is in it any more.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn in_64_mib_the_tables_are_small_and_without_a_limit_they_are_not() {
    let group = match Group::limited_to(64 << 20) {
        Ok(group) => group,
        Err(error) => return skip(format!("no group with a limit of memory: {error}")),
    };
    let place = Place::new();
    let config = place.file("gateway.toml", "interface = \"lo\"\n");
    let checked = |enter: &str| {
        let script = format!("{enter} exec \"$0\" run --check-config --config \"$1\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_outlast")]);
        let output = command.arg(&config).output().expect("sh");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let procs = group.0.join("cgroup.procs");
    let small = checked(&format!("echo $$ > {} &&", procs.display()));
    assert!(small.contains("up to 4096, "), "{small}");
    let whole = checked("");
    assert!(!whole.contains("up to 4096, "), "{whole}");
}
