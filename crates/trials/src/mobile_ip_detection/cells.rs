//! The place: a home agent, two foreign agents with a cell each, and a mobile host that hears one of them.

use super::trial::Detection;
use crate::gateway_matrix::trial::TrialError;
use crate::mobile_ip_matrix::place::ip;
use crate::role;
use outlast_lab::{Cancel, LabError};
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::process::ContainedProcess;
use outlast_linux::sysctl;
use rustix::fd::AsFd;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const HOME_ADDRESS: &str = "10.50.0.5";
/// Names of the hosts' files, and of the key's.
const HOME: &str = "home-agent";
const AGENTS: [&str; 2] = ["a", "b"];
const NODE: &str = "mobile-node";
const KEY: &str = "key";
/// Switches of the two cells, on the router between the agents.
const SWITCHES: [&str; 2] = ["cell_a", "cell_b"];

/// Everybody. They are gone when it is dropped.
pub(super) struct Cells {
    pub(super) mobile: Namespace,
    /// The cells' switches, and the router between the agents.
    core: Namespace,
    home_agent: Namespace,
    foreign_agents: [Namespace; 2],
    /// In which cell the mobile host is.
    at: usize,
}

impl Cells {
    /// The mobile host's interface.
    pub(super) const LINK: &str = "link0";

    /// The mobile host is in the first cell.
    pub(super) fn new() -> Result<Self, TrialError> {
        let host = || Namespace::new().map_err(LabError::from);
        let cells = Self {
            mobile: host()?,
            core: host()?,
            home_agent: host()?,
            foreign_agents: [host()?, host()?],
            at: 0,
        };
        // A cable whose ends have the same number is told of up to a second late, as nothing waits for it in a
        // queue. A card with a queue, and a cable between different numbers, are told of at once.
        cells.cable("home0", "up0", &cells.home_agent)?;
        cells.cable("mobile0", Self::LINK, &cells.mobile)?;
        for (index, agent) in cells.foreign_agents.iter().enumerate() {
            let switch = SWITCHES[index];
            let number = index + 1;
            cells.cable(&format!("up_{switch}"), "up0", agent)?;
            cells.cable(&format!("to_{switch}"), Self::LINK, agent)?;
            ip(
                &cells.core,
                &[
                    format!("link add {switch} type bridge"),
                    format!("link set {switch} up"),
                    format!("link set to_{switch} master {switch} up"),
                    format!("address add 10.{number}.9.1/24 dev up_{switch}"),
                    format!("link set up_{switch} up"),
                ],
            )?;
            ip(
                agent,
                &[
                    "link set lo up".to_owned(),
                    "link set up0 up".to_owned(),
                    "link set link0 up".to_owned(),
                    format!("address add 10.{number}.9.2/24 dev up0"),
                    format!("address add 10.{number}.0.1/24 dev link0"),
                    format!("route add default via 10.{number}.9.1"),
                ],
            )?;
        }
        ip(
            &cells.core,
            &[
                "address add 10.9.0.1/24 dev home0",
                "link set home0 up",
                "link set mobile0 master cell_a",
                "link set mobile0 up",
            ],
        )?;
        ip(
            &cells.home_agent,
            &[
                "link set lo up",
                "link set up0 up",
                "address add 10.9.0.2/24 dev up0",
                "route add default via 10.9.0.1",
            ],
        )?;
        ip(&cells.mobile, &["link set lo up", "link set link0 up"])?;
        let routers = [&cells.core, &cells.home_agent];
        for host in routers.into_iter().chain(&cells.foreign_agents) {
            let forward = host.run(|| sysctl::write("net.ipv4.ip_forward", "1"));
            forward.map_err(LabError::from)?.map_err(LabError::from)?;
        }
        Ok(cells)
    }

    fn cable(&self, name: &str, other: &str, host: &Namespace) -> Result<(), TrialError> {
        let join = || -> Result<(), LabError> {
            RouteSocket::open()?.add_veth(name, other, Some(host.as_fd()))?;
            Ok(())
        };
        Ok(self.core.run(join).map_err(LabError::from)??)
    }

    /// The mobile host goes to the other cell; its link goes down meanwhile only if it `is_told`.
    pub(super) fn move_on(&mut self, is_told: bool) -> Result<(), TrialError> {
        self.at = 1 - self.at;
        let attach = format!("link set mobile0 master {}", SWITCHES[self.at]);
        match is_told {
            true => ip(
                &self.core,
                &["link set mobile0 down", &attach, "link set mobile0 up"],
            ),
            false => ip(&self.core, &[attach]),
        }
    }

    /// Starts all roles, until the mobile node is registered.
    pub(super) fn start(
        &self,
        detection: Detection,
        outlast: &Path,
        directory: &Path,
        cancel: &Cancel,
    ) -> Result<Vec<ContainedProcess>, TrialError> {
        let mut command = Command::new(outlast);
        command.args(["mobile-ip", "key"]).arg(directory.join(KEY));
        let made = command.output().map_err(io_error)?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            return Err(TrialError::Daemon(said.trim().to_owned()));
        }
        let mut roles = Vec::new();
        let [a, b] = &self.foreign_agents;
        for (name, role, host, words) in [
            (HOME, "home-agent", &self.home_agent, "agent begins"),
            (AGENTS[0], "foreign-agent", a, "agent begins"),
            (AGENTS[1], "foreign-agent", b, "agent begins"),
            (NODE, "mobile-node", &self.mobile, " registered"),
        ] {
            let config = directory.join(name).with_extension("toml");
            fs::write(&config, configuration(name, detection, directory)).map_err(io_error)?;
            let (process, said) = role::run(outlast, role, host, &config)?;
            role::await_words(&said, words, cancel)?;
            roles.push(process);
        }
        Ok(roles)
    }
}

/// The configuration file of the host `name`.
fn configuration(name: &str, detection: Detection, directory: &Path) -> String {
    let key = directory.join(KEY);
    let control = directory.join(name).with_extension("sock");
    if name == HOME {
        return format!(
            "[home_agent]\naddress = \"10.9.0.2\"\ncontrol = {control:?}\n\
             [[home_agent.mobiles]]\nhome_address = \"{HOME_ADDRESS}\"\nkey = {key:?}\n"
        );
    }
    let Some(index) = AGENTS.iter().position(|agent| *agent == name) else {
        return format!(
            "[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\nhome_agent = \"10.9.0.2\"\nkey = {key:?}\n\
             interface = \"link0\"\ndetection = \"{detection}\"\nhome_network = \"10.50.0.0/24\"\n\
             control = {control:?}\n"
        );
    };
    // Where the link tells, nobody has to wait for an advertisement.
    let interval_ms = match detection {
        Detection::Link => 60_000,
        Detection::Eager | Detection::Lazy | Detection::Prefix => 1_000,
    };
    let number = index + 1;
    format!(
        "[foreign_agent]\ninterface = \"link0\"\naddress = \"10.{number}.0.1\"\n\
         care_of_address = \"10.{number}.9.2\"\ninterval_ms = {interval_ms}\ncontrol = {control:?}\n"
    )
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run the roles",
        source,
    }
}
