//! One host's side of a tracked connection: which numbers it may use, and what a segment says of them.
//!
//! A host's own segments say what it has sent; what its peer may send, and how much of that has
//! arrived, they say of the peer. So no segment widens what is believed of its own sender, but by the
//! data that it brings.

use super::tcp::{Observation, Oddity};
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

/// The largest shift of RFC 7323, section 2.3.
const MAX_WINDOW_SCALE: u8 = 14;
/// A segment may lag this far behind the newest one whatever the window is (as in conntrack: the
/// largest unscaled window and a bit).
pub(super) const MIN_TOLERANCE: u32 = 66_000;

/// One host's side of a connection. Whoever tracks outside of this crate (the kernel) keeps the
/// same numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Half {
    /// The number after the last byte the host has sent, as far as seen.
    pub next: SeqNumber,
    /// The highest acknowledgement that its peer has sent for its data; before the hosts were seen to
    /// fit each other, where its newest segments begin.
    pub acked: SeqNumber,
    /// The end of the largest window its peer has offered, once it has; before the hosts were seen to
    /// fit each other, what the peer's newest segment acknowledges.
    pub allowed: Option<SeqNumber>,
    /// The largest window that the host itself has offered, in bytes. If its SYN was not seen, what it
    /// was seen to offer for certain: as much as its peer had in flight, and it acknowledged.
    pub largest_window: u32,
    /// The shift of the windows that it offers, at most 14; `None` if its SYN was not seen.
    pub window_scale: Option<u8>,
    /// Whether its SYN permits the host's peer to acknowledge selectively (RFC 2018); `None` if its SYN was not seen.
    pub permits_sack: Option<bool>,
    /// Where these numbers come from.
    pub acquaintance: Acquaintance,
    /// The number after its FIN, once it has sent one; a host that sends anything behind it has sent
    /// none.
    pub fin: Option<SeqNumber>,
}

/// Where the numbers of a [`Half`] come from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Acquaintance {
    /// Nowhere yet.
    #[default]
    None,
    /// From what its peer acknowledged.
    ByPeer,
    /// From a segment of its own.
    Seen,
}

impl Half {
    /// Whether the host has sent something that its peer has not acknowledged.
    #[must_use]
    pub const fn has_outstanding(&self) -> bool {
        self.next.after(self.acked)
    }

    /// Whether a segment from this host was seen.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.acquaintance == Acquaintance::Seen
    }

    #[inline]
    pub(super) fn finished(&self) -> bool {
        self.fin
            .is_some_and(|fin| fin == self.next && self.acked.at_or_after(fin))
    }

    /// How far a segment of its peer may reach beyond, or lag behind, what the peer has sent.
    #[inline]
    pub(super) fn reach(&self) -> u32 {
        self.largest_window.max(MIN_TOLERANCE)
    }

    /// The last number with which a segment of this host may begin, which `receiver` receives. Where the
    /// receiver's window is not known, a segment is not far ahead of those before it.
    fn limit(&self, receiver: &Self) -> SeqNumber {
        // A zero-window probe carries one byte beyond a closed window (RFC 9293, section 3.8.6.1).
        match (self.allowed, receiver.window_scale) {
            (Some(allowed), Some(_)) => allowed + 1,
            (allowed, _) => {
                let near_next = self.next + receiver.reach();
                allowed.map_or(near_next, |allowed| near_next.max(allowed + 1))
            }
        }
    }
}

