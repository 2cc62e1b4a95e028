//! The programs that make the traffic, and how they are started.

use super::cells::Cell;
use outlast_base::time::Instant;
use outlast_scenario::Direction;
use outlast_testbed::site::Place;
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What crosses the link.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Program {
    /// `curl` loads a file from `python3 -m http.server`.
    Curl,
    /// `rsync` fetches a file over `ssh`.
    RsyncDown,
    /// `rsync` brings a file over `ssh`.
    RsyncUp,
    /// `iperf3 --reverse`.
    IperfDown,
    /// `iperf3`.
    IperfUp,
    /// A server says something new every 50 ms over a WebSocket.
    WebSocket,
    /// `scp` brings a file out of a container on the mobile host.
    ContainedScp,
    /// A client writes to `redis-server` every 50 ms after the last answer.
    Redis,
    /// Somebody types a line every 50 ms after the last over `ssh`.
    Ssh,
    /// 64 kbit/s of UDP, as of a telephone call.
    Datagrams,
}

/// A program that is not installed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Missing {
    /// What is to be installed.
    pub program: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, package } = self;
        write!(
            f,
            "{program} is not installed (Debian: apt-get install {package})"
        )
    }
}

/// Where everybody's programs are, beside what `PATH` says: servers are not on it for everybody.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/bin", "/usr/local/sbin"];
/// What every ssh is told.
const SSH_OPTIONS: [&str; 4] = [
    "BatchMode=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "LogLevel=ERROR",
];
/// The port of a server that is alone.
const PORT: u16 = 8_022;
/// How often the session says something, in milliseconds.
pub const TICK_MS: u64 = 50;
const SESSION: &str = include_str!("session.py");
const REQUESTS: &str = include_str!("requests.py");
const ECHO: &str = include_str!("echo.py");
const DATAGRAMS: &str = include_str!("datagrams.py");

impl Program {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::Curl,
        Self::RsyncDown,
        Self::RsyncUp,
        Self::IperfDown,
        Self::IperfUp,
        Self::WebSocket,
        Self::ContainedScp,
        Self::Redis,
        Self::Ssh,
        Self::Datagrams,
    ];

    /// Which way the payload goes.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::RsyncUp | Self::IperfUp | Self::ContainedScp | Self::Redis => Direction::Upload,
            Self::Curl
            | Self::RsyncDown
            | Self::IperfDown
            | Self::WebSocket
            | Self::Ssh
            | Self::Datagrams => Direction::Download,
        }
    }

    /// Whether what counts is what its sender reads: the answers to what it asks. Between two requests it waits of its
    /// own accord, so what its server reads says less.
    #[must_use]
    pub const fn awaits_answers(self) -> bool {
        matches!(self, Self::Redis)
    }

    /// For tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::RsyncDown | Self::RsyncUp => "rsync over ssh",
            Self::IperfDown | Self::IperfUp => "iperf3",
            Self::WebSocket => "WebSocket session",
            Self::ContainedScp => "scp in a container",
            Self::Redis => "requests to redis",
            Self::Ssh => "ssh",
            Self::Datagrams => "UDP stream",
        }
    }

    /// Whether it is a transfer, which ends when all has come; a session ends in time.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        match self {
            Self::WebSocket | Self::Redis | Self::Ssh | Self::Datagrams => false,
            Self::Curl
            | Self::RsyncDown
            | Self::RsyncUp
            | Self::IperfDown
            | Self::IperfUp
            | Self::ContainedScp => true,
        }
    }

    /// Whether its client is in a container on the mobile host.
    #[must_use]
    pub const fn is_contained(self) -> bool {
        matches!(self, Self::ContainedScp)
    }

    /// How many bytes are read before the outage begins: what the connection needs for itself, and a
    /// little of the session, or about a second and a half of a transfer.
    #[must_use]
    pub const fn bytes_before(self) -> u64 {
        match self {
            Self::WebSocket | Self::Datagrams => 2_000,
            Self::Redis => 160,
            Self::Ssh => 5_000,
            _ => 1_800_000,
        }
    }

    /// Whether hashes of what was sent and of what came can be compared.
    #[must_use]
    pub const fn leaves_files(self) -> bool {
        match self {
            Self::Curl | Self::RsyncDown | Self::RsyncUp | Self::WebSocket | Self::ContainedScp => {
                true
            }
            // Redis and ssh say themselves that an answer is not right.
            Self::IperfDown | Self::IperfUp | Self::Redis | Self::Ssh | Self::Datagrams => false,
        }
    }
}

