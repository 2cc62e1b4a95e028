//! Programs of the user's: a server on the fixed host, a client on the mobile.

use super::connection::{Interrupted, wait, wait_for_timer};
use super::{Context, Outcome};
use crate::error::LabError;
use crate::stop::StopReason;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::process::ContainedProcess;
use outlast_linux::socket::is_listening;
use outlast_linux::timer::Timer;
use outlast_scenario::{CommandLine, Commands, Compare};
use outlast_world::Side;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

/// How much of a program's output is kept: the end of it, in bytes.
const OUTPUT_TAIL: usize = 64 << 10;

/// How often a server is looked at until it listens. The kernel tells nobody when it does.
const READY_CHECK: Duration = Duration::from_millis(10);

/// A program and the end of what it printed.
struct Program {
    process: ContainedProcess,
    output: JoinHandle<io::Result<Vec<u8>>>,
}

/// How a program ended.
struct Ended {
    status: ExitStatus,
    output: String,
}

pub(super) fn run(cx: &Context<'_>, commands: &Commands) -> Result<Outcome, LabError> {
    if let Some(compare) = &commands.compare {
        remove(&in_scenario(cx, &compare.received))?;
    }
    let server = Program::start(cx, Side::Fixed, &commands.server)?;
    match wait_until_ready(cx, &server, commands.ready)? {
        Ready::Listens => {}
        Ready::Stopped => return Ok(not_completed(None)),
        Ready::Ended => {
            let ended = server.end(Side::Fixed)?;
            let what = format!("before it listened on TCP port {}", commands.ready);
            return Ok(not_completed(Some(ended.describe(Side::Fixed, &what))));
        }
    }
    let client = Program::start(cx, Side::Mobile, &commands.client)?;
    let finished = wait(cx.stop, &[(client.process.as_fd(), PollFlags::IN)]).is_ok();
    let ended_at = clock::now();
    cx.stop.pull(StopReason::Over);
    let ended = client.end(Side::Mobile)?;
    drop(server);
    let completed = finished && ended.status.success();
    let failure = (finished && !completed).then(|| ended.describe(Side::Mobile, ""));
    let intact = match &commands.compare {
        Some(compare) if completed => Some(are_equal(cx, compare)?),
        _ => None,
    };
    Ok(Outcome {
        completed,
        intact,
        ended: ended_at,
        ..not_completed(failure)
    })
}

/// An outcome of which only the link and the hosts' counters can tell more.
fn not_completed(failure: Option<String>) -> Outcome {
    Outcome {
        completed: false,
        intact: None,
        ended: clock::now(),
        deliveries: None,
        sender: None,
        timed_out: false,
        failure,
        updates: None,
    }
}

enum Ready {
    Listens,
    Ended,
    Stopped,
}

/// Waits until the server listens on `port`. It is looked for in the kernel's table of sockets:
/// a connection made to find out would disturb servers that serve one client only.
fn wait_until_ready(cx: &Context<'_>, server: &Program, port: u16) -> Result<Ready, LabError> {
    let failed = |action| move |source| LabError::Socket { action, source };
    let mut timer = Timer::new().map_err(failed("make a timer"))?;
    loop {
        let listens = cx.fixed.run(|| is_listening(port))?;
        if listens.map_err(failed("look for the server's socket"))? {
            return Ok(Ready::Listens);
        }
        timer
            .set(Some(clock::now() + READY_CHECK))
            .map_err(failed("set a timer"))?;
        let fds = [
            (server.process.as_fd(), PollFlags::IN),
            (timer.as_fd(), PollFlags::IN),
        ];
        match wait(cx.stop, &fds) {
            Ok(0) => return Ok(Ready::Ended),
            Ok(_) => match wait_for_timer(cx.stop, &mut timer) {
                Ok(()) => {}
                Err(_) => return Ok(Ready::Stopped),
            },
            Err(Interrupted::Stopped) => return Ok(Ready::Stopped),
            Err(Interrupted::Failed(source)) => {
                return Err(failed("wait for the server")(source));
            }
        }
    }
}

