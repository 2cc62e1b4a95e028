//! The control socket: who may connect may ask how the daemon is; its owner and its group may tell
//! it of the link, and to read its configuration again.
//!
//! One JSON document each way, ended by a line feed.

use super::clients::{Clients, Heard, Stream};
use super::config::Access;
use super::listening::Door;
use crate::failure::Failure;
use anyhow::{Context, anyhow};
use outlast_base::time::Instant;
use outlast_linux::peer::Credentials;
use outlast_linux::poller::{Poller, Token};
use rustix::fs::Mode;
use rustix::process::{geteuid, umask};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest request in bytes.
const LONGEST: usize = 4096;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a client asks for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How it is.
    Status,
    /// How it is, with the connections that keep the most.
    Flows {
        /// How many of them.
        limit: usize,
    },
    /// The link, or one peer's, has changed.
    Notify {
        /// Whether it is there.
        state: Notified,
        /// Whose; without it, everybody's.
        peer: Option<IpAddr>,
        /// Of which interface, where the daemon watches several; without it, of all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<String>,
    },
    /// The configuration file has changed.
    Reload,
}

impl Request {
    /// Whether it changes anything.
    const fn is_an_order(&self) -> bool {
        matches!(self, Self::Notify { .. } | Self::Reload)
    }
}

/// What somebody says of a link.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Notified {
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
    door: Door<UnixListener>,
    path: PathBuf,
    /// The user who may give orders.
    owner: u32,
    /// The group whose members may.
    group: u32,
    /// Whether each may give orders.
    clients: Clients<bool>,
}

