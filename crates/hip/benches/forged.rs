//! Costs of forged and recorded packets other than an I2 (`forged_i2`). The baseline is the host's work for a datagram that
//! a peer has sealed.

#[path = "../tests/hip/common/mod.rs"]
mod common;

use common::{Network, address, identity};
use divan::{Bencher, black_box};
use outlast_base::time::{Duration, Instant};
use outlast_hip::group::Group;
use outlast_hip::{Config, Host, Protocol, Refusal, Transmit};
use outlast_wire::hip::{Builder, Message, Notification, PacketType, Signature, kind};
use std::net::IpAddr;

const SECOND: Duration = Duration::from_secs(1);

fn main() {
    divan::main();
}

/// Two hosts with an association; node 0 has moved once.
fn network() -> Network {
    let configs = [Config::default(), Config::default()];
    let mut network = Network::pair_of(1, [identity(1), identity(2)], configs);
    network.assert_data_flows_after_meeting(0, 1);
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(SECOND);
    network
}

fn hand(host: &mut Host, now: Instant, packet: &Transmit) {
    let path = (packet.source, packet.destination);
    host.handle_packet(now, path, packet.protocol, &packet.payload);
}

/// Takes everything that the host wants to be done.
fn drain(host: &mut Host) {
    while host.poll_transmit().is_some() {}
    while host.poll_event().is_some() {}
    while host.poll_delivery().is_some() {}
}

/// Passing of time between two packets.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// As many as fit: all but the first ones are beyond the host's limits.
    Flood,
    /// Slow enough that each has all the work done.
    Allowed,
}

impl Pace {
    const ALL: [Self; 2] = [Self::Flood, Self::Allowed];

    const fn step(self) -> Duration {
        match self {
            Self::Flood => Duration::ZERO,
            Self::Allowed => Duration::from_millis(60),
        }
    }
}

#[divan::bench(args = Pace::ALL, sample_size = 32)]
fn i1(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = network();
    let mut builder = Builder::new(PacketType::I1, network.hit(0), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, &[Group::P256.number()]);
    let (source, destination) = (address("203.0.113.66"), network.nodes[1].addresses[0]);
    let packet = sent(builder, source, destination);
    repeat(bencher, &mut network, &packet, pace);
}

/// A packet of node 0 that node 1 has had once.
fn recorded(network: &mut Network, wanted: PacketType) -> Transmit {
    if wanted == PacketType::Close {
        let (now, peer) = (network.now, network.hit(1));
        network.nodes[0].host.close(now, peer);
        network.drain(0);
        network.run(SECOND);
    }
    let of_mobile = network.sent.iter().filter(|(_, node, _)| *node == 0);
    let mut packets = of_mobile.map(|(_, _, packet)| packet);
    let found = packets.rfind(|packet| {
        packet.protocol == Protocol::Hip
            && Message::parse(&packet.payload).is_ok_and(|message| {
                let has_number = message.find(kind::SEQ).is_some();
                message.kind() == wanted && has_number == (wanted == PacketType::Update)
            })
    });
    found.expect("it was sent").clone()
}

#[divan::bench(args = Pace::ALL)]
fn recorded_update(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = network();
    let packet = recorded(&mut network, PacketType::Update);
    repeat(bencher, &mut network, &packet, pace);
}

#[divan::bench(args = Pace::ALL)]
fn recorded_close(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = network();
    let packet = recorded(&mut network, PacketType::Close);
    repeat(bencher, &mut network, &packet, pace);
}

#[divan::bench(args = Pace::ALL)]
fn update_with_a_wrong_mac(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = network();
    let mut packet = recorded(&mut network, PacketType::Update);
    let message = Message::parse(&packet.payload).expect("our own");
    let mac = message.find(kind::HIP_MAC).expect("an UPDATE has one");
    let mac = mac.contents.to_vec();
    let mut windows = packet.payload.windows(mac.len());
    let at = windows
        .position(|bytes| bytes == mac)
        .expect("it is in there");
    packet.payload[at] ^= 1;
    Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
    let before = network.nodes[1].host.counters().refused(Refusal::Mac);
    repeat(bencher, &mut network, &packet, pace);
    assert!(network.nodes[1].host.counters().refused(Refusal::Mac) > before);
}

