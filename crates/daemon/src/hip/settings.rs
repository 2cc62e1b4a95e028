//! The table `[hip]` of the configuration file.

use super::key;
use super::lsi::Lsi;
use crate::config::{Endpoint, control_of};
use crate::failure::Failure;
use crate::tables;
use outlast_base::time::Duration;
use outlast_hip::identity::Identity;
use outlast_hip::suite::EspSuite;
use outlast_hip::{Admission, Config, LocalScope, Peer, stand_in};
use outlast_wire::hip::Hit;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// IPv6's smallest MTU, and what fits an outer packet of 1500 bytes of either family.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 1280..=9000;
const DEFAULT_MTU: u32 = 1440;

/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

/// The longest name of a host (RFC 1123, section 2.1).
const LONGEST_HOST_NAME: usize = 253;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    hip: Settings,
}

/// Who may open an association.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Admits {
    /// The peers of the configuration.
    #[default]
    Peers,
    /// Every host.
    Anyone,
}

/// How data is sealed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Suite {
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    #[serde(rename = "aes-128-cbc")]
    Aes128Cbc,
    #[serde(rename = "aes-256-cbc")]
    Aes256Cbc,
    /// Everybody on the path reads what is sent.
    Null,
}

impl Suite {
    /// As the file has it.
    const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes128Cbc => "aes-128-cbc",
            Self::Aes256Cbc => "aes-256-cbc",
            Self::Null => "null",
        }
    }
}

impl From<Suite> for EspSuite {
    fn from(suite: Suite) -> Self {
        match suite {
            Suite::Aes128Gcm => Self::Aes128Gcm,
            Suite::Aes128Cbc => Self::Aes128CbcSha256,
            Suite::Aes256Cbc => Self::Aes256CbcSha256,
            Suite::Null => Self::NullSha256,
        }
    }
}

/// What `[hip]` says.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// The file with the host's identity.
    key: PathBuf,
    /// The TUN device that is made.
    #[serde(default = "default_device")]
    pub(super) device: String,
    /// Its MTU in bytes.
    #[serde(default = "default_mtu")]
    pub(super) mtu: u32,
    /// From where applications without IPv6 have addresses.
    #[serde(default)]
    lsi: Lsi,
    /// Who may open an association.
    #[serde(default)]
    admits: Admits,
    /// Whether this host answers those who know only its address.
    #[serde(default)]
    opportunistic: bool,
    /// How data may be sealed, the preferred ones first.
    #[serde(default = "default_suites")]
    suites: Vec<Suite>,
    /// Whether data goes to an unverified address, as much as came from the peer.
    #[serde(default = "yes")]
    credit: bool,
    /// Whether TCP connections are made to move again once a readdressing is complete.
    #[serde(default = "yes")]
    trigger: bool,
    /// Where the daemon listens for `outlast status`; `None`: where the device's name says.
    control: Option<PathBuf>,
    /// Where metrics are served, if they are.
    pub(super) metrics: Option<Endpoint>,
    /// Known hosts.
    #[serde(default)]
    pub(super) peers: Vec<PeerSettings>,
}

/// What `[[hip.peers]]` says.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerSettings {
    /// The tag; `None`: whoever answers at the address is the peer.
    pub(super) tag: Option<Ipv6Addr>,
    /// Whether the tag need not be known.
    #[serde(default)]
    opportunistic: bool,
    /// What people call it.
    pub(super) name: Option<String>,
    /// The LSI that stands for it here, if it is a certain one.
    lsi: Option<Ipv4Addr>,
    /// Where the peer is, as far as is known.
    #[serde(default)]
    addresses: Vec<IpAddr>,
    /// Its rendezvous servers.
    #[serde(default)]
    rendezvous: Vec<IpAddr>,
    /// Whether it is this host's rendezvous server.
    #[serde(default)]
    registers: bool,
}

fn default_device() -> String {
    "hip0".into()
}

const fn default_mtu() -> u32 {
    DEFAULT_MTU
}

fn default_suites() -> Vec<Suite> {
    vec![Suite::Aes128Gcm, Suite::Aes128Cbc, Suite::Aes256Cbc]
}

