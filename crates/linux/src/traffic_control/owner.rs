//! Names of filters, which tell the process that they belong to.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fmt;
use std::fs;
use std::io;
use std::process;

/// The first word of the names.
const PREFIX: &str = "outlast";
/// The place of the time of a process's start in `/proc/PID/stat`, counted behind its state.
const STARTED: usize = 18;

/// A process, told from those that have its number later.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Owner {
    /// Its process-id namespace, as `/proc` writes it.
    namespace: String,
    pid: u32,
    /// When it was started, in ticks since the machine was.
    started: u64,
    /// It, or one before it, has made the queueing discipline of the filters.
    pub(super) has_made_clsact: bool,
}

impl Owner {
    pub(super) fn this_process(has_made_clsact: bool) -> io::Result<Self> {
        let pid = process::id();
        let started = started(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            namespace: namespace()?,
            pid,
            started,
            has_made_clsact,
        })
    }

    /// The process whose filter has this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut words = name.split(' ');
        let is_ours = words.next() == Some(PREFIX);
        let owner = Self {
            namespace: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            started: words.next()?.parse().ok()?,
            has_made_clsact: match words.next()? {
                "made" => true,
                "found" => false,
                _ => return None,
            },
        };
        (is_ours && words.next().is_none()).then_some(owner)
    }

    /// True if the process is known to have ended. Of another namespace's processes nothing is known, and of those
    /// that `/proc` hides only that there are some.
    pub(super) fn has_ended(&self) -> bool {
        let is_here = namespace().is_ok_and(|here| here == self.namespace);
        is_here
            && (is_unused(self.pid) || started(self.pid).is_some_and(|other| other != self.started))
    }

    /// A process that had this one's number before.
    #[cfg(test)]
    pub(super) fn that_has_ended(self) -> Self {
        Self {
            started: self.started - 1,
            ..self
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            pid,
            started,
            has_made_clsact,
        } = self;
        let clsact = if *has_made_clsact { "made" } else { "found" };
        write!(f, "{PREFIX} {namespace} {pid} {started} {clsact}")
    }
}

/// Reads as `pid:[4026531836]`.
fn namespace() -> io::Result<String> {
    let link = fs::read_link("/proc/self/ns/pid")?;
    Ok(link.to_string_lossy().into_owned())
}

fn is_unused(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// `None` of a process that is not there, or hidden; no time at all of one that has ended.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = text.rsplit_once(')')?;
    let mut words = behind_name.split_whitespace();
    match words.next()? {
        // Its parent has not asked for its status yet.
        "Z" | "X" => Some(0),
        _ => words.nth(STARTED)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_process() {
        let own = Owner::this_process(true).expect("proc");
        let found = Owner::this_process(false).expect("proc");
        for owner in [&own, &found] {
            assert_eq!(Owner::named(&owner.to_string()).as_ref(), Some(owner));
        }
        assert!(!own.has_ended());
        assert!(own.clone().that_has_ended().has_ended());
        let gone = Owner {
            // Beyond the largest that the kernel gives.
            pid: (1 << 22) + 1,
            ..own
        };
        assert!(gone.has_ended());
        let elsewhere = Owner {
            namespace: "pid:[1]".into(),
            ..gone
        };
        assert!(!elsewhere.has_ended(), "nobody here knows");
    }

    #[test]
    fn other_names_are_others() {
        for name in [
            "",
            "outlast",
            "outlast pid:[1] 2",
            "outlast a 1 2 3",
            "cil_from_netdev a 1 2",
        ] {
            assert_eq!(Owner::named(name), None, "{name}");
        }
    }
}
