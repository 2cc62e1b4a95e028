//! curl, ssh and a WebSocket session through twenty hand-offs; a host beside them without Mobile IP.

use super::{Cell, HOME_ADDRESS, Hosts};
use crate::hip::{PATIENCE, ip, pace, skip};
use crate::support::Place;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const HAND_OFFS: usize = 20;
const ROUND: [Cell; 3] = [Cell::B, Cell::Home, Cell::A];
const KINDS: [&str; 3] = ["http", "ssh", "websocket"];

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
        let open = |kind: &str| {
            let at = place.path().join(name).with_extension(kind);
            File::create(at).expect("a file in a directory of ours")
        };
        let (program, arguments) = command.split_first().expect("a program");
        let start = || {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(place.path());
            command.stdin(Stdio::null());
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

/// One host's three programs.
struct Clients {
    programs: [Program; 3],
    got: [PathBuf; 3],
}

impl Clients {
    fn start(place: &Place, host: &Namespace, name: &str) -> Self {
        let at = |name: &str| place.path().join(name).display().to_string();
        let (talk, key) = (at("talk.py"), at("user-key"));
        let kinds = KINDS.map(|kind| format!("{kind}-{name}"));
        let got = [0, 1, 2].map(|kind| place.path().join(&kinds[kind]).with_extension("got"));
        let heard = got[2].display().to_string();
        let url = format!("http://{CORRESPONDENT}:{HTTP_PORT}/");
        let there = format!(
            "cd {} && exec {PYTHON} talk.py tick",
            place.path().display()
        );
        let curl = [
            "curl",
            "--silent",
            "--show-error",
            "--no-buffer",
            "--noproxy",
            "*",
            &url,
        ];
        let ssh = [
            "ssh",
            "-F",
            "none",
            "-p",
            SSH_PORT,
            "-i",
            &key,
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "LogLevel=ERROR",
            CORRESPONDENT,
            &there,
        ];
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
        let programs = [start(0, &curl), start(1, &ssh), start(2, &follow)];
        Self { programs, got }
    }

    /// Bytes that have come to each program.
    fn sizes(&self) -> [u64; 3] {
        let size = |at: &PathBuf| fs::metadata(at).map_or(0, |file| file.len());
        [0, 1, 2].map(|kind| size(&self.got[kind]))
    }

    /// Waits until each program has got more than `before`; whether it has.
    fn go_on(&self, before: [u64; 3]) -> bool {
        let begun = clock::now();
        loop {
            let now = self.sizes();
            if (0..3).all(|kind| now[kind] > before[kind]) {
                return true;
            }
            if clock::now() - begun > PATIENCE {
                return false;
            }
            pace();
        }
    }
}

#[test]
fn curl_ssh_and_a_web_socket_outlast_twenty_hand_offs() {
    let Some(hosts) = Hosts::new() else { return };
    if !has_all() {
        return;
    }
    let place = Place::new();
    hosts.move_to(Cell::A, false);
    let daemons = hosts.start(&place, "link");
    daemons.mobile.await_lines(&Cell::A.registered(), 1);
    let servers = serve(&place, &hosts.correspondent);
    let mobile = Clients::start(&place, &hosts.mobile, "mobile");
    let control = Clients::start(&place, &hosts.plain, "control");
    assert!(mobile.go_on([0; 3]), "before any move: {}", daemons.said());
    assert!(control.go_on([0; 3]), "the control at home");
    // The control: it goes to A, and has no Mobile IP.
    ip(&hosts.core, &["link set plain0 master cell_a"]);
    let mut stalled = None;
    for number in 0..HAND_OFFS {
        let cell = ROUND[number % ROUND.len()];
        let before = daemons.mobile.said().matches(&cell.registered()).count();
        hosts.move_to(cell, true);
        daemons.mobile.await_lines(&cell.registered(), before + 1);
        assert!(
            mobile.go_on(mobile.sizes()),
            "hand-off {number}, to {cell:?}: {:?}, {}",
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
    drop(control);
    place.file("over", "");
    for (kind, program) in KINDS.iter().zip(mobile.programs) {
        assert!(program.await_end(), "{kind} ends as it should");
    }
    for (kind, got) in KINDS.iter().zip(&mobile.got) {
        // The name says from which address the correspondent was spoken to.
        let said = place.path().join(format!("{kind}-{HOME_ADDRESS}.said"));
        let (said, got) = (fs::read(said), fs::read(got).expect("it was written"));
        assert!(
            said.expect("to the home address") == got,
            "{kind} is intact"
        );
        let plain = place.path().join(format!("{kind}-{PLAIN}.said"));
        assert!(plain.exists(), "{kind} of the control");
    }
    drop(servers);
}
