//! An honest transfer, and somebody beside it who knows its addresses and ports, and no sequence
//! number: off the path, or at the link, in either host's name or in both. The hosts' bytes arrive as
//! they do without him.
//!
//! The first two bytes choose the mechanism, and since when the gateway and the attacker are there.
//! Each further step is four bytes: time passes, the link goes or comes, or the attacker speaks. The
//! same script runs with him and without. His packets reach the gateway alone: what they do to the
//! hosts is the hosts' affair.
#![no_main]

#[path = "../bystander/attacker.rs"]
mod attacker;
#[path = "../bystander/transfer.rs"]
mod transfer;

use attacker::Attacker;
use libfuzzer_sys::fuzz_target;
use outlast_base::time::Duration;
use outlast_gateway::gateway::{GatewayConfig, SilenceConfig};
use outlast_gateway::links::Direction::ToLink;
use outlast_gateway::links::LinkState;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use transfer::{Deliveries, Transfer};

/// What he sends is nobody's, but a datagram or a SYN that waits for the link has its turn there as any
/// other. So a host may delay an acknowledgement that it would not have delayed (Linux: by 40 ms). No
/// host's timeout is shorter than 200 ms.
const TOLERANCE: Duration = Duration::from_millis(60);
/// A connection that the gateway has not seen to begin may be unknown to it for as long, after the
/// attacker has spoken in both hosts' names.
const UNKNOWN_FOR: Duration = Duration::from_secs(35);
const LONGEST: Duration = Duration::from_secs(1_800);

fuzz_target!(|data: &[u8]| {
    let Some((&[mechanism, since], script)) = data.split_first_chunk() else {
        return;
    };
    let mechanism = mechanism_of(mechanism);
    let since = Since::of(since);
    let script = &script[..script.len().min(4 * 200)];
    let run = |mechanism, is_attacked| run(mechanism, since, script, is_attacked);
    let alone = run(mechanism, false);
    if !alone.is_complete() || alone.is_failed {
        // Such an outage no host waits for.
        return;
    }
    let attacked = run(mechanism, true);
    assert!(attacked.is_complete() && !attacked.is_failed, "lost");
    for (alone, attacked) in alone.deliveries.iter().zip(&attacked.deliveries) {
        match since {
            Since::Established => compare(alone, attacked),
            Since::Older | Since::Beginning => {
                let took = |deliveries: &Deliveries| deliveries.last().expect("complete").0;
                let most = took(alone) + took(alone).since(outlast_base::time::Instant::ZERO);
                let took = took(attacked);
                assert!(
                    took <= most + UNKNOWN_FOR,
                    "{took} instead of {most} at most"
                );
            }
        }
    }
});

/// Since when the gateway sees the transfer, and the attacker speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Since {
    /// The gateway has seen the handshake, and the attacker comes later.
    Established,
    /// Both come in the midst of it.
    Older,
    /// Both are there from the beginning.
    Beginning,
}

impl Since {
    const fn of(byte: u8) -> Self {
        match byte % 4 {
            1 => Self::Older,
            2 => Self::Beginning,
            _ => Self::Established,
        }
    }
}

const fn mechanism_of(byte: u8) -> PathMechanismKind {
    match byte % 4 {
        1 => PathMechanismKind::AcknowledgeAhead,
        2 => PathMechanismKind::Auto,
        3 => PathMechanismKind::ZeroWindowAck,
        _ => PathMechanismKind::Hold,
    }
}

fn run(mechanism: PathMechanismKind, since: Since, script: &[u8], is_attacked: bool) -> Transfer {
    let has_silence = script.first().is_some_and(|byte| byte & 1 == 1);
    let mut transfer = Transfer::new(GatewayConfig {
        mechanism,
        silence: has_silence.then(SilenceConfig::default),
        seed: 1,
        ..GatewayConfig::default()
    });
    transfer.is_seen = since != Since::Older;
    if since != Since::Beginning {
        while !transfer.is_open() {
            transfer.wait(Duration::from_millis(10));
        }
        transfer.wait(Duration::from_millis(100));
    }
    transfer.is_seen = true;
    let mut attacker = Attacker::new(transfer.numbers());
    for step in script.as_chunks().0 {
        let &[kind, a, b, _] = step;
        match kind {
            0..=15 => transfer.wait(Duration::from_millis(u64::from(a) << (b % 9))),
            // A SYN that waits for the link may lose its place to one that is made up.
            16..=23 if !transfer.is_open() => {}
            16..=23 => transfer.change_link(LinkState::Down),
            24..=31 => transfer.change_link(LinkState::Up),
            // Nobody can say whether what is no segment of a connection is honest: it hides silence.
            u8::MAX if has_silence => {}
            _ if is_attacked => {
                let (link, direction, packet) = attacker.packet(*step);
                let now = transfer.now;
                let gateway = &mut transfer.gateway;
                let _ = gateway.handle_packet(now, link, direction, &packet);
                debug_assert!(direction == ToLink || gateway.counters().packets > 0);
            }
            _ => {}
        }
        transfer.wait(Duration::ZERO);
    }
    transfer.change_link(LinkState::Up);
    let until = transfer.now + LONGEST;
    while !transfer.is_complete() && !transfer.is_failed && transfer.now < until {
        transfer.wait(Duration::from_secs(1));
    }
    transfer
}

/// Whether each byte is there as early as without the attacker.
fn compare(alone: &Deliveries, attacked: &Deliveries) {
    let mut later = attacked.iter();
    let mut known = later.next();
    for &(at, bytes) in alone {
        while known.is_some_and(|(_, there)| *there < bytes) {
            known = later.next();
        }
        let there = known.expect("all bytes are there").0;
        assert!(
            there <= at + TOLERANCE,
            "byte {bytes} at {there} instead of {at}"
        );
    }
}
