//! Both hosts' `outlast run --role hip`, as operators start them.

use super::pair::{Pair, RIGHT};
use crate::gateway_matrix::trial::TrialError;
use crate::role::{await_words, run};
use crate::usage::Program;
use outlast_hip::identity::Algorithm;
use outlast_lab::Cancel;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_wire::hip::Hit;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

/// The local-scope address of each host on itself, which is the default.
pub(super) const OWN_LSI: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// That of the right host on the left one.
pub(super) const RIGHT_LSI: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// A host that speaks HIP. It ends when this is dropped.
pub(super) struct Speaker {
    pub(super) program: Program,
    _daemon: ContainedProcess,
}

/// What the command calls an algorithm.
const fn name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rsa2048 => "rsa2048",
        Algorithm::Rsa3072 => "rsa3072",
        Algorithm::EcdsaP256 => "ecdsa-p256",
        Algorithm::EcdsaP384 => "ecdsa-p384",
    }
}

/// Makes an identity in `directory`; its tag.
pub(super) fn key(
    outlast: &Path,
    (directory, host): (&Path, &str),
    algorithm: Algorithm,
) -> Result<Hit, TrialError> {
    let mut command = Command::new(outlast);
    command.args(["hip", "key", "--algorithm", name(algorithm)]);
    command.arg(directory.join(host).with_extension("key"));
    let made = command.output().map_err(TrialError::io("run outlast"))?;
    let said = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let tag: Option<Ipv6Addr> = said.parse().ok().filter(|_| made.status.success());
    let why = || TrialError::Daemon(String::from_utf8_lossy(&made.stderr).trim().to_owned());
    tag.map(Hit::from).ok_or_else(why)
}

/// Starts a host whose key is in `directory`, and who knows `peers` by their tags and addresses.
pub(super) fn start(
    outlast: &Path,
    (directory, host): (&Path, &str),
    place: &Namespace,
    peers: &str,
    cancel: &Cancel,
) -> Result<Speaker, TrialError> {
    let path = |extension| directory.join(host).with_extension(extension);
    let (key, control, config) = (path("key"), path("sock"), path("toml"));
    let table = format!("[hip]\nkey = {key:?}\ncontrol = {control:?}\n{peers}");
    fs::write(&config, table).map_err(TrialError::io("write a configuration"))?;
    let (daemon, log) = run(outlast, "hip", place, &config)?;
    await_words(&log, "HIP begins", cancel)?;
    let program = Program::behind(&control).map_err(TrialError::io("find the daemon"))?;
    Ok(Speaker {
        program,
        _daemon: daemon,
    })
}

/// Both hosts, of which the left one knows where the right one is; the right one's tag.
pub(super) struct Speakers {
    pub(super) tag: Ipv6Addr,
    pub(super) left: Speaker,
    pub(super) right: Speaker,
}

impl Speakers {
    /// Starts both with new identities.
    pub(super) fn start(
        pair: &Pair,
        outlast: &Path,
        directory: &Path,
        algorithm: Algorithm,
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let left = key(outlast, (directory, "left"), algorithm)?.address();
        let tag = key(outlast, (directory, "right"), algorithm)?.address();
        let knows = format!(
            "[[hip.peers]]\ntag = \"{tag}\"\naddresses = [\"{RIGHT}\"]\nlsi = \"{RIGHT_LSI}\"\n"
        );
        let admits = format!("[[hip.peers]]\ntag = \"{left}\"\n");
        let right = start(outlast, (directory, "right"), &pair.right, &admits, cancel)?;
        let left = start(outlast, (directory, "left"), &pair.left, &knows, cancel)?;
        Ok(Self { tag, left, right })
    }
}
