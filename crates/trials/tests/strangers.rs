//! What a gateway does for traffic that it cannot read, in virtual time: what is claimed, beside the control.

use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::limits::Limits;
use outlast_trials::strangers::arrivals::{Outage, Seen};
use outlast_trials::strangers::dns;
use outlast_trials::strangers::losses::Losses;
use outlast_trials::strangers::machine::Machine;
use outlast_trials::strangers::stream::{Dress, Receiver, Sender};
use outlast_trials::strangers::virtual_time::{End, Place};
use outlast_trials::strangers::{quic, sctp, wireguard};
use std::net::SocketAddr;

const FIXED: [u8; 4] = [192, 0, 2, 2];
const MOBILE: [u8; 4] = [198, 51, 100, 2];

/// Without a gateway, with one at the fixed host's end, the mobile host's, and both.
const PLACEMENTS: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];

fn place(gateways: [bool; 2], down_ms: u64, outage_ms: u64, delay_ms: u64) -> Place {
    Place {
        rate: BitRate::from_bits_per_second(10_000_000).expect("above zero"),
        delay: Duration::from_millis(delay_ms),
        queue: 75,
        down: Instant::from_millis(down_ms),
        outage: Duration::from_millis(outage_ms),
        gateways,
        limits: Limits::default(),
    }
}

fn after(place: &Place) -> Instant {
    place.down + place.outage + Duration::from_millis(200)
}

/// What quinn draws at random is the same in every run of these tests.
const SEED: u64 = 0;

/// A download over QUIC; what was seen, and what the sender took for lost.
fn quic(place: &Place) -> (Seen, Losses, Option<String>) {
    quic_until(place, SEED, after(place))
}

fn quic_until(place: &Place, seed: u64, until: Instant) -> (Seen, Losses, Option<String>) {
    let server_at = SocketAddr::from((FIXED, 443));
    let pair = quic::Pair::seeded(Instant::ZERO, server_at, true, seed);
    let mut pair = pair.expect("keys can be had");
    let outage = place.run(
        End {
            at: server_at,
            machine: &mut pair.server,
        },
        End {
            at: SocketAddr::from((MOBILE, 40_000)),
            machine: &mut pair.client,
        },
        until,
    );
    assert!(pair.client.is_intact);
    let seen = Seen::of(&pair.client.arrivals, outage);
    (seen, pair.server.losses(), pair.client.ended)
}

/// Runs a conversation in which the fixed host answers on `port`; when the link was away.
fn talk(place: &Place, port: u16, fixed: &mut dyn Machine, mobile: &mut dyn Machine) -> Outage {
    place.run(
        End {
            at: SocketAddr::from((FIXED, port)),
            machine: fixed,
        },
        End {
            at: SocketAddr::from((MOBILE, port)),
            machine: mobile,
        },
        after(place),
    )
}

/// A download over TCP in a tunnel of WireGuard's; what was seen, and how many messages came twice.
fn tunnel(place: &Place) -> (Seen, u64) {
    let [fixed, mobile] = [FIXED, MOBILE].map(|at| SocketAddr::from((at, wireguard::PORT)));
    let mut server = wireguard::Peer::server(Instant::ZERO, mobile);
    let mut client = wireguard::Peer::client(Instant::ZERO, fixed);
    let outage = talk(place, wireguard::PORT, &mut server, &mut client);
    assert_eq!((&server.ended, &client.ended), (&None, &None));
    let replayed = server.replayed + client.replayed;
    (Seen::of(&client.arrivals, outage), replayed)
}

/// A download over SCTP in UDP.
fn messages(place: &Place) -> Seen {
    let at = SocketAddr::from((FIXED, sctp::PORT));
    let mut server = sctp::Peer::server(Instant::ZERO);
    let mut client = sctp::Peer::client(Instant::ZERO, at).expect("an address that can be");
    let outage = talk(place, sctp::PORT, &mut server, &mut client);
    assert_eq!((&server.ended, &client.ended), (&None, &None));
    assert!(client.is_intact);
    Seen::of(&client.arrivals, outage)
}

