//! What agents of supervisor hosts do: they hand the connections of a mobile over to where it is now.
//!
//! Nothing depends on it but time: no data goes with a connection, and none is acknowledged that the
//! mobile has not acknowledged. So nothing is written down, confirmed or asked for again.

use super::neighbour::Intent;
use super::{Agents, Event, MOST_GIVEN, Move, Site};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_base::time::Instant;
use outlast_gateway::gateway::Supervision;
use outlast_gateway::tracking::{FlowKey, SupervisedFlow};

impl Agents {
    /// A mobile is here: all neighbours are asked for its connections.
    pub(super) fn ask_for_supervised(&mut self, site: &Site<'_>, mobile: IpAddr) {
        if site.gateway.supervises() && self.serves(mobile) {
            self.say_to_all(Intent::Here(mobile));
        }
    }

    /// A mobile is with a neighbour: its connections go there. Says how many.
    pub(super) fn hand_off(&mut self, site: &Site<'_>, mobile: IpAddr, to: SocketAddr) -> usize {
        let behind = site.gateway.supervised_behind((site.link_to)(mobile));
        let flows: Vec<FlowKey> = behind
            .into_iter()
            .filter(|flow| flow.far.ip() == mobile)
            .collect();
        for flow in &flows {
            self.say(to, Intent::Supervised(*flow));
        }
        let has_room = self.given.len() < MOST_GIVEN || self.given.contains_key(&mobile);
        if !flows.is_empty() && has_room {
            self.given.insert(mobile, site.now);
        }
        flows.len()
    }

    /// A neighbour hands a connection over.
    pub(super) fn hear_supervised(
        &mut self,
        site: &mut Site<'_>,
        from: SocketAddr,
        supervised: &SupervisedFlow,
    ) {
        let flow = supervised.flow;
        let mobile = flow.far.ip();
        let link = (site.link_to)(mobile);
        let taken = match self.serves(mobile) {
            true => site.gateway.import_supervised(site.now, link, supervised),
            false => {
                self.counters.refused += 1;
                return;
            }
        };
        match taken {
            Ok(Supervision::TakenOver) => {
                self.counters.taken_over += 1;
                self.note_move(site.now, mobile, from);
                self.events.push_back(Event::TakenOver { flow, from });
            }
            // Its packets have come here before it: it has moved all the same.
            Ok(Supervision::KnownBetter) => self.note_move(site.now, mobile, from),
            Err(_) => self.counters.refused += 1,
        }
    }

    /// One more connection of a mobile's has come from a neighbour. One that nobody has asked for is no
    /// part of a move.
    fn note_move(&mut self, now: Instant, mobile: IpAddr, from: SocketAddr) {
        let Some(arrived) = self.arrived.said_of(now, mobile) else {
            return;
        };
        let is_same = |one: &Move| (one.mobile, one.from, one.arrived) == (mobile, from, arrived);
        let before = self
            .last_move
            .filter(is_same)
            .map_or(0, |one| one.connections);
        self.last_move = Some(Move {
            mobile,
            from,
            connections: before + 1,
            arrived,
            took: now.since(arrived),
        });
    }
}
