//! The tables `[home_agent]` and `[mobile_node]` where their addresses are of IPv6, and `[correspondent]`.

use crate::config::Endpoint;
use crate::failure::Failure;
use crate::mobility::key;
use crate::mobility::settings::{
    Operating, default_lifetime, default_mtu, differing, endpoint, home_agent_device,
    longest_lifetime, mobile_node_device, problem_of_device, problem_of_metrics, socket, sound,
    yes,
};
use crate::tables::read;
use outlast_linux::netlink::Prefix;
use outlast_mobility::SecurityAssociation;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

/// What every link carries (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// Whether the file's `table` is about IPv6: its `key` is such an address.
pub(in crate::mobility) fn is_of_ipv6(
    path: &Path,
    table: &str,
    key: &str,
) -> Result<bool, Failure> {
    let file: toml::Table = read(path)?;
    let address = file.get(table).and_then(|table| table.get(key));
    let address = address.and_then(toml::Value::as_str);
    Ok(address.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeAgentFile {
    home_agent: HomeAgentSettings,
}

/// What `[home_agent]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(in crate::mobility) struct HomeAgentSettings {
    pub(super) address: Ipv6Addr,
    #[serde(default = "home_agent_device")]
    pub(super) device: String,
    #[serde(default = "default_mtu")]
    mtu: u32,
    #[serde(default = "longest_lifetime")]
    pub(super) lifetime_s: u16,
    pub(super) gateway: Option<PathBuf>,
    control: Option<PathBuf>,
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
    mobiles: Vec<MobileSettings>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
struct MobileSettings {
    home_address: Ipv6Addr,
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
pub(in crate::mobility) struct MobileNodeSettings {
    pub(super) home_address: Ipv6Addr,
    pub(super) home_agent: Ipv6Addr,
    key: PathBuf,
    #[serde(default = "mobile_node_device")]
    pub(super) device: String,
    #[serde(default = "default_mtu")]
    mtu: u32,
    #[serde(default = "default_lifetime")]
    pub(super) lifetime_s: u16,
    control: Option<PathBuf>,
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
    #[serde(default = "yes")]
    pub(super) trigger: bool,
    pub(super) gateway: Option<PathBuf>,
    #[serde(default = "everywhere")]
    pub(super) destinations: Vec<Network>,
    #[serde(default)]
    pub(super) route_optimization: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CorrespondentFile {
    correspondent: CorrespondentSettings,
}

/// What `[correspondent]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(in crate::mobility) struct CorrespondentSettings {
    #[serde(default = "correspondent_device")]
    pub(super) device: String,
    #[serde(default = "default_mtu")]
    mtu: u32,
    #[serde(default = "most_bindings")]
    pub(super) bindings: usize,
    control: Option<PathBuf>,
    #[serde(default, deserialize_with = "endpoint")]
    pub(super) metrics: Option<Endpoint>,
}

fn correspondent_device() -> String {
    "peers0".into()
}

const fn most_bindings() -> usize {
    4096
}

/// A network of IPv6, such as `2001:db8::/32`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(super) struct Network(pub(super) Prefix);

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (address, length) = text.split_once('/').unwrap_or((&text, "128"));
        let address = address.parse::<Ipv6Addr>().ok();
        let length = length.parse::<u8>().ok().filter(|length| *length <= 128);
        let prefix = address.zip(length).map(|(address, length)| Prefix {
            address: address.into(),
            length,
        });
        match prefix {
            Some(prefix) if prefix.network() == Some(prefix.address) => Ok(Self(prefix)),
            Some(_) => Err(format!("\"{text}\" has bits beyond its prefix")),
            None => Err(format!(
                "\"{text}\" is no network of IPv6; write 2001:db8::/32"
            )),
        }
    }
}

fn everywhere() -> Vec<Network> {
    let address = Ipv6Addr::UNSPECIFIED.into();
    vec![Network(Prefix { address, length: 0 })]
}

/// Whether `address` can be one host's, beyond its link.
const fn is_of_a_host(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback()
        || address.is_unicast_link_local())
}

fn problem_of(mtu: u32, addresses: &[Ipv6Addr]) -> Option<String> {
    if mtu < LEAST_MTU {
        return Some(format!("mtu = {mtu}: IPv6 needs {LEAST_MTU} or more"));
    }
    if let Some(address) = addresses.iter().find(|one| !is_of_a_host(**one)) {
        return Some(format!("{address} cannot be one host's address"));
    }
    let mut known = BTreeSet::new();
    let twice = addresses.iter().find(|one| !known.insert(**one));
    twice.map(|address| format!("{address} is used twice"))
}

