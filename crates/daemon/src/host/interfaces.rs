//! Which links are back: the gateway's indicators, one set for each interface of the host.

use super::awaited::Awaited;
use crate::config::Watched;
use crate::indicators::{Indication, Indicators};
use crate::peers::Questions;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, LinkEvent, LinkId, LinkState};
use outlast_linux::monitor::Change;
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Interfaces that are watched at once; further ones are not.
const MOST_INTERFACES: usize = 256;
/// Neighbours of one interface that may be away at once; further ones are not noticed.
const MOST_NEIGHBOURS: usize = 1_024;
/// Changes of links of which nobody has been told; the oldest goes first.
const MOST_NEWS: usize = 1_024;

const LOOPBACK: &str = "lo";

/// A link has gone or come back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct News {
    /// The interface's number.
    pub(super) index: Option<InterfaceIndex>,
    /// Its name.
    pub(super) name: String,
    /// The neighbour, if it is not the whole interface.
    pub(super) peer: Option<IpAddr>,
    /// Who says so.
    pub(super) by: Indicator,
    /// What has become of it.
    pub(super) what: What,
    /// It is back, and packets take another path.
    pub(super) moved: Moved,
}

/// Whether packets take another path after a return.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Moved {
    /// Nobody has said so.
    No,
    /// The interface was away, and has none of its former addresses.
    All,
    /// To these alone, by another router or by another interface than before; nobody has said that anything was away.
    To(Prefix),
}

/// What has become of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// No packet passes.
    Away,
    /// Packets pass again.
    Back {
        /// How long the link was away; `None` if nobody had said so.
        away: Option<Duration>,
        /// The neighbour is a router, or the link is the whole interface: others may be beyond.
        leads_on: bool,
    },
    /// A neighbour is not missing any more, but the link to it is away altogether.
    Reachable,
}

/// An interface as `outlast status` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct View {
    /// Its name.
    pub(super) name: String,
    /// Whether packets pass; `None` if there is no such interface.
    pub(super) state: Option<LinkState>,
    /// Since when.
    pub(super) since: Instant,
    /// Who has said so.
    pub(super) by: Indicator,
    /// Neighbours that are away: since when, and who says so.
    pub(super) absent: Vec<(IpAddr, Instant, Indicator)>,
}

/// The watched interfaces.
#[derive(Debug)]
pub(super) struct Interfaces {
    /// These; none: all but the loopback.
    chosen: Vec<String>,
    all: BTreeMap<String, Interface>,
    news: VecDeque<News>,
}

#[derive(Debug)]
struct Interface {
    indicators: Indicators,
    /// What was told last of the whole interface, by whom and when.
    state: LinkState,
    by: Indicator,
    since: Instant,
    /// Neighbours that were told to be away.
    absent_since: BTreeMap<IpAddr, Instant>,
    /// As they were when the link was up last.
    addresses: BTreeSet<IpAddr>,
    awaited: Awaited,
}

impl Interfaces {
    pub(super) const fn new(chosen: Vec<String>) -> Self {
        Self {
            chosen,
            all: BTreeMap::new(),
            news: VecDeque::new(),
        }
    }

    /// Others are to be watched from now on; a snapshot has to follow. What is known of those that
    /// stay is kept.
    pub(super) fn choose(&mut self, chosen: Vec<String>) {
        self.chosen = chosen;
        let chosen = &self.chosen;
        self.all.retain(|name, _| is_chosen(chosen, name));
    }

    /// Those that are there.
    pub(super) fn names(&self) -> Vec<String> {
        let there = self
            .all
            .iter()
            .filter(|(_, interface)| interface.is_there());
        there.map(|(name, _)| name.clone()).collect()
    }

    /// The numbers of those that are there.
    pub(super) fn indices(&self) -> Vec<InterfaceIndex> {
        let all = self.all.values();
        all.filter_map(|interface| interface.indicators.index())
            .collect()
    }

