//! Which segments belong to a connection, by RFC 9293 and what a window allows.

use outlast_base::time::Instant;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::tracking::{Oddity, Phase, TcpFlow};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

const SYN_ACK: TcpFlags = TcpFlags(0x12);
const FIN_ACK: TcpFlags = TcpFlags(0x11);

struct Watched {
    flow: TcpFlow,
}

impl Watched {
    fn new() -> Self {
        Self {
            flow: TcpFlow::new(),
        }
    }

    /// Near ISN 1000, far ISN 9000, windows of 65,535 bytes, no scaling.
    fn established() -> Self {
        let mut watched = Self::new();
        watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
        watched.sees(FromLink, SYN_ACK, 9_000, 1_001, 0);
        watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 0);
        assert_eq!(watched.flow.phase, Phase::Established);
        watched
    }

    #[track_caller]
    fn sees(&mut self, direction: Direction, flags: TcpFlags, seq: u32, ack: u32, len: u32) {
        self.try_segment(direction, flags, seq, ack, len)
            .expect("an honest segment");
    }

    #[track_caller]
    fn refuses(
        &mut self,
        (direction, flags, seq, ack, len): (Direction, TcpFlags, u32, u32, u32),
        oddity: Oddity,
    ) {
        let before = self.flow;
        assert_eq!(
            self.try_segment(direction, flags, seq, ack, len),
            Err(oddity)
        );
        assert_eq!(self.flow, before, "an odd segment changes nothing");
    }

    fn try_segment(
        &mut self,
        direction: Direction,
        flags: TcpFlags,
        seq: u32,
        ack: u32,
        len: u32,
    ) -> Result<(), Oddity> {
        let tcp = TcpHeader {
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: u16::MAX,
            options: TcpOptions::default(),
            ..TcpHeader::default()
        };
        self.flow
            .observe(Instant::ZERO, direction, &tcp, len)
            .map(|_| ())
    }
}

#[test]
fn a_connection_is_established_once_both_hosts_were_seen() {
    let mut watched = Watched::new();
    watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Opening);
    watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Opening);
    watched.sees(FromLink, SYN_ACK, 9_000, 1_001, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
}

#[test]
fn a_connection_older_than_the_gateway_is_picked_up_from_either_direction() {
    for first in [ToLink, FromLink] {
        let other = if first == ToLink { FromLink } else { ToLink };
        let mut watched = Watched::new();
        for n in 0..200 {
            watched.sees(first, TcpFlags::ACK, 50_000 + n * 1_000, 70_000, 1_000);
        }
        assert_eq!(watched.flow.phase, Phase::Opening);
        watched.sees(other, TcpFlags::ACK, 70_000, 120_000, 0);
        assert_eq!(watched.flow.phase, Phase::Established);
        watched.sees(other, TcpFlags::ACK, 70_000, 250_000, 0);
        watched.sees(first, TcpFlags::ACK, 250_000, 70_000, 1_000);
    }
}

#[test]
fn numbers_wrap() {
    let mut watched = Watched::new();
    watched.sees(ToLink, TcpFlags::SYN, u32::MAX, 0, 0);
    watched.sees(FromLink, SYN_ACK, 9_000, 0, 0);
    watched.sees(ToLink, TcpFlags::ACK, 0, 9_001, 1_000);
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_000, 0);
    assert!(!watched.flow.near.has_outstanding());
}

#[test]
fn a_segment_beyond_the_window_is_odd() {
    let mut watched = Watched::established();
    let beyond = 1_001 + 65_535 + 2;
    watched.refuses(
        (ToLink, TcpFlags::ACK, beyond, 9_001, 10),
        Oddity::BeyondWindow,
    );
    watched.sees(ToLink, TcpFlags::ACK, beyond - 1, 9_001, 1);
}

#[test]
fn a_segment_from_long_ago_is_odd() {
    let mut watched = Watched::established();
    watched.refuses(
        (
            ToLink,
            TcpFlags::ACK,
            1_001u32.wrapping_sub(100_000),
            9_001,
            10,
        ),
        Oddity::TooOld,
    );
}

#[test]
fn acknowledging_what_was_never_sent_is_odd() {
    let mut watched = Watched::established();
    watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 500);
    watched.refuses(
        (FromLink, TcpFlags::ACK, 9_001, 1_502, 0),
        Oddity::AcknowledgesUnsent,
    );
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_501, 0);
}

