//! What a gateway does for traffic that it cannot read, in virtual time: what is claimed, beside the control.

use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::limits::Limits;
use outlast_trials::strangers::arrivals::Seen;
use outlast_trials::strangers::dns;
use outlast_trials::strangers::quic;
use outlast_trials::strangers::stream::{Dress, Receiver, Sender};
use outlast_trials::strangers::virtual_time::{End, Place};
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
    place.down + place.outage + Duration::from_millis(5_100).max(place.outage)
}

/// A download over QUIC; what was seen, and what the sender took for lost.
fn quic(place: &Place) -> (Seen, quic::Losses, Option<String>) {
    let server_at = SocketAddr::from((FIXED, 443));
    let mut pair = quic::Pair::new(Instant::ZERO, server_at, true).expect("keys can be had");
    let outage = place.run(
        End {
            at: server_at,
            machine: &mut pair.server,
        },
        End {
            at: SocketAddr::from((MOBILE, 40_000)),
            machine: &mut pair.client,
        },
        after(place),
    );
    assert!(pair.client.is_intact);
    let seen = Seen::of(&pair.client.arrivals, outage);
    (seen, pair.server.losses(), pair.client.ended)
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

#[test]
#[ignore = "prints a table"]
fn table() {
    for delay in [20, 100, 300] {
        for outage in [4_000] {
            for gateways in PLACEMENTS {
                let place = place(gateways, 3_000, outage, delay);
                let (seen, losses, ended) = quic(&place);
                println!(
                    "quic delay {delay} outage {outage} {gateways:?}: resume {:?} five {} losses {losses:?} {ended:?}",
                    seen.resume_s, seen.five_seconds_bytes
                );
            }
        }
    }
    for outage in [1_000, 4_000] {
        for gateways in PLACEMENTS {
            let place = place(gateways, 4_000, outage, 20);
            println!("rtp {outage} {gateways:?} {:?}", stream(&place, Dress::Rtp, 20, 172));
            println!("esp {outage} {gateways:?} {:?}", stream(&place, Dress::Esp, 10, 1_000));
            println!("dns {outage} {gateways:?} {:?}", names(&place));
        }
    }
}
