//! Diversion on the eBPF path: when packets go through user space, and when they stop to.
//!
//! | what happens | what is done, in this order |
//! |---|---|
//! | a link is about to be said to be down, or was found silent | its packets go to the queue; what the kernel knows is read and shown to the gateway; the gateway is told |
//! | a packet comes of a connection that the gateway does not know | what the kernel knows of it is read first |
//! | nothing is left to do for a link | those in the queue are judged; its packets stay in the kernel; those that came meanwhile are judged; the gateway forgets its connections |
//!
//! A packet that crosses while the rules change may be seen by both, as a repetition is, or by the
//! kernel alone, as one is that was lost on the link: its sender has it.
//!
//! A packet that stays in the kernel overtakes those that wait in the queue. A sender of Linux takes what is overtaken
//! for lost, repeats it, and takes that back when it comes. It then also takes back what the link's queue has dropped,
//! and finds that by its timeout alone, which it has learnt from the outage. So the rules change when the queue
//! is empty.

use super::indicators::INTERFACE;
use super::path::{Diverted, KernelPath, Listed, Takeover, must_rewrite};
use super::{BURST, Daemon};
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::{Activity, FlowReport};
use outlast_gateway::links::{Direction, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{Account, PathMechanismKind};
use outlast_gateway::tracking::FlowKey;
use outlast_linux::netfilter::queue::Queue;
use outlast_linux::tracker::RESOLUTION;
use outlast_wire::Packet;
use std::collections::BTreeMap;
use std::io;

/// Ways through the interface, and peers that are away, beyond which peers are not told apart.
const MOST_WAYS: usize = 2_048;

impl Daemon {
    /// Diverts the packets of `link`, and hands its connections over to the gateway.
    pub(super) fn divert(&mut self, now: Instant, link: LinkId) {
        let Some(kernel) = self.path.kernel() else {
            return;
        };
        let before = kernel.diverted().clone();
        if before.covers(link) || self.settings.mechanism.0 == PathMechanismKind::None {
            return;
        }
        if !self.change_diversion(now, &before.clone().with(link)) {
            return;
        }
        let indicators = &self.indicators;
        let is_behind = |key: &FlowKey| {
            let own = indicators.link_to(key.far.ip());
            (link.peer.is_none() || own == link) && !before.covers(own)
        };
        let takeover = self.path.take_over(now, is_behind);
        self.hand_over(now, takeover);
    }

    /// Shows the gateway what has crossed on `link` and it does not know, although `link` may have
    /// been diverted before: connections may have come to it since.
    pub(super) fn take_over_missed(&mut self, now: Instant, link: LinkId) {
        let Some(kernel) = self.path.kernel() else {
            return;
        };
        let diverted = kernel.diverted().clone().with(link);
        if self.settings.mechanism.0 == PathMechanismKind::None
            || !self.change_diversion(now, &diverted)
        {
            return;
        }
        let (indicators, gateway) = (&self.indicators, &self.gateway);
        let takeover = self.path.take_over(now, |key| {
            let own = indicators.link_to(key.far.ip());
            (link.peer.is_none() || own == link) && !gateway.is_tracked(key)
        });
        self.hand_over(now, takeover);
    }

    /// Gives the gateway what the kernel knew.
    fn hand_over(&mut self, now: Instant, takeover: Takeover) {
        let (flows, packets) = (takeover.flows(), takeover.packets());
        tracing::debug!(flows, packets, "taken over");
        let indicators = &self.indicators;
        takeover.hand_to(now, &mut self.gateway, |far| indicators.link_to(far));
    }

    /// Where so many ways lead through the interface that telling a peer's addresses from others'
    /// would hold up everybody's packets, all of them are diverted.
    fn feasible(&self, diverted: Diverted) -> Diverted {
        match diverted {
            Diverted::Peers(peers) if peers.len().max(self.indicators.count_ways()) > MOST_WAYS => {
                Diverted::Everybody
            }
            diverted => diverted,
        }
    }

    /// Sets whose packets are diverted. Returns whether the rules could be set.
    fn change_diversion(&mut self, now: Instant, diverted: &Diverted) -> bool {
        let diverted = self.feasible(diverted.clone());
        let ways = match diverted {
            Diverted::Peers(_) => self.indicators.ways(),
            Diverted::Nobody | Diverted::Everybody => Vec::new(),
        };
        let outcome = self.path.divert(now, &diverted, &ways);
        if let Err(error) = &outcome {
            let cause = std::error::Error::source(error).map(tracing::field::display);
            tracing::error!(cause, "cannot take packets to user space: {error}");
        }
        outcome.is_ok()
    }

    /// A packet that is about to be judged: the gateway knows its connection as the kernel does.
    pub(super) fn introduce(
        &mut self,
        now: Instant,
        link: LinkId,
        direction: Direction,
        packet: &Packet,
    ) {
        let Some(kernel) = self.path.kernel() else {
            return;
        };
        if let Some(key) = FlowKey::of_tcp(packet.header(), direction)
            && !self.gateway.is_tracked(&key)
            && let Some((flow, heard)) = kernel.proven_flow(&key)
        {
            self.gateway.adopt(now, link, key, flow);
            if let Some(heard) = heard {
                self.gateway.remember(now, &key, &heard);
            }
        }
    }

    /// Corrects the gateway's connections by the kernel's table, which has seen every packet.
    pub(super) fn correct_by_kernel(&mut self, now: Instant) {
        let Some(kernel) = self.path.kernel() else {
            return;
        };
        let known: Vec<_> = self
            .gateway
            .flow_reports()
            .map(|report| report.key)
            .collect();
        for key in known {
            if let Some((flow, _)) = kernel.proven_flow(&key) {
                let link = self.indicators.link_to(key.far.ip());
                self.gateway.adopt(now, link, key, flow);
            }
        }
    }

    /// The links whose packets the gateway has to see.
    fn wanted_diversion(&self, now: Instant) -> Diverted {
        let mechanism = self.settings.mechanism.0;
        if must_rewrite(mechanism) {
            return Diverted::Everybody;
        }
        if mechanism == PathMechanismKind::None {
            return Diverted::Nobody;
        }
        let told = self.gateway.link_state(LinkId::of_interface(INTERFACE));
        let is_told_down = told.is_some_and(|told| told.state == LinkState::Down);
        if is_told_down || self.indicators.state() == LinkState::Down {
            return Diverted::Everybody;
        }
        let at_work = self.gateway.links_at_work(INTERFACE);
        let silent = self.gateway.silent_links().map(|silent| silent.link);
        // The gateway holds a damped link for up when it is down, or hears of its return late.
        let damped = self.gateway.damped_links(now).map(|damped| damped.link);
        let absent = self.indicators.absent().map(|(peer, ..)| LinkId {
            peer: Some(peer),
            ..LinkId::of_interface(INTERFACE)
        });
        let links = at_work
            .into_iter()
            .chain(silent)
            .chain(damped.filter(|link| link.peer.is_some()))
            .chain(absent);
        self.feasible(links.collect())
    }

    /// Diverts links on which somebody waits for a sign of life, and lets go of those for which nothing is
    /// left to do.
    pub(super) fn settle_path(&mut self, now: Instant) -> io::Result<()> {
        self.hear_one_sided(now)?;
        self.hear_suspicions(now)?;
        let Some(kernel) = self.path.kernel_mut() else {
            return Ok(());
        };
        if kernel.is_time_to_end(now) {
            self.path.end_diversion();
            // Somebody's packet may have been on its way to the queue when it was emptied.
            self.gateway.forget(LinkId::of_interface(INTERFACE));
            return self.drain(now);
        }
        if !kernel.is_time_to_look(now) {
            return Ok(());
        }
        if self.changed_diversion(now).is_none() {
            return Ok(());
        }
        // What stays in the kernel from now on is not to overtake what waits.
        self.empty_queue(now)?;
        // What has waited may have left something to do.
        let Some(wanted) = self.changed_diversion(now) else {
            return Ok(());
        };
        if !self.change_diversion(now, &wanted) {
            // The error is in the log; the next look tries again.
            if let Some(kernel) = self.path.kernel_mut() {
                kernel.look_later(now);
            }
            return Ok(());
        }
        self.empty_queue(now)?;
        tracing::debug!(to_user_space = ?wanted, "left to the kernel");
        let kernel = self.path.kernel();
        if let Some(diverted) = kernel.map(|kernel| kernel.diverted().clone()) {
            self.gateway
                .forget_where(INTERFACE, |link| !diverted.covers(link));
        }
        self.drain(now)
    }

    /// The links that have something left to do, if these are others than now. If not, the next look is later.
    fn changed_diversion(&mut self, now: Instant) -> Option<Diverted> {
        let wanted = self.wanted_diversion(now);
        let kernel = self.path.kernel_mut()?;
        if *kernel.diverted() == wanted {
            kernel.look_later(now);
            return None;
        }
        Some(wanted)
    }

    /// Judges what waits in the queue. Links that are not let go may fill it without end: it is judged as much as
    /// the queue holds.
    fn empty_queue(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..=Queue::CAPACITY / BURST {
            if !self.take_burst(now)? {
                break;
            }
        }
        Ok(())
    }

    /// The connections that only the kernel knows, as they were listed last: all that is done for
    /// them is that their packets pass.
    pub(super) fn passing_flows(&self) -> impl Iterator<Item = FlowReport> {
        let listed = self.path.kernel().map_or(&[][..], KernelPath::listed);
        let unknown = listed
            .iter()
            .filter(|listed| !self.gateway.is_tracked(&listed.key));
        unknown.map(
            |&Listed {
                 last_packet,
                 key,
                 tcp,
             }| FlowReport {
                key,
                link: self.indicators.link_to(key.far.ip()),
                phase: tcp.phase,
                held: ByteCount(0),
                outstanding: tcp
                    .near
                    .next
                    .distance_from(tcp.near.acked)
                    .max(0)
                    .cast_unsigned(),
                rtt: tcp.rtt.measured(),
                last_packet,
                activity: Activity::Passing,
                account: Account::default(),
            },
        )
    }

    /// Renews the rules after routes have changed: other addresses may be behind a peer.
    pub(super) fn follow_routes(&mut self, now: Instant) {
        if let Some(kernel) = self.path.kernel()
            && let diverted @ Diverted::Peers(_) = kernel.diverted()
        {
            let diverted = diverted.clone();
            self.change_diversion(now, &diverted);
        }
    }

    /// Adapts the diversion to a new mechanism.
    pub(super) fn follow_mechanism(&mut self, now: Instant) {
        if must_rewrite(self.settings.mechanism.0) {
            self.divert(now, LinkId::of_interface(INTERFACE));
        }
        if let Some(kernel) = self.path.kernel_mut() {
            kernel.look_soon(now);
        }
    }

    /// The kernel has seen hosts repeat what was not answered: where nobody else behind their link was heard for
    /// as long, it is silent.
    pub(super) fn hear_suspicions(&mut self, now: Instant) -> io::Result<()> {
        let indicators = &self.indicators;
        let Some(kernel) = self.path.kernel_mut() else {
            return Ok(());
        };
        let config = self.settings.silence();
        let diverted = kernel.diverted().clone();
        let listens = config.is_some() && indicators.state() == LinkState::Up;
        let link_of = |key: &FlowKey| {
            let link = indicators.link_to(key.far.ip());
            (listens && !diverted.covers(link)).then_some(link)
        };
        let silent = kernel.find_silent(now, &config.unwrap_or_default(), link_of);
        for silent in silent {
            self.divert(now, silent.link);
            let is_believed = self.gateway.handle_silence(now, &silent.flow, silent.since);
            if let Some(kernel) = self.path.kernel_mut().filter(|_| is_believed) {
                kernel.silence.remember(&silent);
            }
            self.drain(now)?;
        }
        Ok(())
    }

    /// The suspected links behind which nobody was heard since their data went unanswered.
    ///
    /// `suspected` has the links, and since when their data is unanswered. `None` if the kernel's
    /// table was searched a moment ago.
    fn still_unheard(
        &mut self,
        now: Instant,
        mut suspected: BTreeMap<LinkId, Instant>,
    ) -> Option<BTreeMap<LinkId, Instant>> {
        let indicators = &self.indicators;
        if suspected.is_empty() || indicators.state() == LinkState::Down {
            return Some(BTreeMap::new());
        }
        let mut heard = BTreeMap::<LinkId, Instant>::new();
        let link_of = |key: &FlowKey| indicators.link_to(key.far.ip());
        let searched = self.path.kernel_mut()?.search(
            now,
            |key| suspected.contains_key(&link_of(key)),
            |key, at| {
                let latest = heard.entry(link_of(&key)).or_insert(at);
                *latest = at.max(*latest);
            },
        );
        suspected.retain(|link, since| {
            let until = *since + RESOLUTION;
            heard.get(link).is_none_or(|at| *at < until)
        });
        searched.then_some(suspected)
    }

    /// Data of connections that are older than the daemon was not answered: where nobody else behind
    /// their link was heard since, the gateway asks for their far hosts.
    fn hear_one_sided(&mut self, now: Instant) -> io::Result<()> {
        let mut asking = BTreeMap::<LinkId, Vec<(FlowKey, Instant)>>::new();
        let Some(kernel) = self.path.kernel_mut() else {
            return Ok(());
        };
        while let Some((key, since)) = kernel.poll_one_sided(now) {
            let link = self.indicators.link_to(key.far.ip());
            if !kernel.diverted().covers(link) {
                asking.entry(link).or_default().push((key, since));
            }
        }
        let earliest =
            |flows: &Vec<(FlowKey, Instant)>| flows.iter().map(|(_, since)| *since).min();
        let suspected = asking
            .iter()
            .filter_map(|(link, flows)| Some((*link, earliest(flows)?)));
        let Some(suspected) = self.still_unheard(now, suspected.collect()) else {
            if let Some(kernel) = self.path.kernel_mut() {
                for (key, since) in asking.into_values().flatten() {
                    kernel.ask_later(now, key, since);
                }
            }
            return Ok(());
        };
        for link in suspected.into_keys() {
            self.divert(now, link);
            let keys: Vec<_> = asking[&link].iter().map(|(key, _)| *key).collect();
            let takeover = self.path.take_over_one_sided(&keys);
            self.hand_over(now, takeover);
            self.drain(now)?;
        }
        Ok(())
    }
}