/// Two hosts, the first of which has sent a packet of this kind; nothing more is delivered.
fn waiting(until: PacketType) -> Network {
    let configs = [Config::default(), Config::default()];
    let mut network = Network::pair_of(1, [identity(1), identity(2)], configs);
    network.filter = Box::new(move |packet| {
        Message::parse(&packet.payload).is_ok_and(|message| message.kind() != until)
    });
    network.connect(0, 1);
    network.run(SECOND / 4);
    network
}

/// The packet with another last byte of this parameter.
fn altered(packet: &Transmit, parameter: u16) -> Transmit {
    let mut packet = packet.clone();
    let message = Message::parse(&packet.payload).expect("our own");
    let found = message.find(parameter).expect("it has one");
    let at = found.offset + 4 + found.contents.len() - 1;
    packet.payload[at] ^= 1;
    Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
    packet
}

fn last_sent(network: &Network, node: usize) -> Transmit {
    let sent = network.sent.iter().rfind(|(_, from, _)| *from == node);
    sent.expect("it was sent").2.clone()
}

/// An R1 with a wrong signature, from an address that was called.
#[divan::bench(args = Pace::ALL, sample_size = 32)]
fn r1(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = waiting(PacketType::R1);
    let packet = altered(&last_sent(&network, 1), kind::HIP_SIGNATURE_2);
    repeat_at(bencher, &mut network, 0, &packet, pace);
    assert!(network.nodes[0].host.counters().refused(Refusal::Signature) > 0);
}

#[divan::bench(args = Pace::ALL)]
fn r2_with_a_wrong_mac(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = waiting(PacketType::R2);
    let packet = altered(&last_sent(&network, 1), kind::HIP_MAC_2);
    repeat_at(bencher, &mut network, 0, &packet, pace);
    assert!(network.nodes[0].host.counters().refused(Refusal::Mac) > 0);
}

/// A NOTIFY with a wrong signature, from the address that the I2 has gone to.
#[divan::bench(args = Pace::ALL, sample_size = 32)]
fn notify(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = waiting(PacketType::I2);
    let mut builder = Builder::new(PacketType::Notify, network.hit(1), network.hit(0));
    let notice = Notification {
        notice: 44,
        data: &[],
    };
    builder.push_with(kind::NOTIFICATION, |out| notice.write(out));
    let signature = Signature {
        algorithm: 7,
        signature: &[7; 64],
    };
    builder.push_with(kind::HIP_SIGNATURE, |out| signature.write(out));
    let [destination, source] = [0, 1].map(|node| network.nodes[node].addresses[0]);
    let packet = sent(builder, source, destination);
    repeat_at(bencher, &mut network, 0, &packet, pace);
    assert!(network.nodes[0].host.counters().refused(Refusal::Signature) > 0);
}

/// The packet of `builder`, on its way between these addresses.
fn sent(builder: Builder, source: IpAddr, destination: IpAddr) -> Transmit {
    let mut payload = builder.finish().expect("it is short");
    Builder::set_checksum(&mut payload, source, destination);
    Transmit {
        source,
        destination,
        protocol: Protocol::Hip,
        payload,
    }
}

#[divan::bench(args = Pace::ALL)]
fn close_ack_with_a_wrong_mac(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = network();
    network.filter = Box::new(|packet| {
        Message::parse(&packet.payload).is_ok_and(|message| message.kind() != PacketType::CloseAck)
    });
    let (now, peer) = (network.now, network.hit(1));
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    network.run(SECOND / 4);
    let packet = altered(&last_sent(&network, 1), kind::HIP_MAC);
    repeat_at(bencher, &mut network, 0, &packet, pace);
    assert!(network.nodes[0].host.counters().refused(Refusal::Mac) > 0);
}