    /// Everything is told anew.
    pub(super) fn handle_snapshot(&mut self, now: Instant, all: &[Change]) {
        for change in all {
            if let Change::Interface { name, .. } = change {
                self.watch(now, name);
            }
        }
        for (name, interface) in &mut self.all {
            interface.indicators.handle_snapshot(now, all.to_vec());
            interface.take_indications(now, name, &mut self.news);
        }
    }

    /// Something has changed; whether everything must be told anew, as an interface has got its name.
    pub(super) fn handle_change(&mut self, now: Instant, change: &Change) -> bool {
        let mut is_new = match change {
            Change::Interface { name, .. } => self.watch(now, name),
            _ => false,
        };
        for (name, interface) in &mut self.all {
            let before = interface.indicators.index();
            interface.indicators.handle_change(now, change.clone());
            let after = interface.indicators.index();
            is_new |= after.is_some() && after != before;
            interface.take_indications(now, name, &mut self.news);
        }
        is_new
    }

    /// Judges the routes as they are now.
    pub(super) fn judge_routes(&mut self, now: Instant) {
        for (name, interface) in &mut self.all {
            interface.indicators.judge_routes(now);
            interface.take_indications(now, name, &mut self.news);
        }
    }

    /// Neighbours to ask for.
    pub(super) fn questions(&mut self, now: Instant) -> Vec<(InterfaceIndex, IpAddr)> {
        let mut questions = Vec::new();
        for (name, interface) in &mut self.all {
            let due = interface
                .indicators
                .poll_timeout()
                .is_some_and(|at| at <= now);
            let Some(index) = interface.indicators.index().filter(|_| due) else {
                continue;
            };
            // Who has connections with others is the kernel's to know; a router is missed by all.
            let ways = interface.indicators.ways();
            let is_router = |link: LinkId| ways.iter().any(|way| way.gateway == link.peer);
            while let Some(neighbour) = interface.indicators.poll_question(now, is_router) {
                questions.push((index, neighbour));
            }
            interface.take_indications(now, name, &mut self.news);
        }
        questions
    }

    /// An interface is back, and connections with these hosts wait: asks for the neighbours on the
    /// way to them from now on, until they have answered.
    pub(super) fn await_neighbours(
        &mut self,
        now: Instant,
        index: InterfaceIndex,
        hosts: impl Iterator<Item = IpAddr>,
    ) {
        let is_it = |interface: &&mut Interface| interface.indicators.index() == Some(index);
        let Some(interface) = self.all.values_mut().find(is_it) else {
            return;
        };
        let indicators = &interface.indicators;
        // Where nobody has an Ethernet address nobody needs to be found.
        if indicators.stations().own().is_none() {
            return;
        }
        let ways = hosts.filter_map(|host| indicators.link_to(host).peer);
        interface.awaited.begin(now, ways);
    }

    /// Asks again for neighbours that have not answered since their link was back.
    pub(super) fn ask_again(&mut self, now: Instant, questions: &Questions) {
        for (name, interface) in &mut self.all {
            let indicators = &interface.indicators;
            let is_known = |neighbour| indicators.stations().of(neighbour).is_some();
            for neighbour in interface.awaited.poll(now, is_known) {
                tracing::debug!(interface = name, %neighbour, "asked for again");
                questions.ask(name, indicators, neighbour, None);
            }
        }
    }

