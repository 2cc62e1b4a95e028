//! Two base exchanges that another implementation has recorded, with their secrets.
//!
//! `vectors/*.pcap` hold HIP between two hosts of cutehip; the JSON beside each has the shared
//! secret, the puzzle's numbers and the keying material. Where that implementation departs from
//! RFC 7401 (order of the tags in the puzzle, keys of the MACs in I2 and R2, the parameter of R2's
//! signature, ESP's check value), nothing is compared.

use outlast_hip::group::{Group, KeyPair};
use outlast_hip::identity::PublicIdentity;
use outlast_hip::keymat::Keymat;
use outlast_hip::rhash::Rhash;
use outlast_hip::suite::{EspCipher, EspSuite};
use outlast_hip::{cipher::HipCipher, keymat::EspKeys};
use outlast_wire::hip::{
    DiffieHellman, EspInfo, Hit, HostId, Message, PacketType, Parameters, Puzzle, Signature, kind,
};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use zeroize::Zeroizing;

/// Reads hexadecimal digits.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// The HIP packets of a capture of Ethernet frames, with their addresses.
fn packets(capture: &[u8]) -> Vec<(IpAddr, IpAddr, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = &capture[24..];
    while rest.len() >= 16 {
        let length =
            u32::from_le_bytes(rest[8..12].try_into().expect("what the test set up")) as usize;
        let frame = &rest[16..16 + length];
        rest = &rest[16 + length..];
        let ip = &frame[14..];
        if frame[12..14] == [8, 0] && ip[9] == 139 {
            let address = |at: usize| {
                let octets: [u8; 4] = ip[at..at + 4].try_into().expect("what the test set up");
                IpAddr::V4(Ipv4Addr::from(octets))
            };
            let end = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            let start = usize::from(ip[0] & 15) * 4;
            found.push((address(12), address(16), ip[start..end].to_vec()));
        }
    }
    found
}

/// One recorded exchange.
struct Recorded {
    packets: Vec<(IpAddr, IpAddr, Vec<u8>)>,
    facts: Value,
    rhash: Rhash,
    group: Group,
    cipher: HipCipher,
    suite: EspSuite,
}

impl Recorded {
    fn both() -> [Self; 2] {
        [
            Self {
                packets: packets(include_bytes!("vectors/bex-rsa2048-p384-aes256.pcap")),
                facts: serde_json::from_str(include_str!("vectors/bex-rsa2048-p384-aes256.json"))
                    .expect("what the test set up"),
                rhash: Rhash::Sha256,
                group: Group::P384,
                cipher: HipCipher::Aes256Cbc,
                suite: EspSuite::Aes256CbcSha256,
            },
            Self {
                packets: packets(include_bytes!("vectors/bex-ecdsa-p384-dh-p256-aes128.pcap")),
                facts: serde_json::from_str(include_str!(
                    "vectors/bex-ecdsa-p384-dh-p256-aes128.json"
                ))
                .expect("what the test set up"),
                rhash: Rhash::Sha384,
                group: Group::P256,
                cipher: HipCipher::Aes128Cbc,
                suite: EspSuite::Aes128CbcSha256,
            },
        ]
    }

    fn secret(&self, name: &str) -> Vec<u8> {
        bytes(
            self.facts["secrets"][name]
                .as_str()
                .expect("what the test set up"),
        )
    }

    fn message(&self, kind: PacketType) -> Message<'_> {
        let mut parsed = self
            .packets
            .iter()
            .map(|(_, _, packet)| Message::parse(packet).expect("what the test set up"));
        parsed
            .find(|message| message.kind() == kind)
            .expect("what the test set up")
    }

    fn identity(contents: &[u8]) -> PublicIdentity {
        let host = HostId::parse(contents).expect("what the test set up");
        PublicIdentity::decode(host.algorithm, host.identity).expect("what the test set up")
    }

    fn responder(&self) -> PublicIdentity {
        Self::identity(
            self.message(PacketType::R1)
                .find(kind::HOST_ID)
                .expect("what the test set up")
                .contents,
        )
    }

    fn keymat(&self) -> Keymat {
        let i1 = self.message(PacketType::I1);
        let secret = Zeroizing::new(self.secret("Kij"));
        let hosts = [i1.sender(), i1.receiver()];
        Keymat::new(
            self.rhash,
            secret,
            &self.secret("I"),
            &self.secret("J"),
            hosts,
        )
    }

    /// The Initiator's identity, from I2's ENCRYPTED.
    fn initiator(&self) -> PublicIdentity {
        let i2 = self.message(PacketType::I2);
        if let Some(host) = i2.find(kind::HOST_ID) {
            return Self::identity(host.contents);
        }
        let keys = self
            .keymat()
            .hip_keys(self.cipher, i2.sender(), i2.receiver())
            .expect("what the test set up");
        let sealed = i2
            .find(kind::ENCRYPTED)
            .expect("what the test set up")
            .contents;
        let plain = self
            .cipher
            .open(&keys.own.encryption, sealed)
            .expect("what the test set up");
        let host = Parameters::new(&plain, 0)
            .next()
            .expect("what the test set up")
            .expect("a host identity");
        Self::identity(host.contents)
    }
}

