//! Costs of forged and recorded packets to a home agent, a foreign agent and a mobile node of Mobile IPv4. The baseline is
//! a packet that the home agent sends into a mobile node's tunnel.

#[allow(unused_imports, reason = "the tests use all of it")]
#[path = "../tests/mobility/network/mod.rs"]
mod network;
#[allow(dead_code, unused_imports, reason = "the tests use all of it")]
#[path = "../tests/mobility/peers.rs"]
mod peers;
#[allow(dead_code, unused_imports, reason = "the tests use all of it")]
#[path = "../tests/mobility/security.rs"]
mod security;

use divan::Bencher;
use network::HOME_AGENT;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{ForeignAgent, HomeAgent, MobileNode};
use outlast_wire::mobile_ip::{
    AgentAdvertisement, AgentFlags, Lifetime, MessageBuilder, OuterHeader, RegistrationReply,
    RegistrationRequest, ReplyCode, RequestFlags, SecuredPair, TunnelData, UdpTunnelReply,
    encapsulate, solicitation,
};
use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader};
use peers::{CO_LOCATED, accept, mobile_node, signed};
use security::{ARRIVAL, FOREIGN, MOBILE, ask_foreign, ask_home, datagram, foreign, home_config};
use std::net::Ipv4Addr;

const STRANGER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The time does not pass: no answer is allowed once the first ones have gone.
const NOW: Instant = Instant::from_millis(1_000);

fn main() {
    divan::main();
}

/// One of the machines, as a network sees it.
trait Machine {
    fn hand(&mut self, now: Instant, packet: Packet);
    fn poll(&mut self) -> bool;
}

impl Machine for HomeAgent {
    fn hand(&mut self, now: Instant, packet: Packet) {
        let _ = self.handle_packet(now, ARRIVAL, packet);
    }

    fn poll(&mut self) -> bool {
        self.poll_transmit().is_some() || self.poll_event().is_some()
    }
}

impl Machine for ForeignAgent {
    fn hand(&mut self, now: Instant, packet: Packet) {
        let _ = self.handle_packet(now, ARRIVAL, packet);
    }

    fn poll(&mut self) -> bool {
        self.poll_transmit().is_some() || self.poll_event().is_some()
    }
}

impl Machine for MobileNode {
    fn hand(&mut self, now: Instant, packet: Packet) {
        let _ = self.handle_packet(now, ARRIVAL, &packet);
    }

    fn poll(&mut self) -> bool {
        self.poll_transmit().is_some() || self.poll_event().is_some()
    }
}

/// Has the machine judge the packet again and again, with so much time between.
fn judge_every(
    step: Duration,
    bencher: Bencher<'_, '_>,
    machine: &mut impl Machine,
    packet: &Packet,
) {
    let mut now = NOW;
    bencher
        .with_inputs(|| packet.clone())
        .bench_local_values(|packet| {
            now += step;
            machine.hand(now, packet);
            while machine.poll() {}
        });
}

/// As many as fit: all but the first ones are beyond the machine's limits.
fn judge(bencher: Bencher<'_, '_>, machine: &mut impl Machine, packet: &Packet) {
    judge_every(Duration::ZERO, bencher, machine, packet);
}

/// Slow enough that each gets its answer.
fn judge_allowed(bencher: Bencher<'_, '_>, machine: &mut impl Machine, packet: &Packet) {
    judge_every(Duration::from_millis(300), bencher, machine, packet);
}

fn segment(source: Ipv4Addr, destination: Ipv4Addr) -> Packet {
    let ip = IpHeader {
        identification: 7,
        ..IpHeader::new(source.into(), destination.into())
    };
    Packet::tcp_segment(ip, TcpHeader::default(), &[1; 1_300])
}

fn in_ip(source: Ipv4Addr, destination: Ipv4Addr, inner: Packet) -> Packet {
    let outer = OuterHeader {
        source,
        destination,
        ttl: 64,
        identification: 1,
    };
    encapsulate(inner, outer).expect("it fits")
}

fn too_big(about: &Packet) -> Packet {
    let notice = IcmpNotice::TooBig { mtu: 1_000 };
    Packet::icmp_error(STRANGER.into(), notice, about).expect("an error")
}

fn wrongly_signed(message: MessageBuilder) -> Vec<u8> {
    let pair = SecuredPair::MobileHome;
    message.authenticate(pair, 256, 16, |_| [0; 16]).finish()
}

fn request() -> RegistrationRequest {
    security::request()
}