/// Whether an honest host that both halves describe could send the segment now.
#[inline]
pub(super) fn check_bounds(
    sender: &Half,
    receiver: &Half,
    tcp: &TcpHeader,
    segment_len: u32,
) -> Result<(), Oddity> {
    let end = tcp.seq + segment_len;
    if tcp.seq.after(sender.limit(receiver)) {
        return Err(Oddity::BeyondWindow);
    }
    // What is not acknowledged may come again, however much that is.
    let oldest = (sender.next - receiver.reach()).min(sender.acked);
    if end.before(oldest) {
        return Err(Oddity::TooOld);
    }
    if tcp.has(TcpFlags::RST) && !is_expected_reset(sender, tcp) {
        return Err(Oddity::InexactReset);
    }
    if tcp.has(TcpFlags::ACK) {
        if tcp.ack.after(receiver.next) {
            return Err(Oddity::AcknowledgesUnsent);
        }
        if tcp.ack.before(receiver.acked - MIN_TOLERANCE) {
            return Err(Oddity::StaleAcknowledgement);
        }
    }
    Ok(())
}

/// Whether the receiver may obey a RST: one that has just the number that it expects next. Any other
/// within its window it answers with a challenge, to which the sender's next one is exact (RFC 5961,
/// section 3.2). It expects what it has acknowledged; or what is behind all that was sent, if all
/// has arrived. In between no host sends a RST: it answers an acknowledgement, or follows the last
/// byte; or it has the number of the FIN before it, as macOS writes and Linux accepts
/// (net/ipv4/tcp_input.c, `tcp_reset_check`).
fn is_expected_reset(sender: &Half, tcp: &TcpHeader) -> bool {
    let at_fin = sender.fin == Some(sender.next) && tcp.seq + 1 == sender.next;
    tcp.seq == sender.acked || tcp.seq == sender.next || at_fin
}

/// Takes in a segment that is within bounds.
#[inline]
pub(super) fn advance(
    sender: &mut Half,
    receiver: &mut Half,
    tcp: &TcpHeader,
    segment_len: u32,
) -> Observation {
    let end = tcp.seq + segment_len;
    let new_data = segment_len > 0 && end.after(sender.next);
    let repeated = segment_len > 0 && !new_data;
    sender.next = sender.next.max(end);
    if tcp.has(TcpFlags::FIN) && end == sender.next {
        sender.fin = Some(end);
    }
    let mut newly_acked = 0;
    if tcp.has(TcpFlags::ACK) {
        let window = scaled_window(sender, tcp);
        let offered = tcp.ack + window;
        newly_acked = tcp.ack.distance_from(receiver.acked).max(0).unsigned_abs();
        sender.largest_window = sender.largest_window.max(window);
        if sender.window_scale.is_none() && newly_acked > 0 {
            // All of it was in flight: the sender of this had offered as much.
            let in_flight = receiver.next.distance_from(receiver.acked).unsigned_abs();
            sender.largest_window = demonstrated(sender, in_flight);
        }
        receiver.acked = receiver.acked.max(tcp.ack);
        receiver.allowed = Some(receiver.allowed.map_or(offered, |end| end.max(offered)));
    }
    Observation {
        new_data,
        repeated,
        newly_acked,
        begins_anew: false,
    }
}

/// No window is larger (RFC 7323, section 2.3).
pub(super) const LARGEST_WINDOW: u32 = 1 << 30;

/// The largest window of a host that lets its peer have so much in flight.
pub(super) fn demonstrated(host: &Half, in_flight: u32) -> u32 {
    let window = in_flight.saturating_add(MIN_TOLERANCE).min(LARGEST_WINDOW);
    host.largest_window.max(window)
}

/// The shift of the windows that a SYN announces.
pub(super) fn offered_scale(syn: &TcpHeader) -> u8 {
    syn.options
        .window_scale
        .map_or(0, |scale| scale.min(MAX_WINDOW_SCALE))
}

/// SEG.WND in bytes. The window of a SYN is never scaled (RFC 7323, section 2.2); that of a host whose
/// SYN was not seen is at least as large as it stands there.
#[inline]
pub(super) fn scaled_window(sender: &Half, tcp: &TcpHeader) -> u32 {
    let scale = match sender.window_scale {
        Some(scale) if !tcp.has(TcpFlags::SYN) => scale,
        _ => 0,
    };
    u32::from(tcp.window) << scale
}
