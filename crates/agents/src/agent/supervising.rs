//! What agents of supervisor hosts do: they hand the connections of a mobile over to where it is now.
//!
//! Nothing depends on it but time: no data goes with a connection, and none is acknowledged that the
//! mobile has not acknowledged. So nothing is written down, confirmed or asked for again.

use super::neighbour::Intent;
use super::{Agents, Event, Site};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_gateway::flow::{FlowKey, SupervisedFlow};
use outlast_gateway::gateway::Supervision;

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
                self.events.push_back(Event::TakenOver { flow, from });
            }
            Ok(Supervision::KnownBetter) => {}
            Err(_) => self.counters.refused += 1,
        }
    }
}
