//! Network namespaces without names: held by a descriptor, gone with the process.
//!
//! A namespace lives as long as a descriptor, a thread or a socket of it does. None is bound to
//! a file, so that nothing is left behind when the process is killed.

use crate::sys::thread::{Fresh, unshare};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

/// Which network namespace: the number in the link text of `/proc/PID/ns/net`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct NamespaceId(pub u64);

/// Why a network namespace cannot be had or entered.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel refuses to make one: without `CAP_SYS_ADMIN` in the user namespace.
    #[error(
        "not allowed to make a network namespace: run as root, or where ordinary users may make \
         user namespaces"
    )]
    NotPermitted,
    /// As many namespaces as `user.max_net_namespaces` allows.
    #[error("no more network namespaces allowed (user.max_net_namespaces)")]
    LimitReached,
    /// The kernel was built without network namespaces, or refuses for another reason.
    #[error("cannot make a network namespace")]
    Unavailable(#[source] io::Error),
    /// A thread to work in the namespace cannot be had.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The file that stands for the namespace cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// The namespace cannot be entered.
    #[error("cannot enter the network namespace")]
    Enter(#[source] io::Error),
}

impl Namespace {
    /// A new, empty namespace: a loopback device that is down, no address, no route.
    ///
    /// # Errors
    /// When the kernel or its limits do not allow it.
    pub fn new() -> Result<Self, NamespaceError> {
        on_a_thread(|| {
            unshare(Fresh::Network).map_err(|errno| refusal(errno.into()))?;
            Self::current()
        })?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// When `/proc` is not mounted.
    pub fn current() -> Result<Self, NamespaceError> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that a file of `/proc` stands for: `/proc/PID/ns/net`, or `/proc/PID/fd/N`
    /// of a process that holds one.
    ///
    /// # Errors
    /// When the file is not there, may not be opened, or is something else.
    pub fn open(path: &Path) -> Result<Self, NamespaceError> {
        open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map(|fd| Self { fd })
            .map_err(|errno| NamespaceError::Open {
                path: path.into(),
                source: errno.into(),
            })
    }

    /// Which one it is.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn id(&self) -> io::Result<NamespaceId> {
        Ok(NamespaceId(fstat(&self.fd)?.st_ino))
    }

    /// Runs `work` inside the namespace, on a thread of its own, and waits for it.
    ///
    /// Sockets, devices and settings that `work` makes belong to the namespace and stay in it
    /// when they are used elsewhere afterwards. A panic in `work` goes on in the caller.
    ///
    /// # Errors
    /// When the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        on_a_thread(|| {
            self.enter().map_err(NamespaceError::Enter)?;
            Ok(work())
        })?
    }

    /// Moves the calling thread into the namespace, for as long as it lives.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.fd.as_fd(), kind)?)
    }
}

impl From<OwnedFd> for Namespace {
    /// Takes a descriptor for a network namespace; of another kind, it cannot be entered.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

impl From<Namespace> for OwnedFd {
    fn from(namespace: Namespace) -> Self {
        namespace.fd
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl fmt::Display for NamespaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}]", self.0)
    }
}

fn refusal(error: io::Error) -> NamespaceError {
    match error.raw_os_error() {
        Some(libc::EPERM) => NamespaceError::NotPermitted,
        Some(libc::ENOSPC) => NamespaceError::LimitReached,
        _ => NamespaceError::Unavailable(error),
    }
}

/// Runs `work` on a thread of its own: what a thread does to its namespaces ends with it.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    let mut result = None;
    wait_for_a_thread(Box::new(|| result = Some(work())))?;
    Ok(result.expect("a thread that has ended without a panic has done its work"))
}

/// Compiled once, and not for each kind of work: starting a thread is much code.
fn wait_for_a_thread(work: Box<dyn FnOnce() + Send + '_>) -> Result<(), NamespaceError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("in-namespace".into())
            .spawn_scoped(scope, work)
            .map_err(NamespaceError::Thread)?;
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fresh_namespace;

    #[test]
    fn work_runs_inside_and_the_caller_stays_outside() {
        let Some(inside) = fresh_namespace() else {
            return;
        };
        let here = || Namespace::current().expect("open").id().expect("fstat");
        let outside = here();
        assert_eq!(
            inside.run(here).expect("enter"),
            inside.id().expect("fstat")
        );
        assert_ne!(outside, inside.id().expect("fstat"));
        assert_eq!(here(), outside);
    }

    #[test]
    fn sockets_stay_in_the_namespace_in_which_they_were_made() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let socket = namespace
            .run(|| std::net::UdpSocket::bind("0.0.0.0:0").expect("bind"))
            .expect("enter");
        // Nothing is reachable from there, whatever the host's routes are.
        let error = socket
            .send_to(b"x", "192.0.2.1:9")
            .expect_err("no route in an empty place");
        assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable);
    }
}
