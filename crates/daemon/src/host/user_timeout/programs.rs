//! The programs of the User Timeout Option, from the beginning of the agent to its end.
//!
//! They are loaded when the agent begins, whether or not the configuration asks for the option: what
//! loading takes (`CAP_BPF`, `CAP_PERFMON`) is given up afterwards, and a reload may ask for it.

use super::UserTimeout;
use crate::failure::Failure;
use outlast_linux::lack::Lack;
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::user_timeout::{UserTimeoutCounters, UserTimeoutError, UserTimeouts};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Links that are remembered to be away; connections over further ones keep their usual timeouts after a
/// reload.
const MOST_AWAY: usize = 4_096;

/// The programs, or why this kernel does not take them.
pub(in crate::host) struct Programs {
    loaded: Result<UserTimeouts, UserTimeoutError>,
    is_sent: bool,
    /// Whether connections are kept for longer while their link is away.
    stretches: bool,
    /// Interfaces, and neighbours of interfaces, that are away.
    away: BTreeSet<(InterfaceIndex, Option<IpAddr>)>,
}

impl Programs {
    /// Loads them, and has the option sent if `wanted` says so.
    pub(in crate::host) fn begin(wanted: Option<&UserTimeout>) -> Result<Self, Failure> {
        let mut programs = Self {
            loaded: UserTimeouts::load(),
            is_sent: false,
            stretches: false,
            away: BTreeSet::new(),
        };
        programs.send(wanted)?;
        if let Err(error) = &programs.loaded {
            tracing::debug!(
                "the user timeout option cannot be sent: {}",
                error.with_causes()
            );
        }
        Ok(programs)
    }

    /// Has the option sent as `next` says; where that cannot be, as `former` says, as before.
    pub(in crate::host) fn renew(
        &mut self,
        former: Option<&UserTimeout>,
        next: Option<&UserTimeout>,
    ) -> Result<(), Failure> {
        if former == next {
            return Ok(());
        }
        self.end();
        let Err(failure) = self.send(next) else {
            return Ok(());
        };
        if let Err(again) = self.send(former) {
            tracing::error!("the user timeout option is not sent any longer: {again}");
        }
        Err(failure)
    }

    fn send(&mut self, wanted: Option<&UserTimeout>) -> Result<(), Failure> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let refused = |error: &UserTimeoutError| {
            let Lack { what, remedy } = error.lack();
            Failure::Capability(format!(
                "cannot send the user timeout option: {what}; {remedy}; without [host.user_timeout] the agent runs"
            ))
        };
        let programs = self.loaded.as_mut().map_err(|error| refused(error))?;
        // Those of some cgroups may be attached already where another refuses them.
        self.is_sent = true;
        self.stretches = wanted.stretches();
        let begun = programs.begin(&wanted.config());
        let taken = begun.and_then(|()| programs.take_over());
        match taken {
            Ok((sockets, refused)) => {
                tracing::info!(sockets, "the user timeout option is in force");
                if refused > 0 {
                    tracing::warn!(
                        refused,
                        "sockets that were there before do not send the option: that needs Linux \
                         6.12 or later"
                    );
                }
                self.stretch_all();
                Ok(())
            }
            Err(error) => {
                self.end();
                Err(refused(&error))
            }
        }
    }

    /// A link, or its neighbour `peer`, has gone, or is back.
    pub(in crate::host) fn note_link(
        &mut self,
        interface: InterfaceIndex,
        peer: Option<IpAddr>,
        is_away: bool,
    ) {
        if !is_away {
            self.away.remove(&(interface, peer));
        } else if self.away.len() < MOST_AWAY {
            self.away.insert((interface, peer));
        }
        self.stretch(interface, peer, is_away);
    }

    /// Only these interfaces are watched from now on: nobody tells when another one is back.
    pub(in crate::host) fn retain_links(&mut self, watched: &[InterfaceIndex]) {
        let (stay, go): (BTreeSet<_>, BTreeSet<_>) = std::mem::take(&mut self.away)
            .into_iter()
            .partition(|(interface, _)| watched.contains(interface));
        self.away = stay;
        for (interface, peer) in go {
            self.stretch(interface, peer, false);
        }
    }

    /// Keeps connections over the links that are away for longer: the programs have begun anew.
    fn stretch_all(&mut self) {
        for (interface, peer) in self.away.clone() {
            self.stretch(interface, peer, true);
        }
    }

    fn stretch(&mut self, interface: InterfaceIndex, peer: Option<IpAddr>, is_away: bool) {
        let Some(programs) = self.loaded.as_mut().ok().filter(|_| self.stretches) else {
            return;
        };
        if let Err(error) = programs.note_link(interface, peer, is_away) {
            let why = error.with_causes();
            tracing::warn!("connections keep the user timeouts that they have: {why}");
        }
    }

    /// Ends the option, and leaves the sockets to the kernel's own limits.
    pub(in crate::host) fn end(&mut self) {
        if let Some(counts) = self.counters() {
            tracing::info!(
                sent = counts.sent,
                heard = counts.heard,
                adopted = counts.adopted,
                refused = counts.refused,
                zeros = counts.zeros,
                left_alone = counts.left_alone,
                no_room = counts.no_room,
                failures = counts.failures,
                "the user timeout option ends"
            );
        }
        self.stretches = false;
        let is_sent = std::mem::take(&mut self.is_sent);
        let Some(programs) = self.loaded.as_mut().ok().filter(|_| is_sent) else {
            return;
        };
        if let Err(error) = programs.give_back() {
            let why = error.with_causes();
            tracing::warn!("connections keep the user timeouts that they have: {why}");
        }
    }

    /// Whether the option is sent.
    pub(in crate::host) const fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// What the option has done so far; `None` if it is not sent.
    pub(in crate::host) fn counters(&self) -> Option<UserTimeoutCounters> {
        let programs = self.loaded.as_ref().ok().filter(|_| self.is_sent)?;
        let counters = programs.counters();
        let told = counters.inspect_err(|error| tracing::warn!("{}", error.with_causes()));
        told.ok()
    }
}
