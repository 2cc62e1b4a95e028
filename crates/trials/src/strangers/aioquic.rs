//! QUIC as aioquic has it: two programs in Python, a server that sends without end and a client that reads in order.

use super::arrivals::Arrival;
use crate::gateway_matrix::programs::{Missing, find_python};
use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::Instant;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = include_str!("quic_transfer.py");

/// Both programs, which end when this is dropped.
pub(super) struct Programs {
    _server: ContainedProcess,
    _client: ContainedProcess,
    /// A line here has the client begin.
    go: PipeWriter,
    /// What the client tells of its arrivals.
    told: PathBuf,
    /// Closed, they could complain of nothing any more.
    _said: [BufReader<PipeReader>; 2],
}

/// What the client has read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// When, and how much.
    pub(super) arrivals: Vec<Arrival>,
    /// Why it ended, if it did.
    pub(super) ended: Option<String>,
}

/// The Python that has aioquic.
///
/// # Errors
/// When none has it.
pub(super) fn python() -> Result<PathBuf, Missing> {
    find_python("aioquic").ok_or(Missing {
        program: "a python3 on PATH with aioquic",
        package: "python3-venv; then pip install aioquic",
    })
}

impl Programs {
    /// Starts a server at `server` in `fixed` and a client in `mobile`, which waits for [`Self::begin`].
    pub(super) fn prepare(
        [fixed, mobile]: [&Namespace; 2],
        server: SocketAddr,
        directory: &Path,
    ) -> Result<Self, TrialError> {
        let python = python().map_err(TrialError::Missing)?;
        let (program, told) = (
            directory.join("quic_transfer.py"),
            directory.join("arrivals"),
        );
        fs::write(&program, PROGRAM).map_err(io_error)?;
        let command = |name: &str| {
            let mut command = Command::new(&python);
            command.arg(&program).arg(name);
            command.args([server.ip().to_string(), server.port().to_string()]);
            command.stdin(Stdio::null());
            command
        };
        let (said, to_us) = io::pipe().map_err(io_error)?;
        let mut serve = command("serve");
        serve.stdout(Stdio::null()).stderr(to_us);
        let serving = ContainedProcess::spawn(fixed, serve)?;
        let of_server = ready(said, "the server of aioquic does not start")?;

        let (for_it, go) = io::pipe().map_err(io_error)?;
        let (said, to_us) = io::pipe().map_err(io_error)?;
        let mut fetch = command("fetch");
        fetch.arg(&told).stdin(for_it);
        fetch.stdout(Stdio::null()).stderr(to_us);
        let fetching = ContainedProcess::spawn(mobile, fetch)?;
        let of_client = ready(said, "the client of aioquic does not start")?;
        Ok(Self {
            _server: serving,
            _client: fetching,
            go,
            told,
            _said: [of_server, of_client],
        })
    }

    /// Has the transfer begin.
    pub(super) fn begin(&mut self) -> Result<(), TrialError> {
        self.go.write_all(b"\n").map_err(io_error)
    }

    /// Ends it; what has come until then.
    pub(super) fn end(self) -> io::Result<Read> {
        let told = BufReader::new(File::open(&self.told)?);
        let mut read = Read::default();
        for line in told.lines() {
            let line = line?;
            match line.split_once(' ') {
                Some(("ended", why)) => read.ended = Some(why.to_owned()),
                Some((at, bytes)) => {
                    // The last line may be cut short.
                    if let (Ok(at), Ok(bytes)) = (at.parse(), bytes.parse()) {
                        read.arrivals.push(Arrival {
                            at: Instant::from_nanos(at),
                            sent: None,
                            number: None,
                            bytes,
                        });
                    }
                }
                None => {}
            }
        }
        Ok(read)
    }
}

/// Waits until the program says that it is ready.
fn ready(said: PipeReader, what: &'static str) -> Result<BufReader<PipeReader>, TrialError> {
    let mut said = BufReader::new(said);
    let mut text = String::new();
    while !text.ends_with("ready\n") {
        if said.read_line(&mut text).map_err(io_error)? == 0 {
            let said = text.trim().to_owned();
            return Err(TrialError::Program { what, said });
        }
    }
    Ok(said)
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run aioquic",
        source,
    }
}
