//! The control socket: who may write to it may tell the daemon of the link, and ask how it is.
//!
//! One JSON document each way, ended by a line feed.

use crate::failure::Failure;
use anyhow::{Context, anyhow};
use outlast_linux::poller::{Interest, Poller, Token};
use rustix::fs::Mode;
use rustix::process::umask;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest request in bytes.
const LONGEST: usize = 4096;
/// Clients at once; more wait.
const CLIENTS: usize = 16;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client asks for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// How it is.
    Status,
    /// The link, or one peer's, has changed.
    Notify {
        /// Whether it is there.
        state: Notified,
        /// Whose; without it, everybody's.
        peer: Option<IpAddr>,
    },
}

/// What somebody says of a link.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Notified {
    /// It is back.
    Up,
    /// It is gone.
    Down,
}

/// What the daemon answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// What was asked for.
    Done(Value),
    /// Why not.
    Refused(String),
}

/// The daemon's end.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    clients: BTreeMap<u64, Client>,
    next_token: u64,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    heard: Vec<u8>,
}

impl ControlSocket {
    /// Listens at `path`. Clients' tokens begin with `first_token`.
    pub(super) fn open(path: &Path, first_token: u64) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::Usage(format!(
                "cannot listen at {}: {error}; name another place with --control",
                path.display()
            ))
        };
        if let Some(directory) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o755);
            builder.create(directory).map_err(refused)?;
        }
        if UnixStream::connect(path).is_ok() {
            let path = path.display();
            return Err(Failure::Usage(format!(
                "a daemon listens at {path} already"
            )));
        }
        // One that was killed has left it behind.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {}
        }
        // Nobody else may connect, not even for a moment.
        let before = umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(refused)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.into(),
            clients: BTreeMap::new(),
            next_token: first_token,
        })
    }

    pub(super) const fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Somebody wants to connect.
    pub(super) fn accept(&mut self, poller: &Poller) -> io::Result<()> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => {
                // As when the process is out of descriptors: the client is told nothing.
                tracing::warn!(%error, "cannot accept a client");
                return Ok(());
            }
        };
        if self.clients.len() >= CLIENTS {
            tracing::warn!("too many clients at the control socket");
            return Ok(());
        }
        stream.set_nonblocking(true)?;
        let token = self.next_token;
        self.next_token += 1;
        poller.add(&stream, Token(token), Interest::Readable)?;
        let heard = Vec::new();
        self.clients.insert(token, Client { stream, heard });
        Ok(())
    }

    /// A client has something to say; what it asks for, once it has said all.
    pub(super) fn hear(&mut self, token: u64) -> Option<Request> {
        let client = self.clients.get_mut(&token)?;
        let mut buffer = [0; LONGEST];
        let outcome = match client.stream.read(&mut buffer) {
            Ok(0) => Err(String::new()),
            Ok(length) => {
                client.heard.extend(&buffer[..length]);
                match client.heard.iter().position(|&byte| byte == b'\n') {
                    Some(end) => {
                        serde_json::from_slice(&client.heard[..end]).map_err(|e| e.to_string())
                    }
                    None if client.heard.len() < LONGEST => return None,
                    None => Err("the request is too long".into()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => Err(error.to_string()),
        };
        match outcome {
            Ok(request) => Some(request),
            Err(why) => {
                self.answer(token, &Answer::Refused(why));
                None
            }
        }
    }

    /// Answers a client, and ends the conversation.
    pub(super) fn answer(&mut self, token: u64, answer: &Answer) {
        let Some(mut client) = self.clients.remove(&token) else {
            return;
        };
        let told = serde_json::to_vec(answer)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                // A socket's buffer has room for an answer; who does not read it is not waited for.
                client.stream.write_all(&line)
            });
        if let Err(error) = told {
            tracing::debug!(%error, "a client has gone");
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Whoever comes next removes what is left.
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the daemon that listens at `path`.
pub(crate) fn ask(path: &Path, request: Request) -> Result<Value, Failure> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::Usage(format!(
            "no daemon listens at {}: `outlast run --interface NAME` starts one",
            path.display()
        )),
        io::ErrorKind::PermissionDenied => {
            Failure::Usage(format!("not allowed to connect to {}", path.display()))
        }
        _ => Failure::Run(
            anyhow::Error::from(error).context(format!("cannot connect to {}", path.display())),
        ),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(&request).context("cannot write a request")?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .context("the daemon does not answer")?;
    match serde_json::from_str(&answer).context("the daemon's answer cannot be understood")? {
        Answer::Done(value) => Ok(value),
        Answer::Refused(why) => Err(Failure::Run(anyhow!("the daemon refuses: {why}"))),
    }
}