/// A program with its server, ready to be started.
#[derive(Debug)]
pub struct Stage {
    program: Program,
    /// Of the server.
    address: IpAddr,
    port: u16,
    directory: PathBuf,
    /// Paths of `NEEDS`' programs, in its order.
    tools: Vec<PathBuf>,
}

impl Stage {
    /// Prepares the program of `cell` in `directory`, with `payload` to be transferred unless it is a session.
    ///
    /// # Errors
    /// When a program is not installed, or files cannot be written.
    pub fn new(cell: Cell, directory: &Path, payload: &[u8]) -> io::Result<Result<Self, Missing>> {
        let address = Place::Fixed.address(cell.stack.ip);
        Self::at((address, PORT), cell.program, directory, payload)
    }

    /// Prepares `program` in `directory`, with its server at this address and port.
    ///
    /// # Errors
    /// As for [`Stage::new`].
    pub fn at(
        (address, port): (IpAddr, u16),
        program: Program,
        directory: &Path,
        payload: &[u8],
    ) -> io::Result<Result<Self, Missing>> {
        let tools = match find_all(program) {
            Ok(tools) => tools,
            Err(missing) => return Ok(Err(missing)),
        };
        let stage = Self {
            program,
            address,
            port,
            directory: directory.to_owned(),
            tools,
        };
        for name in ["sent", "got"] {
            fs::create_dir(stage.directory.join(name))?;
        }
        if program.is_transfer() {
            fs::write(stage.sent(), payload)?;
        }
        match program {
            Program::RsyncDown | Program::RsyncUp | Program::ContainedScp => stage.make_keys()?,
            Program::WebSocket => fs::write(stage.path("session.py"), SESSION)?,
            Program::Redis => fs::write(stage.path("requests.py"), REQUESTS)?,
            Program::Ssh => {
                stage.make_keys()?;
                fs::write(stage.path("echo.py"), ECHO)?;
            }
            Program::Datagrams => fs::write(stage.path("datagrams.py"), DATAGRAMS)?,
            Program::Curl | Program::IperfDown | Program::IperfUp => {}
        }
        Ok(Ok(stage))
    }

    /// What is to arrive.
    #[must_use]
    pub fn sent(&self) -> PathBuf {
        self.path("sent/payload")
    }

    /// What has arrived.
    #[must_use]
    pub fn got(&self) -> PathBuf {
        self.path("got/payload")
    }

    /// The port at which the server listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The server, for the fixed host.
    #[must_use]
    pub fn server(&self) -> Command {
        let address = self.address.to_string();
        let mut command = Command::new(&self.tools[0]);
        match self.program {
            Program::Curl => {
                command.args(["-m", "http.server", "--bind", &address, "--directory"]);
                command.arg(self.path("sent")).arg(self.port.to_string());
            }
            Program::RsyncDown | Program::RsyncUp | Program::ContainedScp | Program::Ssh => {
                command.args(["-D", "-e", "-f"]).arg(self.path("sshd"));
            }
            Program::Redis => {
                command.args(["--port", &self.port.to_string(), "--bind", &address]);
                command.args(["--save", "", "--appendonly", "no", "--protected-mode", "no"]);
            }
            Program::Datagrams => {
                command.arg(self.path("datagrams.py"));
                command.args(["send", &address, &self.port.to_string()]);
            }
            Program::IperfDown | Program::IperfUp => {
                command.args(["--server", "--one-off", "--bind", &address]);
                command.args(["--port", &self.port.to_string()]);
            }
            Program::WebSocket => {
                command.arg(self.path("session.py"));
                command.args(["serve", &address, &self.port.to_string()]);
                command.arg(self.over()).arg(self.sent());
            }
        }
        self.finish(command)
    }

