//! The tables `[home_agent]`, `[foreign_agent]` and `[mobile_node]` of the configuration file.

use super::{access, key};
use crate::config::{Endpoint, control_of, may_be_control};
use crate::failure::Failure;
use crate::tables::read;
use outlast_base::time::Duration;
use outlast_linux::netlink::Prefix;
use outlast_mobility::{Advertising, Detection, ReverseTunnels, SecurityAssociation};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// What every host takes (RFC 791), and what fits jumbo frames.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 576..=9000;
/// What fits an outer packet of 1472 bytes with a tunnel in UDP.
const DEFAULT_MTU: u32 = 1440;

/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

/// How often agents may advertise themselves: below, advertisements take a part of a slow link's rate;
/// above, their lifetime of three times as long is no more than a mobile node waits.
const INTERVAL_RANGE: std::ops::RangeInclusive<u64> = 50..=60_000;

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

impl From<ReverseTunnelPolicy> for ReverseTunnels {
    fn from(policy: ReverseTunnelPolicy) -> Self {
        match policy {
            ReverseTunnelPolicy::Refused => Self::Refused,
            ReverseTunnelPolicy::Offered => Self::Offered,
            ReverseTunnelPolicy::Demanded => Self::Demanded,
        }
    }
}

/// When a mobile node believes that it has moved.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum DetectionChoice {
    Eager,
    #[default]
    Lazy,
    Prefix,
    Link,
}

/// How packets get through tunnels IP in IP.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TunnelPathChoice {
    /// Plain ones in the kernel if that can be had.
    #[default]
    Auto,
    /// Plain ones in the kernel.
    Ebpf,
    /// All of them in user space.
    UserSpace,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeAgentFile {
    home_agent: HomeAgentSettings,
}

/// What `[home_agent]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct HomeAgentSettings {
    /// The address at which mobile nodes reach it.
    pub(super) address: Ipv4Addr,
    /// The home network's link, if it is one.
    pub(super) interface: Option<String>,
    /// Milliseconds between two advertisements there.
    #[serde(default = "default_interval")]
    interval_ms: u64,
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
    /// Whether plain packets in tunnels stay in the kernel.
    #[serde(default)]
    pub(super) data_path: TunnelPathChoice,
    /// Where a gateway daemon on the device listens, if it is to be told of registrations.
    pub(super) gateway: Option<PathBuf>,
    /// Where the daemon listens for `outlast status`; `None`: where the device's name says.
    control: Option<PathBuf>,
    /// Where metrics are served, if they are.
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
    /// The mobile nodes.
    mobiles: Vec<MobileSettings>,
    /// Foreign agents that have to authenticate what they relay.
    #[serde(default)]
    foreign_agents: Vec<AgentSettings>,
}

/// What `[foreign_agent]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct ForeignAgentSettings {
    /// The visitors' link.
    pub(super) interface: String,
    /// This host's address there.
    pub(super) address: Ipv4Addr,
    /// Where home agents' tunnels end.
    pub(super) care_of_address: Ipv4Addr,
    /// Milliseconds between two advertisements.
    #[serde(default = "default_interval")]
    interval_ms: u64,
    /// The TUN device that is made; what visitors send through reverse tunnels is routed to it.
    #[serde(default = "foreign_agent_device")]
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
    /// Whether mobile nodes with addresses of their own have to register here, too.
    #[serde(default)]
    pub(super) registration_required: bool,
    /// Whether plain packets in tunnels stay in the kernel.
    #[serde(default)]
    pub(super) data_path: TunnelPathChoice,
    /// Where the daemon listens for `outlast status`; `None`: where the device's name says.
    control: Option<PathBuf>,
    /// Where metrics are served, if they are.
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
    /// Visitors that have to authenticate themselves here.
    #[serde(default)]
    mobiles: Vec<MobileSettings>,
    /// Home agents that have to authenticate their replies.
    #[serde(default)]
    home_agents: Vec<AgentSettings>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignAgentFile {
    foreign_agent: ForeignAgentSettings,
}

/// An agent that shares a key with this one.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
struct AgentSettings {
    /// Its address.
    address: Ipv4Addr,
    /// The file with the key.
    key: PathBuf,
}