fn stream(place: &Place, dress: Dress, every_ms: u64, length: usize) -> Seen {
    let to = SocketAddr::from((MOBILE, 5_004));
    let every = Duration::from_millis(every_ms);
    let mut sender = Sender::new(dress, to, every, length, Instant::ZERO);
    let mut receiver = Receiver::default();
    let outage = place.run(
        End {
            at: SocketAddr::from((FIXED, 5_004)),
            machine: &mut sender,
        },
        End {
            at: to,
            machine: &mut receiver,
        },
        after(place),
    );
    Seen::of(&receiver.arrivals, outage)
}

fn names(place: &Place) -> Seen {
    let server_at = SocketAddr::from((FIXED, 53));
    let mut server = dns::Server::default();
    let mut resolver = dns::Resolver::new(server_at, Instant::ZERO);
    let outage = place.run(
        End {
            at: server_at,
            machine: &mut server,
        },
        End {
            at: SocketAddr::from((MOBILE, 40_000)),
            machine: &mut resolver,
        },
        after(place),
    );
    Seen::of(&resolver.arrivals, outage)
}

/// One round trip and 50 ms, in seconds.
const LIMIT_S: f64 = 0.090;

/// In time, on a link of 40 ms round trip.
fn is_in_time(seen: &Seen) -> bool {
    seen.resume_s.is_some_and(|time| time <= LIMIT_S)
}

#[test]
fn quic_resumes_within_a_round_trip_and_50_ms() {
    let mut stalled = 0;
    for outage in [700, 1_700, 3_500] {
        for gateways in [[true, false], [true, true]] {
            let (seen, _, ended) = quic(&place(gateways, 700, outage, 20));
            assert_eq!(ended, None);
            assert!(is_in_time(&seen), "{outage} ms, {gateways:?}: {seen:?}");
        }
        let (control, ..) = quic(&place([false, false], 700, outage, 20));
        stalled += usize::from(!is_in_time(&control));
    }
    assert!(stalled >= 2, "{stalled} of 3 controls stalled");
}

#[test]
fn quic_resumes_in_time_after_20_s_with_a_gateway_at_the_senders_end() {
    for down in [2_500, 2_611, 2_783] {
        let (seen, ..) = quic(&place([true, false], down, 20_000, 20));
        assert!(is_in_time(&seen), "{seen:?}");
        let (control, ..) = quic(&place([false, false], down, 20_000, 20));
        assert!(!is_in_time(&control), "{control:?}");
    }
}

/// What follows the first byte: a sender that has measured round trips as long as the outage paces by them.
#[test]
fn quic_fills_the_link_in_the_five_seconds_after_20_s() {
    let place = place([true, false], 2_500, 20_000, 20);
    let until = place.down + place.outage + Duration::from_secs(5);
    let (seen, ..) = quic_until(&place, SEED, until);
    let share = seen.five_seconds_bytes as f64 * 8.0 / 5.0 / 10_000_000.0;
    assert!(share > 0.85, "{share}");
}

/// The sender's newest probes, two at once, are younger than a second: with one of them lost and the other acknowledged,
/// quinn would lower its slow-start threshold to two packets. It clears QUIC's fixed bit in half of them.
#[test]
fn quic_fills_the_link_after_an_outage_that_ends_just_after_a_probe() {
    for (seed, down) in [(0, 2_013), (1, 2_390)] {
        let place = place([true, false], down, 16_500, 20);
        let until = place.down + place.outage + Duration::from_secs(5);
        let (seen, ..) = quic_until(&place, seed, until);
        let share = seen.five_seconds_bytes as f64 * 8.0 / 5.0 / 10_000_000.0;
        assert!(share > 0.85, "{seed}: {share}");
    }
}

/// The receiver sends a probe of its own within half a round trip of the link's return, and the probe wakes the sender
/// first. With round trips as long as the outage, from what the gateway has kept, it repeated what is missing after
/// 0.7 s; without a gateway after 0.1 s.
#[test]
fn quic_is_as_soon_as_without_a_gateway_where_the_receivers_probe_crosses_the_return() {
    const SEED_WITH_PROBE: u64 = 6;
    let resumed = |gateways| {
        let place = place(gateways, 2_611, 20_000, 20);
        let until = after(&place) + Duration::from_secs(10);
        let (seen, ..) = quic_until(&place, SEED_WITH_PROBE, until);
        seen.resume_s.unwrap_or(f64::INFINITY)
    };
    let (with, without) = (resumed([true, false]), resumed([false, false]));
    assert!(without < 0.15 && with <= without, "{with}, {without}");
}