const fn yes() -> bool {
    true
}

impl Settings {
    /// Reads and checks the file.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let file: File = tables::read(path)?;
        let problem = file.hip.problem();
        match problem {
            Some(problem) => Err(Failure::Usage(format!("{shown}: {problem}"))),
            None => Ok(file.hip),
        }
    }

    /// What is wrong, if anything is.
    fn problem(&self) -> Option<String> {
        if !MTU_RANGE.contains(&self.mtu) {
            return Some(format!("mtu = {}: {MTU_RANGE:?} are allowed", self.mtu));
        }
        if self.suites.is_empty() {
            return Some("suites = []: at least one is needed".to_owned());
        }
        let problem = self.repeated_suite();
        if problem.is_some() {
            return problem;
        }
        if self.device.is_empty() || self.device.len() > LONGEST_NAME {
            let device = &self.device;
            return Some(format!(
                "device = {device:?}: 1 to {LONGEST_NAME} bytes are allowed"
            ));
        }
        let mut taken = Taken::default();
        let problems = self.peers.iter();
        let mut problems = problems.map(|peer| peer.problem(self.local_scope(), &mut taken));
        let problem = problems.find_map(|problem| problem);
        problem.or_else(|| self.shared_address())
    }

    /// Says so if a suite is named twice: the list that hosts send has room for six (RFC 7402, section 5.1.2), and
    /// the second mention means nothing.
    fn repeated_suite(&self) -> Option<String> {
        let mut rest = self.suites.as_slice();
        while let [first, others @ ..] = rest {
            if others.contains(first) {
                let name = first.name();
                return Some(format!("suites: {name:?} is there twice: once is enough"));
            }
            rest = others;
        }
        None
    }

    /// Says so if a peer without a tag is at an address that another peer has, too: they could be the same host.
    fn shared_address(&self) -> Option<String> {
        let is_shared = |(at, peer): &(usize, &PeerSettings)| {
            let has_one = |address| peer.addresses.contains(address);
            let mut others = self.peers.iter().enumerate();
            peer.tag.is_none()
                && others.any(|(other, peer)| other != *at && peer.addresses.iter().any(has_one))
        };
        let (_, peer) = self.peers.iter().enumerate().find(is_shared)?;
        let address = peer.addresses.first()?;
        Some(format!(
            "{address}: a peer without a tag is there, and another peer, too: one of them is enough"
        ))
    }

    /// From where applications without IPv6 have addresses.
    pub(super) fn local_scope(&self) -> Option<LocalScope> {
        self.lsi.scope(self.mtu)
    }

    /// Where the daemon listens for those who operate it.
    pub(super) fn control(&self) -> PathBuf {
        let usual = || control_of(&self.device);
        self.control.clone().unwrap_or_else(usual)
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        let all = [
            ("key", self.key != next.key),
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("lsi", self.lsi != next.lsi),
            ("admits", self.admits != next.admits),
            ("suites", self.suites != next.suites),
            ("opportunistic", self.opportunistic != next.opportunistic),
            ("credit", self.credit != next.credit),
            ("trigger", self.trigger != next.trigger),
            ("control", self.control != next.control),
        ];
        differing(&all)
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("metrics", self.metrics != next.metrics),
            ("peers", self.peers != next.peers),
        ])
    }

    /// The host's identity.
    pub(super) fn identity(&self) -> Result<Identity, Failure> {
        key::load(&self.key)
    }

    /// The known hosts.
    pub(super) fn peers(&self) -> Vec<(Hit, Peer)> {
        let peers = self.peers.iter().map(|peer| {
            let known = Peer {
                addresses: peer.addresses.clone(),
                rendezvous: peer.rendezvous.clone(),
                registers: peer.registers,
                lsi: peer.lsi,
            };
            Some((peer.hit()?, known))
        });
        peers.flatten().collect()
    }

    /// What people call the peers.
    pub(super) fn names(&self) -> BTreeMap<Hit, &str> {
        let named = self.peers.iter();
        named
            .filter_map(|peer| Some((peer.hit()?, peer.name.as_deref()?)))
            .collect()
    }

    /// Where packets may go to.
    pub(super) fn destinations(&self) -> Vec<IpAddr> {
        let peers = self.peers.iter();
        let all = peers.flat_map(|peer| peer.addresses.iter().chain(&peer.rendezvous));
        let mut all: Vec<IpAddr> = all.copied().collect();
        all.dedup();
        all
    }

    /// What the host is made with.
    pub(super) fn host(&self, is_rendezvous_server: bool, since_epoch: Duration) -> Config {
        Config {
            admission: match self.admits {
                Admits::Peers => Admission::Peers,
                Admits::Anyone => Admission::Anyone,
            },
            suites: self.suites.iter().copied().map(EspSuite::from).collect(),
            has_credit: self.credit,
            wakes_connections: self.trigger,
            is_rendezvous_server,
            answers_opportunistic: self.opportunistic,
            local_scope: self.local_scope(),
            // Greater with each start.
            r1_counter: since_epoch.as_secs(),
            ..Config::default()
        }
    }
}

