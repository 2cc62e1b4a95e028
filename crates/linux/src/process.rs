//! Programs that run inside a network namespace and never outlive whoever started them.

use crate::namespace::Namespace;
use crate::sys::child::{before_exec, contain};
use crate::sys::thread::{Fresh, unshare};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, configure_capability_in_ambient_set,
    move_into_link_name_space, set_capabilities,
};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// A running program with everything that it starts.
///
/// It runs in a process-id namespace of its own below an init process, so that all of it ends
/// together: when the program itself ends, when this value is dropped, and when the process that
/// holds it dies, by whatever signal. A program that puts itself into the background therefore
/// ends at once.
#[derive(Debug)]
pub struct ContainedProcess {
    /// The init process of the container.
    init: OwnedFd,
    /// Spawned the init process and waits for it: the kernel ties the container to the life of
    /// this thread.
    keeper: Option<JoinHandle<io::Result<ExitStatus>>>,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A process-id namespace or the network namespace cannot be entered.
    #[error("cannot make a container for the program")]
    Container(#[source] io::Error),
    /// The program itself does not start: not found, not executable.
    #[error("cannot start {program}")]
    Program {
        /// The program.
        program: String,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

impl ContainedProcess {
    /// Starts `command` inside `namespace`, in a process group of its own, so that a Ctrl-C at
    /// the terminal reaches only the caller.
    ///
    /// # Errors
    /// When the container cannot be made or the program does not start.
    pub fn spawn(namespace: &Namespace, command: Command) -> Result<Self, ProcessError> {
        let namespace = namespace
            .as_fd()
            .try_clone_to_owned()
            .map_err(ProcessError::Container)?;
        let (report, started) = mpsc::sync_channel(1);
        let keeper = thread::Builder::new()
            .name("keeper".into())
            .spawn(move || keep(namespace, command, &report))
            .map_err(ProcessError::Container)?;
        match started.recv() {
            Ok(Ok(init)) => Ok(Self {
                init,
                keeper: Some(keeper),
            }),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => match keeper.join() {
                Ok(_) => unreachable!("the keeper reports before it ends"),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }

    /// Kills the program and everything that it started.
    pub fn kill(&self) {
        // The one possible failure is that it has ended already.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
    }

    /// Waits for the end of the program. A program killed by a signal has the exit code
    /// 128 + the signal's number, as in a shell.
    ///
    /// # Errors
    /// When the kernel does not let it be waited for.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.join()
    }

    fn join(&mut self) -> io::Result<ExitStatus> {
        let keeper = self
            .keeper
            .take()
            .expect("only `wait` and `drop` join, both once");
        keeper
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The descriptor becomes readable when the program has ended.
impl AsFd for ContainedProcess {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }
}

impl Drop for ContainedProcess {
    fn drop(&mut self) {
        if self.keeper.is_some() {
            self.kill();
            // Nobody asks for the status any more.
            let _ = self.join();
        }
    }
}

/// Makes `command` start inside `network`, and before that inside the user namespace `user` (an
/// open `/proc/PID/ns/user`) if one is given. There the program gets the capabilities to look at
/// and to change the network (`ip`, `ss`, `tcpdump` work), whoever the user is.
///
/// Unlike a [`ContainedProcess`], what `command` starts lives as long as it likes, and shares the
/// caller's terminal.
pub fn place(command: &mut Command, user: Option<OwnedFd>, network: OwnedFd) {
    let capabilities = CapabilitySet::NET_ADMIN
        | CapabilitySet::NET_RAW
        | CapabilitySet::NET_BIND_SERVICE
        | CapabilitySet::SYS_ADMIN;
    before_exec(command, move || {
        if let Some(user) = &user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        if user.is_some() {
            let mut sets = rustix::thread::capabilities(None)?;
            sets.inheritable |= capabilities;
            set_capabilities(None, sets)?;
            for capability in capabilities.iter() {
                configure_capability_in_ambient_set(capability, true)?;
            }
        }
        Ok(())
    });
}

/// Makes the kernel kill the program of `command` when the thread that spawns it ends.
pub fn end_with_this_thread(command: &mut Command) {
    before_exec(command, || {
        set_parent_process_death_signal(Some(Signal::KILL))
    });
}

/// The keeper's thread: starts the container, reports, and waits for its end.
fn keep(
    namespace: OwnedFd,
    mut command: Command,
    report: &mpsc::SyncSender<Result<OwnedFd, ProcessError>>,
) -> io::Result<ExitStatus> {
    let started = (|| {
        Namespace::from(namespace)
            .enter()
            .map_err(ProcessError::Container)?;
        unshare(Fresh::ProcessId).map_err(|errno| ProcessError::Container(errno.into()))?;
        let parent = pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|errno| ProcessError::Container(errno.into()))?;
        contain(command.process_group(0), parent);
        let child = command.spawn().map_err(|source| ProcessError::Program {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        // The child is not waited for before its pidfd is open: the pid cannot be another's.
        let init = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .map_err(|errno| ProcessError::Container(errno.into()))?;
        Ok((child, init))
    })();
    match started {
        Ok((mut child, init)) => {
            let reported = report.send(Ok(init));
            debug_assert!(reported.is_ok(), "the spawner waits for the report");
            child.wait()
        }
        Err(error) => {
            let reported = report.send(Err(error));
            debug_assert!(reported.is_ok(), "the spawner waits for the report");
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fresh_namespace;
    use std::io::Read;
    use std::process::Stdio;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn the_status_is_the_programs() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let program = ContainedProcess::spawn(&namespace, shell("exit 7")).expect("spawn");
        assert_eq!(program.wait().expect("wait").code(), Some(7));
        let program = ContainedProcess::spawn(&namespace, shell("kill -TERM $$")).expect("spawn");
        assert_eq!(
            program.wait().expect("wait").code(),
            Some(128 + libc::SIGTERM)
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let error = ContainedProcess::spawn(&namespace, Command::new("/nonexistent/program"));
        let error = error.expect_err("nothing to start");
        assert_eq!(error.to_string(), "cannot start /nonexistent/program");
    }

    #[test]
    fn everything_that_the_program_started_ends_with_it() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        // The pipe ends when the last process that holds it is gone.
        let (mut output, write_end) = io::pipe().expect("pipe");
        let mut command = shell("setsid sleep 1000 & (sleep 1000 & sleep 1000) & echo on; wait");
        command.stdout(write_end);
        let program = ContainedProcess::spawn(&namespace, command).expect("spawn");
        let mut greeting = [0; 3];
        output.read_exact(&mut greeting).expect("the program runs");
        drop(program);
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).expect("the pipe ends");
        assert!(rest.is_empty());
    }

    #[test]
    fn background_programs_end_with_the_main_one() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let (mut output, write_end) = io::pipe().expect("pipe");
        let mut command = shell("setsid sleep 1000 & exit 0");
        command.stdout(write_end);
        let program = ContainedProcess::spawn(&namespace, command).expect("spawn");
        assert_eq!(program.wait().expect("wait").code(), Some(0));
        assert_eq!(
            output.read_to_end(&mut Vec::new()).expect("the pipe ends"),
            0
        );
    }
}