    /// When to call [`Self::questions`] and [`Self::ask_again`].
    #[must_use]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let both = |interface: &Interface| {
            [
                interface.indicators.poll_timeout(),
                interface.awaited.poll_timeout(),
            ]
        };
        self.all.values().flat_map(both).flatten().min()
    }

    /// The machine was suspended for so long: whatever is up was away meanwhile. What is down comes back
    /// by its own indicators.
    pub(super) fn handle_suspension(&mut self, slept: Duration) {
        for (name, interface) in &mut self.all {
            if interface.state == LinkState::Up && interface.is_there() {
                let news = News {
                    index: interface.indicators.index(),
                    name: name.clone(),
                    peer: None,
                    by: Indicator::Suspension,
                    what: interface.back(None, Some(slept)),
                    moved: Moved::No,
                };
                push(&mut self.news, news);
            }
        }
    }

    /// The next change of a link.
    #[must_use]
    pub(super) fn poll_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// How each interface is.
    pub(super) fn views(&self) -> impl Iterator<Item = View> {
        self.all.iter().map(|(name, interface)| View {
            name: name.clone(),
            state: interface.is_there().then_some(interface.state),
            since: interface.since,
            by: interface.by,
            absent: interface.indicators.absent().collect(),
        })
    }

    /// The name of an interface that is there.
    pub(super) fn name_of(&self, index: InterfaceIndex) -> Option<&str> {
        let is_it = |interface: &Interface| interface.indicators.index() == Some(index);
        let mut all = self.all.iter();
        let (name, _) = all.find(|(_, interface)| is_it(interface))?;
        Some(name)
    }

    /// Somebody who knows says so: `outlast notify`. Of one interface, or of all, or of those that
    /// lead to `peer`. What holds then.
    ///
    /// # Errors
    /// What is wrong if it concerns no interface.
    pub(super) fn handle_notice(
        &mut self,
        now: Instant,
        link: Option<&str>,
        peer: Option<IpAddr>,
        state: LinkState,
    ) -> Result<LinkState, String> {
        let names = self.concerned(link, peer)?;
        let mut holds = LinkState::Up;
        for name in names {
            let Some(interface) = self.all.get_mut(&name) else {
                continue;
            };
            interface.indicators.handle_notice(now, peer, state);
            interface.take_indications(now, &name, &mut self.news);
            let mut absent = interface.indicators.absent();
            let is_absent = absent.any(|(absent, ..)| Some(absent) == peer);
            if is_absent || interface.indicators.state() == LinkState::Down {
                holds = LinkState::Down;
            }
        }
        Ok(holds)
    }

    /// The names of the interfaces that somebody speaks of.
    fn concerned(&self, link: Option<&str>, peer: Option<IpAddr>) -> Result<Vec<String>, String> {
        let there = self
            .all
            .iter()
            .filter(|(_, interface)| interface.is_there());
        let leads_to = |interface: &Interface| {
            peer.is_none_or(|peer| interface.indicators.link_to(peer).peer == Some(peer))
        };
        let names: Vec<String> = match link {
            Some(link) => there
                .filter(|(name, _)| *name == link)
                .map(|(name, _)| name.clone())
                .collect(),
            None => there
                .filter(|(_, interface)| leads_to(interface))
                .map(|(name, _)| name.clone())
                .collect(),
        };
        match (names.is_empty(), link, peer) {
            (false, ..) => Ok(names),
            (true, ..) if self.names().is_empty() => Err("no watched interface is there".into()),
            (true, Some(link), _) => Err(format!(
                "no interface {link} is watched; there are {}",
                listed(&self.names())
            )),
            (true, None, Some(peer)) => Err(format!(
                "{peer} is no neighbour on a watched interface; name one of {} by --link",
                listed(&self.names())
            )),
            (true, None, None) => Err("no watched interface is there".into()),
        }
    }

    /// Watches the interface if it is to be; whether it is a new one.
    fn watch(&mut self, now: Instant, name: &str) -> bool {
        if !is_chosen(&self.chosen, name) || self.all.contains_key(name) {
            return false;
        }
        if self.all.len() >= MOST_INTERFACES {
            // Those that are gone may come back under any name.
            self.all.retain(|_, interface| interface.is_there());
        }
        if self.all.len() >= MOST_INTERFACES {
            tracing::warn!(
                interface = name,
                "not watched: there are too many interfaces"
            );
            return false;
        }
        let watched = Watched {
            silence: false,
            ..Watched::default()
        };
        let interface = Interface {
            indicators: Indicators::new(name, watched, MOST_NEIGHBOURS),
            state: LinkState::Up,
            by: Indicator::Assumed,
            since: now,
            absent_since: BTreeMap::new(),
            addresses: BTreeSet::new(),
            awaited: Awaited::default(),
        };
        self.all.insert(name.to_owned(), interface);
        true
    }
}

