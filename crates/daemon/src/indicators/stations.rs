//! Ethernet addresses on the link, as the kernel has told them.
//!
//! Kept, because it may not be asked when they are needed: an answer of it about an interface waits
//! for everybody who changes something about any network of the host, and packets would wait with it.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Neighbours whose Ethernet addresses are known at once, at most.
const MOST: usize = 16_384;

/// Where this end of the link and its neighbours are.
#[derive(Debug, Default)]
pub(in super::super) struct Stations {
    own: Option<[u8; 6]>,
    neighbours: BTreeMap<IpAddr, [u8; 6]>,
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

    pub(super) fn set_own(&mut self, own: Option<[u8; 6]>) {
        self.own = own;
    }

    pub(super) fn set(&mut self, neighbour: IpAddr, at: Option<[u8; 6]>) {
        match at {
            None => {
                self.neighbours.remove(&neighbour);
            }
            Some(at) => {
                if self.neighbours.len() < MOST || self.neighbours.contains_key(&neighbour) {
                    self.neighbours.insert(neighbour, at);
                }
            }
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
        let first = IpAddr::from([10, 0, 0, 0]);
        assert_eq!(stations.of(IpAddr::V4((0x0a00_0000 | most).into())), None);
        stations.set(first, Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(stations.of(first), Some([2, 0, 0, 0, 0, 2]));
    }
}
