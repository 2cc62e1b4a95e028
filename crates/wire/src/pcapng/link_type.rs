//! Where the IP packet starts in a captured frame.

use super::Interface;
use crate::frame;
pub use crate::frame::link_type::{ETHERNET, RAW};

/// The IP packet in `frame`, as it was captured on `interface`; `None` if the frame carries none,
/// or if its link type is not known. VLAN tags are skipped.
#[must_use]
pub fn ip_packet<'a>(interface: &Interface<'_>, frame: &'a [u8]) -> Option<&'a [u8]> {
    ip_in_frame(interface.link_type, frame)
}

/// The IP packet in `frame` of an interface whose frames are of `link_type`; as [`ip_packet`].
/// [`frame::ip_in_frame`] says why there is none.
#[must_use]
pub fn ip_in_frame(link_type: u16, frame: &[u8]) -> Option<&[u8]> {
    frame::ip_in_frame(link_type, frame).ok()
}