impl Program {
    fn start(cx: &Context<'_>, side: Side, line: &CommandLine) -> Result<Self, LabError> {
        let failed = |action| move |source| LabError::Socket { action, source };
        let (reader, writer) = io::pipe().map_err(failed("open a pipe"))?;
        let errors = writer.try_clone().map_err(failed("open a pipe"))?;
        let mut command = command(line);
        command
            .current_dir(&cx.scenario.directory)
            .env(Commands::FIXED_ADDRESS, cx.address(Side::Fixed).to_string())
            .env(Commands::FIXED_HOST, in_url(cx.address(Side::Fixed)))
            .env(
                Commands::MOBILE_ADDRESS,
                cx.address(Side::Mobile).to_string(),
            )
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(errors);
        let host = match side {
            Side::Fixed => cx.fixed,
            Side::Mobile => cx.mobile,
        };
        let process = ContainedProcess::spawn(host.namespace(), command)
            .map_err(|source| LabError::Program { side, source })?;
        let output = thread::Builder::new()
            .name("output".into())
            .spawn(move || tail(reader))
            .map_err(failed("start a thread"))?;
        Ok(Self { process, output })
    }

    /// Kills the program if it still runs; how it ended.
    fn end(self, side: Side) -> Result<Ended, LabError> {
        let failed = |source| LabError::Socket {
            action: "wait for a program",
            source,
        };
        self.process.kill();
        let status = self.process.wait().map_err(failed)?;
        let output = self
            .output
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let output = String::from_utf8_lossy(&output.map_err(failed)?).into_owned();
        tracing::debug!(%side, %status, output, "program ended");
        Ok(Ended { status, output })
    }
}

impl Ended {
    fn describe(&self, side: Side, when: &str) -> String {
        let output = self.output.trim();
        let said = match output.lines().rev().take(5).collect::<Vec<_>>() {
            lines if lines.is_empty() => String::new(),
            lines => {
                let last = lines.into_iter().rev().collect::<Vec<_>>().join(" | ");
                format!("; its last words: {last}")
            }
        };
        let when = if when.is_empty() {
            String::new()
        } else {
            format!(" {when}")
        };
        format!(
            "the command on the {side} host ended{when} ({}){said}",
            self.status
        )
    }
}

/// An address as URLs want it.
fn in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn command(line: &CommandLine) -> Command {
    match line {
        CommandLine::Shell(text) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(text);
            command
        }
        CommandLine::Words(words) => {
            let (program, arguments) = words.split_first().expect("the scenario has checked it");
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    }
}

/// Reads to the end and keeps the last [`OUTPUT_TAIL`] bytes.
fn tail(mut reader: PipeReader) -> io::Result<Vec<u8>> {
    let mut kept = VecDeque::with_capacity(2 * OUTPUT_TAIL);
    let mut buffer = [0; 4096];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            length => kept.extend(&buffer[..length]),
        }
        if kept.len() > OUTPUT_TAIL {
            kept.drain(..kept.len() - OUTPUT_TAIL);
        }
    }
    Ok(kept.into())
}

fn in_scenario(cx: &Context<'_>, path: &Path) -> PathBuf {
    cx.scenario.directory.join(path)
}

fn remove(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(LabError::File {
            path: path.into(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Whether what was received is what was sent.
fn are_equal(cx: &Context<'_>, compare: &Compare) -> Result<bool, LabError> {
    let sent = hash(&in_scenario(cx, &compare.sent))?;
    let received = hash(&in_scenario(cx, &compare.received))?;
    Ok(sent.is_some() && sent == received)
}

/// The hash of a file; `None` if there is none.
fn hash(path: &Path) -> Result<Option<blake3::Hash>, LabError> {
    let mut hasher = blake3::Hasher::new();
    match File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ())) {
        Ok(()) => Ok(Some(hasher.finalize())),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LabError::File {
            path: path.into(),
            source,
        }),
    }
}