/// What `[[home_agent.mobiles]]` and `[[foreign_agent.mobiles]]` say.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
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
    /// Whether plain packets in tunnels stay in the kernel.
    #[serde(default)]
    pub(super) data_path: TunnelPathChoice,
    /// Where the daemon listens for `outlast status`; `None`: where the device's name says.
    control: Option<PathBuf>,
    /// Where metrics are served, if they are.
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
    /// Whether connections are made to retransmit when a registration is complete.
    #[serde(default = "yes")]
    pub(super) trigger: bool,
    /// Where a gateway daemon on the device listens, if it is to be told of registrations.
    pub(super) gateway: Option<PathBuf>,
    /// The interface on which agents are heard, if any.
    pub(super) interface: Option<String>,
    /// When it believes that it has moved from one agent to another.
    #[serde(default)]
    detection: DetectionChoice,
    /// The file with the key that foreign agents demand, if they do.
    foreign_key: Option<PathBuf>,
    /// The home network, which is on the link when the mobile node is at home.
    pub(super) home_network: Option<Network>,
    /// The router to everywhere else at home; the home agent if it is not given.
    home_gateway: Option<Ipv4Addr>,
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

pub(super) fn home_agent_device() -> String {
    "mobiles0".into()
}

fn foreign_agent_device() -> String {
    "visitors0".into()
}

pub(super) fn mobile_node_device() -> String {
    "home0".into()
}

/// RFC 5944's limit of old: once a second.
const fn default_interval() -> u64 {
    1000
}

pub(super) const fn default_mtu() -> u32 {
    DEFAULT_MTU
}

pub(super) const fn longest_lifetime() -> u16 {
    1800
}

pub(super) const fn default_lifetime() -> u16 {
    600
}

/// RFC 3519, section 4.9.
const fn default_keep_alive() -> u16 {
    110
}

pub(super) const fn yes() -> bool {
    true
}

pub(super) fn endpoint<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Endpoint>, D::Error> {
    let text = String::deserialize(value)?;
    let expected = "an IP address with a port, or unix: and an absolute path";
    let endpoint = text.parse().map_err(|()| {
        serde::de::Error::custom(format!(
            "`{text}` is no place to listen at; expected {expected}"
        ))
    })?;
    Ok(Some(endpoint))
}

fn everywhere() -> Vec<Network> {
    let address = Ipv4Addr::UNSPECIFIED.into();
    vec![Network(Prefix { address, length: 0 })]
}

/// The names of what differs.
pub(super) fn differing(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = all.iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| *name).collect()
}

/// What a role is operated with.
#[derive(Clone, Debug)]
pub(super) struct Operating {
    /// The TUN device and its MTU in bytes.
    pub(super) device: String,
    pub(super) mtu: u32,
    /// The interface of the access link.
    pub(super) interface: Option<String>,
    pub(super) control: PathBuf,
    pub(super) metrics: Option<Endpoint>,
}

/// The control socket: the one of the command line before the file's, or that of the device.
pub(super) fn socket(given: Option<&Path>, of_file: Option<&Path>, device: &str) -> PathBuf {
    given
        .or(of_file)
        .map_or_else(|| control_of(device), Path::to_owned)
}

/// What is wrong with what all roles have, if anything is.
pub(super) fn problem_of_device(device: &str, mtu: u32, lifetime_s: u16) -> Option<String> {
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

pub(super) fn problem_of_metrics(metrics: Option<&Endpoint>) -> Option<String> {
    match metrics {
        Some(Endpoint::Unix(path)) if may_be_control(path) => Some(format!(
            "metrics = \"unix:{}\": so control sockets are called there",
            path.display()
        )),
        _ => None,
    }
}

fn problem_of_interval(interval_ms: u64) -> Option<String> {
    (!INTERVAL_RANGE.contains(&interval_ms))
        .then(|| format!("interval_ms = {interval_ms}: {INTERVAL_RANGE:?} are allowed"))
}

fn problem_of_interface(interface: Option<&String>) -> Option<String> {
    let name = interface?;
    (name.is_empty() || name.len() > LONGEST_NAME)
        .then(|| format!("interface = {name:?}: 1 to {LONGEST_NAME} bytes are allowed"))
}

/// What is wrong with a list of hosts' addresses, if anything is.
fn problem_of_addresses(mut addresses: Vec<Ipv4Addr>) -> Option<String> {
    if let Some(address) = addresses.iter().find(|address| !is_of_a_host(**address)) {
        return Some(format!("{address} cannot be one host's address"));
    }
    addresses.sort_unstable();
    let twice = addresses.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map(|pair| format!("{} is used twice", pair[0]))
}

/// How an agent advertises itself on `interface`, where it has `address`.
fn advertising(
    interface: &str,
    address: Ipv4Addr,
    interval_ms: u64,
) -> Result<Advertising, Failure> {
    let length = access::prefix_length(interface, address)
        .map_err(|error| Failure::Usage(format!("interface = \"{interface}\": {error}")))?;
    let Some(length) = length else {
        return Err(Failure::Usage(format!(
            "interface = \"{interface}\": it does not have the address {address}"
        )));
    };
    let interval = Duration::from_millis(interval_ms);
    Ok(Advertising {
        address,
        interval,
        // At least three of them; random times are up to a tenth longer.
        lifetime_s: u16::try_from((interval_ms * 3).div_ceil(1000)).unwrap_or(u16::MAX),
        prefix_length: Some(length),
    })
}

fn load_agents(
    agents: &[AgentSettings],
) -> Result<BTreeMap<Ipv4Addr, SecurityAssociation>, Failure> {
    let pairs = agents
        .iter()
        .map(|one| Ok((one.address, key::load(&one.key)?)));
    pairs.collect()
}

/// Whether `address` can be one host's.
const fn is_of_a_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_loopback())
}

