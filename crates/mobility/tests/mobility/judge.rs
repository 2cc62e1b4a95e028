//! What the machines send, judged by programs that know nothing of them: tshark reads every message,
//! Python's `hmac` checks every authenticator.

#![expect(clippy::print_stderr, reason = "a skipped test names what is missing")]

use crate::network::{HOME, Network, Setup, association, home_address, ms};
use outlast_base::time::{Duration, Instant};
use outlast_mobility::Detection;
use outlast_wire::Packet;
use outlast_wire::mobile_ip::{PORT, RegistrationReply, RegistrationRequest, SecuredPair};
use outlast_wire::pcapng::{Encoder, EnhancedPacket, Section};
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// Hand-offs, a home-coming, a wrong clock, a wrong key, and a tunnel in UDP.
fn traffic() -> Vec<(Instant, Packet)> {
    let setup = || Setup {
        detection: Detection::Eager,
        ..Setup::default()
    };
    let mut network = Network::new(setup()).with_mobile(|config| {
        config.clock.set(Instant::ZERO, 0x1234_0000_0000);
    });
    for cells in [[1].as_slice(), &[2], &[HOME], &[1]] {
        network.place(0, cells);
        network.run(ms(5_000));
        network.reaches(0);
        network.send_outgoing(0);
        network.run(ms(500));
    }
    let mut all = core::mem::take(&mut network.posted);
    let mut network = Network::new(setup());
    network.co_locate(0, Some((Ipv4Addr::new(10, 50, 0, 7), true)));
    network.run(ms(2_000));
    network.reaches(0);
    network.send_outgoing(0);
    network.run(ms(500));
    all.extend(core::mem::take(&mut network.posted));
    let mut network = Network::new(setup()).with_mobile(|config| config.home = association(9));
    network.place(0, &[1]);
    network.run(ms(2_000));
    all.extend(core::mem::take(&mut network.posted));
    all
}

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
        .args([
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "udp.check_checksum:TRUE",
        ])
        .args(["-Y", filter, "-r"])
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

fn payloads(packets: &[(Instant, Packet)]) -> impl Iterator<Item = &[u8]> {
    packets.iter().filter_map(|(_, packet)| {
        let outlast_wire::Transport::Udp(udp) = packet.header().transport else {
            return None;
        };
        [udp.source_port, udp.destination_port]
            .contains(&PORT)
            .then(|| packet.payload())?
    })
}

#[test]
fn tshark_reads_every_message_without_complaint() {
    let packets = traffic();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("mobile-ip.pcapng");
    write(&packets, &file);
    let complaint = "_ws.malformed || _ws.expert.severity >= \"Warning\" || ip.checksum.status == 0 || \
                     udp.checksum.status == 0 || icmp.checksum.status == 0";
    let Some(complaints) = tshark(&file, complaint) else {
        return;
    };
    assert_eq!(complaints, 0);
    let of_type = |kind| {
        payloads(&packets)
            .filter(|payload| payload[0] == kind)
            .count()
    };
    for kind in [1, 3, 4] {
        let read = tshark(&file, &format!("mip.type == {kind}"));
        assert_eq!(read, Some(of_type(kind)), "type {kind}");
        assert!(read > Some(0), "type {kind}");
    }
    for filter in ["icmp.type == 9 && icmp.mip.type == 16", "icmp.type == 10"] {
        assert!(tshark(&file, filter) > Some(0), "{filter}");
    }
    for code in [0, 131, 133] {
        let filter = format!("mip.code == {code}");
        assert!(tshark(&file, &filter) > Some(0), "{filter}");
    }
    assert!(tshark(&file, "ip.proto == 4") > Some(0), "tunnels");
}

#[test]
fn python_computes_the_same_authenticators() {
    const SCRIPT: &str = "import hmac, sys\n\
        for line in sys.argv[1:]:\n \
         key, covered, authenticator = map(bytes.fromhex, line.split(','))\n \
         assert hmac.new(key, covered, 'md5').digest() == authenticator, line\n\
        print(len(sys.argv) - 1)";
    let packets = traffic();
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let mut lines = Vec::new();
    for payload in payloads(&packets) {
        let request =
            RegistrationRequest::parse(payload).map(|(one, rest)| (one.home_address, rest));
        let reply = RegistrationReply::parse(payload).map(|(one, rest)| (one.home_address, rest));
        let Ok((home, extensions)) = request.or(reply) else {
            continue;
        };
        assert_eq!(home, home_address(0));
        if let Some(one) = extensions.only_authentication(SecuredPair::MobileHome) {
            lines.push((hex(one.covered), hex(one.authenticator)));
        }
    }
    // The last of the networks has a mobile node with another key, whose requests nobody accepts.
    let own = hex(&0_u128.to_be_bytes());
    let other = hex(&9_u128.to_be_bytes());
    // They are refused with code 131 by the home agent's own key (RFC 5944, section 3.8.3.3).
    let is_reply_131 = |covered: &str| covered.starts_with("0383");
    let foreign = lines
        .iter()
        .rev()
        .take_while(|(covered, _)| covered.starts_with("01") || is_reply_131(covered))
        .count();
    let whole = lines.len() - foreign;
    let keys = lines.iter().enumerate().map(|(number, (covered, _))| {
        let is_homes = number < whole || is_reply_131(covered);
        if is_homes { &own } else { &other }
    });
    let arguments = lines
        .iter()
        .zip(keys)
        .map(|((c, a), key)| format!("{key},{c},{a}"));
    let output = Command::new("python3")
        .args(["-c", SCRIPT])
        .args(arguments)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: python3 is not installed");
            return;
        }
        output => output.expect("python3 can be started"),
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(lines.len() > 20, "{}", lines.len());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        lines.len().to_string()
    );
}