impl Interface {
    const fn is_there(&self) -> bool {
        self.indicators.index().is_some()
    }

    /// Tells what the indicators say.
    fn take_indications(&mut self, now: Instant, name: &str, news: &mut VecDeque<News>) {
        while let Some(indication) = self.indicators.poll_indication() {
            let mut moved = Moved::No;
            let (link, by, what) = match indication {
                Indication::Changed(LinkEvent {
                    link,
                    state: LinkState::Down,
                    indicator,
                }) => {
                    self.lose(now, link.peer, indicator);
                    (link, indicator, What::Away)
                }
                Indication::Changed(LinkEvent {
                    link, indicator, ..
                }) => {
                    let away = self.regain(now, link.peer, indicator);
                    if link.peer.is_none() && self.has_moved() {
                        moved = Moved::All;
                    }
                    (link, indicator, self.back(link.peer, away))
                }
                // What is sent to a neighbour again is this host's own, and of whom a route led to the way that has taken
                // its place tells.
                Indication::Neighbour(..) | Indication::Returned(_, Indicator::Route) => continue,
                Indication::Returned(link, by) => (link, by, self.back(link.peer, None)),
                Indication::Moved(link, to) => {
                    moved = Moved::To(to);
                    (link, Indicator::Route, self.back(link.peer, None))
                }
            };
            // Of a link that is away altogether no neighbour is back.
            let is_hidden = link.peer.is_some() && self.state == LinkState::Down;
            let what = match what {
                What::Back { .. } if is_hidden => What::Reachable,
                what => what,
            };
            let is_no_news = is_hidden && what == What::Away;
            if is_no_news || self.index_is_missing(what) {
                continue;
            }
            let one = News {
                index: self.indicators.index(),
                name: name.to_owned(),
                peer: link.peer,
                by,
                what,
                moved,
            };
            push(news, one);
        }
        let addresses = self.indicators.addresses();
        if self.state == LinkState::Up && addresses.count() > 0 {
            self.addresses = self.indicators.addresses().collect();
        }
    }

    /// Whether the link has other addresses than when it was up last.
    fn has_moved(&self) -> bool {
        let is_known = |address: IpAddr| self.addresses.contains(&address);
        let count = self.indicators.addresses().count();
        !self.addresses.is_empty() && count > 0 && !self.indicators.addresses().any(is_known)
    }

    /// What is back has to be there.
    fn index_is_missing(&self, what: What) -> bool {
        what != What::Away && !self.is_there()
    }

    fn lose(&mut self, now: Instant, peer: Option<IpAddr>, by: Indicator) {
        match peer {
            None => {
                (self.state, self.by, self.since) = (LinkState::Down, by, now);
                self.awaited.end();
            }
            Some(peer) => {
                // As many as the indicators have room for.
                self.absent_since.insert(peer, now);
            }
        }
    }

    /// A link is up again; how long it was away.
    fn regain(&mut self, now: Instant, peer: Option<IpAddr>, by: Indicator) -> Option<Duration> {
        let since = match peer {
            None => {
                let since = (self.state == LinkState::Down).then_some(self.since);
                (self.state, self.by, self.since) = (LinkState::Up, by, now);
                since
            }
            Some(peer) => self.absent_since.remove(&peer),
        };
        since.map(|since| now.since(since))
    }

    fn back(&self, peer: Option<IpAddr>, away: Option<Duration>) -> What {
        let ways = || self.indicators.ways();
        let leads_on = peer.is_none() || ways().iter().any(|way| way.gateway == peer);
        What::Back { away, leads_on }
    }
}

fn push(news: &mut VecDeque<News>, one: News) {
    if news.len() >= MOST_NEWS {
        news.pop_front();
    }
    news.push_back(one);
}

/// Whether an interface of that name is to be watched.
fn is_chosen(chosen: &[String], name: &str) -> bool {
    match chosen {
        [] => name != LOOPBACK,
        chosen => chosen.iter().any(|chosen| chosen == name),
    }
}