pub(super) fn sound<T>(settings: T, problem: Option<String>, path: &Path) -> Result<T, Failure> {
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
        if let Some(problem) = problem_of_interval(self.interval_ms) {
            return Some(problem);
        }
        if let Some(problem) = problem_of_metrics(self.metrics.as_ref()) {
            return Some(problem);
        }
        if let Some(problem) = problem_of_interface(self.interface.as_ref()) {
            return Some(problem);
        }
        let mut addresses: Vec<Ipv4Addr> =
            self.mobiles.iter().map(|one| one.home_address).collect();
        addresses.push(self.address);
        problem_of_addresses(addresses).or_else(|| {
            problem_of_addresses(self.foreign_agents.iter().map(|one| one.address).collect())
        })
    }

    /// How it advertises itself on the home link, if that is one.
    pub(super) fn advertising(&self) -> Result<Option<Advertising>, Failure> {
        let interface = self.interface.as_ref();
        let advertising =
            interface.map(|interface| advertising(interface, self.address, self.interval_ms));
        advertising.transpose()
    }

    /// Foreign agents that have to authenticate what they relay, and their keys.
    pub(super) fn foreign_agents(
        &self,
    ) -> Result<BTreeMap<Ipv4Addr, SecurityAssociation>, Failure> {
        load_agents(&self.foreign_agents)
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: self.interface.clone(),
            control: socket(control, self.control.as_deref(), &self.device),
            metrics: self.metrics.clone(),
        }
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("address", self.address != next.address),
            ("interface", self.interface != next.interface),
            ("interval_ms", self.interval_ms != next.interval_ms),
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("lifetime_s", self.lifetime_s != next.lifetime_s),
            (
                "reverse_tunnels",
                self.reverse_tunnels != next.reverse_tunnels,
            ),
            ("udp_tunnels", self.udp_tunnels != next.udp_tunnels),
            ("keep_alive_s", self.keep_alive_s != next.keep_alive_s),
            ("data_path", self.data_path != next.data_path),
            ("gateway", self.gateway != next.gateway),
            ("control", self.control != next.control),
            ("foreign_agents", self.foreign_agents != next.foreign_agents),
        ])
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("mobiles", self.mobiles != next.mobiles),
            ("metrics", self.metrics != next.metrics),
        ])
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
    pub(super) fn reverse_tunnels(&self) -> ReverseTunnels {
        self.reverse_tunnels.into()
    }
}

