//! One status document of any role, as a table of links, outages, connections and counts.
//!
//! The document is another process's: a field that is missing or of another kind is left out, and control characters are
//! replaced here, so that nothing of it can steer the terminal.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Texts of a document are cut after so many characters.
const LONGEST: usize = 120;

/// A daemon at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    /// The mechanism and its interface, or the role.
    pub(crate) title: String,
    /// Since the daemon began.
    pub(crate) running_s: f64,
    pub(crate) links: Vec<Link>,
    /// The newest first.
    pub(crate) outages: Vec<Outage>,
    /// The word for the connections that were helped.
    pub(crate) helped: &'static str,
    /// Only gateways do.
    pub(crate) lists_flows: bool,
    pub(crate) flows: Vec<Flow>,
    /// Connections that there are, of which `flows` may be the first.
    pub(crate) flows_in_all: u64,
    /// Counts since the daemon began.
    pub(crate) counts: BTreeMap<String, f64>,
    /// Memory: what for, bytes, and the most that it may be.
    pub(crate) memory: Vec<(&'static str, f64, Option<f64>)>,
}

/// A link, or what a role has in its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// The state in a word, and who said so.
    pub(crate) state: String,
    /// Since its last change, if that is told.
    pub(crate) for_s: Option<f64>,
}

/// An outage of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outage {
    /// The link's name.
    pub(crate) link: String,
    pub(crate) by: String,
    /// Since its beginning.
    pub(crate) began_ago_s: f64,
    pub(crate) length_s: Option<f64>,
    pub(crate) is_over: bool,
    /// Connections that resumed, or of a host those that were made to retransmit.
    pub(crate) helped: Option<u64>,
    /// The slowest of them, from link-up.
    pub(crate) slowest_s: Option<f64>,
    /// The longest wait of one of them by itself, about.
    pub(crate) without_s: Option<f64>,
    pub(crate) saved_s: Option<f64>,
    pub(crate) not_helped: Option<u64>,
    /// Cause for the first of those.
    pub(crate) why: String,
}

/// A connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flow {
    pub(crate) near: String,
    pub(crate) far: String,
    pub(crate) held_bytes: f64,
    pub(crate) outstanding_bytes: f64,
    pub(crate) rtt_s: Option<f64>,
    pub(crate) idle_s: f64,
    pub(crate) doing: String,
    /// Time from link-up until it last resumed.
    pub(crate) resumed_s: Option<f64>,
}

impl Flow {
    /// True unless its packets pass.
    pub(crate) fn stalls(&self) -> bool {
        self.doing != "passing"
    }
}

impl Snapshot {
    /// The content of a status document.
    pub(crate) fn of(document: &Value) -> Self {
        let role = text(&document["role"]);
        let mut snapshot = match role.as_str() {
            "" => Self::of_gateway(document),
            "host" => Self::of_host(document),
            _ => Self::of_endpoint(document, role),
        };
        snapshot.running_s = number(&document["running_s"]).unwrap_or_default();
        snapshot.counts.extend(counts_in(&document["counters"], ""));
        snapshot
    }

    fn of_gateway(document: &Value) -> Self {
        let interface = text(&document["interface"]);
        let link = &document["link"];
        let mut links = vec![Link {
            name: interface.clone(),
            is_up: text(&link["state"]) == "up",
            state: state(&text(&link["state"]), &text(&link["by"])),
            for_s: number(&link["for_s"]),
        }];
        links.extend(each(&document["peers_down"]).map(peer_down));
        let resumes: Vec<_> = each(&document["resumes"]).collect();
        Self {
            title: format!("{} on {interface}", text(&document["mechanism"])),
            links,
            outages: each(&document["outages"])
                .rev()
                .map(|one| Outage::of_gateway(one, &interface))
                .collect(),
            helped: "resumed",
            lists_flows: true,
            flows: each(&document["flow_list"])
                .map(|one| Flow::of(one, &resumes))
                .collect(),
            flows_in_all: number(&document["flows"]).unwrap_or_default() as u64,
            counts: counts_in(&document["kernel"], "kernel ").collect(),
            memory: memory(document),
            ..Self::default()
        }
    }

    fn of_host(document: &Value) -> Self {
        let mut links = Vec::new();
        for interface in each(&document["interfaces"]) {
            let is_up = text(&interface["state"]) == "up";
            links.push(Link {
                name: text(&interface["name"]),
                is_up,
                state: state(&text(&interface["state"]), &text(&interface["by"])),
                for_s: number(&interface["for_s"]),
            });
            links.extend(each(&interface["peers_down"]).map(peer_down));
        }
        Self {
            title: format!("role host, {}", text(&document["mechanism"])),
            links,
            outages: each(&document["returns"]).map(Outage::of_host).collect(),
            helped: "woken",
            ..Self::default()
        }
    }