    /// The client, for the mobile host.
    #[must_use]
    pub fn client(&self, bytes: u64) -> Command {
        let address = self.address.to_string();
        // Where a port or a path follows it.
        let bracketed = match self.address {
            IpAddr::V4(_) => address.clone(),
            IpAddr::V6(_) => format!("[{address}]"),
        };
        let mut command = Command::new(self.tools.get(1).unwrap_or(&self.tools[0]));
        match self.program {
            Program::Curl => {
                command.args(["--silent", "--show-error", "--fail", "--noproxy", "*"]);
                command.arg("--output").arg(self.got());
                command.arg(format!("http://{bracketed}:{}/payload", self.port));
            }
            Program::RsyncDown => {
                command.arg("--rsh").arg(self.ssh());
                command.arg(format!("{bracketed}:{}", self.sent().display()));
                command.arg(self.got());
            }
            Program::RsyncUp => {
                command.arg("--rsh").arg(self.ssh()).arg(self.sent());
                command.arg(format!("{bracketed}:{}", self.got().display()));
            }
            Program::IperfDown | Program::IperfUp => {
                command.args(["--client", &address, "--port", &self.port.to_string()]);
                command.args(["--bytes", &bytes.to_string(), "--json", "--logfile"]);
                command.arg(self.report());
                if self.program == Program::IperfDown {
                    // Its own patience as a receiver is shorter than outages are; a sender has none of the kind.
                    command.args(["--reverse", "--rcv-timeout", "900000"]);
                }
            }
            Program::WebSocket => {
                command.arg(self.path("session.py"));
                command.args(["follow", &bracketed, &self.port.to_string()]);
                command.arg(self.got());
            }
            Program::ContainedScp => {
                command.args(["-q", "-F", "none", "-P", &self.port.to_string(), "-i"]);
                command.arg(self.path("key"));
                for option in SSH_OPTIONS {
                    command.args(["-o", option]);
                }
                command.arg(self.sent());
                command.arg(format!("{bracketed}:{}", self.got().display()));
            }
            Program::Redis => {
                command.arg(self.path("requests.py"));
                command
                    .args([&address, &self.port.to_string()])
                    .arg(self.over());
            }
            Program::Ssh => {
                command.arg(self.path("echo.py")).arg(self.over());
                command.args(self.ssh().split(' ')).args([&address, "cat"]);
            }
            Program::Datagrams => {
                command.arg(self.path("datagrams.py"));
                command.args(["receive", &address, &self.port.to_string()]);
                command.arg(self.over()).arg(self.got());
            }
        }
        self.finish(command)
    }

    /// What iperf3 reports as an error, which its exit code does not always show; `None` if all is
    /// well, or it is another program.
    ///
    /// # Errors
    /// When there is no report.
    pub fn refusal(&self) -> io::Result<Option<String>> {
        if !matches!(self.program, Program::IperfDown | Program::IperfUp) {
            return Ok(None);
        }
        let text = fs::read_to_string(self.report())?;
        let report: serde_json::Value = serde_json::from_str(&text)?;
        Ok(report["error"]
            .as_str()
            .map(|error| format!("iperf3: {error}")))
    }

    /// Where iperf3 writes what it has measured.
    fn report(&self) -> PathBuf {
        self.path("got/report.json")
    }

