//! When the connections are looked through because links are back: all that come back at one moment in one pass, and no
//! link twice within [`Limits::interval`](crate::Limits::interval) (Schütz and others 2005, section 3.3.2).

use crate::indicator::Restored;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::LinkId;

/// The passes of late, and those that are due.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Links with a pass within the last interval, and whether another is due after it.
    recent: BTreeMap<LinkId, Recent>,
    /// Passes that have failed one after the other.
    failures: u8,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    /// When the next pass may be.
    until: Instant,
    due: Option<Restored>,
}

/// When a return has its pass.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Admission {
    /// Now.
    Now,
    /// As soon as the last pass is long enough ago.
    Later,
    /// Never: too many links are remembered.
    NoRoom,
}

impl Passes {
    /// A link is back. If the pass is to be now, another return of the same batch waits for the next one.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        restored: Restored,
        interval: Duration,
        most: usize,
    ) -> Admission {
        if let Some(recent) = self.recent.get_mut(&restored.link)
            && recent.until > now
        {
            recent.due = Some(recent.due.map_or(restored, |due| due.then(restored)));
            return Admission::Later;
        }
        self.recent
            .retain(|_, recent| recent.until > now || recent.due.is_some());
        if self.recent.len() >= most {
            return Admission::NoRoom;
        }
        self.begin(now, &restored, interval);
        Admission::Now
    }

    /// The pass of a return begins.
    pub(crate) fn begin(&mut self, now: Instant, restored: &Restored, interval: Duration) {
        let recent = Recent {
            until: now + interval,
            due: None,
        };
        self.recent.insert(restored.link, recent);
    }

    /// A pass has gone through the connections.
    pub(crate) const fn succeed(&mut self) {
        self.failures = 0;
    }

    /// A pass has failed: it is repeated after the interval, unless as many as `most` in a row have failed.
    pub(crate) fn fail(&mut self, returns: &[Restored], most: u8) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= most {
            return;
        }
        for restored in returns {
            if let Some(recent) = self.recent.get_mut(&restored.link) {
                recent.due = Some(*restored);
            }
        }
    }

    /// The returns whose passes are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Restored> {
        let is_over = |recent: &Recent| recent.until <= now;
        let over = self.recent.values().filter(|recent| is_over(recent));
        let due = over.filter_map(|recent| recent.due).collect();
        self.recent.retain(|_, recent| !is_over(recent));
        due
    }

    /// When the next pass is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let due = self.recent.values().filter(|recent| recent.due.is_some());
        due.map(|recent| recent.until).min()
    }
}