impl ControlSocket {
    /// Listens at `path`; `listening` and clients' tokens from `first_token` on are how `poller` calls
    /// them.
    pub(super) fn open(
        path: &Path,
        access: &Access,
        poller: &Poller,
        listening: Token,
        first_token: u64,
    ) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::Usage(format!(
                "cannot listen at {}: {error}; name another place with --control",
                path.display()
            ))
        };
        let (owner, group) = (owner(access)?, group(access)?);
        if let Some(directory) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o755);
            // The socket says who may connect, not the umask of who has started the daemon.
            let before = umask(Mode::from_raw_mode(0o022));
            let created = builder.create(directory);
            umask(before);
            created.map_err(refused)?;
        }
        let listener = listen(path).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                Failure::Usage(format!("a daemon listens at {} already", path.display()))
            }
            _ => refused(error),
        })?;
        let control = Self {
            door: Door::open(listener, listening, poller).context("cannot wait for clients")?,
            path: path.into(),
            owner: owner.unwrap_or_else(|| geteuid().as_raw()),
            group: group.unwrap_or_else(|| rustix::process::getegid().as_raw()),
            clients: Clients::new(first_token, LONGEST),
        };
        if owner.is_some() || group.is_some() {
            chown(path, owner, group).map_err(|error| {
                Failure::Usage(format!(
                    "cannot give {} to the user or group of the configuration: {error}",
                    path.display()
                ))
            })?;
        }
        let usual = if group.is_some() { 0o660 } else { 0o600 };
        let mode = Permissions::from_mode(access.mode.unwrap_or(usual));
        fs::set_permissions(path, mode).map_err(refused)?;
        Ok(control)
    }

    /// Somebody connects.
    pub(super) fn accept(&mut self, now: Instant, poller: &Poller) -> io::Result<()> {
        let stream = match self.door.accept(now, poller) {
            Ok(Some(stream)) => stream,
            Ok(None) => return Ok(()),
            Err(error) => {
                // Out of descriptors: the client is told nothing.
                tracing::warn!(%error, "cannot accept a client");
                return Ok(());
            }
        };
        let is_trusted = match Credentials::of(&stream) {
            Ok(peer) => self.may_give_orders(&peer),
            Err(error) => {
                tracing::warn!(%error, "cannot tell who a client is");
                false
            }
        };
        let stream = Stream::Unix(stream);
        self.clients
            .admit(now, stream, is_trusted, poller)
            .map(drop)
    }

    /// The superuser, the socket's owner, and who is in its group.
    fn may_give_orders(&self, peer: &Credentials) -> bool {
        peer.user == 0 || peer.user == self.owner || peer.groups.contains(&self.group)
    }

    /// A client is ready; what it asks for, once it has said all and may ask for it.
    pub(super) fn serve(&mut self, token: u64, poller: &Poller) -> Option<Request> {
        let end_of_line = |heard: &[u8]| heard.iter().position(|&byte| byte == b'\n');
        let why = match self.clients.serve(token, end_of_line) {
            Heard::Nothing => return None,
            Heard::Request(line, is_trusted) => match serde_json::from_slice::<Request>(&line) {
                Ok(request) => {
                    if is_trusted || !request.is_an_order() {
                        return Some(request);
                    }
                    format!(
                        "only the superuser, the owner of {0} and members of its group may do that",
                        self.path.display()
                    )
                }
                Err(error) => error.to_string(),
            },
            Heard::TooMuch => "the request is too long".into(),
        };
        self.answer(token, &Answer::Refused(why), poller);
        None
    }

    /// Answers a client, and ends the conversation.
    pub(super) fn answer(&mut self, token: u64, answer: &Answer, poller: &Poller) {
        match serde_json::to_vec(answer) {
            Ok(mut line) => {
                line.push(b'\n');
                self.clients.answer(token, line, poller);
            }
            Err(error) => tracing::warn!(%error, "cannot write an answer"),
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let both = [self.clients.poll_timeout(), self.door.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// Sends away who has taken too long.
    pub(super) fn handle_timeout(&mut self, now: Instant, poller: &Poller) {
        self.clients.handle_timeout(now);
        self.door.handle_timeout(now, poller);
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Whoever comes next removes what is left.
        let _ = fs::remove_file(&self.path);
    }
}

/// Listens at `path` for the owner alone; [`io::ErrorKind::AddrInUse`] if somebody else does.
pub(super) fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => {
            if !is_left_behind(path)? {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            fs::remove_file(path)?;
        }
        // Somebody's file, whose name was given by mistake.
        Ok(_) => return Err(io::Error::other("it is there already, and is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Nobody else may connect, not even for a moment.
    let before = umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether nobody has the socket at `path` any more: one that was killed has left it. Who does not
/// answer is not waited for.
pub fn is_left_behind(path: &Path) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Ok(()) => Ok(false),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Ok(true),
            // Too many wait for it.
            io::ErrorKind::WouldBlock => Ok(false),
            // One of another kind, or of somebody who lets nobody in.
            _ => Err(error),
        },
    }
}

/// The user of `control_owner`.
fn owner(access: &Access) -> Result<Option<u32>, Failure> {
    let find =
        |name: &str| nix::unistd::User::from_name(name).map(|user| user.map(|u| u.uid.as_raw()));
    find_id("control_owner", access.owner.as_deref(), "user", find)
}

/// The group of `control_group`.
fn group(access: &Access) -> Result<Option<u32>, Failure> {
    let find =
        |name: &str| nix::unistd::Group::from_name(name).map(|group| group.map(|g| g.gid.as_raw()));
    find_id("control_group", access.group.as_deref(), "group", find)
}

/// The number of a user or group that is given by name or number.
fn find_id(
    key: &str,
    name: Option<&str>,
    what: &str,
    find: impl Fn(&str) -> nix::Result<Option<u32>>,
) -> Result<Option<u32>, Failure> {
    let Some(name) = name else {
        return Ok(None);
    };
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    match find(name) {
        Ok(Some(number)) => Ok(Some(number)),
        Ok(None) => Err(Failure::Usage(format!(
            "`{key} = \"{name}\"`: this machine has no such {what}; `getent` shows those that it has"
        ))),
        Err(error) => Err(Failure::Run(
            anyhow!(error).context(format!("cannot look up the {what} `{name}`")),
        )),
    }
}

/// Checks that the user and the group of the configuration are there.
pub(crate) fn check(access: &Access) -> Result<(), Failure> {
    owner(access)?;
    group(access).map(drop)
}

/// Asks the daemon that listens at `path`.
pub fn ask(path: &Path, request: Request) -> Result<Value, Failure> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Failure::Usage(format!(
            "no daemon listens at {}: `outlast run --interface NAME` starts one",
            path.display()
        )),
        io::ErrorKind::PermissionDenied => Failure::Usage(format!(
            "not allowed to connect to {}: `control_group` and `control_mode` in the daemon's \
             configuration say who is",
            path.display()
        )),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_daemon_left_is_replaced_and_somebodys_file_is_not() {
        let place = tempfile::tempdir().expect("a place");
        let socket = place.path().join("control.sock");
        drop(listen(&socket).expect("free"));
        assert!(socket.exists(), "closed, and left behind");
        let _listener = listen(&socket).expect("nobody listens");
        let taken = listen(&socket).expect_err("somebody listens");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        let file = place.path().join("config.toml");
        fs::write(&file, "interface = \"wwan0\"\n").expect("ours");
        let refused = listen(&file).expect_err("a file");
        assert!(refused.to_string().contains("no socket"), "{refused}");
        assert!(file.exists(), "as it was");
    }

    /// The error of listening at `path`, which takes no time.
    fn tried(path: &Path) -> io::Error {
        let path = path.to_owned();
        let (tell, hear) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(listen(&path).map(drop)));
        let patience = Duration::from_secs(30);
        let tried = hear.recv_timeout(patience).expect("nobody is waited for");
        tried.expect_err("it is taken")
    }

    #[test]
    fn who_listens_and_does_not_answer_is_not_waited_for() {
        let place = tempfile::tempdir().expect("a place");
        let path = place.path().join("control.sock");
        let address = SockAddr::unix(&path).expect("short");
        let stuck = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        stuck.bind(&address).expect("free");
        stuck.listen(0).expect("bound");
        let _first = UnixStream::connect(&path).expect("there is room for one");
        assert_eq!(tried(&path).kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
    }

    #[test]
    fn a_socket_of_another_kind_is_somebodys_too() {
        let place = tempfile::tempdir().expect("a place");
        let path = place.path().join("notify.sock");
        let theirs = std::os::unix::net::UnixDatagram::bind(&path).expect("free");
        let refused = tried(&path);
        assert_ne!(refused.kind(), io::ErrorKind::AddrInUse, "{refused}");
        let ours = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
        ours.send_to(b"still there", &path).expect("as before");
        drop(theirs);
    }
}