    /// What a program has said, for whoever looks for the reason of a failure.
    #[must_use]
    pub fn said(&self) -> String {
        let text = fs::read(self.path("said")).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    fn finish(&self, mut command: Command) -> Command {
        // Where even this file cannot be made, the programs are silent.
        let said = fs::File::options()
            .append(true)
            .create(true)
            .open(self.path("said"));
        let said = said.and_then(|file| Ok((file.try_clone()?, file)));
        let (out, errors) = said.map_or((Stdio::null(), Stdio::null()), |(out, errors)| {
            (out.into(), errors.into())
        });
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        command.current_dir(&self.directory);
        command
    }

    /// Keys for this one session, and the server's configuration.
    fn make_keys(&self) -> io::Result<()> {
        for name in ["host", "key"] {
            let mut command = Command::new(&self.tools[2]);
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let made = command.arg(self.path(name)).output()?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr).into_owned();
                return Err(io::Error::other(format!("ssh-keygen: {why}")));
            }
        }
        // Where the server puts itself while it knows nobody yet.
        fs::create_dir_all("/run/sshd")?;
        let config = format!(
            "ListenAddress {}\nPort {}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n\
             PasswordAuthentication no\nSubsystem sftp internal-sftp\n",
            self.address,
            self.port,
            self.path("host").display(),
            self.path("key.pub").display(),
        );
        fs::write(self.path("sshd"), config)
    }

    fn ssh(&self) -> String {
        let options: Vec<_> = SSH_OPTIONS
            .iter()
            .map(|option| format!("-o {option}"))
            .collect();
        format!(
            "{} -F none -p {} -i {} {}",
            self.tools[3].display(),
            self.port,
            self.path("key").display(),
            options.join(" "),
        )
    }

    /// Has a session end after what is being said.
    ///
    /// # Errors
    /// When the sign cannot be written.
    pub fn end_session(&self) -> io::Result<()> {
        fs::write(self.over(), "")
    }

    /// Its existence is the sign at which a session ends. A session that ended by the clock would be over
    /// before the outage where the machine is slow.
    fn over(&self) -> PathBuf {
        self.path("over")
    }

    /// The datagrams that have come so far: when each was sent, and when it came.
    ///
    /// # Errors
    /// When the receiver's notes cannot be read.
    pub fn datagrams(&self) -> io::Result<Vec<(Instant, Instant)>> {
        let text = fs::read_to_string(self.got())?;
        let at = |text: &str| text.parse().ok().map(Instant::from_nanos);
        let both = |line: &str| {
            let (sent, came) = line.split_once(' ')?;
            Some((at(sent)?, at(came)?))
        };
        // The last line may be half written.
        Ok(text.lines().filter_map(both).collect())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// What `program` needs that is not installed; `None` if all of it is.
#[must_use]
pub fn missing(program: Program) -> Option<Missing> {
    find_all(program).err()
}

/// The server's program, the client's where it is another one, and what they need besides.
fn find_all(program: Program) -> Result<Vec<PathBuf>, Missing> {
    let python = |import: &str, package| {
        let program = if import.is_empty() {
            "python3"
        } else {
            "python3 with websockets"
        };
        find_python(import).ok_or(Missing { program, package })
    };
    match program {
        Program::Curl => Ok(vec![python("", "python3")?, find("curl", "curl")?]),
        Program::RsyncDown | Program::RsyncUp => Ok(vec![
            find("sshd", "openssh-server")?,
            find("rsync", "rsync")?,
            find("ssh-keygen", "openssh-client")?,
            find("ssh", "openssh-client")?,
        ]),
        Program::IperfDown | Program::IperfUp => Ok(vec![find("iperf3", "iperf3")?]),
        Program::WebSocket => Ok(vec![python("websockets", "python3-websockets")?]),
        Program::ContainedScp => match super::container::missing() {
            Some(missing) => Err(missing),
            None => Ok(vec![
                find("sshd", "openssh-server")?,
                find("scp", "openssh-client")?,
                find("ssh-keygen", "openssh-client")?,
            ]),
        },
        Program::Redis => Ok(vec![
            find("redis-server", "redis-server")?,
            python("", "python3")?,
        ]),
        Program::Ssh => Ok(vec![
            find("sshd", "openssh-server")?,
            python("", "python3")?,
            find("ssh-keygen", "openssh-client")?,
            find("ssh", "openssh-client")?,
        ]),
        Program::Datagrams => Ok(vec![python("", "python3")?]),
    }
}

pub(crate) fn find(program: &'static str, package: &'static str) -> Result<PathBuf, Missing> {
    candidates(program)
        .find(|path| path.is_file())
        .ok_or(Missing { program, package })
}

/// The first Python that has the module: one of several may.
pub(crate) fn find_python(import: &str) -> Option<PathBuf> {
    candidates("python3").find(|path| {
        let mut command = Command::new(path);
        let code = match import {
            "" => String::new(),
            module => format!("import {module}"),
        };
        command.args(["-c", &code]).stdin(Stdio::null());
        command.output().is_ok_and(|said| said.status.success())
    })
}

fn candidates(program: &str) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = named.into_iter().chain(PLACES.map(PathBuf::from));
    all.map(move |directory| directory.join(program))
        .collect::<Vec<_>>()
        .into_iter()
}