impl ForeignAgentSettings {
    /// Reads and checks the file.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<ForeignAgentFile>(path)?.foreign_agent;
        let problem = settings.problem();
        sound(settings, problem, path)
    }

    fn problem(&self) -> Option<String> {
        let addresses = [self.address, self.care_of_address];
        problem_of_device(&self.device, self.mtu, self.lifetime_s)
            .or_else(|| problem_of_interval(self.interval_ms))
            .or_else(|| problem_of_metrics(self.metrics.as_ref()))
            .or_else(|| problem_of_interface(Some(&self.interface)))
            .or_else(|| {
                let one = |address: &Ipv4Addr| problem_of_addresses(vec![*address]);
                addresses.iter().find_map(one)
            })
            .or_else(|| {
                problem_of_addresses(self.mobiles.iter().map(|one| one.home_address).collect())
            })
            .or_else(|| {
                problem_of_addresses(self.home_agents.iter().map(|one| one.address).collect())
            })
    }

    /// How it advertises itself.
    pub(super) fn advertising(&self) -> Result<Advertising, Failure> {
        advertising(&self.interface, self.address, self.interval_ms)
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: Some(self.interface.clone()),
            control: socket(control, self.control.as_deref(), &self.device),
            metrics: self.metrics.clone(),
        }
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("interface", self.interface != next.interface),
            ("address", self.address != next.address),
            (
                "care_of_address",
                self.care_of_address != next.care_of_address,
            ),
            ("interval_ms", self.interval_ms != next.interval_ms),
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("lifetime_s", self.lifetime_s != next.lifetime_s),
            (
                "reverse_tunnels",
                self.reverse_tunnels != next.reverse_tunnels,
            ),
            (
                "registration_required",
                self.registration_required != next.registration_required,
            ),
            ("data_path", self.data_path != next.data_path),
            ("control", self.control != next.control),
        ])
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("mobiles", self.mobiles != next.mobiles),
            ("home_agents", self.home_agents != next.home_agents),
            ("metrics", self.metrics != next.metrics),
        ])
    }

    /// Visitors that have to authenticate themselves, and their keys.
    pub(super) fn mobiles(&self) -> Result<BTreeMap<Ipv4Addr, SecurityAssociation>, Failure> {
        let mobiles = self.mobiles.iter();
        let pairs = mobiles.map(|one| Ok((one.home_address, key::load(&one.key)?)));
        pairs.collect()
    }

    /// Home agents that have to authenticate their replies, and their keys.
    pub(super) fn home_agents(&self) -> Result<BTreeMap<Ipv4Addr, SecurityAssociation>, Failure> {
        load_agents(&self.home_agents)
    }

    /// Whether visitors may, or have to, use reverse tunnels.
    pub(super) fn reverse_tunnels(&self) -> ReverseTunnels {
        self.reverse_tunnels.into()
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
        if home == agent {
            return Some(format!("{home} is used twice"));
        }
        let needs_interface = self.detection != DetectionChoice::default()
            || self.home_network.is_some()
            || self.home_gateway.is_some()
            || self.foreign_key.is_some();
        if self.interface.is_none() && needs_interface {
            let keys = "detection, foreign_key, home_network and home_gateway";
            return Some(format!(
                "{keys} are for agents that are heard on an interface: add interface = \"NAME\""
            ));
        }
        problem_of_metrics(self.metrics.as_ref())
            .or_else(|| problem_of_interface(self.interface.as_ref()))
    }

    /// What it takes for a move. Without agents only the link tells.
    pub(super) const fn detection(&self) -> Detection {
        match self.detection {
            _ if self.interface.is_none() => Detection::Link,
            DetectionChoice::Eager => Detection::Eager,
            DetectionChoice::Lazy => Detection::Lazy,
            DetectionChoice::Prefix => Detection::Prefix,
            DetectionChoice::Link => Detection::Link,
        }
    }

    /// The router at home.
    pub(super) fn home_gateway(&self) -> Ipv4Addr {
        self.home_gateway.unwrap_or(self.home_agent)
    }

    /// The key that foreign agents demand, if they do.
    pub(super) fn foreign_association(&self) -> Result<Option<SecurityAssociation>, Failure> {
        self.foreign_key.as_deref().map(key::load).transpose()
    }

    /// The key.
    pub(super) fn association(&self) -> Result<SecurityAssociation, Failure> {
        key::load(&self.key)
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: self.interface.clone(),
            control: socket(control, self.control.as_deref(), &self.device),
            metrics: self.metrics.clone(),
        }
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("home_address", self.home_address != next.home_address),
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("destinations", self.destinations != next.destinations),
            ("data_path", self.data_path != next.data_path),
            ("interface", self.interface != next.interface),
            ("home_network", self.home_network != next.home_network),
            ("home_gateway", self.home_gateway != next.home_gateway),
            ("control", self.control != next.control),
            ("trigger", self.trigger != next.trigger),
            ("gateway", self.gateway != next.gateway),
        ])
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("home_agent", self.home_agent != next.home_agent),
            ("key", self.key != next.key),
            ("lifetime_s", self.lifetime_s != next.lifetime_s),
            ("udp_tunnel", self.udp_tunnel != next.udp_tunnel),
            ("detection", self.detection != next.detection),
            ("foreign_key", self.foreign_key != next.foreign_key),
            ("metrics", self.metrics != next.metrics),
        ])
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
