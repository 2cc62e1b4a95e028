//! From a proposal to steps: files to write, units to start.

use crate::setup::ground::Ground;
use crate::setup::machine::Machine;
use crate::setup::proposal::{Gateway, Hook, Proposal, Watch};
use anyhow::Context;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The description of the user that the units name.
pub(crate) const ACCOUNT_FILE: &str = "/etc/sysusers.d/outlast.conf";
/// Path that this program gets if units and hooks would not find it.
const PROGRAM: &str = "/usr/local/bin/outlast";
/// Directory of units of our own.
const UNITS: &str = "/etc/systemd/system";
/// Directory of hooks that daemons of our own call, if the package has not brought them.
const HOOKS: &str = "/usr/local/libexec/outlast";
/// The program's place in the packaged units.
const PACKAGED_PROGRAM: &str = "/usr/bin/outlast";
/// Less memory than this gets the gateway's own defaults.
const LITTLE_MEMORY: u64 = 512 << 20;

const GATEWAY_UNIT: &str = include_str!("../../../../packaging/systemd/outlast@.service");
const AGENT_UNIT: &str = include_str!("../../../../packaging/systemd/outlast-host.service");
const ACCOUNT: &str = include_str!("../../../../packaging/systemd/outlast.sysusers");
const NETWORK_MANAGER: &str = include_str!("../../../../packaging/hooks/networkmanager");
const MODEM_MANAGER: &str = include_str!("../../../../packaging/hooks/modemmanager");
const HOSTAPD: &str = include_str!("../../../../packaging/hooks/hostapd");
const WIREGUARD: &str = include_str!("../../../../packaging/hooks/wireguard");

/// Steps that set a machine up, in their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Plan {
    pub(crate) files: Vec<NewFile>,
    /// True if the user that the units name is to be made, after its description is written.
    pub(crate) makes_account: bool,
    /// Units to enable and start, after all files are written.
    pub(crate) units: Vec<String>,
    /// Commands that start the daemons, where systemd does not.
    pub(crate) by_hand: Vec<String>,
}

/// A file to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NewFile {
    /// Path on the machine that is set up.
    pub(crate) path: PathBuf,
    pub(crate) contents: Contents,
    /// Permission bits.
    pub(crate) mode: u32,
    pub(crate) purpose: Purpose,
}

/// The bytes of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Contents {
    Text(String),
    CopyOf(PathBuf),
}

/// The use of a file: it decides what becomes of one that is there already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// A gateway's configuration: a sound one of the user's is kept.
    Gateway,
    /// The agent's configuration: a sound one of the user's is kept.
    Agent,
    /// Anything else: another one is replaced, and kept to be put back.
    Part,
}

impl Plan {
    /// Steps towards `proposal` on `machine`, where `ground` is there already.
    pub(crate) fn new(proposal: &Proposal, machine: &Machine, ground: &Ground) -> Self {
        let mut plan = Self {
            files: Vec::new(),
            makes_account: false,
            units: Vec::new(),
            by_hand: Vec::new(),
        };
        let needed = match proposal.agent.is_empty() {
            true => ("outlast@.service", GATEWAY_UNIT),
            false => ("outlast-host.service", AGENT_UNIT),
        };
        let is_packaged = ground.units.iter().any(|unit| unit == needed.0);
        let program = plan.program(ground, is_packaged);
        if machine.services.systemd {
            if !is_packaged {
                let text = needed.1.replace(PACKAGED_PROGRAM, &program);
                plan.part(&format!("{UNITS}/{}", needed.0), 0o644, text);
            }
            if !ground.has_account {
                plan.part(ACCOUNT_FILE, 0o644, ACCOUNT.to_owned());
                plan.makes_account = true;
            }
        }
        for gateway in &proposal.gateways {
            let name = &gateway.interface;
            plan.file(NewFile {
                path: PathBuf::from(format!("/etc/outlast/{name}.toml")),
                contents: Contents::Text(configuration(gateway, machine)),
                mode: 0o644,
                purpose: Purpose::Gateway,
            });
            plan.units.push(format!("outlast@{name}.service"));
            plan.by_hand
                .push(format!("{program} run --interface {name}"));
        }
        if !proposal.agent.is_empty() {
            plan.file(NewFile {
                path: PathBuf::from("/etc/outlast/host.toml"),
                contents: Contents::Text(agent_configuration(&proposal.agent)),
                mode: 0o644,
                purpose: Purpose::Agent,
            });
            plan.units.push("outlast-host.service".into());
            plan.by_hand.push(format!("{program} run --role host"));
        }
        for hook in &proposal.hooks {
            plan.hook(hook, ground);
        }
        match machine.services.systemd {
            true => plan.by_hand.clear(),
            false => plan.units.clear(),
        }
        plan
    }

