//! SH-TCP: what the fixed host is told, and when its window shrinks (section 4.1, figure 4).
//!
//! | state | event | what is done |
//! |---|---|---|
//! | no shrink | the mobile acknowledges `x` | the fixed host is told `x - 1`, from the first time on that data stays in flight |
//! | no shrink | the wired half has lost what the mobile lacks next | `x` is told, the window stays |
//! | no shrink | wintimer, and nothing is withheld | nothing: a window that shrinks without a new acknowledgement is ignored |
//! | no shrink | wintimer, and the withheld byte is the last | it is told, the window stays |
//! | no shrink | wintimer | shrunk: the withheld byte is told with window zero |
//! | shrunk | a probe | the same once more |
//! | shrunk | the mobile acknowledges, or is back | recovering: the window is open |
//! | recovering | the fixed host repeats what it has sent since | it is told all of that, with no byte withheld |
//! | recovering | the fixed host has sent again all that was sent before | no shrink |
//!
//! While recovering the fixed host is told no number beyond what it has sent since: some stacks set
//! back `snd_max` when they leave persist mode, and take more for an acknowledgement of unsent data.

use crate::tracking::{SupervisedFlow, TcpFlow, ToldWindow};
use outlast_base::time::Instant;
use outlast_wire::{SeqNumber, TcpHeader};

/// The fixed host's window, as the supervisor host has left it (figure 4).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum FixedWindow {
    /// The mobile's own.
    #[default]
    NoShrink,
    /// Closed: the fixed host waits in persist mode.
    Shrunk {
        /// When it was closed.
        since: Instant,
    },
    /// Open again.
    Recovering {
        /// The number behind all that was sent when the window was shrunk.
        sent_before: SeqNumber,
        /// The number behind what was sent since the window is open.
        sent_since: SeqNumber,
    },
}

/// What is known of the sender's obedience to a window that shrinks over data in flight.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Obedience {
    /// It obeys, as is published, whatever it shows.
    #[default]
    Published,
    /// It obeys until it shows that it does not.
    Assumed,
    /// It does not: nothing is withheld, and its window stays the mobile's.
    Refuted,
}

/// What the end of the wintimer may do (section 5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Expiry {
    /// The withheld byte closes the window.
    Shrink,
    /// The withheld byte is told: there is nothing more for the mobile, or only the sender has it.
    Acknowledge,
    /// The withheld byte is kept.
    Keep,
}

/// The supervisor host's half towards the fixed host.
#[derive(Debug, Default)]
pub(super) struct ShTcp {
    window: FixedWindow,
    /// The highest acknowledgement that the fixed host was told; `None` before the first.
    told: Option<SeqNumber>,
    /// When a sender without an acknowledgement is about to time out.
    wintimer: Option<Instant>,
    /// The fixed host is to be told the same once more, or what it may be told by now.
    owes: bool,
    obedience: Obedience,
    /// An acknowledgement has left data in flight. Before that there is nothing to close a window over, and a sender
    /// that begins with one segment could send only one more instead of two, which the mobile would acknowledge late.
    withholds: bool,
}

impl ShTcp {
    pub(super) fn with(obedience: Obedience) -> Self {
        Self {
            obedience,
            ..Self::default()
        }
    }

    /// As it was before the connection.
    pub(super) fn forget(&mut self) {
        *self = Self::with(match self.obedience {
            Obedience::Published => Obedience::Published,
            Obedience::Assumed | Obedience::Refuted => Obedience::Assumed,
        });
    }

    /// The window, for another supervisor host.
    pub(super) const fn told_window(&self) -> ToldWindow {
        match self.window {
            FixedWindow::NoShrink => ToldWindow::Open,
            FixedWindow::Shrunk { .. } => ToldWindow::Shrunk,
            FixedWindow::Recovering {
                sent_before,
                sent_since,
            } => ToldWindow::Recovering {
                sent_before,
                sent_since,
            },
        }
    }

