//! `[agents]` of the configuration file.

use super::key::SharedKey;
use crate::failure::Failure;
use outlast_agents::{Config, Limits, Prefix};
use outlast_base::time::Duration;
use outlast_scenario::Reader;
use outlast_scenario::keys::{Key, Kind, Section};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

const SECOND: u64 = 1_000_000_000;
/// Where journals are, unless somebody says otherwise.
const STATE_DIRECTORY: &str = "/var/lib/outlast";

pub(crate) static AGENTS: Section = Section {
    name: "agents",
    is_list: false,
    keys: &[&LISTEN, &KEY, &NEIGHBOURS, &MOBILES, &LOST_AFTER, &JOURNAL],
};
pub(crate) static AGENTS_TABLE: Key = Key {
    name: "agents",
    kind: Kind::Table,
    example: "",
    default: "no neighbours",
    meaning: "Gateways to and from which frozen connections follow their mobile host. For \
              `zero-window-ack`, and for supervisor hosts; with another mechanism the daemon warns \
              that it has no effect. A reload changes `neighbours`, `mobiles` and `lost_after`, and reads \
              the file that `key` names again.",
    source: "",
};
static LISTEN: Key = Key {
    name: "listen",
    kind: Kind::Text,
    example: "\"192.0.2.1:7348\"",
    default: "no neighbours",
    meaning: "The address and port at which neighbours reach this gateway, as they have it in their \
              `neighbours`. Not changed by a reload.",
    source: "",
};
static KEY: Key = Key {
    name: "key",
    kind: Kind::File,
    example: "\"/etc/outlast/agents.key\"",
    default: "none; needed with `listen`",
    meaning: "The key that all neighbours share, as `outlast agents key` makes one. Nobody but its \
              owner may be able to read it. Sessions that begin after a reload use the file as it is \
              then.",
    source: "",
};
static NEIGHBOURS: Key = Key {
    name: "neighbours",
    kind: Kind::Texts,
    example: "[\"192.0.2.2:7348\", \"192.0.2.3:7348\"]",
    default: "`[]`",
    meaning: "The other gateways, each by its `listen`. None is removed by a reload while a \
              connection is being handed over to or from it.",
    source: "",
};
static MOBILES: Key = Key {
    name: "mobiles",
    kind: Kind::Texts,
    example: "[\"198.51.100.0/24\", \"2001:db8:2::/64\"]",
    default: "all",
    meaning: "The mobile hosts whose connections are given and taken.",
    source: "",
};
static LOST_AFTER: Key = Key {
    name: "lost_after",
    kind: Kind::Duration(5 * SECOND, 600 * SECOND),
    example: "\"30 s\"",
    default: "`\"30 s\"`",
    meaning: "How long a neighbour may be away before the connections that depend on it are reset.",
    source: "",
};
static JOURNAL: Key = Key {
    name: "journal",
    kind: Kind::File,
    example: "\"/var/lib/outlast/wwan0.frozen\"",
    default: "`\"/var/lib/outlast/INTERFACE.frozen\"`",
    meaning: "The file in which frozen connections outlast a crash. With it alone there are no \
              neighbours, and a daemon that is started again goes on with what it had frozen. Not changed \
              by a reload.",
    source: "",
};

/// What the file says of neighbours.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Given {
    listen: Option<SocketAddr>,
    key: Option<PathBuf>,
    neighbours: Vec<SocketAddr>,
    mobiles: Vec<Prefix>,
    lost_after: Option<Duration>,
    journal: Option<PathBuf>,
}

/// What holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentSettings {
    /// Where neighbours reach this gateway, and the file of the key that they share; `None`: there
    /// are no neighbours.
    pub(super) listen: Option<(SocketAddr, PathBuf)>,
    pub(super) neighbours: Vec<SocketAddr>,
    pub(super) mobiles: Vec<Prefix>,
    lost_after: Duration,
    pub(super) journal: PathBuf,
}

impl AgentSettings {
    /// Checks that the key is there, and is one.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.listen {
            Some((_, key)) => SharedKey::load(key).map(drop),
            None => Ok(()),
        }
    }
}

