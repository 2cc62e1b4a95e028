//! What the agent tells its driver of.

use crate::control::ControlError;
use crate::indicator::Restored;
use alloc::collections::VecDeque;

/// Something that the driver may tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Connections were looked through.
    Pass {
        /// Why.
        restored: Restored,
        /// Connections over the link.
        connections: u32,
        /// Stalled connections, which are to be restarted.
        stalled: u32,
    },
    /// The stack could not list its connections.
    ListFailed(ControlError),
}

/// Events that are kept until they are polled, besides one of each link; the oldest goes first.
const EVENTS: usize = 64;

/// What waits to be polled.
#[derive(Debug, Default)]
pub(crate) struct Events(VecDeque<Event>);

impl Events {
    /// As many `links` may come back in one pass.
    pub(crate) fn tell(&mut self, event: Event, links: usize) {
        if self.0.len() >= EVENTS + links {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    pub(crate) fn poll(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}
