//! Who is neither host: guesses, sends again what it has seen, and breaks what crosses.

use super::{World, direction, is_lone, link};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::FlowReport;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::LinkId;
use outlast_gateway::mechanisms::path::Verdict;
use outlast_gateway::tracking::{FlowKey, PATIENCE, Phase, TcpFlow};
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// What no packet of a stranger's changes.
#[derive(Debug, PartialEq)]
pub(crate) struct Affairs {
    flows: Vec<FlowReport>,
    held: ByteCount,
    held_other: ByteCount,
    freezes: u64,
    resumes: u64,
    transmitted: u64,
    taken: u64,
}

impl Affairs {
    fn of_connections(&self) -> (&[FlowReport], ByteCount, u64, u64) {
        (&self.flows, self.held, self.freezes, self.resumes)
    }
}

impl World {
    pub(crate) fn meddle(&mut self, operation: u8, [a, b, c]: [u8; 3]) {
        let way = direction(c);
        match operation {
            // What was seen, once more, on its own link or another one.
            25 => {
                let seen = self.shown.seen(way);
                let Some((at, packet)) = pick(seen, a) else {
                    return;
                };
                let at = if b & 0x80 == 0 { *at } else { link(b) };
                let packet = packet.clone();
                self.show_stranger(at, way, &packet);
            }
            // The same, broken on its way.
            26 => {
                let seen = self.shown.seen(way);
                let Some((at, packet)) = pick(seen, a) else {
                    return;
                };
                let (at, mut bytes) = (*at, packet.to_bytes().to_vec());
                let transport = bytes.len() - transport_len(packet);
                let place = transport + usize::from(b) % (bytes.len() - transport);
                bytes[place] ^= c | 1;
                if let Ok(packet) = Packet::parse(bytes.into()) {
                    self.show_stranger(at, way, &packet);
                }
            }
            // Numbers that fit, and flags that no host sends.
            _ => {
                let connection = &mut self.connections[usize::from(a % super::CONNECTIONS)];
                let nonsense = [
                    TcpFlags(0),
                    TcpFlags::SYN | TcpFlags::FIN,
                    TcpFlags::SYN | TcpFlags::RST,
                    TcpFlags::FIN,
                    TcpFlags::PSH,
                    TcpFlags::FIN | TcpFlags::RST | TcpFlags::ACK,
                ];
                let flags = nonsense[usize::from(b) % nonsense.len()];
                let at = connection.link;
                let packet = connection.spoofed(way, flags, 0, 0, c >> 2);
                self.show_stranger(at, way, &packet);
            }
        }
    }

    /// Shows a packet that may be nobody's. Unless a host could have sent it, nothing comes of it.
    pub(crate) fn show_stranger(&mut self, link: LinkId, way: Direction, packet: &Packet) {
        // What is due now is not the stranger's doing.
        self.wait(Duration::ZERO);
        let before = self.affairs();
        let odd = self.gateway.counters().odd_segments;
        let is_stale = self.is_stale(way, packet);
        let verdict = self.verdict_on(link, way, packet);
        let is_odd = self.gateway.counters().odd_segments > odd;
        // One thing is made of a segment that does not fit: whoever acknowledges what was never sent
        // here has gone on elsewhere.
        let is_excepted = self.may_acknowledge_ahead() && way == FromLink;
        let is_nothing = (is_odd && !is_excepted) || is_stale;
        if is_nothing && !self.may_give_place(&before, way, packet) {
            let after = self.affairs();
            if way == ToLink && may_draw_an_answer(packet) {
                assert_eq!(
                    after.of_connections(),
                    before.of_connections(),
                    "{packet:?}"
                );
            } else {
                assert_eq!(verdict, Verdict::Pass, "{packet:?}");
                assert_eq!(after, before, "{packet:?}");
            }
        }
    }

    /// Whether the connection whose addresses and ports the packet has may give its place to another: it
    /// has ended, or nothing was seen of it for long.
    fn may_give_place(&self, before: &Affairs, way: Direction, packet: &Packet) -> bool {
        let key = FlowKey::of_tcp(packet.header(), way);
        let flow = before.flows.iter().find(|flow| Some(flow.key) == key);
        flow.is_some_and(|flow| {
            flow.phase == Phase::Closed || self.now.since(flow.last_packet) >= PATIENCE
        })
    }

    pub(crate) fn affairs(&self) -> Affairs {
        Affairs {
            flows: self.gateway.flow_reports().collect(),
            held: self.gateway.held(),
            held_other: self.gateway.held_other(),
            freezes: self.gateway.counters().freezes,
            resumes: self.gateway.counters().resumes,
            transmitted: self.transmitted,
            taken: self.gateway.counters().taken,
        }
    }

    /// Whether both hosts have long gone on, where the gateway has certainly seen so.
    fn is_stale(&self, way: Direction, packet: &Packet) -> bool {
        let (Some(key), Some(tcp)) = (FlowKey::of_tcp(packet.header(), way), packet.tcp()) else {
            return false;
        };
        let is_seen = self.sees_all && self.gateway.is_tracked(&key) && is_intact(packet);
        is_seen
            && self
                .known
                .undisputed(&key)
                .is_some_and(|flow| is_behind(flow, way, tcp, packet.sequence_len()))
    }
}

/// Whether its host has acknowledged more since, and its peer all that is in it; while the
/// connection lasts.
fn is_behind(flow: &TcpFlow, way: Direction, tcp: &TcpHeader, sequence_len: u32) -> bool {
    let (sender, receiver) = match way {
        ToLink => (&flow.near, &flow.far),
        FromLink => (&flow.far, &flow.near),
    };
    flow.phase == outlast_gateway::tracking::Phase::Established
        && tcp.has(TcpFlags::ACK)
        && !tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
        && tcp.ack.before(receiver.acked)
        && (tcp.seq + sequence_len).at_or_before(sender.acked)
}

/// Whether it may be that of a host which has forgotten the connection: then it waits for the link, as
/// what belongs to no connection does.
fn may_draw_an_answer(packet: &Packet) -> bool {
    packet
        .tcp()
        .is_some_and(|tcp| is_lone(tcp.flags) && !tcp.has(TcpFlags::SYN | TcpFlags::ACK))
}

pub(crate) fn is_intact(packet: &Packet) -> bool {
    packet.checksums_ok() || packet.has_partial_checksum()
}

fn pick<T>(all: &[T], number: u8) -> Option<&T> {
    all.get(usize::from(number) % all.len().max(1))
}

/// How much of the packet its transport's checksum covers.
fn transport_len(packet: &Packet) -> usize {
    let ip_len = match packet.header().ip.source.is_ipv6() {
        true => 40,
        false => 20,
    };
    (packet.total_len() as usize).saturating_sub(ip_len).max(1)
}