#[test]
fn checksums_and_parameters_are_read() {
    for recorded in Recorded::both() {
        assert!(recorded.packets.len() >= 8);
        for (source, destination, packet) in &recorded.packets {
            assert!(
                Message::parse(packet)
                    .expect("what the test set up")
                    .checksum_ok(*source, *destination)
            );
        }
    }
}

#[test]
fn tags_fit_the_identities() {
    for recorded in Recorded::both() {
        let i1 = recorded.message(PacketType::I1);
        assert_eq!(recorded.responder().hit(), i1.receiver());
        assert_eq!(recorded.initiator().hit(), i1.sender());
        let encoded = bytes(
            recorded.facts["hi_r_hex"]
                .as_str()
                .expect("what the test set up"),
        );
        assert_eq!(recorded.responder().encoding(), encoded);
    }
}

#[test]
fn signatures_of_r1_and_i2_are_right() {
    for recorded in Recorded::both() {
        let r1 = recorded.message(PacketType::R1);
        let signature = r1
            .find(kind::HIP_SIGNATURE_2)
            .expect("what the test set up");
        let mut covered = r1.covered_before(&signature);
        covered[24..40].fill(0);
        let puzzle = r1.find(kind::PUZZLE).expect("what the test set up");
        let contents = puzzle.offset + 4;
        covered[contents + 2..contents + puzzle.contents.len()].fill(0);
        let bytes = Signature::parse(signature.contents)
            .expect("what the test set up")
            .signature;
        assert!(recorded.responder().verify(&covered, bytes));
        covered[50] ^= 1;
        assert!(!recorded.responder().verify(&covered, bytes));

        let i2 = recorded.message(PacketType::I2);
        let signature = i2.find(kind::HIP_SIGNATURE).expect("what the test set up");
        let covered = i2.covered_before(&signature);
        let bytes = Signature::parse(signature.contents)
            .expect("what the test set up")
            .signature;
        assert!(recorded.initiator().verify(&covered, bytes));
    }
}

#[test]
fn keying_material_is_the_same() {
    for recorded in Recorded::both() {
        let expected = recorded.secret("KEYMAT_256");
        let own = recorded
            .keymat()
            .bytes(expected.len())
            .expect("what the test set up");
        assert_eq!(*own, expected);
        let i2 = recorded.message(PacketType::I2);
        let info = EspInfo::parse(
            i2.find(kind::ESP_INFO)
                .expect("what the test set up")
                .contents,
        )
        .unwrap();
        assert_eq!(
            recorded.keymat().esp_index(recorded.cipher),
            info.keymat_index
        );
    }
}

#[test]
fn macs_and_signatures_of_updates_are_right() {
    for recorded in Recorded::both() {
        let mut updates = 0;
        for (_, _, packet) in &recorded.packets {
            let message = Message::parse(packet).expect("what the test set up");
            if message.kind() != PacketType::Update {
                continue;
            }
            updates += 1;
            let i1 = recorded.message(PacketType::I1);
            let (own, peer) = (message.sender(), message.receiver());
            let keys = recorded
                .keymat()
                .hip_keys(recorded.cipher, own, peer)
                .expect("what the test set up");
            let mac = message.find(kind::HIP_MAC).expect("what the test set up");
            let covered = message.covered_before(&mac);
            let is_right = |key: &[u8]| recorded.rhash.mac_is_right(key, &[&covered], mac.contents);
            assert!(is_right(&keys.own.integrity));
            assert!(!is_right(&keys.peer.integrity));
            let sender = if own == i1.sender() {
                recorded.initiator()
            } else {
                recorded.responder()
            };
            let signature = message
                .find(kind::HIP_SIGNATURE)
                .expect("what the test set up");
            let covered = message.covered_before(&signature);
            let bytes = Signature::parse(signature.contents)
                .expect("what the test set up")
                .signature;
            assert!(sender.verify(&covered, bytes));
        }
        assert_eq!(updates, 4);
    }
}

