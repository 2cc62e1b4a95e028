//! The tables `[[host.user_timeout.rules]]`: what some connections are told and kept for instead.

use super::{MOST, SECOND, duration};
use outlast_base::time::Duration;
use outlast_linux::netlink::Prefix;
use outlast_linux::user_timeout::UserTimeoutRule;
#[cfg(test)]
use outlast_scenario::keys::Section;
use outlast_scenario::keys::{Key, Kind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::IpAddr;
use std::path::PathBuf;

/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

#[cfg(test)]
pub(crate) static RULES: Section = Section {
    name: "host.user_timeout.rules",
    is_list: true,
    keys: &[&ADVERTISE, &IN_OUTAGE, &CGROUP, &INTERFACE, &PEER, &PORT],
};
static ADVERTISE: Key = Key {
    name: "advertise",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"100 s\"",
    default: "that of `[host.user_timeout]`",
    meaning: "The timeout that peers of these connections are told.",
    source: "",
};
static IN_OUTAGE: Key = Key {
    name: "in_outage",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"12 h\"",
    default: "that of `[host.user_timeout]`",
    meaning: "For how long they are kept while their link is away.",
    source: "",
};
#[cfg(test)]
static CGROUP: Key = Key {
    name: "cgroup",
    kind: Kind::File,
    example: "\"/sys/fs/cgroup/system.slice\"",
    default: "any",
    meaning: "Their sockets are of this directory of cgroup v2, or of one below it.",
    source: "",
};
#[cfg(test)]
static INTERFACE: Key = Key {
    name: "interface",
    kind: Kind::Text,
    example: "\"wwan0\"",
    default: "any",
    meaning: "Their packets leave by this interface.",
    source: "",
};
#[cfg(test)]
static PEER: Key = Key {
    name: "peer",
    kind: Kind::Text,
    example: "\"192.0.2.0/24\"",
    default: "any",
    meaning: "Their peer has this address, or one of this network.",
    source: "",
};
#[cfg(test)]
static PORT: Key = Key {
    name: "port",
    kind: Kind::Integer(1, 65_535),
    example: "22",
    default: "any",
    meaning: "Either end has this port.",
    source: "",
};

/// What one of them says.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(in crate::host) struct Rule {
    #[serde(deserialize_with = "advertise")]
    advertise: Option<Duration>,
    #[serde(deserialize_with = "in_outage")]
    in_outage: Option<Duration>,
    cgroup: Option<PathBuf>,
    interface: Option<String>,
    #[serde(deserialize_with = "peer")]
    peer: Option<Prefix>,
    port: Option<u16>,
}

impl Rule {
    /// The rule where `advertise` and `in_outage` hold for all that says nothing else.
    pub(super) fn settled(
        &self,
        advertise: Duration,
        in_outage: Option<Duration>,
    ) -> UserTimeoutRule {
        UserTimeoutRule {
            cgroup: self.cgroup.clone(),
            interface: self.interface.clone(),
            peer: self.peer,
            port: self.port,
            advertise: self.advertise.unwrap_or(advertise),
            in_outage: self.in_outage.or(in_outage),
        }
    }

    /// What is wrong, if anything is.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let has_selector = self.cgroup.is_some()
            || self.interface.is_some()
            || self.peer.is_some()
            || self.port.is_some();
        let is_name = |name: &String| (1..=LONGEST_NAME).contains(&name.len());
        if !has_selector {
            Some("say which connections are meant: cgroup, interface, peer or port")
        } else if self.advertise.is_none() && self.in_outage.is_none() {
            Some("say what holds for them: advertise or in_outage")
        } else if !self.interface.as_ref().is_none_or(is_name) {
            Some("interface: 1 to 15 bytes are allowed")
        } else if self.port == Some(0) {
            Some("port = 0: 1 to 65535 is allowed")
        } else {
            None
        }
    }
}

fn advertise<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    duration(&ADVERTISE, value).map(Some)
}

fn in_outage<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    duration(&IN_OUTAGE, value).map(Some)
}

fn peer<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Prefix>, D::Error> {
    let text = String::deserialize(value)?;
    let prefix = network(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "peer = \"{text}\": an address is allowed, or a network such as 192.0.2.0/24 or \
             2001:db8::/32"
        ))
    })?;
    Ok(Some(prefix))
}

/// An address, or a network without bits of a host.
fn network(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(most);
    let prefix = Prefix { address, length };
    (length <= most && prefix.network() == Some(address)).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        for text in ["192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "::/0", "::1"] {
            assert!(network(text).is_some(), "{text}");
        }
        for text in [
            "192.0.2.7/24",
            "192.0.2.0/33",
            "host",
            "192.0.2.0/",
            "::/129",
        ] {
            assert!(network(text).is_none(), "{text}");
        }
    }
}