impl Given {
    pub(crate) fn take(top: &Reader<'_>) -> Self {
        let table = top.table(&AGENTS_TABLE, &AGENTS);
        let listen = listen(&table);
        let key = table.text(&KEY).map(PathBuf::from);
        let neighbours = table.texts(&NEIGHBOURS, endpoint).unwrap_or_default();
        if table.has(&LISTEN) && key.is_none() {
            table.missing(&KEY, "`listen`");
        }
        // Each is for neighbours alone.
        let others = [&NEIGHBOURS, &KEY, &MOBILES, &LOST_AFTER];
        let needing = others.into_iter().find(|key| table.has(key));
        if let Some(key) = needing.filter(|_| !table.has(&LISTEN)) {
            table.missing(&LISTEN, &format!("`{}`", key.name));
        }
        if let (Some(listen), Some(span)) = (listen, table.span_of(&NEIGHBOURS)) {
            let problem = if neighbours.contains(&listen) {
                Some(format!("`{listen}` is this gateway itself"))
            } else {
                let other = neighbours.iter().find(|n| n.is_ipv4() != listen.is_ipv4());
                other.map(|other| format!("`{other}` and `listen` are of different IP versions"))
            };
            if let Some(problem) = problem {
                let remedy = "name the other gateways, each by its `listen`";
                table.note(span, problem, "not a neighbour", remedy);
            }
        }
        Self {
            listen,
            key,
            neighbours,
            mobiles: table.texts(&MOBILES, prefix).unwrap_or_default(),
            lost_after: table.quantity(&LOST_AFTER).map(Duration::from_nanos),
            journal: table.text(&JOURNAL).map(PathBuf::from),
        }
    }

    /// The settings of the gateway on `interface`, if it is to write down what it freezes.
    pub(crate) fn complete(self, interface: &str) -> Option<AgentSettings> {
        let journal = || PathBuf::from(STATE_DIRECTORY).join(format!("{interface}.frozen"));
        let is_wanted = self.listen.is_some() || self.journal.is_some();
        is_wanted.then(|| AgentSettings {
            listen: self.listen.zip(self.key),
            neighbours: self.neighbours,
            mobiles: self.mobiles,
            lost_after: self.lost_after.unwrap_or(Config::LOST_AFTER),
            journal: self.journal.unwrap_or_else(journal),
        })
    }
}

#[cfg(test)]
impl AgentSettings {
    /// The settings of the agent that listens at `own`, with these neighbours.
    pub(super) fn between(
        own: &str,
        neighbours: &[&str],
        key: &std::path::Path,
        journal: &std::path::Path,
    ) -> Self {
        let listen = endpoint(own).expect("an address and a port");
        Self {
            listen: Some((listen, key.into())),
            neighbours: neighbours.iter().filter_map(|n| endpoint(n)).collect(),
            mobiles: Vec::new(),
            lost_after: Config::LOST_AFTER,
            journal: journal.into(),
        }
    }
}

impl AgentSettings {
    /// What differs from `next` that cannot change while the daemon runs.
    pub(crate) fn fixed_differences(
        one: Option<&Self>,
        next: Option<&Self>,
    ) -> [(&'static str, bool); 2] {
        let at = |settings: &Self| settings.listen.as_ref().map(|(at, _)| *at);
        let journal = |settings: &Self| settings.journal.clone();
        [
            ("agents.listen", one.and_then(at) != next.and_then(at)),
            ("agents.journal", one.map(journal) != next.map(journal)),
        ]
    }

    pub(super) fn config(&self, instance: u64) -> Config {
        Config {
            instance,
            neighbours: self.neighbours.clone(),
            mobiles: self.mobiles.clone(),
            lost_after: self.lost_after,
            limits: Limits::default(),
        }
    }
}

fn listen(table: &Reader<'_>) -> Option<SocketAddr> {
    let text = table.text(&LISTEN)?;
    let listen = endpoint(&text);
    if listen.is_none() {
        table.note(
            table.span_of(&LISTEN).unwrap_or_default(),
            format!("`{text}` is no place where neighbours reach this gateway"),
            "expected one of its IP addresses, with a port",
            format!("write `{} = {}`", LISTEN.name, LISTEN.example),
        );
    }
    listen
}

/// An address that somebody can be reached at.
fn endpoint(text: &str) -> Option<SocketAddr> {
    let endpoint: SocketAddr = text.parse().ok()?;
    (!endpoint.ip().is_unspecified() && endpoint.port() != 0).then_some(endpoint)
}

/// An address, or the beginning of some.
fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let length = length.unwrap_or(whole);
    (length <= whole).then_some(Prefix { address, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_endpoints_are_what_they_look_like() {
        let address: IpAddr = [198, 51, 100, 0].into();
        for (text, length) in [("198.51.100.0/24", Some(24)), ("198.51.100.0", Some(32))] {
            let read = prefix(text).map(|prefix| (prefix.address, prefix.length));
            assert_eq!(read, length.map(|length| (address, length)));
        }
        for text in ["198.51.100.0/33", "mobile", "", "1.2.3.4/"] {
            assert_eq!(prefix(text), None, "{text}");
        }
        assert!(endpoint("[2001:db8::1]:7348").is_some());
        for text in ["0.0.0.0:7348", "192.0.2.1:0", "192.0.2.1"] {
            assert_eq!(endpoint(text), None, "{text}");
        }
    }
}
