//! Home agent, mobile node and gateways, as an operator starts them.

use super::place::{HOME_ADDRESS, HOME_AGENT, Roaming};
use crate::gateway_matrix::trial::TrialError;
use crate::gateway_matrix::{Duty, daemon::Daemon};
use crate::role;
use outlast_lab::Cancel;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What helps connections to resume after a hand-off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Help {
    /// Nothing: the control.
    None,
    /// The retransmission trigger of the mobile node.
    Trigger,
    /// `hold` at the devices of home agent and mobile node.
    Hold,
}

impl Help {
    /// All, in the order of the table.
    pub const ALL: [Self; 3] = [Self::None, Self::Trigger, Self::Hold];

    /// What readers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "without help",
            Self::Trigger => "trigger at the mobile node",
            Self::Hold => "hold at both agents' devices",
        }
    }

    /// Its name for programs.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Trigger => "trigger",
            Self::Hold => "hold",
        }
    }
}

/// Everything of Outlast that runs. It ends when this is dropped.
pub(super) struct Roles<'t> {
    _gateways: Vec<Daemon<'t>>,
    _mobile: ContainedProcess,
    _agent: ContainedProcess,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run the roles",
        source,
    }
}

impl<'t> Roles<'t> {
    /// Starts all, until the mobile node is registered.
    pub(super) fn start(
        place: &Roaming,
        help: Help,
        outlast: &'t Path,
        directory: &Path,
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let key = directory.join("key");
        let mut command = Command::new(outlast);
        command.args(["mobile-ip", "key"]).arg(&key);
        let made = command.output().map_err(io_error)?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            return Err(TrialError::Daemon(said.trim().to_owned()));
        }
        let at = |name: &str| directory.join(name);
        let (hold_agent, hold_mobile) = (at("hold-agent.sock"), at("hold-mobile.sock"));
        let gateway = |control: &Path| match help {
            Help::Hold => format!("gateway = {control:?}\n"),
            Help::None | Help::Trigger => String::new(),
        };
        let agent_file = format!(
            "[home_agent]\naddress = \"{HOME_AGENT}\"\ncontrol = {:?}\n{}\
             [[home_agent.mobiles]]\nhome_address = \"{HOME_ADDRESS}\"\nkey = {key:?}\n",
            at("agent.sock"),
            gateway(&hold_agent),
        );
        let mobile_file = format!(
            "[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\nhome_agent = \"{HOME_AGENT}\"\n\
             key = {key:?}\ncontrol = {:?}\ntrigger = {}\n{}",
            at("mobile.sock"),
            help == Help::Trigger,
            gateway(&hold_mobile),
        );
        let start = |name: &str, role: &str, host: &Namespace, text: &str| {
            let config = directory.join(name).with_extension("toml");
            fs::write(&config, text).map_err(io_error)?;
            role::run(outlast, role, host, &config)
        };
        let hold = |device: &str, host: &Namespace, control: PathBuf| {
            Daemon::start_on(device, Duty::Hold, host, outlast, control, &[])
        };
        let mut gateways = Vec::new();
        let (agent, said) = start("agent", "home-agent", &place.agent, &agent_file)?;
        role::await_words(&said, "home agent begins", cancel)?;
        if help == Help::Hold {
            gateways.push(hold("mobiles0", &place.agent, hold_agent)?);
        }
        let (mobile, said) = start("mobile", "mobile-node", &place.site.mobile, &mobile_file)?;
        role::await_words(&said, " registered", cancel)?;
        if help == Help::Hold {
            gateways.push(hold("home0", &place.site.mobile, hold_mobile)?);
        }
        Ok(Self {
            _gateways: gateways,
            _mobile: mobile,
            _agent: agent,
        })
    }
}
