//! Our packets, read by programs of others: HIP by tshark, ESP by Scapy, which seals for us, too.

use crate::common::{Network, address, with_server};
use outlast_base::time::Duration;
use outlast_hip::keymat::EspKeys;
use outlast_hip::suite::{EspCipher, EspSuite};
use outlast_hip::{Protocol, Transmit};
use outlast_wire::hip::{EspInfo, LocatorSet, Message, from_address, kind, u32_list};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::IpAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use zeroize::Zeroizing;

/// Packets that begin with their IP header.
const LINK_TYPE_RAW: u32 = 101;

/// A protocol of whose contents Scapy makes nothing (RFC 3692).
const EXPERIMENT: u8 = 253;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
    digits.map(|pair| byte(pair).expect("digits")).collect()
}

/// A packet with its IP header, whose checksum nobody looks at.
fn with_header(packet: &Transmit) -> Vec<u8> {
    let length = packet.payload.len() as u16;
    let mut whole = Vec::new();
    match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            whole.extend_from_slice(&[0x45, 0]);
            whole.extend_from_slice(&(20 + length).to_be_bytes());
            whole.extend_from_slice(&[0, 0, 0, 0, 64, 139, 0, 0]);
            whole.extend_from_slice(&source.octets());
            whole.extend_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            whole.extend_from_slice(&[0x60, 0, 0, 0]);
            whole.extend_from_slice(&length.to_be_bytes());
            whole.extend_from_slice(&[139, 64]);
            whole.extend_from_slice(&source.octets());
            whole.extend_from_slice(&destination.octets());
        }
        _ => unreachable!("one family"),
    }
    whole.extend_from_slice(&packet.payload);
    whole
}

/// A capture file of these packets.
fn capture(packets: &[&Transmit]) -> Vec<u8> {
    let mut file = Vec::new();
    let header = [0xa1b2_c3d4, 0x0002_0004, 0, 0, 0xffff, LINK_TYPE_RAW];
    // The version's halves are numbers of 16 bits each.
    let header = header.map(|word: u32| match word {
        0x0002_0004 => word.rotate_left(16),
        _ => word,
    });
    file.extend(header.iter().flat_map(|word| word.to_le_bytes()));
    for (number, packet) in packets.iter().enumerate() {
        let whole = with_header(packet);
        let length = whole.len() as u32;
        let record = [number as u32, 0, length, length];
        file.extend(record.iter().flat_map(|word| word.to_le_bytes()));
        file.extend_from_slice(&whole);
    }
    file
}

/// What tshark is to print of a packet: one field after the other.
const FIELDS: [&str; 10] = [
    "hip.packet_type",
    "hip.checksum.status",
    "hip.hit_sndr",
    "hip.hit_rcvr",
    "hip.type",
    "hip.tlv_seq_update_id",
    "hip.tlv_ack_updid",
    "hip.tlv_esp_info_new_spi",
    "hip.tlv.locator_address",
    "hip.tlv_from_address",
];

fn joined(values: impl IntoIterator<Item = String>) -> String {
    values.into_iter().collect::<Vec<_>>().join(",")
}

/// As tshark shows addresses of both families.
fn mapped(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_string(),
        IpAddr::V6(address) => address.to_string(),
    }
}

/// What tshark has to print of a packet.
fn expected(packet: &Transmit) -> String {
    let message = Message::parse(&packet.payload).expect("our own");
    let numbers = |kind| {
        let found = message.find(kind).map(|found| found.contents);
        let numbers = found.and_then(u32_list).unwrap_or_default();
        joined(numbers.iter().map(|number| format!("0x{number:08x}")))
    };
    let info = message.find(kind::ESP_INFO).map(|info| {
        let info = EspInfo::parse(info.contents).expect("our own");
        format!("0x{:08x}", info.new_spi)
    });
    let locators = message.find(kind::LOCATOR_SET).map(|set| {
        let set = LocatorSet::parse(set.contents).expect("our own");
        // Each is shown twice.
        let addresses = set.0.iter().flat_map(|locator| [locator.address; 2]);
        joined(addresses.map(mapped))
    });
    let from = message.find(kind::FROM);
    let from = from.and_then(|from| from_address(from.contents));
    let fields: [String; FIELDS.len()] = [
        message.kind().number().to_string(),
        // Good.
        "1".to_owned(),
        hex(&message.sender().0),
        hex(&message.receiver().0),
        joined(message.parameters().map(|one| one.kind.to_string())),
        numbers(kind::SEQ),
        numbers(kind::ACK),
        info.unwrap_or_default(),
        locators.unwrap_or_default(),
        from.map(mapped).unwrap_or_default(),
    ];
    fields.join(" ")
}

/// Everything that two hosts and a rendezvous server say: both meet, move to another family and back, and part.
fn conversation() -> Network {
    let mut network = with_server(1);
    network.assert_data_flows(0, 1);
    let both = |last: u8| {
        let [v4, v6] = [
            format!("198.51.100.{last}"),
            format!("2001:db8:5::{last:x}"),
        ];
        [address(&v4), address(&v6)]
    };
    network.move_to(0, &both(7));
    network.run(Duration::from_secs(2));
    network.move_to(1, &both(8));
    network.run(Duration::from_secs(2));
    network.move_to(0, &both(9)[1..]);
    network.run(Duration::from_secs(2));
    network.assert_data_flows(0, 1);
    let (now, peer) = (network.now, network.hit(1));
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    network.run(Duration::from_secs(2));
    network
}

