//! Which interfaces carry packets, and which have stopped to for a moment.
//!
//! The kernel tells of a lost carrier with a delay of up to a second. One that is back by then is told as
//! if nothing had been; only the count of losses has grown. The other end may be another network by then.

use outlast_linux::monitor::Change;
use outlast_linux::netlink::InterfaceIndex;
use std::collections::BTreeMap;

/// What has become of an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// It carries packets for the first time that anybody knows of.
    First,
    /// It carries packets again.
    Back,
    /// It carries packets, and has not done so meanwhile.
    Interrupted,
    /// It carries none.
    Down,
}

/// What is known of an interface.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    is_running: bool,
    losses: Option<u32>,
}

/// What is known of every interface.
#[derive(Debug, Default)]
pub(super) struct Carriers(BTreeMap<u32, Carrier>);

impl Carriers {
    /// Those that are there.
    pub(super) fn of(interfaces: Vec<Change>) -> Self {
        let mut carriers = Self::default();
        for change in interfaces {
            if let Change::Interface {
                index,
                is_running,
                carrier_losses,
                ..
            } = change
            {
                carriers.note(index, is_running, carrier_losses);
            }
        }
        carriers
    }

    /// The numbers of all interfaces.
    pub(super) fn indices(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// An interface is as the kernel tells; what has become of it, `None` if nothing.
    pub(super) fn note(
        &mut self,
        index: InterfaceIndex,
        is_running: bool,
        losses: Option<u32>,
    ) -> Option<Turn> {
        let before = self.0.get(&index.0).copied();
        let losses = losses.or(before.and_then(|before| before.losses));
        self.0.insert(index.0, Carrier { is_running, losses });
        let was_running = before.map(|before| before.is_running);
        let has_lost = before.is_some_and(|b| b.losses.is_some() && b.losses != losses);
        match (was_running, is_running) {
            (None, true) => Some(Turn::First),
            (Some(false), true) => Some(Turn::Back),
            (Some(true), true) => has_lost.then_some(Turn::Interrupted),
            (Some(false), false) => None,
            (None | Some(true), false) => Some(Turn::Down),
        }
    }

    pub(super) fn forget(&mut self, index: InterfaceIndex) {
        self.0.remove(&index.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: InterfaceIndex = InterfaceIndex(3);

    #[test]
    fn a_loss_that_is_over_before_it_is_told_is_an_interruption() {
        let mut carriers = Carriers::default();
        assert_eq!(carriers.note(LINK, true, Some(1)), Some(Turn::First));
        assert_eq!(carriers.note(LINK, true, Some(1)), None);
        assert_eq!(carriers.note(LINK, true, Some(2)), Some(Turn::Interrupted));
        assert_eq!(carriers.note(LINK, false, Some(3)), Some(Turn::Down));
        assert_eq!(carriers.note(LINK, false, Some(3)), None);
        assert_eq!(carriers.note(LINK, true, Some(3)), Some(Turn::Back));
    }

    /// A bridge's message about its port has no counts.
    #[test]
    fn a_message_without_a_count_says_nothing_of_losses() {
        let mut carriers = Carriers::default();
        carriers.note(LINK, true, Some(1));
        assert_eq!(carriers.note(LINK, true, None), None);
        assert_eq!(carriers.note(LINK, true, Some(1)), None);
        assert_eq!(carriers.note(LINK, true, Some(2)), Some(Turn::Interrupted));
        carriers.forget(LINK);
        assert_eq!(carriers.note(LINK, true, Some(4)), Some(Turn::First));
    }
}
