//! How long a connection has waited since its link came back.
//!
//! An indicator may say so too early: the carrier is there, and the far host is not yet. Where only
//! silence follows such a word, a connection that has not moved still waits since then. Once a packet
//! has come, the link was back, and a silence after it is another outage.

use crate::links::Indicator;
use crate::mechanisms::path::Context;
use outlast_base::time::Instant;

/// Since when a connection might have moved, and did not.
#[derive(Debug, Default)]
pub(crate) struct ResumeTimer(Option<Return>);

#[derive(Debug)]
struct Return {
    at: Instant,
    /// By a packet from the link.
    is_shown: bool,
    /// A host is known to wait for its timeout.
    is_certain: bool,
}

impl ResumeTimer {
    /// `by` says that the link is down.
    pub(crate) fn suspend(&mut self, by: Indicator) {
        if by == Indicator::Silence {
            self.0.take_if(|back| back.is_shown);
        } else {
            self.0 = None;
        }
    }

    /// `by` says that the link is up, behind which something of the connection waits.
    pub(crate) fn begin(&mut self, at: Instant, by: Indicator) {
        let is_shown = by == Indicator::FirstPacket;
        let back = self.0.get_or_insert(Return {
            at,
            is_shown,
            is_certain: false,
        });
        back.is_shown |= is_shown;
    }

    /// Behind the link that is back since `at`, as `by` has said, a host is known to wait.
    pub(crate) fn begin_certain(&mut self, at: Instant, by: Indicator) {
        self.begin(at, by);
        if let Some(back) = &mut self.0 {
            back.is_certain = true;
        }
    }

    /// Notes that the connection moves while its link is up, and reports how long it has waited.
    pub(crate) fn end(&mut self, cx: &mut Context<'_>) {
        if let Some(back) = self.0.take() {
            *cx.resumed = Some(cx.now.since(back.at));
            cx.counters.resumes += 1;
        }
    }

    /// Nothing waits.
    pub(crate) const fn forget(&mut self) {
        self.0 = None;
    }

    /// Nothing waits now; what `has_waited` until then may have moved the connection, as is still to
    /// be heard.
    pub(crate) fn forget_unless(&mut self, has_waited: bool) {
        if !has_waited {
            self.0.take_if(|back| !back.is_certain);
        }
    }
}