    /// Goes on where another supervisor host has stopped.
    pub(super) fn adopt(&mut self, now: Instant, supervised: &SupervisedFlow) {
        self.told = Some(supervised.told);
        self.withholds = true;
        self.window = match supervised.window {
            ToldWindow::Open => FixedWindow::NoShrink,
            ToldWindow::Shrunk => FixedWindow::Shrunk { since: now },
            ToldWindow::Recovering {
                sent_before,
                sent_since,
            } => FixedWindow::Recovering {
                sent_before,
                sent_since,
            },
        };
        if supervised.is_refuted && self.obedience == Obedience::Assumed {
            self.obedience = Obedience::Refuted;
            self.window = FixedWindow::NoShrink;
        }
    }

    pub(super) const fn is_shrunk(&self) -> bool {
        matches!(self.window, FixedWindow::Shrunk { .. })
    }

    /// Whether the sender has shown that it does not freeze.
    pub(super) fn is_refuted(&self) -> bool {
        self.obedience == Obedience::Refuted
    }

    pub(super) const fn window(&self) -> FixedWindow {
        self.window
    }

    pub(super) const fn told(&self) -> Option<SeqNumber> {
        self.told
    }

    pub(super) const fn owes(&self) -> bool {
        self.owes
    }

    pub(super) const fn owe(&mut self) {
        self.owes = true;
    }

    /// Whether an acknowledgement was owed, which is none any more.
    pub(super) const fn poll_owed(&mut self) -> bool {
        core::mem::replace(&mut self.owes, false)
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.wintimer
    }

    /// The fixed host had been told `acked` by the mobile itself when the connection was first seen.
    pub(super) fn begin(&mut self, acked: SeqNumber) {
        self.told.get_or_insert(acked);
    }

    /// Whether nothing that the mobile has acknowledged is withheld.
    pub(super) fn has_told_all(&self, flow: &TcpFlow) -> bool {
        self.told
            .is_none_or(|told| told.at_or_after(flow.near.acked))
            && self.window == FixedWindow::NoShrink
    }

    /// A new segment has come: its sender times out if nothing is heard by `at`.
    pub(super) const fn await_timeout(&mut self, at: Instant) {
        self.wintimer = Some(at);
    }

    /// A new acknowledgement goes on: the sender's timer starts anew, if something is outstanding.
    pub(super) const fn rearm(&mut self, at: Option<Instant>) {
        self.wintimer = at;
    }

    /// The mobile has acknowledged something new.
    pub(super) fn hear_acknowledgement(&mut self, flow: &TcpFlow, tcp: &TcpHeader) {
        self.thaw(flow);
        self.owes = false;
        let acked = flow.near.acked;
        self.withholds |= flow.near.has_outstanding();
        let is_whole =
            flow.near.fin == Some(acked) || tcp.window == 0 || self.is_refuted() || !self.withholds;
        self.raise(match self.window {
            FixedWindow::NoShrink if is_whole => acked,
            _ => self.ackable(acked) - 1,
        });
    }

    /// The wired half has lost what the mobile lacks next: the withheld byte is told.
    ///
    /// It could not close the window, as only the sender has what comes next. The sender repeats from the
    /// last number that it was told: from the withheld byte it would repeat too little, and a second time.
    pub(super) fn withhold_nothing(&mut self, flow: &TcpFlow) {
        self.raise(self.ackable(flow.near.acked));
    }

    /// The fixed host has sent something up to `end`; `times_out_at` is when it times out if nothing is heard.
    pub(super) fn hear_data(&mut self, flow: &TcpFlow, end: SeqNumber, times_out_at: Instant) {
        let FixedWindow::Recovering {
            sent_before,
            sent_since,
        } = self.window
        else {
            return;
        };
        if self.obedience == Obedience::Assumed && end.after(sent_since) {
            // Whether it goes on shows whether it obeys.
            self.wintimer = Some(times_out_at);
        }
        let sent_since = sent_since.max(end);
        self.window = match sent_since.at_or_after(sent_before) {
            true => FixedWindow::NoShrink,
            false => FixedWindow::Recovering {
                sent_before,
                sent_since,
            },
        };
        let before = self.told;
        self.raise(self.ackable(flow.near.acked) - 1);
        self.owes |= self.told != before;
    }

