//! Costs of forged and recorded requests to a home agent.

use divan::Bencher;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Algorithm, Arrival, HomeAgent, HomeAgentConfig, HomeLimits, LinkAddress, LinkId, NtpClock,
    ReverseTunnels, SecurityAssociation,
};
use outlast_wire::mobile_ip::{
    Lifetime, MessageBuilder, RegistrationRequest, RequestFlags, SecuredPair,
};
use outlast_wire::{IpHeader, Packet, UdpHeader};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const CARE_OF: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const ARRIVAL: Arrival = Arrival {
    link: LinkId(0),
    from: LinkAddress([4; 6]),
};
/// The time does not pass: no answer is allowed once the first ones have gone.
const NOW: Instant = Instant::from_millis(1_000);

fn main() {
    divan::main();
}

fn home() -> HomeAgent {
    let key = SecurityAssociation::new(256, Algorithm::HmacMd5, &[7; 16]).expect("a free index");
    HomeAgent::new(
        NOW,
        HomeAgentConfig {
            address: HOME_AGENT,
            link: LinkId(0),
            mobiles: BTreeMap::from([(MOBILE, vec![key])]),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: Lifetime(600),
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: None,
            advertising: None,
            limits: HomeLimits::default(),
            clock: NtpClock::new(Instant::ZERO, 0xe800_0000_0000_0000),
            seed: 1,
        },
    )
}

fn request(mobile: Ipv4Addr, sign: impl FnOnce(MessageBuilder) -> MessageBuilder) -> Packet {
    let request = RegistrationRequest {
        flags: RequestFlags::REVERSE_TUNNEL,
        lifetime: Lifetime(300),
        home_address: mobile,
        home_agent: HOME_AGENT,
        care_of_address: CARE_OF,
        identification: 0xe800_0000_1234_5678,
    };
    let udp = UdpHeader {
        source_port: 434,
        destination_port: 434,
    };
    let ip = IpHeader::new(CARE_OF.into(), HOME_AGENT.into());
    Packet::udp_datagram(ip, udp, &sign(request.emit()).finish())
}

fn wrongly_signed(message: MessageBuilder) -> MessageBuilder {
    message.authenticate(SecuredPair::MobileHome, 256, 16, |_| [0; 16])
}

/// Has the home agent judge the packet again and again.
fn judge(bencher: Bencher<'_, '_>, packet: &Packet) {
    let mut home = home();
    bencher.bench_local(|| {
        let verdict = home.handle_packet(NOW, ARRIVAL, packet.clone());
        while home.poll_transmit().is_some() {}
        while home.poll_event().is_some() {}
        verdict
    });
}

#[divan::bench]
fn of_an_unknown_mobile_node(bencher: Bencher<'_, '_>) {
    judge(
        bencher,
        &request(Ipv4Addr::new(10, 1, 0, 66), wrongly_signed),
    );
}

#[divan::bench]
fn without_an_authenticator(bencher: Bencher<'_, '_>) {
    judge(bencher, &request(MOBILE, |message| message));
}

#[divan::bench]
fn with_a_wrong_authenticator(bencher: Bencher<'_, '_>) {
    judge(bencher, &request(MOBILE, wrongly_signed));
}