/// Names for people.
fn listed(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_linux::monitor::Standing;

    fn interface(index: u32, is_running: bool) -> Change {
        Change::Interface {
            index: InterfaceIndex(index),
            name: format!("link{index}"),
            is_up: true,
            is_running,
            mtu: 1_500,
            hardware: None,
            port_of: None,
            carrier_losses: None,
        }
    }

    #[test]
    fn after_a_suspension_what_is_up_is_back_and_what_is_down_is_not() {
        let slept = Duration::from_secs(60);
        let mut interfaces = Interfaces::new(Vec::new());
        let all = [interface(2, true), interface(3, false)];
        interfaces.handle_snapshot(Instant::ZERO, &all);
        while interfaces.poll_news().is_some() {}
        interfaces.handle_suspension(slept);
        let back = interfaces.poll_news().expect("one link is up");
        assert_eq!((&*back.name, back.by), ("link2", Indicator::Suspension));
        let what = What::Back {
            away: Some(slept),
            leads_on: true,
        };
        assert_eq!(back.what, what);
        assert_eq!(interfaces.poll_news(), None);
        // The other one comes back by its carrier.
        interfaces.handle_change(Instant::ZERO, &interface(3, true));
        let back = interfaces.poll_news().expect("it is up");
        assert_eq!((&*back.name, back.by), ("link3", Indicator::Carrier));
    }

    /// What another router, another family or another destination goes by is the same as before.
    #[test]
    fn a_router_that_another_one_replaces_has_moved_what_it_led_to_and_nothing_else() {
        let way = |to: [u8; 4], length, router| outlast_linux::monitor::Way {
            destination: Prefix {
                address: to.into(),
                length,
            },
            gateway: Some(IpAddr::from([192, 0, 2, router])),
            table: outlast_linux::monitor::Way::MAIN,
            metric: 0,
        };
        let route = |way, is_present| Change::Route {
            interface: InterfaceIndex(2),
            way,
            is_present,
            replaces: is_present,
        };
        let (default, foreign) = (way([0; 4], 0, 1), way([10, 200, 0, 0], 16, 9));
        let all = [interface(2, true), route(default, true)];
        let mut interfaces = Interfaces::new(Vec::new());
        interfaces.handle_snapshot(Instant::ZERO, &all);
        let mut told = |change| {
            interfaces.handle_change(Instant::ZERO, &change);
            interfaces.judge_routes(Instant::ZERO);
            let news = core::iter::from_fn(|| interfaces.poll_news());
            news.map(|one| (one.peer, one.moved)).collect::<Vec<_>>()
        };
        let moved = |way: outlast_linux::monitor::Way, router: u8| {
            let peer = Some(IpAddr::from([192, 0, 2, router]));
            vec![(peer, Moved::To(way.destination))]
        };
        assert_eq!(told(route(foreign, true)), []);
        assert_eq!(told(route(foreign, false)), moved(foreign, 1));
        assert_eq!(told(route(way([0; 4], 0, 5), true)), moved(default, 5));
    }

    /// It failed before the link did, and is given another chance with the link.
    #[test]
    fn a_neighbour_that_was_missing_before_its_link_is_not_missing_after_it() {
        let mut interfaces = Interfaces::new(Vec::new());
        interfaces.handle_snapshot(Instant::ZERO, &[interface(2, true)]);
        let peer = IpAddr::from([192, 0, 2, 9]);
        let failed = Change::Neighbour {
            interface: InterfaceIndex(2),
            address: peer,
            standing: Standing::Failed,
            hardware: None,
        };
        for change in [failed, interface(2, false), interface(2, true)] {
            interfaces.handle_change(Instant::ZERO, &change);
        }
        let news = core::iter::from_fn(|| interfaces.poll_news());
        let told: Vec<_> = news.map(|one| (one.peer, one.what)).collect();
        let back = What::Back {
            away: Some(Duration::ZERO),
            leads_on: true,
        };
        let expected = [
            (Some(peer), What::Away),
            (None, What::Away),
            (Some(peer), What::Reachable),
            (None, back),
        ];
        assert_eq!(told, expected);
    }
}