/// The acknowledgements that the receiver's gateway has kept do not slow the sender: the one beside that has it answered first.
#[test]
fn quic_resumes_in_time_after_20_s_with_gateways_at_both_ends() {
    let resumed = |gateways| {
        let downs = [2_500, 2_537, 2_611, 2_783, 2_900];
        let seen = downs.map(|down| quic(&place(gateways, down, 20_000, 20)).0);
        let mut times = seen.map(|seen| seen.resume_s.unwrap_or(f64::INFINITY));
        times.sort_by(f64::total_cmp);
        times
    };
    let times = resumed([true, true]);
    // At most one of the five is later.
    assert!(times[3] <= LIMIT_S, "{times:?}");
    assert!(resumed([false, false])[0] > LIMIT_S);
}

/// What a gateway at the sender's end keeps of a tunnel or of SCTP wakes its sender at once.
#[test]
fn tcp_in_a_tunnel_and_sctp_resume_within_a_round_trip_and_50_ms() {
    let mut stalled = [0; 2];
    for outage in [1_000, 4_000] {
        for gateways in PLACEMENTS {
            let place = place(gateways, 1_500, outage, 20);
            let (tunnel, replayed) = tunnel(&place);
            assert_eq!(replayed, 0, "{outage} ms, {gateways:?}");
            for (number, seen) in [tunnel, messages(&place)].into_iter().enumerate() {
                let told = format!("{number}, {outage} ms, {gateways:?}: {seen:?}");
                match gateways {
                    [true, _] => assert!(is_in_time(&seen), "{told}"),
                    [false, false] => stalled[number] += usize::from(!is_in_time(&seen)),
                    [false, true] => {}
                }
            }
        }
    }
    assert!(
        stalled.iter().all(|count| *count == 2),
        "{stalled:?} of 2 controls stalled"
    );
}

#[test]
fn a_stream_is_no_worse_than_without_a_gateway() {
    for (dress, every, length) in [(Dress::Rtp, 20, 172), (Dress::Esp, 10, 1_000)] {
        for outage in [100, 1_000, 4_000] {
            let control = stream(&place(PLACEMENTS[0], 500, outage, 20), dress, every, length);
            for gateways in &PLACEMENTS[1..] {
                let place = place(*gateways, 500, outage, 20);
                let seen = stream(&place, dress, every, length);
                let told = format!("{dress:?}, {outage} ms, {gateways:?}: {seen:?}");
                assert_eq!(
                    (seen.duplicates, seen.overtaken, seen.outside_window),
                    (0, 0, 0),
                    "{told}"
                );
                assert_eq!(seen.fresh, control.fresh, "{told}");
                let [own, without] = [&seen, &control].map(|it| it.slowest_fresh_s);
                // The one packet that is kept of RTP, and of a stream that is known for one; what else is kept of a
                // stream within its first 250 ms is on the link before the first fresh packet.
                let is_known = dress == Dress::Rtp || outage > 250;
                let most = if is_known { 0.002 } else { 0.010 };
                assert!(own <= without.map(|time| time + most), "{told}");
                if is_known {
                    assert!(seen.late <= 1, "{told}");
                    assert!(seen.jitter_s.is_some_and(|jitter| jitter < 0.003), "{told}");
                }
            }
        }
    }
}

#[test]
fn a_question_of_dns_is_answered_when_the_link_is_back() {
    for outage in [1_000, 4_000] {
        for gateways in PLACEMENTS {
            let seen = names(&place(gateways, 500, outage, 20));
            // The mobile host asks: a gateway at its end has the question.
            assert_eq!(is_in_time(&seen), gateways[1], "{gateways:?}: {seen:?}");
            assert_eq!(seen.duplicates, 0);
        }
    }
}
