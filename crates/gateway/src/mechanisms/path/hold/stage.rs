//! Where a connection stands with `hold`: what its link is known to do, and what is done for it.
//!
//! | stage | what crosses towards the link | it ends with |
//! |---|---|---|
//! | `Passing` | passes, and a copy is kept | the link's going; new data that waits for the first answers; a hole that `hold` fills for the sender; a late drop |
//! | `InLine` | waits its turn where anything waits before it, or if it is new and the first answers have not come; a repetition of what was just re-sent is kept and not forwarded | a packet of the far host, once all that it would accept is acknowledged; a late drop; the link's going; the connection's end |
//! | `Down` | is taken and kept; passes if it is acknowledged already, or a cap is reached | the link's return |
//! | `Recovering` | waits its turn as above, and behind a gap; a repetition of what was just re-sent is kept and not forwarded; one may be dropped as a signal | the acknowledgement of all that was kept at the return, once what came to wait meanwhile has gone out; where no data is kept, the last kick in vain, or the next one if the far host has moved or the connection is closed; the link's going; the connection's end |
//!
//! A late drop is one of which the link tells only after its return. `docs/hold.md` has the drawing.

use super::episode::Episode;
use alloc::boxed::Box;

/// Where one connection stands.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// The link is up, and no data waits for its turn.
    #[default]
    Passing,
    /// The link is up, and segments wait for their turn outside of an episode, or did: new data, or what is sent for a
    /// sender. It lasts until the far host, once all is acknowledged, is heard, also while nothing waits any more.
    InLine,
    /// The link is down.
    Down {
        /// Somebody has said so, and not only its silence: nothing that the link had been given is on its
        /// way.
        is_certain: bool,
    },
    /// The link is back, and the connection is to move again.
    Recovering {
        episode: Box<Episode>,
        /// Something came meanwhile and waits in line: that goes on when the episode is over.
        has_line: bool,
    },
}

impl Stage {
    /// The episode, while the connection is to move again.
    pub(super) fn episode(&self) -> Option<&Episode> {
        match self {
            Self::Recovering { episode, .. } => Some(episode),
            Self::Passing | Self::InLine | Self::Down { .. } => None,
        }
    }

    /// The episode, while the connection is to move again.
    pub(super) fn episode_mut(&mut self) -> Option<&mut Episode> {
        match self {
            Self::Recovering { episode, .. } => Some(episode),
            Self::Passing | Self::InLine | Self::Down { .. } => None,
        }
    }

    /// Whether a segment that crosses may have to wait, or be a repetition of what was re-sent.
    pub(super) const fn is_at_work(&self) -> bool {
        matches!(self, Self::InLine | Self::Recovering { .. })
    }

    /// The connection moves, or nobody waits for that any more.
    pub(super) fn end_episode(&mut self) {
        if let Self::Recovering { has_line, .. } = self {
            *self = match has_line {
                true => Self::InLine,
                false => Self::Passing,
            };
        }
    }

    /// A segment waits in line.
    pub(super) fn wait_in_line(&mut self) {
        match self {
            Self::Passing => *self = Self::InLine,
            Self::Recovering { has_line, .. } => *has_line = true,
            Self::InLine | Self::Down { .. } => {}
        }
    }

    /// Nothing acceptable is kept: nobody waits in line any more, unless an episode goes on.
    pub(super) fn leave_line(&mut self) {
        if matches!(self, Self::InLine) {
            *self = Self::Passing;
        }
    }

    /// The link is back, and packets pass, until the connection is made to [recover](Self::recover). Returns whether
    /// somebody has said that the link was down, and not only its silence.
    pub(super) fn come_back(&mut self) -> bool {
        let was_certain = matches!(self, Self::Down { is_certain: true });
        if matches!(self, Self::Down { .. }) {
            *self = Self::Passing;
        }
        was_certain
    }

    /// The connection is to move again. No episode begins amid another: before each return the link is said to
    /// be down, and a late drop begins none while there is one.
    pub(super) fn recover(&mut self, episode: Episode) {
        let has_line = matches!(self, Self::InLine);
        let episode = Box::new(episode);
        *self = Self::Recovering { episode, has_line };
    }
}
