//! The crowd and its home agent in virtual time, with the home agent's link between them.

use super::crowd::{Crowd, association, home_address};
use super::trial::Move;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Arrival, HomeAgent, HomeAgentConfig, HomeLimits, InvalidSpi, LinkAddress, LinkId, NtpClock,
    ReverseTunnels, Transmit,
};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::Lifetime;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// One way between mobile nodes and home agent.
pub(super) const DELAY: Duration = Duration::from_millis(30);
/// Packets that may wait for the home agent's link, each way.
pub(super) const QUEUE: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(120);
/// What the wall clock says at time zero: 2026.
const NTP: u64 = 0xee00_0000_0000_0000;

/// One direction of the home agent's link.
struct Wire {
    bits_per_s: u64,
    /// When it has sent what waits.
    free_at: Instant,
    waiting: BTreeMap<(Instant, u64), Packet>,
    sent: u64,
    dropped: u64,
}

impl Wire {
    const fn new(bits_per_s: u64) -> Self {
        Self {
            bits_per_s,
            free_at: Instant::ZERO,
            waiting: BTreeMap::new(),
            sent: 0,
            dropped: 0,
        }
    }

    fn send(&mut self, now: Instant, packet: Packet) {
        let bits = u64::from(packet.total_len()) * 8;
        let takes = Duration::from_nanos(bits * 1_000_000_000 / self.bits_per_s);
        let begins = self.free_at.max(now);
        // All are about as long: what waits is told by how long it takes.
        if begins.since(now) > takes.saturating_mul(QUEUE as u32) {
            self.dropped += 1;
            return;
        }
        self.free_at = begins + takes;
        self.sent += 1;
        self.waiting
            .insert((self.free_at + DELAY, self.sent), packet);
    }

    fn next(&self) -> Option<Instant> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    fn arrived(&mut self, now: Instant) -> Option<Packet> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

fn home_agent(now: Instant, size: usize, clock: NtpClock) -> Result<HomeAgent, InvalidSpi> {
    let key = association()?;
    let mobiles = (0..size).map(|number| (home_address(number), vec![key.clone()]));
    Ok(HomeAgent::new(
        now,
        HomeAgentConfig {
            address: HOME_AGENT,
            link: LinkId(1),
            mobiles: mobiles.collect(),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: Lifetime(1_800),
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: None,
            advertising: None,
            limits: HomeLimits::default(),
            clock,
            seed: 1,
        },
    ))
}

/// What comes of a move of `size` mobile nodes whose home agent has a link of this rate.
pub(super) fn measure(size: usize, bits_per_s: u64) -> Result<Move, InvalidSpi> {
    let mut now = Instant::ZERO;
    let clock = NtpClock::new(now, NTP);
    let mut crowd = Crowd::new(now, size, HOME_AGENT, clock)?;
    let mut home = home_agent(now, size, clock)?;
    let (mut up, mut down) = (Wire::new(bits_per_s), Wire::new(bits_per_s));
    let mut last = Move::default();
    // They register for the first time, and then move.
    for network in 0..2 {
        let began = now;
        let before = (crowd.requests(), up.dropped + down.dropped);
        crowd.move_to(now, network);
        while crowd.registered() < size && now.since(began) < PATIENCE {
            while let Some(packet) = crowd.poll_transmit() {
                up.send(now, packet);
            }
            let times = [
                up.next(),
                down.next(),
                crowd.poll_timeout(),
                home.poll_timeout().map(|(at, _)| at),
            ];
            let Some(next) = times.into_iter().flatten().min() else {
                break;
            };
            now = now.max(next);
            while let Some(packet) = up.arrived(now) {
                let _ = home.handle_packet(now, ARRIVAL, packet);
            }
            home.handle_timeout(now);
            while home.poll_event().is_some() {}
            while let Some(transmit) = home.poll_transmit() {
                if let Transmit::Packet { packet, .. } = transmit {
                    down.send(now, packet);
                }
            }
            while let Some(packet) = down.arrived(now) {
                crowd.handle_packet(now, &packet);
            }
            crowd.handle_timeout(now);
        }
        last = Move {
            registered: crowd.registered(),
            took_s: now.since(began).as_secs_f64(),
            requests: crowd.requests() - before.0,
            lost: up.dropped + down.dropped - before.1,
            ..Move::default()
        };
        // Nobody may register more than once a second.
        now += Duration::from_secs(5);
    }
    Ok(last)
}

const ARRIVAL: Arrival = Arrival {
    link: LinkId(0),
    from: LinkAddress([2, 0, 0, 0, 0, 1]),
};