/// What only one peer may have.
#[derive(Default)]
struct Taken<'a> {
    names: BTreeSet<&'a str>,
    identifiers: BTreeSet<Ipv4Addr>,
}

/// Whether an address lies in the prefix of tags, `2001:20::/28`: no host is there.
fn is_tag(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if Hit::from(address).suite().is_some())
}

/// Whether a name may stand in a file of hosts (RFC 1123, section 2.1).
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= LONGEST_HOST_NAME && name.split('.').all(is_label)
}

impl PeerSettings {
    /// The tag, or what has its place until it is known; nothing if there is neither.
    pub(super) fn hit(&self) -> Option<Hit> {
        let known = self.tag.map(Hit::from);
        known.or_else(|| self.addresses.first().copied().map(stand_in))
    }

    /// What is wrong with how the peer is known, if anything is.
    fn problem_of_tag(&self, scope: Option<LocalScope>) -> Option<String> {
        let Some(tag) = self.tag else {
            let is_bare = self.rendezvous.is_empty() && !self.registers;
            return if !self.opportunistic {
                Some("a peer has no tag: `opportunistic = true` takes whoever answers".into())
            } else if self.addresses.len() != 1 || !is_bare || scope.is_none() {
                Some(
                    "a peer without a tag has one address, no rendezvous server, and an lsi by which \
                     applications reach it"
                        .into(),
                )
            } else {
                self.addresses
                    .iter()
                    .find(|address| is_tag(**address))
                    .map(|address| format!("{address}: a tag is no address; `tag` names it"))
            };
        };
        if self.opportunistic {
            return Some(format!(
                "opportunistic = true: the peer's tag {tag} is known"
            ));
        }
        if !matches!(Hit::from(tag).suite(), Some(1 | 2)) {
            return Some(format!(
                "tag = \"{tag}\": no host identity tag; they begin with 2001:21: or 2001:22:"
            ));
        }
        None
    }

    /// What is wrong, if anything is.
    fn problem<'a>(&'a self, scope: Option<LocalScope>, taken: &mut Taken<'a>) -> Option<String> {
        let problem = self.problem_of_tag(scope);
        if problem.is_some() {
            return problem;
        }
        let tag = self.hit()?;
        if self.registers && self.addresses.is_empty() {
            return Some(format!("the rendezvous server {tag} needs addresses"));
        }
        if let Some(name) = &self.name {
            if !is_name(name) {
                return Some(format!(
                    "name = {name:?}: letters, digits, hyphens and dots make a host's name"
                ));
            }
            if !taken.names.insert(name) {
                return Some(format!("name = {name:?}: two peers have it"));
            }
        }
        if let Some(lsi) = self.lsi {
            if !scope.is_some_and(|scope| scope.has_room_at(lsi)) {
                return Some(format!(
                    "lsi = \"{lsi}\" of {tag}: a peer's lies in the prefix of [hip] lsi, and is not its \
                     first, its last or this host's address"
                ));
            }
            if !taken.identifiers.insert(lsi) {
                return Some(format!("lsi = \"{lsi}\": two peers have it"));
            }
        }
        let inside = |address: &&IpAddr| match address {
            IpAddr::V4(address) => scope.is_some_and(|scope| scope.contains(*address)),
            IpAddr::V6(_) => false,
        };
        let found = self.addresses.iter().chain(&self.rendezvous).find(inside)?;
        Some(format!(
            "{found}: no host is at an address in the prefix of [hip] lsi; choose another prefix"
        ))
    }
}

