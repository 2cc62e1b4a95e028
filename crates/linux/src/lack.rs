//! What a machine or a process lacks on which BPF programs do not run, and what would help.

use crate::{causes, user_namespace};
use aya::BtfError;
use aya::programs::ProgramError;
use rustix::thread::{CapabilitySet, capabilities};
use std::error::Error;
use std::io;

/// Why programs do not run here, and what would help.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lack {
    /// A clause: "this kernel has no ...".
    pub what: String,
    /// An imperative: "run as ...".
    pub remedy: &'static str,
}

/// A capability with its name.
pub(crate) type Right = (CapabilitySet, &'static str);

pub(crate) const BPF: Right = (CapabilitySet::BPF, "CAP_BPF");
pub(crate) const PERFMON: Right = (CapabilitySet::PERFMON, "CAP_PERFMON");
pub(crate) const NET_ADMIN: Right = (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN");
pub(crate) const NET_RAW: Right = (CapabilitySet::NET_RAW, "CAP_NET_RAW");

const RIGHTS: &str = "run as root, or with CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW";
const ELSEWHERE: &str = "run as root outside of containers and user namespaces, without a filter of system calls or a \
                         lockdown that forbids bpf()";

/// What some programs need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) rights: &'static [Right],
    /// An imperative: the kernel that has all of it.
    pub(crate) kernel: &'static str,
}

impl Needs {
    /// What `error` shows that this process or its kernel lacks.
    pub(crate) fn lack(&self, error: &(dyn Error + 'static)) -> Lack {
        let effective = capabilities(None).map(|sets| sets.effective);
        let effective = effective.unwrap_or(CapabilitySet::empty());
        self.lack_with(error, effective, user_namespace::is_initial())
    }

    /// [`Self::lack`], for a process with these capabilities, in the machine's user namespace or in another one.
    fn lack_with(
        &self,
        error: &(dyn Error + 'static),
        effective: CapabilitySet,
        is_in_initial: bool,
    ) -> Lack {
        let number = errno(error);
        let lacking = self.lacking(effective);
        match number {
            // The verifier's word, which takes less from those whom it does not trust, is EACCES.
            Some(libc::EPERM | libc::EACCES) if !lacking.is_empty() => Lack {
                what: format!("this process lacks {}", lacking.join(" and ")),
                remedy: RIGHTS,
            },
            Some(libc::EPERM) if !is_in_initial => Lack {
                what: format!(
                    "this process has {} only in a user namespace of its own",
                    self.names().join(" and ")
                ),
                remedy: ELSEWHERE,
            },
            Some(libc::EPERM) => Lack {
                what: "the system forbids it, although this process has the capabilities".into(),
                remedy: ELSEWHERE,
            },
            Some(libc::ENOSYS) => Lack {
                what: "this kernel has no bpf system call".into(),
                remedy: self.kernel,
            },
            _ => Lack {
                what: causes::in_one_line(error),
                remedy: self.kernel,
            },
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.rights.iter().map(|(_, name)| *name).collect()
    }

    /// The capabilities that are missing. `CAP_SYS_ADMIN` stands for the two that were split from it.
    fn lacking(&self, effective: CapabilitySet) -> Vec<&'static str> {
        let from_administration = CapabilitySet::BPF | CapabilitySet::PERFMON;
        let stands_for = match effective.contains(CapabilitySet::SYS_ADMIN) {
            true => effective | from_administration,
            false => effective,
        };
        let missing = self
            .rights
            .iter()
            .filter(|(right, _)| !stands_for.contains(*right));
        missing.map(|(_, name)| *name).collect()
    }
}

/// Whether the kernel has no type of the name that a program is loaded for: no such tracepoint, no such iterator.
pub(crate) const fn has_no_target(error: &ProgramError) -> bool {
    matches!(
        error,
        ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })
    )
}

/// The error number of the first cause that has one.
pub(crate) fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let number = match error.downcast_ref() {
            // It stands for its cause, and shows only the cause of that.
            Some(ProgramError::IOError(error)) => Some(error),
            _ => error.downcast_ref::<io::Error>(),
        };
        if let Some(number) = number.and_then(io::Error::raw_os_error) {
            return Some(number);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs {
        rights: &[BPF, PERFMON],
        kernel: "run Linux 9.9",
    };

    fn lack(number: i32, effective: CapabilitySet) -> Lack {
        let error = ProgramError::IOError(io::Error::from_raw_os_error(number));
        NEEDS.lack_with(&error, effective, true)
    }

    #[test]
    fn the_missing_capabilities_are_named() {
        let nothing = lack(libc::EPERM, CapabilitySet::empty());
        assert_eq!(nothing.what, "this process lacks CAP_BPF and CAP_PERFMON");
        assert!(nothing.remedy.contains("root"), "{nothing:?}");
        let half = lack(libc::EACCES, CapabilitySet::BPF);
        assert_eq!(half.what, "this process lacks CAP_PERFMON");
    }

    #[test]
    fn who_has_the_capabilities_is_told_of_what_forbids_it() {
        for enough in [
            CapabilitySet::SYS_ADMIN,
            CapabilitySet::BPF | CapabilitySet::PERFMON,
        ] {
            let forbidden = lack(libc::EPERM, enough);
            assert!(forbidden.what.contains("although"), "{forbidden:?}");
            assert!(forbidden.remedy.contains("containers"), "{forbidden:?}");
        }
    }

    #[test]
    fn root_of_a_user_namespace_is_told_that_its_capabilities_end_there() {
        let error = ProgramError::IOError(io::Error::from_raw_os_error(libc::EPERM));
        let lack = NEEDS.lack_with(&error, CapabilitySet::all(), false);
        let what = "this process has CAP_BPF and CAP_PERFMON only in a user namespace of its own";
        assert_eq!(lack.what, what);
        assert!(lack.remedy.contains("user namespaces"), "{lack:?}");
    }

    #[test]
    fn what_a_kernel_does_not_take_is_told_with_the_kernel_that_would() {
        for number in [libc::EINVAL, libc::ENOSYS, libc::EACCES] {
            let old = lack(number, CapabilitySet::all());
            assert_eq!(old.remedy, "run Linux 9.9", "{old:?}");
        }
    }
}
