//! Ethernet addresses on the link, as the kernel has told them.
//!
//! Kept, because it may not be asked when they are needed: an answer of it about an interface waits
//! for everybody who changes something about any network of the host, and packets would wait with it.
//!
//! The last place of a neighbour is remembered after the kernel has forgotten it, as it does when the carrier is lost: what
//! is kept for that neighbour is not for whoever answers for its address then.

use outlast_gateway::links::Neighbour;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Neighbours whose Ethernet addresses are known at once, at most.
const MOST: usize = 16_384;

/// Where this end of the link and its neighbours are.
#[derive(Debug, Default)]
pub(in super::super) struct Stations {
    own: Option<[u8; 6]>,
    neighbours: BTreeMap<IpAddr, [u8; 6]>,
    /// Last place of each.
    last: BTreeMap<IpAddr, [u8; 6]>,
}

impl Stations {
    /// The interface's own Ethernet address; `None` where there is no Ethernet, on which nobody needs
    /// to be found.
    pub(in super::super) const fn own(&self) -> Option<[u8; 6]> {
        self.own
    }

    /// Where the kernel reaches a neighbour, if it knows that.
    pub(in super::super) fn of(&self, neighbour: IpAddr) -> Option<[u8; 6]> {
        self.neighbours.get(&neighbour).copied()
    }

    /// True if the kernel has known a neighbour and does not know where it is now.
    pub(in super::super) fn is_lost(&self, neighbour: IpAddr) -> bool {
        self.last.contains_key(&neighbour) && !self.neighbours.contains_key(&neighbour)
    }

    /// The kernel knows nobody any more.
    pub(super) fn clear(&mut self) {
        self.own = None;
        self.neighbours.clear();
    }

    pub(super) fn set_own(&mut self, own: Option<[u8; 6]>) {
        self.own = own;
    }

    /// The kernel knows where a neighbour is, or knows it no longer. Returns who that is, if it has just been found.
    pub(super) fn set(&mut self, neighbour: IpAddr, at: Option<[u8; 6]>) -> Option<Neighbour> {
        let Some(at) = at else {
            self.neighbours.remove(&neighbour);
            return None;
        };
        if self.neighbours.len() >= MOST && !self.neighbours.contains_key(&neighbour) {
            return None;
        }
        let known = self.neighbours.insert(neighbour, at);
        if self.last.len() >= MOST && !self.last.contains_key(&neighbour) {
            let neighbours = &self.neighbours;
            self.last.retain(|last, _| neighbours.contains_key(last));
        }
        match self.last.insert(neighbour, at) {
            Some(last) if last != at => Some(Neighbour::Changed),
            Some(_) if known.is_none() => Some(Neighbour::Same),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_is_found_anew_and_who_has_gone_is_forgotten() {
        let mut stations = Stations::default();
        let host = IpAddr::from([192, 0, 2, 9]);
        stations.set(host, Some([2, 0, 0, 0, 0, 1]));
        stations.set(host, Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(stations.of(host), Some([2, 0, 0, 0, 0, 2]));
        stations.set(host, None);
        assert_eq!(stations.of(host), None);
    }

    #[test]
    fn a_crowd_takes_no_more_than_its_room_and_nobody_loses_his() {
        let mut stations = Stations::default();
        let most = u32::try_from(MOST).expect("a constant");
        for number in 0..=most {
            stations.set(
                IpAddr::V4((0x0a00_0000 | number).into()),
                Some([2, 0, 0, 0, 0, 1]),
            );
        }
        assert!(stations.last.len() <= MOST);
        let first = IpAddr::from([10, 0, 0, 0]);
        assert_eq!(stations.of(IpAddr::V4((0x0a00_0000 | most).into())), None);
        stations.set(first, Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(stations.of(first), Some([2, 0, 0, 0, 0, 2]));
    }

    #[test]
    fn who_comes_back_is_told_from_who_takes_its_place() {
        let mut stations = Stations::default();
        let host = IpAddr::from([192, 0, 2, 9]);
        let (first, second) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        assert!(!stations.is_lost(host));
        assert_eq!(stations.set(host, Some(first)), None);
        // The kernel repeats what it has said.
        assert_eq!(stations.set(host, Some(first)), None);
        for is_flushed in [true, false] {
            match is_flushed {
                true => stations.clear(),
                false => assert_eq!(stations.set(host, None), None),
            }
            assert!(stations.is_lost(host));
            assert_eq!(stations.set(host, Some(first)), Some(Neighbour::Same));
        }
        stations.clear();
        assert_eq!(stations.set(host, Some(second)), Some(Neighbour::Changed));
        assert!(!stations.is_lost(host));
        assert_eq!(stations.set(host, Some(first)), Some(Neighbour::Changed));
    }
}