impl HomeAgentSettings {
    /// Reads and checks the file.
    pub(in crate::mobility) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<HomeAgentFile>(path)?.home_agent;
        let mut addresses = vec![settings.address];
        addresses.extend(settings.mobiles.iter().map(|one| one.home_address));
        let problem = problem_of_device(&settings.device, settings.mtu, settings.lifetime_s)
            .or_else(|| problem_of_metrics(settings.metrics.as_ref()))
            .or_else(|| problem_of(settings.mtu, &addresses));
        sound(settings, problem, path)
    }

    /// The mobile nodes and their keys.
    pub(in crate::mobility) fn associations(
        &self,
    ) -> Result<BTreeMap<Ipv6Addr, Vec<SecurityAssociation>>, Failure> {
        let mobiles = self.mobiles.iter();
        let pairs = mobiles.map(|one| Ok((one.home_address, vec![key::load(&one.key)?])));
        pairs.collect()
    }

    /// What `outlast run --check-config` says.
    pub(in crate::mobility) fn summary(&self) -> Result<String, Failure> {
        let mobiles = self.associations()?.len();
        Ok(format!(
            "  address {}\n  device  {}\n  mobiles {mobiles}\n",
            self.address, self.device
        ))
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: None,
            control: socket(control, self.control.as_deref(), &self.device),
            metrics: self.metrics.clone(),
        }
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("address", self.address != next.address),
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("lifetime_s", self.lifetime_s != next.lifetime_s),
            ("gateway", self.gateway != next.gateway),
            ("control", self.control != next.control),
        ])
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("mobiles", self.mobiles != next.mobiles),
            ("metrics", self.metrics != next.metrics),
        ])
    }
}

impl MobileNodeSettings {
    /// Reads and checks the file.
    pub(in crate::mobility) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<MobileNodeFile>(path)?.mobile_node;
        let addresses = [settings.home_address, settings.home_agent];
        let problem = problem_of_device(&settings.device, settings.mtu, settings.lifetime_s)
            .or_else(|| problem_of_metrics(settings.metrics.as_ref()))
            .or_else(|| problem_of(settings.mtu, &addresses));
        sound(settings, problem, path)
    }

    /// The key.
    pub(super) fn association(&self) -> Result<SecurityAssociation, Failure> {
        key::load(&self.key)
    }

    /// What `outlast run --check-config` says.
    pub(in crate::mobility) fn summary(&self) -> Result<String, Failure> {
        self.association()?;
        Ok(format!(
            "  home address {}\n  home agent   {}\n  device       {}\n",
            self.home_address, self.home_agent, self.device
        ))
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: None,
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
            (
                "route_optimization",
                self.route_optimization != next.route_optimization,
            ),
            ("metrics", self.metrics != next.metrics),
        ])
    }
}

impl CorrespondentSettings {
    /// Reads and checks the file.
    pub(in crate::mobility) fn load(path: &Path) -> Result<Self, Failure> {
        let settings = read::<CorrespondentFile>(path)?.correspondent;
        let problem = problem_of_device(&settings.device, settings.mtu, default_lifetime())
            .or_else(|| problem_of_metrics(settings.metrics.as_ref()))
            .or_else(|| problem_of(settings.mtu, &[]))
            .or_else(|| problem_of_bindings(settings.bindings));
        sound(settings, problem, path)
    }

    /// What `outlast run --check-config` says.
    pub(in crate::mobility) fn summary(&self) -> String {
        format!(
            "  device   {}\n  bindings up to {}\n",
            self.device, self.bindings
        )
    }

    /// What it is operated with; `control` goes before the file's.
    pub(super) fn operating(&self, control: Option<&Path>) -> Operating {
        Operating {
            device: self.device.clone(),
            mtu: self.mtu,
            interface: None,
            control: socket(control, self.control.as_deref(), &self.device),
            metrics: self.metrics.clone(),
        }
    }

    /// Keys that differ from those in force and cannot change while the daemon runs.
    pub(super) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[
            ("device", self.device != next.device),
            ("mtu", self.mtu != next.mtu),
            ("bindings", self.bindings != next.bindings),
            ("control", self.control != next.control),
        ])
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        differing(&[("metrics", self.metrics != next.metrics)])
    }
}

fn problem_of_bindings(bindings: usize) -> Option<String> {
    const RANGE: std::ops::RangeInclusive<usize> = 1..=1_000_000;
    (!RANGE.contains(&bindings)).then(|| format!("bindings = {bindings}: {RANGE:?} are allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a file with this text; nothing if it is sound.
    fn said(text: &str) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("role.toml");
        std::fs::write(&path, text).expect("a file of ours");
        let is_of_ipv6 = is_of_ipv6(&path, "mobile_node", "home_address").expect("TOML");
        assert!(is_of_ipv6, "{text}");
        MobileNodeSettings::load(&path).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn what_cannot_hold_is_refused_and_named() {
        let text = |agent: &str, more: &str| {
            format!(
                "[mobile_node]\nhome_address = \"fd50::5\"\nhome_agent = \"{agent}\"\nkey = \"k\"\n{more}"
            )
        };
        let cases = [
            ("fd09::2", "", ""),
            ("fd09::2", "destinations = [\"fd00::/8\"]", ""),
            ("fd09::2", "destinations = [\"fd00::1/8\"]", "fd00::1/8"),
            ("fd09::2", "destinations = [\"10.0.0.0/8\"]", "10.0.0.0/8"),
            ("fd09::2", "mtu = 1279", "1279"),
            ("fd09::2", "lifetime_s = 1", "lifetime_s"),
            ("fd09::2", "interface = \"eth0\"", "interface"),
            ("fd50::5", "", "twice"),
            ("fe80::1", "", "fe80::1"),
            ("10.9.0.2", "", "home_agent"),
        ];
        for (agent, more, problem) in cases {
            let said = said(&text(agent, more));
            assert_eq!(said.is_empty(), problem.is_empty(), "{more}: {said}");
            assert!(said.contains(problem), "{more}: {said}");
        }
    }
}