/// A mobile node that nobody has.
fn unknown() -> RegistrationRequest {
    RegistrationRequest {
        home_address: Ipv4Addr::new(10, 1, 0, 66),
        ..request()
    }
}

fn reply(code: ReplyCode, identification: u64) -> RegistrationReply {
    RegistrationReply {
        code,
        lifetime: Lifetime(300),
        home_address: MOBILE,
        home_agent: HOME_AGENT,
        identification,
    }
}

mod home_agent {
    use super::*;

    /// A home agent, and the packet that registered its mobile node.
    fn bound() -> (HomeAgent, Vec<u8>) {
        let mut home = HomeAgent::new(NOW, home_config());
        let recorded = security::sign(request().emit(), 256);
        let (reply, _) = ask_home(&mut home, NOW, &recorded).expect("an answer");
        assert_eq!(reply.code, ReplyCode::ACCEPTED);
        while home.poll() {}
        (home, recorded)
    }

    fn to_agent(payload: &[u8]) -> Packet {
        datagram(FOREIGN, HOME_AGENT, 64, payload)
    }

    #[divan::bench]
    fn baseline_into_the_tunnel(bencher: Bencher<'_, '_>) {
        let packet = segment(CORRESPONDENT, MOBILE);
        let mut home = bound().0;
        judge(bencher, &mut home, &packet);
        assert!(home.counters().tunnelled > 0);
    }

    #[divan::bench]
    fn request_of_an_unknown_mobile_node(bencher: Bencher<'_, '_>) {
        let packet = to_agent(&wrongly_signed(unknown().emit()));
        judge(bencher, &mut bound().0, &packet);
    }

    #[divan::bench]
    fn request_without_an_authenticator(bencher: Bencher<'_, '_>) {
        let packet = to_agent(&request().emit().finish());
        judge(bencher, &mut bound().0, &packet);
    }

    #[divan::bench]
    fn request_with_a_wrong_authenticator(bencher: Bencher<'_, '_>) {
        let packet = to_agent(&wrongly_signed(request().emit()));
        judge(bencher, &mut bound().0, &packet);
    }

    #[divan::bench]
    fn recorded_request(bencher: Bencher<'_, '_>) {
        let (mut home, recorded) = bound();
        judge(bencher, &mut home, &to_agent(&recorded));
    }

    #[divan::bench]
    fn recorded_request_that_is_answered(bencher: Bencher<'_, '_>) {
        let (mut home, recorded) = bound();
        judge_allowed(bencher, &mut home, &to_agent(&recorded));
    }

    #[divan::bench]
    fn tunnel_of_a_stranger(bencher: Bencher<'_, '_>) {
        let inner = segment(MOBILE, CORRESPONDENT);
        let packet = in_ip(STRANGER, HOME_AGENT, inner);
        judge(bencher, &mut bound().0, &packet);
    }

    #[divan::bench]
    fn forged_too_big(bencher: Bencher<'_, '_>) {
        let outer = in_ip(HOME_AGENT, FOREIGN, segment(CORRESPONDENT, MOBILE));
        judge(bencher, &mut bound().0, &too_big(&outer));
    }
}

mod foreign_agent {
    use super::*;

    /// A foreign agent with a visitor.
    fn visited() -> ForeignAgent {
        let mut agent = foreign();
        let asked = security::sign(request().emit(), 256);
        assert_eq!(ask_foreign(&mut agent, 255, &asked), None);
        let reply = reply(ReplyCode::ACCEPTED, request().identification);
        let bytes = signed(reply.emit()).finish();
        agent.hand(Instant::ZERO, datagram(HOME_AGENT, FOREIGN, 64, &bytes));
        while agent.poll() {}
        assert_eq!(agent.visitors(), 1);
        agent
    }

    fn from_visitor(request: &RegistrationRequest) -> Packet {
        let bytes = security::sign(request.emit(), 256);
        datagram(request.home_address, FOREIGN, 255, &bytes)
    }

    fn unacceptable() -> Packet {
        from_visitor(&RegistrationRequest {
            flags: RequestFlags(4),
            ..request()
        })
    }

    /// An advertisement to all answers them, 20 a second at most.
    #[divan::bench]
    fn solicitation_of_anybody(bencher: Bencher<'_, '_>) {
        let packet = Packet::agent_discovery(STRANGER, FOREIGN, &solicitation());
        judge(bencher, &mut visited(), &packet);
    }

    #[divan::bench]
    fn request_that_is_refused(bencher: Bencher<'_, '_>) {
        judge(bencher, &mut visited(), &unacceptable());
    }

