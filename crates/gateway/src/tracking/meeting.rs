//! Two hosts of which it is not known yet whether their numbers fit each other.
//!
//! Whoever knows addresses and ports can send a segment in either host's name, and be the first to do
//! so. So nothing that one host says is more than its newest word, until a segment of the other fits
//! it: it acknowledges what was seen to be sent, and begins where it was acknowledged. A word that does
//! not fit replaces its own host's, and nothing else.

use super::half::{
    Acquaintance, Half, MIN_TOLERANCE, advance, demonstrated, offered_scale, scaled_window,
};
use super::tcp::{Observation, Oddity};
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

/// What two hosts say of a connection that was not seen to begin may differ by what is in flight one
/// way, and that is no more. What is in flight the other way is within [`MIN_TOLERANCE`] then.
const MOST_IN_FLIGHT: u32 = 1 << 24;

/// What came of a segment.
pub(super) enum Met {
    /// Its host has said something, which fits nothing yet.
    NotYet(Observation),
    /// It fits what its peer has said: both are known.
    Both(Observation),
    /// It refuses the connection.
    Refused,
}

/// Takes in a segment of one host that another receives.
///
/// # Errors
/// [`Oddity::InexactReset`] if it is a RST that its receiver would not obey.
pub(super) fn meet(
    sender: &mut Half,
    receiver: &mut Half,
    tcp: &TcpHeader,
    segment_len: u32,
) -> Result<Met, Oddity> {
    if tcp.has(TcpFlags::RST) {
        return match is_refusal(sender, receiver, tcp) {
            true => Ok(Met::Refused),
            false => Err(Oddity::InexactReset),
        };
    }
    if !fits(sender, receiver, tcp) {
        return Ok(Met::NotYet(note(sender, receiver, tcp, segment_len)));
    }
    keep_or_replace(sender, tcp, segment_len);
    let lead = tcp.seq + segment_len;
    if let Some(claim) = sender.allowed.take() {
        if receiver.window_scale.is_none() {
            let in_flight = lead.distance_from(claim).max(0).unsigned_abs();
            receiver.largest_window = demonstrated(receiver, in_flight);
        }
        sender.acked = claim;
        sender.next = sender.next.max(claim);
    }
    if sender.window_scale.is_none() {
        let in_flight = receiver.next.distance_from(tcp.ack).max(0).unsigned_abs();
        sender.largest_window = demonstrated(sender, in_flight);
    }
    if receiver.window_scale.is_none() || tcp.ack.before(receiver.acked) {
        receiver.acked = tcp.ack;
    }
    receiver.allowed = None;
    let mut observation = advance(sender, receiver, tcp, segment_len);
    // Nobody has seen what it might repeat.
    observation.new_data = segment_len > 0;
    observation.repeated = false;
    Ok(Met::Both(observation))
}

/// Whether the segment acknowledges what its receiver was seen to send, and begins where the receiver
/// has acknowledged, as far as these may differ.
fn fits(sender: &Half, receiver: &Half, tcp: &TcpHeader) -> bool {
    if !receiver.is_seen() || !tcp.has(TcpFlags::ACK) || tcp.ack.after(receiver.next) {
        return false;
    }
    let has_syn = receiver.window_scale.is_some();
    let lag = receiver.next.distance_from(tcp.ack).unsigned_abs();
    let Some(claim) = sender.allowed else {
        // Nobody but who has seen the SYN knows its number; and how much of what follows on the answer has arrived,
        // only the receiver's acknowledgement says.
        return has_syn && tcp.has(TcpFlags::SYN) && tcp.ack.after(receiver.acked);
    };
    let ahead = tcp.seq.distance_from(claim);
    let begins_there = |most: u32| {
        let most = if ahead < 0 { MIN_TOLERANCE } else { most };
        ahead.unsigned_abs() <= most
    };
    if has_syn {
        return tcp.ack.after(receiver.acked) && begins_there(MIN_TOLERANCE);
    }
    lag <= MIN_TOLERANCE && begins_there(MOST_IN_FLIGHT)
        || lag <= MOST_IN_FLIGHT && begins_there(MIN_TOLERANCE)
}

/// Whether a RST is what its receiver expects: it acknowledges the SYN that it answers (RFC 9293, section
/// 3.10.7.3), or begins where the receiver's newest segment has acknowledged.
fn is_refusal(sender: &Half, receiver: &Half, tcp: &TcpHeader) -> bool {
    let answers_syn = receiver.window_scale.is_some()
        && tcp.has(TcpFlags::ACK)
        && tcp.ack.after(receiver.acked)
        && !tcp.ack.after(receiver.next);
    receiver.is_seen() && (answers_syn || sender.allowed == Some(tcp.seq))
}

/// Notes what a host says that nobody else has said yet.
fn note(sender: &mut Half, receiver: &mut Half, tcp: &TcpHeader, segment_len: u32) -> Observation {
    let is_known = keep_or_replace(sender, tcp, segment_len);
    let end = tcp.seq + segment_len;
    let new_data = segment_len > 0 && (!is_known || end.after(sender.next));
    let repeated = segment_len > 0 && !new_data;
    sender.next = sender.next.max(end);
    if tcp.has(TcpFlags::FIN) && end == sender.next {
        sender.fin = Some(end);
    }
    sender.largest_window = sender.largest_window.max(scaled_window(sender, tcp));
    receiver.allowed = tcp.has(TcpFlags::ACK).then_some(tcp.ack);
    if tcp.has(TcpFlags::ACK) && !receiver.is_seen() {
        receiver.acquaintance = Acquaintance::ByPeer;
        receiver.next = tcp.ack;
        receiver.acked = tcp.ack;
    }
    Observation {
        new_data,
        repeated,
        newly_acked: 0,
        begins_anew: false,
    }
}

/// Keeps what is known of a host's own numbers if the segment goes on from there; or else only the
/// segment counts. Says which.
fn keep_or_replace(sender: &mut Half, tcp: &TcpHeader, segment_len: u32) -> bool {
    let is_near =
        |number: SeqNumber| number.distance_from(sender.next).unsigned_abs() <= MIN_TOLERANCE;
    let is_known = sender.is_seen()
        && match tcp.has(TcpFlags::SYN) {
            true => sender.window_scale.is_some() && tcp.seq == sender.acked,
            false => is_near(tcp.seq),
        };
    if !is_known {
        *sender = Half {
            next: tcp.seq + segment_len,
            acked: tcp.seq,
            allowed: sender.allowed,
            acquaintance: Acquaintance::Seen,
            ..Half::default()
        };
    }
    if tcp.has(TcpFlags::SYN) {
        sender.window_scale = Some(offered_scale(tcp));
        sender.permits_sack = Some(tcp.options.sack_permitted);
    }
    is_known
}