#[test]
fn an_acknowledgement_from_long_ago_is_odd() {
    let mut watched = Watched::established();
    watched.refuses(
        (
            FromLink,
            TcpFlags::ACK,
            9_001,
            1_001u32.wrapping_sub(100_000),
            0,
        ),
        Oddity::StaleAcknowledgement,
    );
}

#[test]
fn a_syn_amid_a_connection_is_odd_and_a_repeated_syn_ack_is_not() {
    let mut watched = Watched::established();
    watched.refuses((ToLink, TcpFlags::SYN, 5_000, 0, 0), Oddity::UnexpectedSyn);
    watched.refuses((FromLink, SYN_ACK, 30_000, 1_001, 0), Oddity::UnexpectedSyn);
    watched.sees(FromLink, SYN_ACK, 9_000, 1_001, 0);
}

#[test]
fn the_scale_of_windows_is_what_the_handshake_said() {
    let mut watched = Watched::established();
    let mut again = TcpHeader {
        seq: SeqNumber(9_000),
        ack: SeqNumber(1_001),
        flags: SYN_ACK,
        window: u16::MAX,
        ..TcpHeader::default()
    };
    again.options.window_scale = Some(9);
    let observed = watched.flow.observe(Instant::ZERO, FromLink, &again, 0);
    assert!(observed.is_ok(), "{observed:?}");
    assert_eq!(watched.flow.far.window_scale, Some(0));
}

#[test]
fn flags_that_no_host_sends_are_odd() {
    let mut watched = Watched::established();
    for flags in [0x00, 0x01, 0x03, 0x06, 0x07, 0x15, 0x20] {
        watched.refuses((ToLink, TcpFlags(flags), 1_001, 9_001, 0), Oddity::BadFlags);
    }
}

#[test]
fn two_acknowledged_fins_or_a_rst_close_and_a_syn_opens_again() {
    let mut watched = Watched::established();
    watched.sees(ToLink, FIN_ACK, 1_001, 9_001, 0);
    watched.sees(FromLink, FIN_ACK, 9_001, 1_002, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    watched.sees(ToLink, TcpFlags::ACK, 1_002, 9_002, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
    watched.sees(ToLink, TcpFlags::SYN, 400_000, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Opening);

    let mut watched = Watched::established();
    watched.sees(FromLink, TcpFlags::RST, 9_001, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
}

/// The answer to a SYN has gone another way, and data after it is seen before the client acknowledges anything: only the client
/// can say how much of that it has, so nobody takes the first number seen for it.
#[test]
fn what_a_host_has_is_known_from_its_own_acknowledgement_alone() {
    let mut watched = Watched::new();
    watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
    watched.sees(FromLink, TcpFlags::ACK, 10_461, 1_001, 1_460);
    assert_eq!(watched.flow.phase, Phase::Opening);
    watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    assert_eq!(watched.flow.far.acked, SeqNumber(9_001));
    assert_eq!(watched.flow.near.window_scale, Some(0));
}

/// Only the number that the receiver expects resets (RFC 5961, section 3.2): what it has
/// acknowledged last, or, if all has arrived by now, what comes behind all of it.
#[test]
fn a_rst_that_the_receiver_would_not_obey_closes_nothing() {
    let watched = || {
        let mut watched = Watched::established();
        watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 3_000);
        watched.sees(FromLink, TcpFlags::ACK, 9_001, 2_001, 0);
        watched
    };
    for seq in [1_001, 2_000, 2_002, 3_001, 4_000, 4_002] {
        watched().refuses((ToLink, TcpFlags::RST, seq, 0, 0), Oddity::InexactReset);
    }
    for seq in [2_001, 4_001] {
        let mut watched = watched();
        watched.sees(ToLink, TcpFlags::RST, seq, 0, 0);
        assert_eq!(watched.flow.phase, Phase::Closed);
    }
}

/// macOS gives it the number of the FIN that it has sent just before; Linux obeys that
/// (net/ipv4/tcp_input.c, tcp_reset_check).
#[test]
fn a_rst_in_the_place_of_an_acknowledged_fin_closes() {
    let mut watched = Watched::established();
    watched.sees(ToLink, FIN_ACK, 1_001, 9_001, 500);
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_502, 0);
    watched.refuses((ToLink, TcpFlags::RST, 1_500, 0, 0), Oddity::InexactReset);
    watched.sees(ToLink, TcpFlags::RST, 1_501, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
    // Where there was none, it is just not exact.
    let mut watched = Watched::established();
    watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 500);
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_501, 0);
    watched.refuses((ToLink, TcpFlags::RST, 1_500, 0, 0), Oddity::InexactReset);
}