#[test]
fn public_values_are_points_of_their_group() {
    for recorded in Recorded::both() {
        for kind in [PacketType::R1, PacketType::I2] {
            let message = recorded.message(kind);
            let value = message
                .find(kind::DIFFIE_HELLMAN)
                .expect("what the test set up")
                .contents;
            let value = DiffieHellman::parse(value).expect("what the test set up");
            assert_eq!(value.group, recorded.group.number());
            let mut random = <chacha20::ChaCha20Rng as rand_core::SeedableRng>::from_seed([1; 32]);
            let own = KeyPair::new(recorded.group, &mut random);
            assert!(own.agree(value.value).is_some());
            let mut off = value.value.to_vec();
            off[5] ^= 1;
            assert!(own.agree(&off).is_none(), "a point off the curve");
        }
        let puzzle = recorded.message(PacketType::R1);
        let puzzle = Puzzle::parse(
            puzzle
                .find(kind::PUZZLE)
                .expect("what the test set up")
                .contents,
        )
        .unwrap();
        assert_eq!(puzzle.i, recorded.secret("I"));
    }
}

/// The keys for data are those that the recorded ESP packets were sealed with: the payload
/// decrypts to an echo request between the two tags' hosts.
#[test]
fn payload_keys_decrypt_recorded_esp() {
    use aes::cipher::block_padding::NoPadding;
    use aes::cipher::{BlockModeDecrypt, KeyIvInit};
    for (recorded, capture) in Recorded::both().iter().zip([
        &include_bytes!("vectors/bex-rsa2048-p384-aes256.pcap")[..],
        &include_bytes!("vectors/bex-ecdsa-p384-dh-p256-aes128.pcap")[..],
    ]) {
        let i2 = recorded.message(PacketType::I2);
        let index = recorded.keymat().esp_index(recorded.cipher);
        let (own, peer) = (i2.sender(), i2.receiver());
        let keys = recorded
            .keymat()
            .esp_keys(recorded.suite, index, own, peer)
            .expect("what the test set up");
        // The first ESP packet of the Initiator: 10.0.0.1, protocol 50.
        let at = capture
            .windows(16)
            .position(|window| window[0] == 50 && window[3..7] == [10, 0, 0, 1])
            .expect("what the test set up");
        let esp = &capture[at + 11..at + 11 + 136];
        let sealed = &esp[24..esp.len() - 32];
        let plain = match recorded.suite {
            EspSuite::Aes256CbcSha256 => {
                cbc::Decryptor::<aes::Aes256>::new_from_slices(&keys.own.encryption, &esp[8..24])
                    .expect("what the test set up")
                    .decrypt_padded_vec::<NoPadding>(sealed)
            }
            _ => cbc::Decryptor::<aes::Aes128>::new_from_slices(&keys.own.encryption, &esp[8..24])
                .expect("what the test set up")
                .decrypt_padded_vec::<NoPadding>(sealed),
        }
        .expect("what the test set up");
        assert_eq!(plain[0], 128, "an ICMPv6 echo request");
        assert_eq!(plain.last(), Some(&58), "ICMPv6");
    }
}

/// ESP sealed by Scapy with extended sequence numbers.
#[test]
fn esp_of_scapy_opens() {
    let keys = EspKeys {
        encryption: Zeroizing::new(vec![0x6b; 16]),
        authentication: Zeroizing::new(vec![0x61; 32]),
    };
    let packet = bytes(
        "0000100100000001 27ae07da30c9ae14d035a888a6aaaed2 9e48d3b651e6d74b446449e704d0ac63 \
         032eff0f505e2f5ec09998ab98366489",
    );
    let cipher = EspCipher::new(EspSuite::Aes128CbcSha256, &keys).expect("keys of this suite");
    let (next, payload) = cipher.open(1, &packet).expect("what the test set up");
    assert_eq!((next, &payload[8..]), (17, &b"hello"[..]));
    assert_eq!(
        cipher.open(1 << 32 | 1, &packet),
        None,
        "another upper half"
    );
    for at in 0..packet.len() {
        let mut altered = packet.clone();
        altered[at] ^= 1;
        // Only the numbers of the header are known outside.
        assert_eq!(cipher.open(1, &altered), None, "byte {at}");
    }
}

#[test]
fn a_tag_names_its_suite() {
    let hit = Hit(bytes("20010021000000000000000000000001")
        .try_into()
        .expect("what the test set up"));
    assert_eq!(hit.suite(), Some(1));
    assert_eq!(Hit([0x20; 16]).suite(), None);
}
