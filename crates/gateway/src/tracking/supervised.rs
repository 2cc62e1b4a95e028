//! A connection under a supervisor host of M-TCP, as that tells another supervisor host of it.
//!
//! Nothing of it is acknowledged that the far host has not acknowledged, and no segment goes with it:
//! who loses a [`SupervisedFlow`] loses no data.

use super::{FlowKey, Half, Implausible, Phase, TcpFlow, frozen};
use outlast_wire::SeqNumber;

/// What the near host was told of its window.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ToldWindow {
    /// The far host's own.
    #[default]
    Open,
    /// Zero: the near host waits in persist mode.
    Shrunk,
    /// Open again, after it was zero.
    Recovering {
        /// The number behind all that the near host had sent when the window was shrunk.
        sent_before: SeqNumber,
        /// The number behind what the near host has sent since the window is open.
        sent_since: SeqNumber,
    },
}

/// A supervised connection: what it takes to go on with it elsewhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SupervisedFlow {
    /// The connection.
    pub flow: FlowKey,
    /// The near host as tracked.
    pub near: Half,
    /// The far host as tracked.
    pub far: Half,
    /// The newest timestamp of the far host's; `None` without the option.
    pub clock: Option<u32>,
    /// The timestamp that the far host's newest acknowledgement echoes; zero without the option.
    pub echo: u32,
    /// What the near host was told that the far host has: everything before this number.
    pub told: SeqNumber,
    /// What the near host was told of its window.
    pub window: ToldWindow,
    /// The near host has shown that a window which shrinks does not stop it.
    pub is_refuted: bool,
}

impl SupervisedFlow {
    /// Checks that a supervisor host can have had such a connection.
    ///
    /// # Errors
    /// [`Implausible`] if none can, as where the near host was told more than the far host has.
    pub fn check(&self) -> Result<(), Implausible> {
        let Self { near, far, .. } = self;
        if !(near.is_seen() && far.is_seen()) {
            return Err(Implausible::Unseen);
        }
        if self.told.after(near.acked) {
            return Err(Implausible::Ahead);
        }
        let is_sent = match self.window {
            ToldWindow::Recovering {
                sent_before,
                sent_since,
            } => {
                self.told.at_or_before(sent_since)
                    && sent_since.at_or_before(sent_before)
                    && sent_before.at_or_before(near.next)
            }
            ToldWindow::Open | ToldWindow::Shrunk => true,
        };
        if near.acked.after(near.next) || !is_sent {
            return Err(Implausible::Unsent);
        }
        Ok(())
    }

    /// The connection as it is where nothing of it was seen yet.
    pub(crate) fn tracked(&self) -> TcpFlow {
        TcpFlow {
            near: self.near,
            far: self.far,
            phase: Phase::Established,
            ..TcpFlow::new()
        }
    }

    /// The connection as it was tracked elsewhere and is tracked here: the newer of both.
    pub(crate) fn merged_into(&self, here: &TcpFlow) -> TcpFlow {
        TcpFlow {
            near: frozen::merge(&self.near, &here.near),
            far: frozen::merge(&self.far, &here.far),
            phase: Phase::Established,
            ..*here
        }
    }
}
