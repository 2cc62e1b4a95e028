//! WireGuard between both hosts, by its implementation in Rust, `boringtun-cli`.
//!
//! It is configured as `wg(8)` does it, through its socket, with the example keys of RFC 7748.

use super::pair::{LEFT, Pair, RIGHT};
use crate::gateway_matrix::programs::find;
use crate::gateway_matrix::trial::TrialError;
use crate::gateway_matrix::wait;
use crate::mobile_ip_matrix::place::ip;
use crate::usage::Program;
use outlast_base::time::Duration;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Its package, which is one of Rust's.
const PROGRAM: &str = "boringtun-cli";
/// Where it makes its sockets.
const SOCKETS: &str = "/var/run/wireguard";

/// The addresses inside the tunnel.
const INSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 80, 0, 1), Ipv4Addr::new(10, 80, 0, 2)];
/// The MTU that `wg-quick(8)` sets on a link of 1,500 bytes.
const MTU: u32 = 1_420;
const PORT: u16 = 51_820;

/// A private and a public key of RFC 7748, section 6.1: published, and so of no use but for measurements.
struct Keys {
    private: &'static str,
    public: &'static str,
}

const KEYS: [Keys; 2] = [
    Keys {
        private: "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        public: "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    },
    Keys {
        private: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        public: "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    },
];

const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// One end.
struct End {
    program: Program,
    socket: PathBuf,
    _process: ContainedProcess,
}

impl Drop for End {
    fn drop(&mut self) {
        // A program that is killed leaves its socket behind. It may be gone already.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Both ends. They end when this is dropped.
pub(super) struct WireGuard {
    ends: [End; 2],
}

impl WireGuard {
    /// The right host's address inside.
    pub(super) const TO: Ipv4Addr = INSIDE[1];

    /// Starts both ends; why there are none, if the program is not installed.
    pub(super) fn start(pair: &Pair, cancel: &Cancel) -> Result<Result<Self, String>, TrialError> {
        let Ok(program) = find(PROGRAM, PROGRAM) else {
            return Ok(Err(format!(
                "{PROGRAM} is not installed (cargo install {PROGRAM})"
            )));
        };
        let end = |place: &Namespace, number: usize| {
            // The sockets of all namespaces are in one directory.
            let name = format!("wg{}{}", number, std::process::id() % 100_000);
            let mut command = Command::new(&program);
            command.args([&name, "--foreground", "--disable-drop-privileges"]);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null());
            let process = ContainedProcess::spawn(place, command)?;
            let socket = PathBuf::from(SOCKETS).join(&name).with_extension("sock");
            let given_up = clock::now() + PATIENCE;
            // The socket is there a little before somebody listens.
            while UnixStream::connect(&socket).is_err() {
                if clock::now() > given_up || wait(cancel, Some(&process), LOOK)? {
                    return Err(TrialError::Program {
                        what: "WireGuard does not start",
                        said: String::new(),
                    });
                }
            }
            let other = 1 - number;
            let endpoint = [LEFT, RIGHT][other];
            let text = format!(
                "set=1\nprivate_key={}\nlisten_port={PORT}\npublic_key={}\nendpoint={endpoint}:{PORT}\n\
                 allowed_ip={}/32\n\n",
                KEYS[number].private, KEYS[other].public, INSIDE[other],
            );
            configure(&socket, &text)?;
            let lines = [
                format!("address add {}/24 dev {name}", INSIDE[number]),
                format!("link set {name} mtu {MTU} up"),
            ];
            ip(place, &lines)?;
            let program = Program::behind(&socket).map_err(TrialError::io("find WireGuard"))?;
            Ok(End {
                program,
                socket,
                _process: process,
            })
        };
        let right = end(&pair.right, 1)?;
        let left = end(&pair.left, 0)?;
        Ok(Ok(Self {
            ends: [left, right],
        }))
    }

    /// The programs on the left and on the right.
    pub(super) fn programs(&self) -> [Program; 2] {
        self.ends.each_ref().map(|end| end.program)
    }
}

/// Sends a configuration, and hears whether it is in force.
fn configure(socket: &PathBuf, text: &str) -> Result<(), TrialError> {
    let speak = || -> io::Result<String> {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(text.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    };
    let said = speak().map_err(TrialError::io("configure WireGuard"))?;
    if said.trim() == "errno=0" {
        return Ok(());
    }
    Err(TrialError::Program {
        what: "WireGuard refuses its configuration",
        said,
    })
}