    /// The window opens: the mobile is back, or it was only slow.
    pub(super) fn thaw(&mut self, flow: &TcpFlow) {
        if !self.is_shrunk() {
            return;
        }
        let Some(told) = self.told else {
            return;
        };
        self.window = FixedWindow::Recovering {
            sent_before: flow.near.next,
            sent_since: told,
        };
        self.owes = true;
    }

    /// The wintimer expires if it is time.
    pub(super) fn handle_timeout(&mut self, now: Instant, flow: &TcpFlow, expiry: Expiry) {
        if self.wintimer.take_if(|at| *at <= now).is_none() {
            return;
        }
        match self.window {
            // It was thawed, was told all that it has sent since but for the withheld byte, and has sent
            // nothing more for a timeout: it had not obeyed.
            FixedWindow::Recovering { sent_since, .. }
                if self
                    .told
                    .is_some_and(|told| (told + 1).at_or_after(sent_since)) =>
            {
                self.refute(flow);
            }
            _ => {}
        }
        self.expire(now, flow, expiry);
    }

    /// The sender repeats data over its closed window, where one that obeys only probes.
    pub(super) fn hear_repetition(&mut self, now: Instant, flow: &TcpFlow, is_away: bool) {
        if is_away && self.window == FixedWindow::NoShrink {
            // It has timed out before it was frozen: nothing is gained by withholding.
            self.refute(flow);
        }
        if let FixedWindow::Shrunk { since } = self.window {
            self.owes = true;
            // One on its way may have crossed the window update.
            if now.since(since) > flow.rtt.patience() {
                self.refute(flow);
            }
        }
    }

    /// The sender does not obey: it is told everything, and the window is the mobile's again.
    fn refute(&mut self, flow: &TcpFlow) {
        if self.obedience == Obedience::Assumed {
            self.obedience = Obedience::Refuted;
            self.window = FixedWindow::NoShrink;
            self.raise(flow.near.acked);
            self.owes = true;
        }
    }

    /// The sender is about to time out.
    pub(super) fn expire(&mut self, now: Instant, flow: &TcpFlow, expiry: Expiry) {
        let Some(told) = self.told.filter(|_| !self.is_shrunk()) else {
            return;
        };
        self.wintimer = None;
        let ackable = self.ackable(flow.near.acked);
        if !ackable.after(told) || expiry == Expiry::Keep {
            return;
        }
        if expiry == Expiry::Shrink {
            self.window = FixedWindow::Shrunk { since: now };
        }
        self.told = Some(ackable);
        self.owes = true;
    }

    pub(super) fn is_published(&self) -> bool {
        self.obedience == Obedience::Published
    }

    /// The sender has sent again, up to `end`, what the mobile has acknowledged. If its window is open and it
    /// has sent that before, it has timed out for want of the withheld byte, which it is told.
    ///
    /// A sender that is recovering repeats the withheld byte alone: as long as it lacks that, it sends
    /// nothing else.
    pub(super) fn answer_timeout(&mut self, flow: &TcpFlow, end: SeqNumber) {
        match self.window {
            FixedWindow::NoShrink => self.raise(flow.near.acked),
            FixedWindow::Recovering { sent_since, .. } if end.at_or_before(sent_since) => {
                self.raise(self.ackable(flow.near.acked));
            }
            FixedWindow::Recovering { .. } | FixedWindow::Shrunk { .. } => {}
        }
    }

    /// The highest number that the fixed host may be told.
    fn ackable(&self, acked: SeqNumber) -> SeqNumber {
        match (self.window, self.told) {
            (FixedWindow::NoShrink, _) | (_, None) => acked,
            (FixedWindow::Shrunk { .. }, Some(told)) => told,
            (FixedWindow::Recovering { sent_since, .. }, Some(_)) => acked.min(sent_since),
        }
    }

    fn raise(&mut self, to: SeqNumber) {
        self.told = Some(self.told.map_or(to, |told| told.max(to)));
    }
}
