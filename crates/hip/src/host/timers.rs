//! What becomes due on a host.

use super::{Host, State};
use crate::event::Reason;
use outlast_base::time::Instant;
use outlast_wire::hip::Hit;

impl Host {
    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        // What this call makes due again waits for the next one.
        let due = self.agenda.iter().take_while(|&&(at, _, _)| at <= now);
        let due: alloc::vec::Vec<_> = due.copied().collect();
        for (_, reason, peer) in due {
            self.handle_due(now, peer, reason);
            self.settle(now, peer);
        }
    }

    fn handle_due(&mut self, now: Instant, peer: Hit, reason: Reason) {
        match reason {
            Reason::Puzzle => self.solve(now, peer),
            Reason::Retransmission => self.retransmit(now, peer),
            Reason::Registration => {
                if let Some((association, mut context)) = self.lend(now, peer)
                    && let Some(session) = association.session()
                {
                    session.renew_registration(&mut context);
                }
            }
            Reason::Lifetime => self.end_of_life(now, peer),
            Reason::Silence => {
                if let Some((association, mut context)) = self.lend(now, peer)
                    && let Some(session) = association.session()
                {
                    session.wake_silent(&mut context);
                }
            }
            Reason::Liveness => {
                if let Some((association, mut context)) = self.lend(now, peer)
                    && let Some(session) = association.session()
                {
                    session.ask_if_due(&mut context);
                }
            }
            // What waits goes out when the association is settled.
            Reason::FirstFlight => {}
        }
    }

    fn retransmit(&mut self, now: Instant, peer: Hit) {
        let times = self.config.retransmission;
        let relays = self.relays(peer);
        let Some((association, mut context)) = self.lend(now, peer) else {
            return;
        };
        match &mut association.state {
            State::R2Sent { session, .. } | State::Established { session } => {
                session.retransmit_updates(&mut context, &relays);
                self.retransmit_revival(now, peer);
            }
            State::Closing { backoff, .. } => {
                backoff.again(now, &times);
                self.send_close(now, peer);
            }
            _ => self.retransmit_exchange(now, peer),
        }
    }

    fn end_of_life(&mut self, now: Instant, peer: Hit) {
        let is_over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let is_unused = is_over(self.unused_at(peer));
        let Some(association) = self.associations.get_mut(&peer) else {
            return;
        };
        match &mut association.state {
            State::R2Sent { .. } => self.confirm(peer),
            State::Established { session } => {
                session.previous.take_if(|(_, until)| is_over(*until));
                if is_unused {
                    self.close(now, peer);
                }
            }
            State::Closing { .. } | State::Closed { .. } => self.forget(peer),
            State::Failed { .. } => {
                self.forget(peer);
                if self.peers.get(&peer).is_some_and(|peer| peer.registers) {
                    // The server may be away for longer than an exchange lasts, and nobody else asks for it.
                    self.begin(now, peer, None);
                }
            }
            State::I1Sent { .. } | State::I2Sent { .. } => {}
        }
    }
}
