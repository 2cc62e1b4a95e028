//! What a machine lacks on which the tracker, or another program of traffic control, does not run.

use super::TrackerError;
use crate::causes;
use crate::lack::{Lack, errno};
use rustix::thread::{CapabilitySet, capabilities};
use std::error::Error;

const KERNEL: &str = "run Linux 6.6 or newer, built with CONFIG_BPF_SYSCALL, CONFIG_BPF_JIT and \
                      CONFIG_NET_CLS_ACT, or Linux 6.1 with CONFIG_NET_CLS_BPF and \
                      CONFIG_NET_SCH_INGRESS, too";

const MAY_NOT: &str = "this process may not load eBPF programs";
const PERMISSION: &str = "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN outside of user \
                          namespaces";

impl TrackerError {
    /// What this machine lacks, and what would help.
    #[must_use]
    pub fn lack(&self) -> Lack {
        if errno(self) == Some(libc::ENOMEM) {
            return Lack {
                what: "there is no memory for the table of connections".into(),
                remedy: "lower `flows` in the configuration file's [limits]",
            };
        }
        Lack::shown_by(self, matches!(self, Self::Attach(_)))
    }
}

impl Lack {
    /// What `error` shows that this machine lacks; `attaches` if it is about attaching a program.
    pub(crate) fn shown_by(error: &(dyn Error + 'static), attaches: bool) -> Self {
        let errno = errno(error);
        let (what, remedy) = match (attaches, errno) {
            (_, Some(libc::EPERM)) => (MAY_NOT.into(), PERMISSION),
            // The verifier's word, which takes less from those whom it does not trust.
            (_, Some(libc::EACCES)) if !is_trusted() => (MAY_NOT.into(), PERMISSION),
            (_, Some(libc::ENOSYS)) => ("this kernel has no bpf system call".into(), KERNEL),
            (true, Some(libc::EBUSY)) => (
                "another program's filter is the first one of the interface".into(),
                "give that filter a priority other than 1 (`tc filter show`), or run Linux 6.6 or newer",
            ),
            (true, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT)) => (
                "this kernel attaches eBPF programs to traffic control neither by link (tcx) nor by filter \
                 (cls_bpf)"
                    .into(),
                KERNEL,
            ),
            _ => (
                format!(
                    "this kernel does not run its programs: {}",
                    causes::in_one_line(error)
                ),
                KERNEL,
            ),
        };
        Self { what, remedy }
    }
}

/// Whether the verifier lets the process's programs do with pointers what these do.
fn is_trusted() -> bool {
    let trusted = CapabilitySet::PERFMON.union(CapabilitySet::SYS_ADMIN);
    capabilities(None).is_ok_and(|sets| sets.effective.intersects(trusted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_refusal_says_what_would_help() {
        let refused = |errno| {
            let io_error = io::Error::from_raw_os_error(errno);
            TrackerError::Attach(io_error).lack()
        };
        let Lack { what, remedy } = refused(libc::EPERM);
        assert!(what.contains("may not") && remedy.contains("CAP_BPF"));
        let Lack { what, remedy } = refused(libc::EINVAL);
        assert!(what.contains("tcx") && remedy.contains("6.6"));
        // The classifier, or its queueing discipline, is a module that is not there.
        assert_eq!(refused(libc::ENOENT), refused(libc::EINVAL));
        let Lack { what, remedy } = refused(libc::EBUSY);
        assert!(what.contains("another") && remedy.contains("priority"));
        let Lack { what, .. } = refused(libc::EIO);
        assert!(what.contains("does not run its programs"), "{what}");
    }
}
