//! What indicators that lie make the gateway send: each flaps a thousand times in ten seconds, for
//! a link that is up all the time. Silence is off: its probes have a budget of their own.

use super::*;
use outlast_gateway::gateway::{DampingConfig, Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, LinkConfig};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

const NEAR: &str = "198.51.100.7";
const FAR: &str = "192.0.2.9";
const SEGMENT: usize = 1_000;

/// One who says that something is down or up.
type Liar = fn(&mut Indicators, Instant, LinkState);

/// A gateway with one connection, of which a segment is outstanding.
struct World {
    indicators: Indicators,
    gateway: Gateway,
    now: Instant,
}

impl World {
    fn new(damping: Option<DampingConfig>) -> Self {
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism: PathMechanismKind::Hold,
            damping,
            ..GatewayConfig::default()
        });
        gateway.add_link(at(0), INTERFACE, LinkConfig::default());
        let mut world = Self {
            indicators: running(Watched::default()),
            gateway,
            now: at(0),
        };
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        world.crosses(Direction::ToLink, syn, [100, 0], 0);
        world.lasts(Duration::from_millis(20));
        world.crosses(Direction::FromLink, syn | ack, [300, 101], 0);
        world.crosses(Direction::ToLink, ack, [101, 301], 0);
        world.lasts(Duration::from_secs(1));
        world.crosses(Direction::ToLink, ack, [101, 301], SEGMENT);
        assert_eq!(world.gateway.flows(), 1);
        world
    }

    fn crosses(&mut self, direction: Direction, flags: TcpFlags, [seq, ack]: [u32; 2], len: usize) {
        let ends = [(ip(NEAR), 80), (ip(FAR), 5_000)];
        let [from, to] = match direction {
            Direction::ToLink => ends,
            Direction::FromLink => [ends[1], ends[0]],
        };
        let header = IpHeader {
            source: from.0,
            destination: to.0,
            hop_limit: 64,
            traffic_class: 0,
            identification: 0,
        };
        let tcp = TcpHeader {
            source_port: from.1,
            destination_port: to.1,
            seq: SeqNumber(seq),
            ack: SeqNumber(ack),
            flags,
            window: u16::MAX,
            ..TcpHeader::default()
        };
        let packet = Packet::tcp_segment(header, tcp, &vec![0; len]);
        let link = self.indicators.link_to(ip(FAR));
        let _ = self
            .gateway
            .handle_packet(self.now, link, direction, &packet);
    }

    /// Time passes; what the gateway sends meanwhile, in packets and bytes.
    fn lasts(&mut self, time: Duration) -> (usize, u32) {
        let until = self.now + time;
        let mut sent = (0, 0);
        loop {
            while let Some(indication) = self.indicators.poll_indication() {
                match indication {
                    Indication::Changed(event) => self.gateway.handle_link(self.now, event),
                    Indication::Returned(link, by) => {
                        self.gateway.handle_return(self.now, link, by);
                    }
                    Indication::Neighbour(link, neighbour) => {
                        self.gateway.handle_neighbour(self.now, link, neighbour);
                    }
                    Indication::Moved(link, _) => {
                        let by = Indicator::Route;
                        self.gateway.handle_return(self.now, link, by);
                    }
                }
            }
            while let Some(transmit) = self.gateway.poll_transmit() {
                sent = (sent.0 + 1, sent.1 + transmit.packet.total_len());
            }
            match self.gateway.poll_timeout() {
                Some((due, _)) if due <= until => {
                    self.now = self.now.max(due);
                    self.gateway.handle_timeout(self.now);
                }
                _ => break,
            }
        }
        self.now = until;
        sent
    }

    fn cost_of(mut self, liar: Liar) -> (usize, u32) {
        let mut cost = (0, 0);
        for _ in 0..1_000 {
            for state in [LinkState::Down, LinkState::Up] {
                liar(&mut self.indicators, self.now, state);
                let (packets, bytes) = self.lasts(Duration::from_millis(5));
                cost = (cost.0 + packets, cost.1 + bytes);
            }
        }
        // It has ended, and all is as if it had not been.
        self.lasts(Duration::from_secs(5));
        assert_eq!(self.gateway.damped_links(self.now).count(), 0);
        let link = self.indicators.link_to(ip(FAR));
        let state = self.gateway.link_state(link).expect("added");
        assert_eq!(state.state, LinkState::Up);
        cost
    }
}

const LIARS: [(&str, Liar); 5] = [
    ("carrier", |indicators, now, state| {
        indicators.handle_change(now, interface(state == LinkState::Up));
    }),
    ("address", |indicators, now, state| {
        indicators.handle_change(now, address(state == LinkState::Up));
    }),
    ("neighbour", |indicators, now, state| {
        let standing = match state {
            LinkState::Up => Standing::Present,
            LinkState::Down => Standing::Failed,
        };
        indicators.handle_change(now, neighbour(standing));
    }),
    ("notify", |indicators, now, state| {
        indicators.handle_notice(now, Some(ip(FAR)), state);
    }),
    ("notify up alone", |indicators, now, _| {
        indicators.handle_notice(now, None, LinkState::Up);
    }),
];

#[test]
fn whoever_lies_costs_a_few_packets() {
    for (who, liar) in LIARS {
        let (packets, bytes) = World::new(Some(DampingConfig::default())).cost_of(liar);
        assert!(packets <= 40, "{who}: {packets} packets");
        assert!(bytes <= 20_000, "{who}: {bytes} bytes");
        let (control, _) = World::new(None).cost_of(liar);
        assert!(
            control >= 10 * packets,
            "{who}: {control}, not {packets} packets"
        );
    }
}
