//! What others than the hosts and the link may ask of a gateway, at any moment: a driver that hands
//! connections over and takes them back, gateways elsewhere, an operator who changes the settings.

use super::{World, damping_of, limits_of, link, mechanism_of, rate_of, silence_of};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Direction, InterfaceId};
use outlast_gateway::tracking::{Contest, FlowKey, FrozenFlow, Heard, TcpFlow};
use outlast_wire::{Packet, TcpFlags};
use std::collections::BTreeMap;

/// Packets that a tracker elsewhere can still show.
const RECENT: usize = 12;

/// What a tracker elsewhere, which sees the same packets, knows of each connection.
#[derive(Default)]
pub(crate) struct Known(BTreeMap<FlowKey, Elsewhere>);

#[derive(Default)]
struct Elsewhere {
    /// As it was before the first of `recent`.
    before: Seen,
    now: Seen,
    /// A segment did not fit: from then on the gateway may follow another connection with these ports.
    is_disputed: bool,
    recent: Vec<(Instant, Direction, Packet)>,
}

/// A connection as the kernel's tracker sees it, which keeps nothing of it.
#[derive(Default)]
struct Seen {
    flow: TcpFlow,
    contest: Option<Box<Contest>>,
}

impl Seen {
    fn note(&mut self, now: Instant, direction: Direction, packet: &Packet) -> Option<Heard> {
        let tcp = packet.tcp()?;
        let len = packet.header().payload_len;
        let (contest, flow) = (&mut self.contest, &mut self.flow);
        let heard = Contest::observe(contest, flow, now, direction, tcp, len);
        if let (Heard::OfRival(_), Some(contest)) = (heard, contest) {
            contest.yield_to_rival(flow);
        }
        Some(heard)
    }
}

impl Known {
    /// A connection all of whose segments fitted, so that every tracker knows the same of it.
    pub(crate) fn undisputed(&self, key: &FlowKey) -> Option<&TcpFlow> {
        let known = self.0.get(key).filter(|known| !known.is_disputed);
        known.map(|known| &known.now.flow)
    }

    pub(crate) fn note(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let (Some(key), Some(tcp)) = (FlowKey::of_tcp(packet.header(), direction), packet.tcp())
        else {
            return;
        };
        let len = packet.header().payload_len;
        let is_nonsense = || TcpFlow::new().observe(now, direction, tcp, len).is_err();
        // A lone RST begins nothing, nor does what no host sends.
        if !self.0.contains_key(&key) && (tcp.has(TcpFlags::RST) || is_nonsense()) {
            return;
        }
        let known = self.0.entry(key).or_default();
        if known.recent.len() == RECENT {
            let (at, direction, oldest) = known.recent.remove(0);
            known.before.note(at, direction, &oldest);
        }
        known.recent.push((now, direction, packet.clone()));
        let heard = known.now.note(now, direction, packet);
        known.is_disputed |= matches!(heard, Some(Heard::Odd(_) | Heard::OfRival(_)));
    }
}

impl World {
    pub(crate) fn drive(&mut self, operation: u8, [a, b, c]: [u8; 3]) {
        // Whatever it is, the gateway may know less of the connections than who has seen them all.
        self.sees_all &= matches!(operation, 16 | 18 | 22 | 23);
        match operation {
            14 => self.hand_over(a, b, c),
            15 => self.gateway.forget(link(b)),
            16 => self.export(),
            17 => self.import(a, b, c),
            18 => {
                if let Some(flow) = self.known_flow(a) {
                    self.gateway.lend_frozen(self.now, flow, b % 2 == 0);
                }
            }
            19 => {
                if let Some(flow) = self.known_flow(a) {
                    self.gateway.release_frozen(self.now, flow);
                }
            }
            20 => {
                if let Some(flow) = self.known_flow(a)
                    && let Some(resets) = self.gateway.reset_frozen(self.now, flow)
                {
                    let is_reset = |one: &Packet| one.tcp().map(|tcp| tcp.has(TcpFlags::RST));
                    assert!(resets.iter().all(|one| is_reset(one) == Some(true)));
                    assert!(self.gateway.export_frozen(flow).is_none());
                }
            }
            21 => self.reload(a, b),
            22 => {
                let since = self.now.since(Instant::ZERO);
                let since = since.saturating_sub(Duration::from_millis(u64::from(b) << (c % 12)));
                let since = Instant::ZERO + since;
                if let Some(flow) = self.known_flow(a) {
                    self.gateway.handle_silence(self.now, &flow, since);
                }
            }
            _ => self.check_reports(),
        }
        self.check();
    }

    fn known_flow(&self, number: u8) -> Option<FlowKey> {
        let mut keys = self.known.0.keys();
        let count = keys.len().max(1);
        keys.nth(usize::from(number) % count).copied()
    }

    /// The three steps of taking a connection over, or only some of them.
    fn hand_over(&mut self, a: u8, b: u8, steps: u8) {
        let Some(key) = self.known_flow(a) else {
            return;
        };
        let link = link(b);
        let known = &self.known.0[&key];
        let (before, as_it_is) = (known.before.flow, known.now.flow);
        let recent = known.recent.clone();
        if steps & 1 == 0 {
            self.gateway.adopt(self.now, link, key, before);
            self.check();
        }
        if steps & 2 == 0 {
            for (_, direction, packet) in recent {
                self.gateway.recall(self.now, link, direction, &packet);
                self.check();
            }
        }
        if steps & 4 == 0 {
            self.gateway.adopt(self.now, link, key, as_it_is);
        }
    }

    fn export(&mut self) {
        let all: Vec<_> = self.known.0.keys().copied().collect();
        for key in all {
            if let Some(frozen) = self.gateway.export_frozen(key) {
                frozen.numbers().expect("what is exported is plausible");
                self.exported.push(frozen);
            }
        }
        let excess = self.exported.len().saturating_sub(16);
        self.exported.drain(..excess);
    }

    /// As it was told, or with one of its numbers changed.
    fn import(&mut self, a: u8, b: u8, change: u8) {
        let count = self.exported.len().max(1);
        let Some(frozen) = self.exported.get(usize::from(a) % count) else {
            return;
        };
        let by = u32::from(change >> 3) << (change % 25);
        let mut told: FrozenFlow = frozen.clone();
        match change % 7 {
            0 => {}
            1 => told.near.acked = told.near.acked - by,
            2 => told.near.next = told.near.next + by,
            3 => told.far.next = told.far.next + by,
            4 => told.far.window_scale = Some(change >> 3),
            5 => told.clock = told.clock.map(|clock| clock.wrapping_add(by)),
            _ => told.near.allowed = told.near.allowed.map(|end| end - by),
        }
        self.shown.believe(link(b), &told.segment);
        let _ = self
            .gateway
            .import_frozen(self.now, link(b), &told, change & 0x80 != 0);
    }

    fn reload(&mut self, kind: u8, to: u8) {
        match kind % 5 {
            0 => {
                self.mechanism = mechanism_of(to);
                self.mechanisms.push(self.mechanism);
                self.gateway.set_mechanism(self.mechanism);
            }
            1 => {
                self.limits = limits_of(to);
                self.bounds.move_to(&self.limits);
                self.gateway.set_limits(self.limits);
            }
            2 => {
                let silence = silence_of(to);
                self.may_probe |= silence.is_some_and(|silence| silence.probes_per_second > 0);
                self.gateway.set_silence(silence);
            }
            3 => self.gateway.set_damping(self.now, damping_of(to)),
            _ => {
                let interface = InterfaceId(u32::from(to) % 3);
                self.gateway.set_rate(self.now, interface, rate_of(to));
            }
        }
    }
}
