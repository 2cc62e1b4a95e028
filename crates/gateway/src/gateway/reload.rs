//! What may change while a gateway runs. Nothing that is kept is lost by it.

use super::Gateway;
use super::damping::{Damping, DampingConfig};
use super::silence::{Silence, SilenceConfig};
use crate::limits::Limits;
use crate::links::InterfaceId;
use crate::mechanisms::path::PathMechanismKind;
use outlast_base::time::Instant;
use outlast_base::units::BitRate;

impl Gateway {
    /// What it does for connections that begin from now on; those that are tracked keep theirs.
    pub const fn set_mechanism(&mut self, mechanism: PathMechanismKind) {
        self.mechanism = mechanism;
    }

    /// Other caps from now on. What is kept or tracked above a lower one stays, but no more is
    /// taken; of other traffic the oldest goes first, once more of it comes.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.flows.set_bounds(limits.flows, limits.timeouts());
        self.budget.set_cap(limits.held_in_all);
    }

    /// Silence tells from now on, otherwise or not at all. What is suspected is forgotten; it shows
    /// again.
    pub fn set_silence(&mut self, silence: Option<SilenceConfig>) {
        self.silence = silence.map(Silence::new);
    }

    /// Indicators that flap are damped from now on, otherwise or not at all. What was said last of
    /// a damped link holds at once, and all penalties are forgiven.
    pub fn set_damping(&mut self, now: Instant, damping: Option<DampingConfig>) {
        let before = core::mem::replace(&mut self.damping, damping.map(Damping::new));
        for event in before.iter().flat_map(Damping::untold) {
            self.handle_link(now, event);
        }
    }

    /// Another rate of the link behind `interface`; `None` if it is not known. An interface that
    /// was never added is none of its business.
    pub fn set_rate(&mut self, now: Instant, interface: InterfaceId, rate: Option<BitRate>) {
        if let Some(release) = self.release_at(interface) {
            release.pacer.set_rate(now, rate);
        }
        self.send_in_turn(now);
    }
}
