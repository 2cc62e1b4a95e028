//! curl, ssh and a WebSocket session through twenty hand-offs, with each kind of care-of address; a host beside them
//! without Mobile IP.

use super::{CareOf, Cell, HOME_ADDRESS, Hosts};
use crate::hip::{PATIENCE, pace, skip};
use crate::support::Place;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const HAND_OFFS: usize = 20;
const ROUND: [Cell; 3] = [Cell::B, Cell::Home, Cell::A];
/// What programs do; the last one sends, the others receive.
const KINDS: [&str; 4] = ["http", "ssh", "websocket", "upload"];
const UPLOAD: usize = 3;

const CORRESPONDENT: &str = "10.50.0.9";
const PLAIN: &str = "10.50.0.6";
const PYTHON: &str = "/usr/bin/python3";
const SSHD: &str = "/usr/sbin/sshd";
const HTTP_PORT: &str = "8080";
const SSH_PORT: &str = "8022";
const WEBSOCKET_PORT: &str = "8081";

/// A program that ends with this.
struct Program(Child);

impl Program {
    /// Starts it in a namespace; its output goes to a file, what it complains of to another.
    fn start(place: &Place, host: &Namespace, name: &str, command: &[&str]) -> Self {
        Self::start_fed(place, host, name, command, None)
    }

    /// As [`Self::start`]; its input is what `feeder` writes.
    fn start_fed(
        place: &Place,
        host: &Namespace,
        name: &str,
        command: &[&str],
        feeder: Option<&mut Child>,
    ) -> Self {
        let input = feeder.map(|feeder| feeder.stdout.take().expect("piped"));
        let open = |kind: &str| {
            let at = place.path().join(name).with_extension(kind);
            File::create(at).expect("a file in a directory of ours")
        };
        let (program, arguments) = command.split_first().expect("a program");
        let start = move || {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(place.path());
            command.stdin(input.map_or_else(Stdio::null, Stdio::from));
            command.stdout(open("got")).stderr(open("log"));
            command.spawn().expect("it is installed")
        };
        Self(host.run(start).expect("enter"))
    }

