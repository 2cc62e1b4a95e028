//! The tables `[home_agent]` and `[mobile_node]` of the configuration file.

use super::key;
use crate::failure::Failure;
use outlast_linux::netlink::Prefix;
use outlast_mobility::{ReverseTunnels, SecurityAssociation};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// What every host takes (RFC 791), and what fits jumbo frames.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 576..=9000;
/// What fits an outer packet of 1472 bytes with a tunnel in UDP.
const DEFAULT_MTU: u32 = 1440;

/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

/// Below, renewals are most of what a mobile node sends; 65535 says that there is no end.
const LIFETIME_RANGE: std::ops::RangeInclusive<u16> = 10..=65_534;

/// Whether mobile nodes may, or have to, use reverse tunnels.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum ReverseTunnelPolicy {
    Refused,
    #[default]
    Offered,
    Demanded,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeAgentFile {
    home_agent: HomeAgentSettings,
}

/// What `[home_agent]` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HomeAgentSettings {
    /// The address at which mobile nodes reach it.
    pub(super) address: Ipv4Addr,
    /// The TUN device that is made; mobile nodes' addresses are routed to it.
    #[serde(default = "home_agent_device")]
    pub(super) device: String,
    /// Its MTU in bytes.
    #[serde(default = "default_mtu")]
    pub(super) mtu: u32,
    /// The longest registration in seconds.
    #[serde(default = "longest_lifetime")]
    pub(super) lifetime_s: u16,
    /// Whether there are reverse tunnels.
    #[serde(default)]
    reverse_tunnels: ReverseTunnelPolicy,
    /// Whether there are tunnels in UDP.
    #[serde(default = "yes")]
    pub(super) udp_tunnels: bool,
    /// Seconds between a mobile node's signs of life in them.
    #[serde(default = "default_keep_alive")]
    pub(super) keep_alive_s: u16,
    /// The mobile nodes.
    mobiles: Vec<MobileSettings>,
}

/// What `[[home_agent.mobiles]]` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MobileSettings {
    /// The home address.
    home_address: Ipv4Addr,
    /// The file with the key.
    key: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MobileNodeFile {
    mobile_node: MobileNodeSettings,
}

/// What `[mobile_node]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct MobileNodeSettings {
    /// The address that stays.
    pub(super) home_address: Ipv4Addr,
    /// The home agent's address.
    pub(super) home_agent: Ipv4Addr,
    /// The file with the key.
    key: PathBuf,
    /// The TUN device that is made; it bears the home address.
    #[serde(default = "mobile_node_device")]
    pub(super) device: String,
    /// Its MTU in bytes.
    #[serde(default = "default_mtu")]
    pub(super) mtu: u32,
    /// The registration's lifetime in seconds.
    #[serde(default = "default_lifetime")]
    pub(super) lifetime_s: u16,
    /// Whether to ask for a tunnel in UDP behind an address translator.
    #[serde(default = "yes")]
    pub(super) udp_tunnel: bool,
    /// Which destinations are reached from the home address.
    #[serde(default = "everywhere")]
    pub(super) destinations: Vec<Network>,
}

/// A network of IPv4, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(super) struct Network(pub(super) Prefix);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((&text, "32"));
        let address = address.parse::<Ipv4Addr>().ok();
        let length = length.parse::<u8>().ok().filter(|length| *length <= 32);
        let prefix = address.zip(length).map(|(address, length)| Prefix {
            address: address.into(),
            length,
        });
        match prefix {
            Some(prefix) if prefix.network() == Some(prefix.address) => Ok(Self(prefix)),
            Some(_) => Err(format!("\"{text}\" has bits beyond its prefix")),
            None => Err(format!(
                "\"{text}\" is no network of IPv4; write 192.0.2.0/24"
            )),
        }
    }
}

fn home_agent_device() -> String {
    "mobiles0".into()
}

fn mobile_node_device() -> String {
    "home0".into()
}

const fn default_mtu() -> u32 {
    DEFAULT_MTU
}

const fn longest_lifetime() -> u16 {
    1800
}

const fn default_lifetime() -> u16 {
    600
}

/// RFC 3519, section 4.9.
const fn default_keep_alive() -> u16 {
    110
}

const fn yes() -> bool {
    true
}

fn everywhere() -> Vec<Network> {
    let address = Ipv4Addr::UNSPECIFIED.into();
    vec![Network(Prefix { address, length: 0 })]
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {shown}: {error}")))?;
    toml::from_str(&text).map_err(|error| Failure::Usage(format!("{shown}: {error}")))
}

/// What is wrong with what both roles have, if anything is.
fn problem_of_device(device: &str, mtu: u32, lifetime_s: u16) -> Option<String> {
    if !MTU_RANGE.contains(&mtu) {
        return Some(format!("mtu = {mtu}: {MTU_RANGE:?} are allowed"));
    }
    if device.is_empty() || device.len() > LONGEST_NAME {
        return Some(format!(
            "device = {device:?}: 1 to {LONGEST_NAME} bytes are allowed"
        ));
    }
    if !LIFETIME_RANGE.contains(&lifetime_s) {
        return Some(format!(
            "lifetime_s = {lifetime_s}: {LIFETIME_RANGE:?} are allowed"
        ));
    }
    None
}

/// Whether `address` can be one host's.
const fn is_of_a_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_loopback())
}

fn sound<T>(settings: T, problem: Option<String>, path: &Path) -> Result<T, Failure> {
    match problem {
        Some(problem) => Err(Failure::Usage(format!("{}: {problem}", path.display()))),
        None => Ok(settings),
    }
}