    fn file(&mut self, file: NewFile) {
        if self.files.iter().all(|there| there.path != file.path) {
            self.files.push(file);
        }
    }

    fn part(&mut self, path: &str, mode: u32, text: String) {
        self.file(NewFile {
            path: PathBuf::from(path),
            contents: Contents::Text(text),
            mode,
            purpose: Purpose::Part,
        });
    }

    /// Sees to it that units and hooks find this program; its path.
    fn program(&mut self, ground: &Ground, is_packaged: bool) -> String {
        if is_packaged {
            return PACKAGED_PROGRAM.into();
        }
        if ground.is_found() {
            return ground.program.display().to_string();
        }
        self.file(NewFile {
            path: PathBuf::from(PROGRAM),
            contents: Contents::CopyOf(ground.program.clone()),
            mode: 0o755,
            purpose: Purpose::Part,
        });
        PROGRAM.into()
    }

    fn hook(&mut self, hook: &Hook, ground: &Ground) {
        let (name, text) = match hook {
            Hook::NetworkManager => {
                let path = "/etc/NetworkManager/dispatcher.d/50-outlast";
                return self.part(path, 0o755, NETWORK_MANAGER.into());
            }
            Hook::ModemManager => {
                let path = "/etc/ModemManager/connection.d/50-outlast";
                return self.part(path, 0o755, MODEM_MANAGER.into());
            }
            Hook::Hostapd(_) => ("hostapd", HOSTAPD),
            Hook::WireGuard(_) => ("wireguard", WIREGUARD),
        };
        let directory = ground.hooks().unwrap_or(HOOKS);
        let script = format!("{directory}/{name}");
        if ground.hooks().is_none() {
            self.part(&script, 0o755, text.into());
        }
        let (command, instance) = match hook {
            Hook::Hostapd(point) => (format!("/usr/sbin/hostapd_cli -i %i -a {script}"), point),
            Hook::WireGuard(tunnel) => (format!("{script} %i watch"), tunnel),
            Hook::NetworkManager | Hook::ModemManager => return,
        };
        let unit = hook_unit(name, &command);
        self.part(&format!("{UNITS}/outlast-{name}@.service"), 0o644, unit);
        self.units
            .push(format!("outlast-{name}@{instance}.service"));
    }
}

/// A unit that runs a hook that nobody else starts.
fn hook_unit(name: &str, command: &str) -> String {
    format!(
        "# Written by `outlast setup`: runs Outlast's hook for {name}.\n\n\
         [Unit]\n\
         Description=Outlast, hook for {name} on %i\n\
         After=network.target\n\n\
         [Service]\n\
         ExecStart={command}\n\
         # The interface, or the daemon that is asked, may come later.\n\
         Restart=always\n\
         RestartSec=5s\n\n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

/// The configuration of a gateway, as docs/placement.md has it for its place.
fn configuration(gateway: &Gateway, machine: &Machine) -> String {
    let mut text = heading("docs/configuration.md");
    let _ = writeln!(text, "interface = \"{}\"", gateway.interface);
    text.push_str("mechanism = \"hold\"\n");
    text.push_str(match gateway.watch {
        Watch::Link => "",
        Watch::Stations => {
            "\n[indicators]\n\
             # The access point's carrier says that it is on, nothing of a station.\n\
             carrier = false\n\
             address = false\n\
             neighbour = true\n"
        }
        Watch::Tunnel => {
            "\n[indicators]\n\
             # A tunnel is always up and has no neighbours: silence and the hook tell of its peers.\n\
             carrier = true\n\
             address = false\n\
             neighbour = false\n"
        }
    });
    if gateway.is_end && machine.memory.is_some_and(|memory| memory >= LITTLE_MEMORY) {
        text.push_str(
            "\n[limits]\n\
             # One machine's own connections.\n\
             flows = 4096\n\
             held_in_all = \"32 MiB\"\n",
        );
    }
    text
}

/// The configuration of the agent on these interfaces.
fn agent_configuration(interfaces: &[String]) -> String {
    let names: Vec<_> = interfaces
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    let heading = heading("docs/host.md");
    format!("{heading}[host]\ninterfaces = [{}]\n", names.join(", "))
}

fn heading(page: &str) -> String {
    format!(
        "# Written by `outlast setup`. `outlast setup --remove` takes it away, unless it was changed.\n\
         # {page} has every key.\n"
    )
}

impl Contents {
    /// The bytes; those of another file are read.
    pub(crate) fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::CopyOf(path) => {
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))
            }
        }
    }
}

/// `path` of the machine that is set up, below `root`.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