    /// Waits for the program's own end.
    fn await_end(mut self) -> bool {
        let begun = clock::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("ours") {
                return status.success();
            }
            if clock::now() - begun > PATIENCE {
                return false;
            }
            pace();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Not waited for, it is ours still; it may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says what is missing; whether nothing is.
fn has_all() -> bool {
    let needs = [
        ("curl", "--version"),
        ("ssh", "-V"),
        ("ssh-keygen", "-?"),
        (SSHD, "-V"),
        (PYTHON, "--version"),
    ];
    let missing = needs.iter().find(|(program, argument)| {
        let output = Command::new(program).arg(argument).output();
        output.is_err()
    });
    if let Some((program, _)) = missing {
        skip(&format!("{program} is not installed"));
        return false;
    }
    let module = Command::new(PYTHON)
        .args(["-c", "import websockets"])
        .output();
    let has_module = module.is_ok_and(|output| output.status.success());
    if !has_module {
        skip("python3-websockets is not installed");
    }
    has_module
}

/// The correspondent's servers, once they listen.
fn serve(place: &Place, host: &Namespace) -> [Program; 3] {
    place.file("talk.py", include_str!("talk.py"));
    for name in ["host-key", "user-key"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
        let made = command.arg(place.path().join(name)).output();
        assert!(made.expect("it is installed").status.success());
    }
    // Where the server puts itself while it knows nobody yet.
    fs::create_dir_all("/run/sshd").expect("as root");
    let at = |name: &str| place.path().join(name).display().to_string();
    let settings = format!(
        "ListenAddress {CORRESPONDENT}\nPort {SSH_PORT}\nHostKey {}\nAuthorizedKeysFile {}\n\
         PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n\
         PasswordAuthentication no\n",
        at("host-key"),
        at("user-key.pub"),
    );
    place.file("sshd", &settings);
    let (talk, sshd) = (at("talk.py"), at("sshd"));
    let python = |what, port| [PYTHON, &*talk, what, CORRESPONDENT, port].map(str::to_owned);
    let start = |name: &str, command: &[String]| {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        Program::start(place, host, name, &command)
    };
    let servers = [
        start("http-server", &python("http", HTTP_PORT)),
        Program::start(place, host, "ssh-server", &[SSHD, "-D", "-e", "-f", &sshd]),
        start("websocket-server", &python("serve", WEBSOCKET_PORT)),
    ];
    let begun = clock::now();
    for port in [HTTP_PORT, SSH_PORT, WEBSOCKET_PORT] {
        let port = port.parse().expect("a port");
        let listens = || outlast_linux::socket::is_listening(port).expect("procfs");
        while !host.run(listens).expect("enter") {
            assert!(clock::now() - begun < PATIENCE, "nobody listens at {port}");
            pace();
        }
    }
    servers
}

/// One host's programs.
struct Clients {
    programs: [Program; 4],
    /// What the uploading program reads.
    _source: Program,
    /// What each program, or the server for it, has sent and has got.
    sent: [PathBuf; 4],
    got: [PathBuf; 4],
}

impl Clients {
    /// Starts them on a host that speaks from `address`.
    fn start(place: &Place, host: &Namespace, address: &str) -> Self {
        let at = |name: &str| place.path().join(name).display().to_string();
        let (talk, key) = (at("talk.py"), at("user-key"));
        let name = address.replace('.', "-");
        let kinds = KINDS.map(|kind| format!("{kind}-to-{name}"));
        // The server's files bear the address that it was spoken to from.
        let at_server = KINDS.map(|kind| place.path().join(format!("{kind}-{address}.said")));
        let here = [0, 1, 2, 3].map(|kind| place.path().join(&kinds[kind]).with_extension("got"));
        let (mut sent, mut got) = (at_server, here);
        std::mem::swap(&mut sent[UPLOAD], &mut got[UPLOAD]);
        let heard = got[2].display().to_string();
        let url = format!("http://{CORRESPONDENT}:{HTTP_PORT}/");
        let there = format!(
            "cd {} && exec {PYTHON} talk.py tick",
            place.path().display()
        );
        let curl = "curl --silent --show-error --no-buffer --noproxy *";
        let curl: Vec<&str> = curl.split(' ').collect();
        let download = [&*curl, &[&*url]].concat();
        let ssh = format!(
            "ssh -F none -p {SSH_PORT} -i {key} -o BatchMode=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR {CORRESPONDENT}"
        );
        let ssh: Vec<&str> = ssh.split(' ').chain([&*there]).collect();
        let follow = [
            PYTHON,
            &talk,
            "follow",
            CORRESPONDENT,
            WEBSOCKET_PORT,
            &heard,
        ];
        let start =
            |kind: usize, command: &[&str]| Program::start(place, host, &kinds[kind], command);
        let downloads = [start(0, &download), start(1, &ssh), start(2, &follow)];
        let upload = [&*curl, &["--header", "Expect:", "--upload-file", "-", &url]].concat();
        let mut source = Command::new(PYTHON);
        source.arg(&talk).arg("source").arg(&sent[UPLOAD]);
        source.current_dir(place.path()).stdout(Stdio::piped());
        let mut source = Program(source.spawn().expect("it is installed"));
        let name = format!("{}-answer", kinds[UPLOAD]);
        let upload = Program::start_fed(place, host, &name, &upload, Some(&mut source.0));
        let [download, ssh, follow] = downloads;
        Self {
            programs: [download, ssh, follow, upload],
            _source: source,
            sent,
            got,
        }
    }

    /// Bytes that have come to each program, or from it.
    fn sizes(&self) -> [u64; 4] {
        let size = |at: &PathBuf| fs::metadata(at).map_or(0, |file| file.len());
        [0, 1, 2, 3].map(|kind| size(&self.got[kind]))
    }

    /// Waits until each program has got more than `before`; whether it has.
    fn go_on(&self, before: [u64; 4]) -> bool {
        let begun = clock::now();
        loop {
            let now = self.sizes();
            if (0..KINDS.len()).all(|kind| now[kind] > before[kind]) {
                return true;
            }
            if clock::now() - begun > PATIENCE {
                return false;
            }
            pace();
        }
    }
}

/// Moves a host with running programs twenty times between two cells and its home, and one without Mobile IP once.
fn outlast_hand_offs(care_of: CareOf) {
    let Some(hosts) = Hosts::new() else { return };
    if !has_all() || !hosts.prepare(care_of) {
        return;
    }
    let place = Place::new();
    hosts.hand_off(Cell::A, care_of);
    let daemons = hosts.start_for(&place, "link", care_of);
    let registered = |cell: Cell| care_of.registered(cell);
    daemons.mobile.await_lines(&registered(Cell::A), 1);
    let servers = serve(&place, &hosts.correspondent);
    let mobile = Clients::start(&place, &hosts.mobile, &HOME_ADDRESS.to_string());
    let control = Clients::start(&place, &hosts.plain, PLAIN);
    assert!(mobile.go_on([0; 4]), "before any move: {}", daemons.said());
    assert!(control.go_on([0; 4]), "the control at home");
    hosts.move_plain(care_of);
    if care_of.is_co_located() {
        // It has a network again, and new connections.
        let connect = || TcpStream::connect(format!("{CORRESPONDENT}:{HTTP_PORT}"));
        let connected = hosts.plain.run(connect).expect("enter");
        connected.expect("the control is somewhere");
    }
    let mut stalled = None;
    for number in 0..HAND_OFFS {
        let cell = ROUND[number % ROUND.len()];
        let before = daemons.mobile.said().matches(&registered(cell)).count();
        hosts.hand_off(cell, care_of);
        daemons.mobile.await_lines(&registered(cell), before + 1);
        assert!(
            mobile.go_on(mobile.sizes()),
            "{care_of:?}, hand-off {number}, to {cell:?}: {:?}, {}",
            mobile.sizes(),
            daemons.said()
        );
        // What was on its way has arrived by now.
        stalled.get_or_insert_with(|| control.sizes());
    }
    assert_eq!(
        Some(control.sizes()),
        stalled,
        "the connections go on without Mobile IP: this test shows nothing"
    );
    let in_udp = daemons.mobile.said().contains("in_udp=true");
    assert_eq!(in_udp, care_of == CareOf::Translated, "the tunnel's kind");
    drop(control);
    place.file("over", "");
    for (kind, program) in KINDS.iter().zip(mobile.programs) {
        assert!(program.await_end(), "{kind} ends as it should");
    }
    for (kind, (sent, got)) in KINDS.iter().zip(mobile.sent.iter().zip(&mobile.got)) {
        // The server's file is named by the home address.
        let (sent, got) = (fs::read(sent), fs::read(got));
        let (sent, got) = (sent.expect("it was sent"), got.expect("it was written"));
        assert!(!got.is_empty() && sent == got, "{kind} is intact");
    }
    drop(servers);
}

#[test]
fn curl_ssh_and_a_web_socket_outlast_twenty_hand_offs() {
    outlast_hand_offs(CareOf::ForeignAgent);
}

#[test]
fn curl_ssh_and_a_web_socket_outlast_twenty_hand_offs_with_addresses_of_their_own() {
    outlast_hand_offs(CareOf::CoLocated);
}

#[test]
fn curl_ssh_and_a_web_socket_outlast_twenty_hand_offs_behind_address_translators() {
    outlast_hand_offs(CareOf::Translated);
}