    /// HIP and Mobile IP: partners in the place of links.
    fn of_endpoint(document: &Value, role: String) -> Self {
        let association = |one: &Value| {
            let name = [&one["name"], &one["peer"]].map(text);
            let [name, peer] = name;
            let state = text(&one["state"]);
            Link {
                name: if name.is_empty() { peer } else { name },
                is_up: state == "established",
                state,
                for_s: None,
            }
        };
        let mobile = |one: &Value| {
            let at: Vec<String> = each(&one["at"]).map(text).collect();
            Link {
                name: text(&one["home_address"]),
                is_up: !at.is_empty(),
                state: match at.is_empty() {
                    true => "not here".into(),
                    false => format!("at {}", at.join(", ")),
                },
                for_s: None,
            }
        };
        let place = document["place"].as_object().map(|place| Link {
            name: "home agent".into(),
            is_up: place.get("is_registered") == Some(&Value::Bool(true)),
            state: format!("at {}", place.get("at").map(text).unwrap_or_default()),
            for_s: None,
        });
        let associations = each(&document["associations"]).map(association);
        let mobiles = each(&document["mobiles"]).map(mobile);
        Self {
            title: format!("role {role}"),
            links: place
                .into_iter()
                .chain(associations)
                .chain(mobiles)
                .collect(),
            ..Self::default()
        }
    }
}

impl Outage {
    fn of_gateway(one: &Value, interface: &str) -> Self {
        let peer = text(&one["peer"]);
        let left = one["not_helped"].as_array().and_then(|left| left.first());
        Self {
            link: if peer.is_empty() {
                interface.into()
            } else {
                peer
            },
            by: text(&one["by"]),
            began_ago_s: number(&one["ago_s"]).unwrap_or_default(),
            length_s: number(&one["length_s"]),
            is_over: text(&one["stage"]) != "down",
            helped: one["resumed"].as_u64(),
            slowest_s: number(&one["slowest_s"]),
            without_s: number(&one["without_s"]),
            saved_s: number(&one["saved_s"]),
            not_helped: one["not_helped_in_all"].as_u64(),
            why: left.map(|left| text(&left["why"])).unwrap_or_default(),
        }
    }

    fn of_host(one: &Value) -> Self {
        let peer = text(&one["peer"]);
        let length_s = number(&one["away_s"]);
        let back_ago_s = number(&one["ago_s"]).unwrap_or_default();
        Self {
            link: match peer.is_empty() {
                true => text(&one["interface"]),
                false => peer,
            },
            by: text(&one["by"]),
            began_ago_s: back_ago_s + length_s.unwrap_or_default(),
            length_s,
            is_over: true,
            helped: one["stalled"].as_u64(),
            slowest_s: None,
            without_s: None,
            saved_s: None,
            not_helped: None,
            why: String::new(),
        }
    }
}

impl Flow {
    fn of(one: &Value, resumes: &[&Value]) -> Self {
        let ends = |value: &Value| [&value["near"], &value["far"]].map(text);
        let resume = resumes
            .iter()
            .rev()
            .find(|resume| ends(resume) == ends(one));
        let [near, far] = ends(one);
        Self {
            near,
            far,
            held_bytes: number(&one["held_bytes"]).unwrap_or_default(),
            outstanding_bytes: number(&one["outstanding_bytes"]).unwrap_or_default(),
            rtt_s: number(&one["rtt_s"]),
            idle_s: number(&one["idle_s"]).unwrap_or_default(),
            doing: text(&one["doing"]),
            resumed_s: resume.and_then(|resume| number(&resume["after_s"])),
        }
    }
}

fn peer_down(peer: &Value) -> Link {
    Link {
        name: text(&peer["peer"]),
        is_up: false,
        state: state("down", &text(&peer["by"])),
        for_s: number(&peer["for_s"]),
    }
}

/// A state, and who said so if anybody did.
fn state(state: &str, by: &str) -> String {
    match by {
        "" | "assumed" => state.into(),
        by => format!("{state} ({by})"),
    }
}

/// Memory of a gateway.
fn memory(document: &Value) -> Vec<(&'static str, f64, Option<f64>)> {
    let limits = &document["limits"];
    let tables = document["tables"].as_object().map(|tables| {
        let bytes = tables.values().filter_map(number);
        ("tables in the kernel", bytes.sum(), None)
    });
    let held = |name, bytes: &Value, limit: &Value| Some((name, number(bytes)?, number(limit)));
    [
        held(
            "held",
            &document["held_bytes"],
            &limits["held_in_all_bytes"],
        ),
        held("process", &document["resident_bytes"], &Value::Null),
        tables,
        held(
            "held of others",
            &document["held_other_bytes"],
            &limits["other_bytes"],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The numbers of an object, by their names.
fn counts_in(object: &Value, before: &str) -> impl Iterator<Item = (String, f64)> {
    let fields = object.as_object().into_iter().flat_map(Map::iter);
    fields.filter_map(move |(name, value)| {
        let name = clean(&name.replace('_', " "));
        Some((format!("{before}{name}"), number(value)?))
    })
}

fn each(array: &Value) -> std::slice::Iter<'_, Value> {
    array
        .as_array()
        .map_or_else(|| [].iter(), |values| values.iter())
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

fn text(value: &Value) -> String {
    clean(value.as_str().unwrap_or_default())
}

/// A text of the daemon's as a terminal may get it: no control characters, none that turn the direction of writing.
pub(crate) fn clean(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| match c.is_control() || turns(c) {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    text.chars().take(LONGEST).map(shown).collect()
}