impl HomeAgentSettings {
    /// Reads and checks the file.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<HomeAgentFile>(path)?.home_agent;
        let problem = settings.problem();
        sound(settings, problem, path)
    }

    fn problem(&self) -> Option<String> {
        if let Some(problem) = problem_of_device(&self.device, self.mtu, self.lifetime_s) {
            return Some(problem);
        }
        if self.keep_alive_s == 0 {
            return Some(
                "keep_alive_s = 0: translators forget tunnels without a sign of life".into(),
            );
        }
        let mut addresses: Vec<Ipv4Addr> =
            self.mobiles.iter().map(|one| one.home_address).collect();
        addresses.push(self.address);
        if let Some(address) = addresses.iter().find(|address| !is_of_a_host(**address)) {
            return Some(format!("{address} cannot be one host's address"));
        }
        addresses.sort_unstable();
        let twice = addresses.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map(|pair| format!("{} is used twice", pair[0]))
    }

    /// The mobile nodes and their keys.
    pub(super) fn associations(
        &self,
    ) -> Result<BTreeMap<Ipv4Addr, Vec<SecurityAssociation>>, Failure> {
        let mobiles = self.mobiles.iter();
        let pairs = mobiles.map(|one| Ok((one.home_address, vec![key::load(&one.key)?])));
        pairs.collect()
    }

    /// Whether mobile nodes may, or have to, use reverse tunnels.
    pub(super) const fn reverse_tunnels(&self) -> ReverseTunnels {
        match self.reverse_tunnels {
            ReverseTunnelPolicy::Refused => ReverseTunnels::Refused,
            ReverseTunnelPolicy::Offered => ReverseTunnels::Offered,
            ReverseTunnelPolicy::Demanded => ReverseTunnels::Demanded,
        }
    }
}

impl MobileNodeSettings {
    /// Reads and checks the file.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<MobileNodeFile>(path)?.mobile_node;
        let problem = settings.problem();
        sound(settings, problem, path)
    }

    fn problem(&self) -> Option<String> {
        if let Some(problem) = problem_of_device(&self.device, self.mtu, self.lifetime_s) {
            return Some(problem);
        }
        let (home, agent) = (self.home_address, self.home_agent);
        if let Some(address) = [home, agent].iter().find(|one| !is_of_a_host(**one)) {
            return Some(format!("{address} cannot be one host's address"));
        }
        (home == agent).then(|| format!("{home} is used twice"))
    }

    /// The key.
    pub(super) fn association(&self) -> Result<SecurityAssociation, Failure> {
        key::load(&self.key)
    }

    /// Whether `other` can take effect without a new device.
    pub(super) fn has_same_device(&self, other: &Self) -> bool {
        (
            self.home_address,
            &self.device,
            self.mtu,
            &self.destinations,
        ) == (
            other.home_address,
            &other.device,
            other.mtu,
            &other.destinations,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(text: &str) -> Result<HomeAgentSettings, String> {
        let file: HomeAgentFile = toml::from_str(text).map_err(|error| error.to_string())?;
        file.home_agent.problem().map_or(Ok(file.home_agent), Err)
    }

    fn mobile(text: &str) -> Result<MobileNodeSettings, String> {
        let file: MobileNodeFile = toml::from_str(text).map_err(|error| error.to_string())?;
        file.mobile_node.problem().map_or(Ok(file.mobile_node), Err)
    }

    #[test]
    fn what_cannot_hold_is_refused_and_named() {
        let one = "[[home_agent.mobiles]]\nhome_address = \"10.0.0.5\"\nkey = \"k\"\n";
        let cases = [
            ("", "10.0.0.1", one.to_owned(), ""),
            ("more = 1", "10.0.0.1", one.to_owned(), "more"),
            ("mtu = 500", "10.0.0.1", one.to_owned(), "500"),
            ("lifetime_s = 1", "10.0.0.1", one.to_owned(), "lifetime_s"),
            (
                "keep_alive_s = 0",
                "10.0.0.1",
                one.to_owned(),
                "keep_alive_s",
            ),
            ("", "10.0.0.5", one.to_owned(), "twice"),
            ("", "224.0.0.5", one.to_owned(), "224.0.0.5"),
            ("", "10.0.0.1", format!("{one}{one}"), "twice"),
        ];
        for (key, address, mobiles, problem) in cases {
            let text = format!("[home_agent]\naddress = \"{address}\"\n{key}\n{mobiles}");
            match home(&text) {
                Ok(_) => assert_eq!(problem, "", "{text}"),
                Err(said) => {
                    assert!(
                        !problem.is_empty() && said.contains(problem),
                        "{text}: {said}"
                    );
                }
            }
        }
    }

    #[test]
    fn destinations_are_networks() {
        let text = |networks: &str| {
            format!(
                "[mobile_node]\nhome_address = \"10.0.0.5\"\nhome_agent = \"10.9.0.1\"\n\
                 key = \"k\"\ndestinations = [{networks}]\n"
            )
        };
        let read = mobile(&text("\"10.7.0.0/16\", \"10.8.0.1\"")).expect("sound");
        let lengths: Vec<u8> = read.destinations.iter().map(|one| one.0.length).collect();
        assert_eq!(lengths, [16, 32]);
        for wrong in ["10.7.0.1/16", "10.7.0.0/33", "fd00::/8", "home"] {
            let said = mobile(&text(&format!("\"{wrong}\""))).expect_err(wrong);
            assert!(said.contains(wrong), "{said}");
        }
    }
}