#[test]
fn a_rst_of_a_host_that_was_never_heard_ends_nothing_but_what_it_answers() {
    // As a client, before anybody has answered (RFC 9293, section 3.10.7.3).
    let mut watched = Watched::new();
    watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
    let rst_ack = TcpFlags::RST | TcpFlags::ACK;
    watched.refuses((FromLink, TcpFlags::RST, 9_000, 0, 0), Oddity::InexactReset);
    watched.refuses((FromLink, rst_ack, 0, 1_000, 0), Oddity::InexactReset);
    watched.sees(FromLink, rst_ack, 0, 1_001, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);

    // In the midst of a connection that is older than the gateway.
    let mut watched = Watched::new();
    watched.sees(ToLink, TcpFlags::ACK, 50_000, 70_000, 1_000);
    watched.refuses(
        (FromLink, TcpFlags::RST, 70_500, 0, 0),
        Oddity::InexactReset,
    );
    watched.sees(FromLink, TcpFlags::RST, 70_000, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
}

/// An honest FIN is the last thing that its host sends.
#[test]
fn a_fin_before_what_its_host_has_sent_is_not_the_end() {
    let mut watched = Watched::established();
    watched.sees(ToLink, TcpFlags::ACK, 1_001, 9_001, 3_000);
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 4_001, 3_000);
    watched.sees(ToLink, TcpFlags::ACK, 4_001, 12_001, 0);
    // Old, or forged: what they end was acknowledged long ago.
    watched.sees(ToLink, FIN_ACK, 2_000, 12_001, 0);
    watched.sees(FromLink, FIN_ACK, 10_000, 4_001, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    watched.sees(ToLink, FIN_ACK, 4_001, 12_001, 0);
    watched.sees(FromLink, FIN_ACK, 12_001, 4_002, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    watched.sees(ToLink, TcpFlags::ACK, 4_002, 12_002, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
}

#[test]
fn a_fin_behind_which_its_host_goes_on_was_not_the_end() {
    let mut watched = Watched::established();
    watched.sees(ToLink, FIN_ACK, 1_001, 9_001, 0);
    watched.sees(FromLink, FIN_ACK, 9_500, 1_002, 0);
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_002, 1_000);
    watched.sees(ToLink, TcpFlags::ACK, 1_002, 10_001, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    watched.sees(FromLink, FIN_ACK, 10_001, 1_002, 0);
    watched.sees(ToLink, TcpFlags::ACK, 1_002, 10_002, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
}

#[test]
fn a_fin_that_is_repeated_is_still_the_end() {
    let mut watched = Watched::established();
    for _ in 0..2 {
        watched.sees(ToLink, FIN_ACK, 1_001, 9_001, 500);
    }
    watched.sees(FromLink, FIN_ACK, 9_001, 1_502, 0);
    watched.sees(ToLink, FIN_ACK, 1_001, 9_001, 500);
    watched.sees(ToLink, TcpFlags::ACK, 1_502, 9_002, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
}

/// RFC 5961, section 4.2: a server in the midst of a connection answers with what it expects, and
/// the client, which knows nothing of that, with a RST that is exact.
#[test]
fn a_syn_of_a_client_that_has_forgotten_ends_the_old_connection_by_a_challenge() {
    let mut watched = Watched::established();
    watched.refuses(
        (ToLink, TcpFlags::SYN, 2_000_000_000, 0, 0),
        Oddity::UnexpectedSyn,
    );
    watched.sees(FromLink, TcpFlags::ACK, 9_001, 1_001, 0);
    assert_eq!(watched.flow.phase, Phase::Established);
    watched.sees(ToLink, TcpFlags::RST, 1_001, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Closed);
    watched.sees(ToLink, TcpFlags::SYN, 2_000_000_000, 0, 0);
    assert_eq!(watched.flow.phase, Phase::Opening);
}

#[test]
fn a_client_that_gave_up_and_tries_again_is_a_new_connection() {
    for isn in [1_000_000, 4_000_000_000] {
        let mut watched = Watched::new();
        watched.sees(ToLink, TcpFlags::SYN, 1_000, 0, 0);
        watched.sees(ToLink, TcpFlags::SYN, isn, 0, 0);
        watched.sees(FromLink, SYN_ACK, 9_000, isn + 1, 0);
        assert_eq!(watched.flow.phase, Phase::Established);
        assert!(!watched.flow.near.has_outstanding());
    }
}
