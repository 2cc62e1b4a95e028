//! Who looks on: the daemon's own word, and the kernel's about the connections.

use super::cells::DataPath;
use super::daemon::{Daemon, Duty, Noticed};
use super::trial::{ProgramTrial, TrialError};
use outlast_base::time::Duration;
use outlast_lab::{Cancel, LabError};
use outlast_linux::diag::{TcpConnection, TcpDiag};
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_scenario::Direction;
use outlast_testbed::site::{LINK, Site};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

impl Watched {
    /// What has come of a stream of datagrams, of which the kernel keeps no account.
    pub(super) fn of_datagrams(count: usize) -> Self {
        let read = 160 * count as u64;
        Self {
            received: read,
            read,
            ..Self::default()
        }
    }
}

/// The payload's connection, as the kernels of both ends have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Watched {
    ends: Option<(SocketAddr, SocketAddr)>,
    /// Payload bytes that came in order.
    pub(super) received: u64,
    /// Payload bytes that the receiving application has read.
    pub(super) read: u64,
    pub(super) sender: Sender,
}

/// Its sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sender {
    pub(super) congestion: String,
    pub(super) timeouts: Option<u16>,
    pub(super) bytes_retransmitted: Option<u64>,
}

/// Looks on, and has the daemon, if there is one.
pub(super) struct Witness<'t> {
    keeper: Namespace,
    outlast: &'t Path,
    control: PathBuf,
    path: DataPath,
    duty: Option<Duty>,
    daemon: Option<Daemon<'t>>,
    /// The receiver is the sender, too.
    awaits_answers: bool,
    receiver: RefCell<TcpDiag>,
    sender: RefCell<TcpDiag>,
}

impl<'t> Witness<'t> {
    /// Starts the daemon in `keeper`, if the trial has one from the beginning.
    pub(super) fn new(
        trial: &ProgramTrial,
        site: &Site,
        client: &Namespace,
        keeper: &Namespace,
        outlast: &'t Path,
        control: PathBuf,
    ) -> Result<Self, TrialError> {
        let descriptor = keeper.as_fd().try_clone_to_owned();
        let program = trial.cell.program;
        let (to, from) = match program.direction() {
            _ if program.awaits_answers() => (client, client),
            Direction::Download => (&site.mobile, &site.fixed),
            Direction::Upload => (&site.fixed, client),
        };
        let open = |place: &Namespace| {
            let diag = place.run(TcpDiag::open).map_err(LabError::from)?;
            Ok::<_, TrialError>(RefCell::new(diag.map_err(io_error)?))
        };
        let mut witness = Self {
            duty: trial.duty,
            keeper: descriptor.map_err(io_error)?.into(),
            outlast,
            control,
            path: trial.cell.path,
            daemon: None,
            awaits_answers: program.awaits_answers(),
            receiver: open(to)?,
            sender: open(from)?,
        };
        if !trial.cell.starts_late {
            witness.start_daemon()?;
        }
        Ok(witness)
    }

    /// Starts the daemon, if the trial has one.
    pub(super) fn start_daemon(&mut self) -> Result<(), TrialError> {
        let Some(duty) = self.duty else {
            return Ok(());
        };
        let arguments = ["--data-path", self.path.name()];
        let control = self.control.clone();
        self.daemon = Some(Daemon::start_on(
            LINK,
            duty,
            &self.keeper,
            self.outlast,
            control,
            &arguments,
        )?);
        Ok(())
    }

    /// Where the daemon is, or would be.
    pub(super) fn keeper(&self) -> &Namespace {
        &self.keeper
    }

    /// What the daemon says now; `None` without one.
    pub(super) fn noticed(&self) -> Result<Option<Noticed>, TrialError> {
        self.daemon.as_ref().map(Daemon::status).transpose()
    }

    /// The connection over which most has come.
    pub(super) fn watched(&self) -> Result<Option<Watched>, TrialError> {
        let all = self.receiver.borrow_mut().connections();
        let all = all.map_err(io_error)?;
        let most = all.iter().max_by_key(|c| c.bytes_received);
        let Some(most) = most.filter(|c| c.bytes_received > 0) else {
            return Ok(None);
        };
        let others = self.sender.borrow_mut().connections();
        let others = others.map_err(io_error)?;
        // Address translation shows another address, and the same port.
        let port = match self.awaits_answers {
            true => most.local.port(),
            false => most.remote.port(),
        };
        let sender = others.iter().find(|c| c.local.port() == port);
        let sender = sender.map(|c| Sender {
            congestion: c.congestion.clone(),
            timeouts: c.timeouts,
            bytes_retransmitted: c.bytes_retransmitted,
        });
        Ok(Some(Watched {
            ends: Some((most.local, most.remote)),
            received: most.bytes_received,
            read: most.bytes_read(),
            sender: sender.unwrap_or_default(),
        }))
    }

    /// The connection that `before` describes, as its receiver sees it now.
    pub(super) fn connection(&self, before: &Watched) -> Result<Option<Watched>, TrialError> {
        let all = self.receiver.borrow_mut().connections();
        let is_it = |c: &&TcpConnection| before.ends == Some((c.local, c.remote));
        let found = all.map_err(io_error)?;
        Ok(found.iter().find(is_it).map(|c| Watched {
            ends: before.ends,
            received: c.bytes_received,
            read: c.bytes_read(),
            sender: before.sender.clone(),
        }))
    }
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "look on",
        source,
    }
}

/// Waits for the end of `program`, but no longer than `patience`; whether it has ended.
///
/// # Errors
/// When the user asks for an end.
pub(crate) fn wait(
    cancel: &Cancel,
    program: Option<&ContainedProcess>,
    patience: Duration,
) -> Result<bool, TrialError> {
    let mut descriptors = vec![PollFd::new(cancel, PollFlags::IN)];
    descriptors.extend(program.map(|program| PollFd::new(program, PollFlags::IN)));
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match rustix::event::poll(&mut descriptors, Some(&timeout)) {
        // A signal came; whoever waits looks again.
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(io_error(error.into())),
        Ok(_) => {}
    }
    if !descriptors[0].revents().is_empty() {
        return Err(TrialError::Site(LabError::Cancelled));
    }
    Ok(descriptors.get(1).is_some_and(|d| !d.revents().is_empty()))
}