    #[divan::bench]
    fn request_whose_refusal_is_sent(bencher: Bencher<'_, '_>) {
        judge_allowed(bencher, &mut visited(), &unacceptable());
    }

    /// That request again, while its first copy waits for the home agent.
    #[divan::bench]
    fn request_that_is_repeated(bencher: Bencher<'_, '_>) {
        let packet = from_visitor(&unknown());
        judge(bencher, &mut visited(), &packet);
    }

    #[divan::bench]
    fn reply_that_answers_nothing(bencher: Bencher<'_, '_>) {
        let bytes = wrongly_signed(reply(ReplyCode::ACCEPTED, 99).emit());
        let packet = datagram(HOME_AGENT, FOREIGN, 64, &bytes);
        judge(bencher, &mut visited(), &packet);
    }

    #[divan::bench]
    fn tunnel_of_a_stranger(bencher: Bencher<'_, '_>) {
        let packet = in_ip(STRANGER, FOREIGN, segment(CORRESPONDENT, MOBILE));
        let mut agent = visited();
        judge(bencher, &mut agent, &packet);
        assert!(agent.counters().dropped_strangers > 0);
    }

    #[divan::bench]
    fn forged_unreachable(bencher: Bencher<'_, '_>) {
        let relayed = datagram(FOREIGN, HOME_AGENT, 64, &[1; 48]);
        let packet = Packet::icmp_error(STRANGER.into(), IcmpNotice::HostUnreachable, &relayed);
        judge(bencher, &mut visited(), &packet.expect("an error"));
    }
}

mod mobile {
    use super::*;

    fn registered() -> MobileNode {
        let (mut node, request) = mobile_node();
        let answer = UdpTunnelReply {
            code: UdpTunnelReply::YES,
            is_forced: false,
            keep_alive_s: 110,
        };
        accept(&mut node, &request, answer);
        while node.poll() {}
        node
    }

    #[divan::bench]
    fn reply_that_answers_nothing(bencher: Bencher<'_, '_>) {
        let bytes = wrongly_signed(reply(ReplyCode::ACCEPTED, 99).emit());
        let packet = datagram(HOME_AGENT, CO_LOCATED, 64, &bytes);
        judge(bencher, &mut registered(), &packet);
    }

    fn in_udp(source: Ipv4Addr, destination: Ipv4Addr) -> Packet {
        let data = TunnelData {
            next_header: 4,
            packet: &segment(CORRESPONDENT, destination).to_bytes(),
        };
        datagram(source, CO_LOCATED, 64, &data.emit())
    }

    #[divan::bench]
    fn tunnel_of_a_stranger(bencher: Bencher<'_, '_>) {
        judge(bencher, &mut registered(), &in_udp(STRANGER, MOBILE));
    }

    /// As the home agent's, for a host behind the mobile node.
    #[divan::bench]
    fn tunnel_to_somebody_else(bencher: Bencher<'_, '_>) {
        let packet = in_udp(HOME_AGENT, Ipv4Addr::new(192, 168, 77, 1));
        let mut node = registered();
        judge(bencher, &mut node, &packet);
        assert!(node.counters().dropped_unfit > 0);
    }

    /// Of another agent each time, more of them than are remembered.
    #[divan::bench]
    fn advertisement_of_a_stranger(bencher: Bencher<'_, '_>) {
        let advertisement = AgentAdvertisement {
            is_for_mobiles_only: false,
            lifetime_s: 9,
            routers: Vec::new(),
            sequence: 0,
            registration_lifetime: Lifetime(300),
            flags: AgentFlags::FOREIGN_AGENT,
            care_of_addresses: Vec::from([STRANGER]),
            prefix_lengths: Vec::new(),
        };
        let message = advertisement.emit();
        let mut node = registered();
        let mut host = 0_u8;
        bencher
            .with_inputs(|| {
                host = host.wrapping_add(1);
                let source = Ipv4Addr::new(203, 0, 113, host);
                Packet::agent_discovery(source, CO_LOCATED, &message)
            })
            .bench_local_values(|packet| {
                node.hand(NOW, packet);
                while node.poll() {}
            });
        assert!(node.counters().forgotten_agents > 0);
    }

    #[divan::bench]
    fn forged_too_big(bencher: Bencher<'_, '_>) {
        let outer = in_ip(CO_LOCATED, HOME_AGENT, segment(MOBILE, CORRESPONDENT));
        judge(bencher, &mut registered(), &too_big(&outer));
    }
}
