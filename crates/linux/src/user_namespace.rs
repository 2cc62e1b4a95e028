//! Root's powers over nothing but one's own namespaces, for an ordinary user.

use crate::namespace::{Namespace, NamespaceError};
use crate::sys::thread::{Fresh, unshare};
use crate::sysctl;
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;
use std::io;

/// By what right the process makes network namespaces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It has the capabilities (root).
    Privileged,
    /// It has them in a user namespace of its own.
    UserNamespace,
}

/// Why an ordinary user cannot have network namespaces here. Each message says what would work.
#[derive(Debug, thiserror::Error)]
pub enum UserNamespaceError {
    /// Debian's switch is off.
    #[error(
        "ordinary users may not make user namespaces here (kernel.unprivileged_userns_clone = 0): \
         run as root, or once `sudo sysctl kernel.unprivileged_userns_clone=1`"
    )]
    SwitchedOff,
    /// `user.max_user_namespaces` is reached, or 0.
    #[error(
        "no more user namespaces allowed (user.max_user_namespaces = {limit}): run as root, or \
         raise it, as in `sudo sysctl user.max_user_namespaces=15000`"
    )]
    LimitReached {
        /// The value of the sysctl.
        limit: String,
    },
    /// AppArmor takes the capabilities away (Ubuntu since 23.10).
    #[error(
        "AppArmor gives user namespaces of ordinary users no capabilities \
         (kernel.apparmor_restrict_unprivileged_userns = 1): run as root, or once `sudo sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0`, or give the program an AppArmor \
         profile that allows `userns`"
    )]
    RestrictedByAppArmor,
    /// The kernel has none.
    #[error("this kernel was built without user namespaces (CONFIG_USER_NS): run as root")]
    NotBuilt,
    /// The process has other threads already.
    #[error("a user namespace can only be entered before the process starts threads")]
    Multithreaded,
    /// Something else forbids it.
    #[error(
        "user namespaces are forbidden, perhaps by a container's seccomp filter or in a chroot: \
         run as root on the host, or in a container with `--privileged`"
    )]
    Forbidden(#[source] io::Error),
    /// The user's identity cannot be carried over.
    #[error("cannot write {file}")]
    Mapping {
        /// The file of `/proc`.
        file: &'static str,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// The user namespace is there, but network namespaces are not.
    #[error(transparent)]
    Network(NamespaceError),
}

/// Whether the process has the capabilities for network namespaces as it is.
#[must_use]
pub fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// True in the user namespace of the machine, whose capabilities are those that `bpf()` asks for. All users are mapped
/// to themselves there alone.
pub(crate) fn is_initial() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    maps_all_users(&map)
}

fn maps_all_users(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Makes sure that the process may make network namespaces: enters a user namespace if it has to.
///
/// Call it at the very start of `main`: the kernel demands that the process has one thread. The
/// user and the group stay what they are. Programs that are started afterwards have no
/// capabilities, inside the namespace or out of it.
///
/// # Errors
/// When the kernel's settings do not allow it; the message says which, and what would work.
pub fn enter() -> Result<Standing, UserNamespaceError> {
    if is_privileged() {
        return Ok(Standing::Privileged);
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(Fresh::User).map_err(|errno| diagnose(errno.into(), &Settings::of_this_machine()))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    match Namespace::new() {
        Ok(_) => Ok(Standing::UserNamespace),
        Err(NamespaceError::NotPermitted) if Settings::of_this_machine().app_armor_restricts() => {
            Err(UserNamespaceError::RestrictedByAppArmor)
        }
        Err(error) => Err(UserNamespaceError::Network(error)),
    }
}

/// Tries in a child process whether a user namespace can be made; changes nothing.
///
/// # Errors
/// As [`enter`].
pub(crate) fn attempt() -> Result<(), UserNamespaceError> {
    crate::sys::child::attempt(|| unshare(Fresh::User))
        .map_err(|error| diagnose(error, &Settings::of_this_machine()))
}

fn write(file: &'static str, text: &str) -> Result<(), UserNamespaceError> {
    fs::write(file, text).map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if Settings::of_this_machine().app_armor_restricts() => {
            UserNamespaceError::RestrictedByAppArmor
        }
        _ => UserNamespaceError::Mapping { file, source },
    })
}

/// The sysctls that decide about user namespaces; `None` where the kernel has none such.
#[derive(Debug, Default)]
struct Settings {
    /// `kernel.unprivileged_userns_clone`
    unprivileged_clone: Option<String>,
    /// `user.max_user_namespaces`
    limit: Option<String>,
    /// `kernel.apparmor_restrict_unprivileged_userns`
    app_armor: Option<String>,
}

impl Settings {
    fn of_this_machine() -> Self {
        Self {
            unprivileged_clone: sysctl::read("kernel.unprivileged_userns_clone").ok(),
            limit: sysctl::read("user.max_user_namespaces").ok(),
            app_armor: sysctl::read("kernel.apparmor_restrict_unprivileged_userns").ok(),
        }
    }

    fn app_armor_restricts(&self) -> bool {
        self.app_armor.as_deref() == Some("1")
    }
}

/// What `unshare(CLONE_NEWUSER)` means by its answer.
fn diagnose(error: io::Error, settings: &Settings) -> UserNamespaceError {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => UserNamespaceError::LimitReached {
            limit: settings.limit.clone().unwrap_or_else(|| "unknown".into()),
        },
        // Without the option the kernel has no such sysctl; with it, EINVAL means threads.
        Some(libc::EINVAL) if settings.limit.is_none() => UserNamespaceError::NotBuilt,
        Some(libc::EINVAL) => UserNamespaceError::Multithreaded,
        _ if settings.unprivileged_clone.as_deref() == Some("0") => UserNamespaceError::SwitchedOff,
        _ if settings.app_armor_restricts() => UserNamespaceError::RestrictedByAppArmor,
        _ => UserNamespaceError::Forbidden(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(errno: i32, settings: &Settings) -> String {
        diagnose(io::Error::from_raw_os_error(errno), settings).to_string()
    }

    #[test]
    fn the_machines_own_namespace_maps_all_users() {
        assert!(maps_all_users("         0          0 4294967295\n"));
        for other in [
            "1000 1000 1\n",
            "0 100000 65536\n",
            "",
            "0 0 1\n1 1 4294967294\n",
        ] {
            assert!(!maps_all_users(other), "{other:?}");
        }
    }

    #[test]
    fn each_refusal_names_the_setting_that_causes_it() {
        let off = Settings {
            unprivileged_clone: Some("0".into()),
            ..Settings::default()
        };
        assert!(said(libc::EPERM, &off).contains("kernel.unprivileged_userns_clone=1"));
        let none = Settings {
            limit: Some("0".into()),
            ..Settings::default()
        };
        assert!(said(libc::ENOSPC, &none).contains("user.max_user_namespaces = 0"));
        assert!(said(libc::EINVAL, &none).contains("before the process starts threads"));
        assert!(said(libc::EINVAL, &Settings::default()).contains("CONFIG_USER_NS"));
        let ubuntu = Settings {
            app_armor: Some("1".into()),
            ..Settings::default()
        };
        assert!(said(libc::EACCES, &ubuntu).contains("AppArmor"));
        assert!(said(libc::EPERM, &Settings::default()).contains("seccomp"));
    }
}
