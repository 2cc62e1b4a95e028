//! What the machines of Mobile IPv6 send, judged by programs that know nothing of them: tshark reads every
//! message, Python's `hmac` checks every authenticator between mobile node and home agent.

#![expect(clippy::print_stderr, reason = "a skipped test names what is missing")]

use crate::network_v6::{Network, Setup, association, home_address, ms};
use core::net::{IpAddr, Ipv6Addr};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{Message, take_home_address, take_routing_header};
use outlast_wire::pcapng::{Encoder, EnhancedPacket, Section};
use outlast_wire::{Packet, Transport};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Moves, tests, a home-coming, a wrong clock, a correspondent that has started anew, and a wrong key.
fn traffic() -> [Vec<(Instant, Packet)>; 2] {
    let setup = Setup {
        route_optimization: true,
        ..Setup::default()
    };
    let mut network = Network::new(setup)
        .with_mobiles(|config| config.clock.set(Instant::ZERO, 0x1234_0000_0000));
    for cell in [1, 2, 0, 1] {
        network.place(0, Some(cell));
        for _ in 0..2 {
            network.run(ms(1_500));
            let _ = (network.reaches(0), network.is_heard(0, 0));
        }
    }
    network.start_correspondent(0);
    let _ = network.is_heard(0, 0);
    network.run(ms(1_500));
    let first = core::mem::take(&mut network.posted);
    let mut network = Network::new(setup).with_mobiles(|config| config.home = association(KEYS[1]));
    network.place(0, Some(1));
    network.run(ms(500));
    [first, core::mem::take(&mut network.posted)]
}

/// What the mobile nodes of both networks sign with.
const KEYS: [u128; 2] = [0, 9];

fn write(packets: &[(Instant, Packet)], file: &Path) {
    let mut encoder = Encoder::new(&Section::default());
    let interface = encoder.interface("all links");
    for (at, packet) in packets {
        let time = Duration::from_nanos(at.as_nanos());
        encoder.packet(&EnhancedPacket::new(interface, time, &packet.to_bytes()));
    }
    std::fs::write(file, encoder.take()).expect("it can be written");
}

/// How many packets in `file` match `filter`; `None` without tshark.
fn tshark(file: &Path, filter: &str) -> Option<usize> {
    let output = Command::new("tshark")
        .args(["-o", "udp.check_checksum:TRUE", "-Y", filter, "-r"])
        .arg(file)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: tshark is not installed");
            return None;
        }
        output => output.expect("tshark can be started"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8_lossy(&output.stdout).lines().count())
}

/// The packet without its headers of Mobile IPv6, and its care-of address.
fn inner(packet: &Packet) -> (Packet, IpAddr) {
    let ip = packet.header().ip;
    match (take_home_address(packet), take_routing_header(packet)) {
        (Some(inner), _) => (inner, ip.source),
        (_, Some(inner)) => (inner, ip.destination),
        _ => (packet.clone(), ip.source),
    }
}

/// The messages: their packets' addresses, the care-of address, and their bytes.
fn messages(packets: &[(Instant, Packet)]) -> Vec<(Ipv6Addr, Ipv6Addr, IpAddr, Vec<u8>)> {
    let mut found = Vec::new();
    for (_, packet) in packets {
        let (packet, care_of) = inner(packet);
        let ip = packet.header().ip;
        if let (Transport::Other { protocol: 135, .. }, IpAddr::V6(from), IpAddr::V6(to)) =
            (&packet.header().transport, ip.source, ip.destination)
        {
            let bytes = packet.payload().expect("it has bytes").to_vec();
            found.push((from, to, care_of, bytes));
        }
    }
    found
}

#[test]
fn tshark_reads_every_message_without_complaint() {
    let packets = traffic().concat();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("mobile-ipv6.pcapng");
    write(&packets, &file);
    let complaint =
        "_ws.malformed || _ws.expert.severity >= \"Warning\" || udp.checksum.status == 0";
    let Some(complaints) = tshark(&file, complaint) else {
        return;
    };
    assert_eq!(complaints, 0);
    // Those in tunnels are found, too: tests of the home address.
    let of_type = |kind: u8| {
        let all = messages(&packets);
        all.iter().filter(|(.., bytes)| bytes[2] == kind).count()
    };
    for kind in [2, 4, 5, 6, 7] {
        let read = tshark(&file, &format!("mip6.mhtype == {kind}"));
        assert_eq!(read, Some(of_type(kind)), "type {kind}");
        assert!(read > Some(0), "type {kind}");
    }
    for filter in [
        "mip6.mhtype == 1",
        "mip6.mhtype == 3",
        "mip6.bu.h_flag == 1 && ipv6.opt.mipv6.home_address == 2001:db8:1:0:1::",
        "mip6.ba.status == 0 && ipv6.routing.mipv6.home_address == 2001:db8:1:0:1::",
        "mip6.ba.status == 144",
        "mip6.ba.status == 146",
        "mip6.be.status == 1",
        "mip6.auth.mobility_spi == 256 && mip6.mseg_id.timestamp",
        "mip6.bad.auth && mip6.ni.hni",
        "ipv6.nxt == 41",
    ] {
        assert!(tshark(&file, filter) > Some(0), "{filter}");
    }
}

/// What each authenticator between mobile node and home agent covers, and that itself.
fn authenticators(packets: &[(Instant, Packet)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for (from, to, care_of, bytes) in messages(packets) {
        let (_, options) = Message::parse(from, to, &bytes).expect("sound");
        let Some(one) = options.authentication() else {
            continue;
        };
        // At home the care-of address is the home address.
        let care_of = match care_of {
            IpAddr::V6(care_of) if care_of.segments()[2] == 2 => care_of,
            _ => home_address(0),
        };
        let [head, checksum, tail] = one.covered.parts();
        let octets = [care_of.octets(), home_address(0).octets()].concat();
        let covered = [&octets[..], head, checksum, tail].concat();
        found.push((covered, one.authenticator.to_vec()));
    }
    found
}

#[test]
fn python_computes_the_same_authenticators() {
    const SCRIPT: &str = "import hmac, sys\n\
        for line in sys.argv[1:]:\n \
         key, covered, authenticator = map(bytes.fromhex, line.split(','))\n \
         assert hmac.new(key, covered, 'sha1').digest()[:12] == authenticator, line\n\
        print(len(sys.argv) - 1)";
    let hex = |bytes: &[u8]| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let mut arguments = Vec::new();
    for (packets, key) in traffic().iter().zip(KEYS) {
        for (covered, authenticator) in authenticators(packets) {
            let key = hex(&key.to_be_bytes());
            arguments.push(format!("{key},{},{}", hex(&covered), hex(&authenticator)));
        }
    }
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .args(&arguments)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: python3 is not installed");
            return;
        }
        output => output.expect("python3 can be started"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(arguments.len() > 8, "{}", arguments.len());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        arguments.len().to_string()
    );
}