/// tshark finds the checksum good, and the same tags, parameters and values as were meant, in every packet.
#[test]
fn tshark_reads_what_was_meant() {
    let network = conversation();
    let sent = network.sent.iter().map(|(_, _, packet)| packet);
    let mut packets: Vec<&Transmit> = sent
        .filter(|packet| packet.protocol == Protocol::Hip)
        .collect();
    let mut altered = packets[0].clone();
    altered.payload[39] ^= 1;
    packets.push(&altered);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("sent.pcap");
    std::fs::write(&path, capture(&packets)).expect("a file");
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields", "-E", "separator=/s", "-r"]);
    tshark.arg(&path);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = tshark.output() else {
        return outlast_skip::skip("tshark is not installed");
    };
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{said}");
    let read: Vec<&str> = said.lines().collect();
    assert_eq!(read.len(), packets.len());
    let (control, read) = read.split_last().expect("the altered one");
    assert_eq!(control.split(' ').nth(1), Some("0"), "{control}");
    for (read, packet) in read.iter().zip(&packets) {
        assert_eq!(*read, expected(packet));
    }
    let kinds: BTreeSet<&str> = read
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let all = ["1", "16", "18", "19", "2", "3", "4"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}

/// Scapy with the script beside this file.
struct Scapy {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Scapy {
    /// `None`, with the reason said, where it is not installed.
    fn start() -> Option<Self> {
        // Debian's, which does not depend on an environment.
        const PYTHON: &str = "/usr/bin/python3";
        let has_it = Command::new(PYTHON)
            .args(["-c", "import scapy.layers.ipsec, cryptography"])
            .output()
            .is_ok_and(|output| output.status.success());
        if !has_it {
            outlast_skip::skip("python3-scapy and python3-cryptography are not installed");
            return None;
        }
        let mut program = Command::new(PYTHON)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judge_esp.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        Some(Self {
            requests: program.stdin.take().expect("piped"),
            answers: BufReader::new(program.stdout.take().expect("piped")),
            program,
        })
    }

    /// Has it `seal` or `open` a packet; what it says if it refuses.
    fn ask(
        &mut self,
        act: &str,
        (suite, keys): (EspSuite, &EspKeys),
        (spi, sequence): (u32, u64),
        packet: &[u8],
    ) -> Result<Vec<u8>, String> {
        let cipher = match suite {
            EspSuite::Aes128Gcm => "AES-GCM",
            EspSuite::Aes128CbcSha256 | EspSuite::Aes256CbcSha256 => "AES-CBC",
            EspSuite::NullSha256 => "NULL",
        };
        let (key, check_key) = (hex(&keys.encryption), hex(&keys.authentication));
        let packet = hex(packet);
        writeln!(
            self.requests,
            "{act} {cipher} -{key} -{check_key} {spi} {sequence} {packet}"
        )
        .expect("it listens");
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer).expect("a pipe");
        assert_ne!(length, 0, "it has ended");
        match answer.trim() {
            refusal if refusal.starts_with("refused") => Err(refusal.to_owned()),
            digits => Ok(bytes(digits)),
        }
    }
}

impl Drop for Scapy {
    fn drop(&mut self) {
        self.program.kill().expect("it is ours");
        self.program.wait().expect("it ends");
    }
}

/// With every suite and numbers of more than 32 bits, Scapy opens what we seal and we what it seals, and neither
/// opens it under another upper half of the number.
#[test]
fn scapy_opens_our_esp_and_we_open_scapy_s() {
    let Some(mut scapy) = Scapy::start() else {
        return;
    };
    let mut random = <chacha20::ChaCha20Rng as rand_core::SeedableRng>::from_seed([1; 32]);
    let numbers = prop_oneof![1..4_u64, (1_u64 << 32) - 2..(1 << 32) + 3, 1..u64::MAX >> 1];
    let secrets = (any::<[u8; 36]>(), any::<[u8; 32]>(), 256..u32::MAX, numbers);
    let payload = proptest::collection::vec(any::<u8>(), 1..100);
    let cases = (
        proptest::sample::select(&EspSuite::ALL[..]),
        secrets,
        payload,
    );
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    for _ in 0..96 {
        let tree = cases.new_tree(&mut runner).expect("a case");
        let (suite, (key, check_key, spi, sequence), payload) = tree.current();
        let (encryption, authentication) = suite.key_lens();
        let keys = EspKeys {
            encryption: Zeroizing::new(key[..encryption].to_vec()),
            authentication: Zeroizing::new(check_key[..authentication].to_vec()),
        };
        let cipher = EspCipher::new(suite, &keys).expect("keys of this suite");
        let with = (suite, &keys);
        let ours = cipher.seal(spi, sequence, (EXPERIMENT, &payload), &mut random);
        let ours = ours.expect("it is short");
        let opened = scapy.ask("open", with, (spi, sequence), &ours);
        assert_eq!(opened, Ok(payload.clone()), "{suite:?} {sequence}");
        let other = sequence ^ 1 << 32;
        let refused = scapy.ask("open", with, (spi, other), &ours);
        assert!(refused.is_err(), "{suite:?} {sequence}: {refused:?}");
        let theirs = scapy.ask("seal", with, (spi, sequence), &payload);
        let theirs = theirs.expect("it seals");
        let opened = cipher.open(sequence, &theirs);
        assert_eq!(opened, Some((EXPERIMENT, payload)), "{suite:?} {sequence}");
        assert_eq!(cipher.open(other, &theirs), None, "{suite:?} {sequence}");
    }
}