/// The names of what differs.
fn differing(all: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = all.iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "tag = \"2001:22:9a41:52b4:b4fe:7d2f:2b17:9f13\"\n";

    /// What is wrong with `[hip]` and one table of a peer each.
    fn problem(hip: &str, peers: &[&str]) -> Option<String> {
        let mut text = format!("[hip]\nkey = \"hip.key\"\n{hip}\n");
        for peer in peers {
            text.push_str(&format!("[[hip.peers]]\n{peer}\n"));
        }
        let file: File = toml::from_str(&text).expect("keys that there are");
        file.hip.problem()
    }

    #[test]
    fn names_and_identifiers_are_a_peer_s_own() {
        let named = |rest: &str| format!("{PEER}{rest}");
        let good = named("name = \"a.example\"\nlsi = \"198.18.0.9\"");
        assert_eq!(problem("", &[&good]), None);
        assert!(problem("", &[&good, &named("name = \"a.example\"")]).is_some());
        assert!(problem("", &[&good, &named("lsi = \"198.18.0.9\"")]).is_some());
        assert!(problem("lsi = \"off\"", &[&good]).is_some());
        for wrong in [
            "name = \"\"",
            "name = \"two words\"",
            "name = \"-a\"",
            "name = \"a\\n::1 b\"",
            "lsi = \"198.18.0.1\"",
            "lsi = \"198.20.0.1\"",
            "addresses = [\"198.18.0.7\"]",
        ] {
            assert!(problem("", &[&named(wrong)]).is_some(), "{wrong}");
        }
    }

    #[test]
    fn each_suite_is_named_once() {
        let all = ["aes-128-gcm", "aes-128-cbc", "aes-256-cbc", "null"];
        assert_eq!(problem(&format!("suites = {all:?}"), &[]), None);
        for suite in all {
            let twice = [suite, "aes-128-gcm", suite];
            let said = problem(&format!("suites = {twice:?}"), &[]).expect("a problem");
            assert!(said.starts_with(&format!("suites: {suite:?} ")), "{said}");
        }
        assert!(problem("suites = []", &[]).is_some());
    }

    #[test]
    fn a_peer_without_a_tag_is_asked_for() {
        let address = "addresses = [\"192.0.2.2\"]\n";
        let good = format!("opportunistic = true\n{address}");
        assert_eq!(problem("", &[&good]), None);
        assert!(problem("lsi = \"off\"", &[&good]).is_some());
        for wrong in [
            address.to_owned(),
            "opportunistic = true".to_owned(),
            format!("{PEER}{good}"),
            "opportunistic = true\naddresses = [\"192.0.2.2\", \"192.0.2.3\"]".to_owned(),
            format!("registers = true\n{good}"),
            "opportunistic = true\naddresses = [\"2001:2f::1\"]".to_owned(),
        ] {
            assert!(problem("", &[&wrong]).is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_peer_without_a_tag_is_the_only_one_at_its_address() {
        let good = "opportunistic = true\naddresses = [\"192.0.2.2\"]";
        let elsewhere = format!("{PEER}addresses = [\"192.0.2.3\"]");
        assert_eq!(problem("", &[good, &elsewhere]), None);
        let here = format!("{PEER}addresses = [\"192.0.2.3\", \"192.0.2.2\"]");
        for other in [good, &here] {
            assert!(problem("", &[good, other]).is_some(), "{other}");
            assert!(problem("", &[other, good]).is_some(), "{other}");
        }
        // Of peers with tags, several may be found at one address.
        let third = here.replace("9f13", "9f14");
        assert_eq!(problem("", &[&here, &third]), None);
    }
}
