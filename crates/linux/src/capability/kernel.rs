//! The kernel's version and type information.

use super::{Probe, ProbeResult, available, missing};
use std::fs::File;
use std::io::Read;

/// Oldest kernel on which everything of the lab works: it has `pidfd_open`.
const OLDEST: (u32, u32) = (5, 3);
/// Where the kernel describes its own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn version() -> Probe {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let result = match parse(&release) {
        Some(version) if version < OLDEST => missing(
            format!("Linux {release}"),
            format!("Linux {}.{} or newer", OLDEST.0, OLDEST.1),
        ),
        Some((6, 7..) | (7.., _)) => available(format!("Linux {release}")),
        _ => available(format!(
            "Linux {release}; timeouts are counted from Linux 6.7 on"
        )),
    };
    Probe {
        name: "kernel version",
        needed_for: "everything",
        required_by: super::EVERYBODY,
        result,
    }
}

pub(super) fn types() -> ProbeResult {
    // BTF begins with 0xeb9f in the machine's byte order.
    let mut magic = [0; 2];
    match File::open(TYPES).and_then(|mut file| file.read_exact(&mut magic)) {
        Ok(()) if u16::from_ne_bytes(magic) == 0xeb9f => available(TYPES),
        Ok(()) => missing(format!("{TYPES} is not BTF"), REMEDY),
        Err(error) => missing(format!("cannot read {TYPES}: {error}"), REMEDY),
    }
}

const REMEDY: &str = "a kernel built with CONFIG_DEBUG_INFO_BTF=y";

/// Major and minor number of a release such as `6.18.44-custom`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_whatever_follows_the_numbers() {
        assert_eq!(parse("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(parse("5.4-rc1"), Some((5, 4)));
        assert_eq!(parse("unknown"), None);
    }
}
