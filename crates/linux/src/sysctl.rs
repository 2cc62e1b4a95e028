//! Kernel settings (`/proc/sys`), those of the network as the calling thread's namespace has them.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Why a setting cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// This kernel has no such setting.
    #[error("this kernel has no setting {name}")]
    NotFound {
        /// As in `net.ipv4.tcp_sack`.
        name: String,
    },
    /// It cannot be read.
    #[error("cannot read the setting {name}")]
    Read {
        /// As in `net.ipv4.tcp_sack`.
        name: String,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// It cannot be written, or not with this value.
    #[error("cannot set {name} to \"{value}\"")]
    Write {
        /// As in `net.ipv4.tcp_sack`.
        name: String,
        /// The value refused.
        value: String,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

/// The value of the setting `name`, several numbers separated by single blanks.
///
/// # Errors
/// When there is none, or it may not be read.
pub fn read(name: &str) -> Result<String, SysctlError> {
    match fs::read_to_string(path(name)) {
        Ok(value) => Ok(value.split_whitespace().collect::<Vec<_>>().join(" ")),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            Err(SysctlError::NotFound { name: name.into() })
        }
        Err(source) => Err(SysctlError::Read {
            name: name.into(),
            source,
        }),
    }
}

/// Sets `name` to `value`.
///
/// # Errors
/// When there is no such setting, it may not be written, or not with this value.
pub fn write(name: &str, value: &str) -> Result<(), SysctlError> {
    fs::write(path(name), value).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SysctlError::NotFound { name: name.into() },
        _ => SysctlError::Write {
            name: name.into(),
            value: value.into(),
            source,
        },
    })
}

/// The congestion controls that the kernel has loaded; others may still be modules on disk.
///
/// # Errors
/// As [`read`].
pub fn congestion_controls() -> Result<Vec<String>, SysctlError> {
    let names = read("net.ipv4.tcp_available_congestion_control")?;
    Ok(names.split(' ').map(str::to_owned).collect())
}

/// The file of a setting. The kernel resolves it for the namespace of the thread that opens it.
fn path(name: &str) -> PathBuf {
    debug_assert!(!name.contains(['/', ' ']) && !name.contains(".."), "{name}");
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fresh_namespace;

    #[test]
    fn a_setting_changes_in_its_own_namespace_only() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let outside = read("net.ipv4.tcp_sack").expect("readable");
        let inside = namespace.run(|| {
            write("net.ipv4.tcp_sack", "0").expect("writable");
            read("net.ipv4.tcp_sack").expect("readable")
        });
        assert_eq!(inside.expect("enter"), "0");
        assert_eq!(read("net.ipv4.tcp_sack").expect("readable"), outside);
    }

    #[test]
    fn refusals_name_the_setting_and_the_value() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let said = namespace.run(|| {
            let unknown = read("net.ipv4.no_such_setting").expect_err("unknown");
            let refused = write("net.ipv4.tcp_sack", "many").expect_err("not a number");
            [unknown.to_string(), refused.to_string()]
        });
        assert_eq!(
            said.expect("enter"),
            [
                "this kernel has no setting net.ipv4.no_such_setting",
                "cannot set net.ipv4.tcp_sack to \"many\""
            ]
        );
    }
}
