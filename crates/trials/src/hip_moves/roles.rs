//! Both hosts and the rendezvous server, as operators start them.

use super::Help;
use super::place::{RENDEZVOUS, Roaming};
use crate::gateway_matrix::trial::TrialError;
use crate::role::{await_words, run};
use outlast_lab::Cancel;
use outlast_linux::process::ContainedProcess;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// Everything of Outlast that runs. It ends when this is dropped.
pub(super) struct Roles {
    /// The fixed host's tag.
    pub(super) tag: IpAddr,
    _daemons: [ContainedProcess; 3],
}

impl Roles {
    /// Starts all, until both hosts are registered with the server.
    pub(super) fn start(
        place: &Roaming,
        help: Help,
        outlast: &Path,
        directory: &Path,
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let make = |name: &str| key(outlast, &directory.join(name).with_extension("key"));
        let (mobile, fixed, server) = (make("mobile")?, make("fixed")?, make("server")?);
        let trigger = help == Help::Hip;
        let table = |name: &str| {
            let path = |extension| directory.join(name).with_extension(extension);
            let (key, control) = (path("key"), path("sock"));
            format!("[hip]\nkey = {key:?}\ncontrol = {control:?}\ntrigger = {trigger}\n")
        };
        let servers = listed(&RENDEZVOUS);
        let registers =
            format!("[[hip.peers]]\ntag = \"{server}\"\naddresses = {servers}\nregisters = true\n");
        let clients =
            [&mobile, &fixed].map(|client| format!("[[hip.peers]]\ntag = \"{client}\"\n"));
        let peer = |tag: &str, addresses: &[IpAddr]| {
            let addresses = listed(addresses);
            format!(
                "[[hip.peers]]\ntag = \"{tag}\"\nrendezvous = {servers}\naddresses = {addresses}\n"
            )
        };
        let to_fixed = peer(&fixed, &place.fixed_addresses());
        let to_mobile = peer(&mobile, &[]);
        let start = |name: &str, role: &str, host, text: String, words| {
            let config = directory.join(name).with_extension("toml");
            fs::write(&config, text).map_err(|source| TrialError::Io {
                what: "write a configuration",
                source,
            })?;
            let (daemon, log) = run(outlast, role, host, &config)?;
            await_words(&log, words, cancel)?;
            Ok::<_, TrialError>(daemon)
        };
        let site = &place.site;
        let text = format!("{}{}", table("server"), clients.concat());
        let server = start("server", "rendezvous", &site.gateway, text, "HIP begins")?;
        let text = format!("{}{registers}{to_mobile}", table("fixed"));
        let fixed_host = start("fixed", "hip", &site.fixed, text, "registered")?;
        let text = format!("{}{registers}{to_fixed}", table("mobile"));
        let mobile = start("mobile", "hip", &site.mobile, text, "registered")?;
        place.set_congestion()?;
        let tag = fixed
            .parse()
            .map_err(|_| TrialError::Daemon(fixed.clone()))?;
        Ok(Self {
            tag,
            _daemons: [mobile, fixed_host, server],
        })
    }
}

/// Addresses as a configuration file lists them.
fn listed(addresses: &[IpAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    format!("{addresses:?}")
}

/// Makes an identity; its tag.
pub(crate) fn key(outlast: &Path, path: &Path) -> Result<String, TrialError> {
    let mut command = Command::new(outlast);
    command.args(["hip", "key"]).arg(path);
    let made = command.output().map_err(|source| TrialError::Io {
        what: "run outlast",
        source,
    })?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(TrialError::Daemon(said.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}