/// An I1 for a client of a rendezvous server.
#[divan::bench(args = Pace::ALL, sample_size = 32)]
fn relayed_i1(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = common::with_server(1);
    let mut builder = Builder::new(PacketType::I1, identity(9).hit(), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, &[Group::P256.number()]);
    let (source, destination) = (address("203.0.113.66"), network.nodes[2].addresses[0]);
    let packet = sent(builder, source, destination);
    repeat_at(bencher, &mut network, 2, &packet, pace);
    assert!(network.nodes[2].host.counters().forwarded > 0);
}

/// An UPDATE for a client of a rendezvous server, in the name of the client's peer.
#[divan::bench(args = Pace::ALL, sample_size = 32)]
fn relayed_update(bencher: Bencher<'_, '_>, pace: Pace) {
    let mut network = common::with_server(1);
    let mut builder = Builder::new(PacketType::Update, network.hit(0), network.hit(1));
    builder.push(kind::SEQ, &7_u32.to_be_bytes());
    builder.push(kind::HIP_MAC, &[0; 32]);
    let (source, destination) = (address("203.0.113.66"), network.nodes[2].addresses[0]);
    let packet = sent(builder, source, destination);
    repeat_at(bencher, &mut network, 2, &packet, pace);
    assert!(network.nodes[2].host.counters().forwarded > 0);
}

/// Gives node 1 the packet again and again.
fn repeat(bencher: Bencher<'_, '_>, network: &mut Network, packet: &Transmit, pace: Pace) {
    repeat_at(bencher, network, 1, packet, pace);
}

/// Gives a node the packet again and again.
fn repeat_at(
    bencher: Bencher<'_, '_>,
    network: &mut Network,
    node: usize,
    packet: &Transmit,
    pace: Pace,
) {
    let mut now = network.now;
    let host = &mut network.nodes[node].host;
    bencher.bench_local(|| {
        now += pace.step();
        hand(host, now, black_box(packet));
        drain(host);
    });
}

/// A sealed datagram of 1,340 bytes.
#[derive(Clone, Copy, Debug)]
enum Esp {
    /// The baseline: it is opened and delivered.
    Sealed,
    /// It was opened before.
    Recorded,
    /// Its sequence number is new, and its tag is wrong.
    Forged,
    UnknownSpi,
}

#[divan::bench(args = [Esp::Sealed, Esp::Recorded, Esp::Forged, Esp::UnknownSpi])]
fn esp(bencher: Bencher<'_, '_>, kind: Esp) {
    let mut network = network();
    let inner = common::inner(network.hit(0), network.hit(1), &[7; 1_300]);
    let now = network.now;
    let (mobile, fixed) = network.nodes.split_at_mut(1);
    let (mobile, fixed) = (&mut mobile[0].host, &mut fixed[0].host);
    let mut seal = || {
        mobile.handle_data(now, &inner);
        mobile.poll_transmit().expect("it is sealed")
    };
    let mut template = seal();
    if let Esp::Recorded = kind {
        hand(fixed, now, &template);
        drain(fixed);
    }
    match kind {
        Esp::Sealed | Esp::Recorded => {}
        Esp::Forged => *template.payload.last_mut().expect("a tag") ^= 1,
        Esp::UnknownSpi => template.payload[0] ^= 0xff,
    }
    let before = fixed.counters().opened;
    let packets = || match kind {
        Esp::Sealed => seal(),
        _ => template.clone(),
    };
    bencher.with_inputs(packets).bench_local_values(|packet| {
        hand(fixed, now, black_box(&packet));
        drain(fixed);
    });
    let is_opened = fixed.counters().opened > before;
    assert_eq!(is_opened, matches!(kind, Esp::Sealed), "{kind:?}");
}
