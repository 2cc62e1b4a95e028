//! HIP packets: the checksums of RFC 7401, appendix C, and parse-then-emit for every format.

use outlast_wire::hip::{
    Builder, DiffieHellman, EspHeader, EspInfo, HipError, Hit, HostId, Locator, LocatorSet,
    Message, Notification, PacketType, Puzzle, RegInfo, RegItems, Signature, Solution, Traffic,
    from_address, full_sequence, kind, u16_list, u32_list, write_from_address,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::IpAddr;

fn hit(last: u8) -> Hit {
    let mut hit = [0; 16];
    hit[..4].copy_from_slice(&[0x20, 0x01, 0, 0x20]);
    hit[15] = last;
    Hit(hit)
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn checksums_of_rfc_7401_appendix_c() {
    let mut builder = Builder::new(PacketType::I1, hit(1), hit(2));
    builder.push(kind::DH_GROUP_LIST, &[3, 4, 8]);
    let mut packet = builder.finish().expect("it fits");
    assert_eq!(packet[1], 5, "header length");
    for (source, destination, checksum) in [
        ("2001:db8::1", "2001:db8::2", [0x1a, 0x5e]),
        ("192.0.2.1", "192.0.2.2", [0xf1, 0xce]),
    ] {
        let (source, destination) = (address(source), address(destination));
        Builder::set_checksum(&mut packet, source, destination);
        assert_eq!(packet[4..6], checksum);
        let message = Message::parse(&packet).expect("what the test set up");
        assert!(message.checksum_ok(source, destination));
        assert!(!message.checksum_ok(source, address("2001:db8::3")));
    }
}

#[test]
fn a_header_s_errors_are_told_apart() {
    let packet = Builder::new(PacketType::I1, hit(1), hit(2))
        .finish()
        .expect("what the test set up");
    let with = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        Message::parse(&packet).map(|_| ())
    };
    assert_eq!(with(0, 59), Ok(()));
    assert_eq!(with(0, 6), Err(HipError::FixedField));
    assert_eq!(with(2, 9), Err(HipError::PacketType(9)));
    assert_eq!(with(3, 0x11), Err(HipError::Version(1)));
    let longer = HipError::Length {
        declared: 48,
        available: 40,
    };
    assert_eq!(with(1, 5), Err(longer));
    assert!(matches!(
        Message::parse(&packet[..39]),
        Err(HipError::Truncated { .. })
    ));
}

#[test]
fn parameters_out_of_order_are_refused() {
    let mut builder = Builder::new(PacketType::Update, hit(1), hit(2));
    builder.push(kind::ACK, &[0; 4]).push(kind::SEQ, &[0; 4]);
    assert_eq!(builder.clone().finish(), None);
    let mut packet = builder.covered();
    Builder::set_checksum(&mut packet, address("192.0.2.1"), address("192.0.2.2"));
    assert_eq!(Message::parse(&packet), Err(HipError::Order(kind::SEQ)));
}

/// Packets made of any parameters, sorted as they have to be.
fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let parameter = (any::<u16>(), vec(any::<u8>(), 0..60));
    (vec(parameter, 0..12), 0..8_usize).prop_map(|(mut parameters, kind)| {
        let kinds = [
            PacketType::I1,
            PacketType::R1,
            PacketType::I2,
            PacketType::R2,
            PacketType::Update,
            PacketType::Notify,
            PacketType::Close,
            PacketType::CloseAck,
        ];
        parameters.sort();
        let mut builder = Builder::new(kinds[kind], hit(1), hit(2));
        for (kind, contents) in &parameters {
            builder.push(*kind, contents);
        }
        builder.finish().expect("it fits")
    })
}

/// Writes what was parsed; the same bytes must come out.
fn emitted(message: &Message<'_>) -> Vec<u8> {
    let mut builder = Builder::new(message.kind(), message.sender(), message.receiver());
    for parameter in message.parameters() {
        builder.push(parameter.kind, parameter.contents);
    }
    builder.finish().expect("it fits")
}

/// Checks that `write` gives back what `parse` was given.
fn gives_back(contents: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    let mut written = Vec::new();
    write(&mut written);
    assert_eq!(written, contents);
}

fn any_locator() -> impl Strategy<Value = Locator> {
    let traffic = prop_oneof![
        Just(Traffic::Both),
        Just(Traffic::Signalling),
        Just(Traffic::Data)
    ];
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<u64>()
            .prop_map(|low| IpAddr::from((0x2001_0db8_u128 << 96 | u128::from(low)).to_be_bytes())),
    ];
    (
        traffic,
        any::<bool>(),
        1_u32..,
        any::<Option<u32>>(),
        address,
    )
        .prop_map(|(traffic, is_preferred, lifetime, spi, address)| Locator {
            traffic,
            is_preferred,
            lifetime,
            spi,
            address,
        })
}

proptest! {
    #[test]
    fn what_is_built_parses_to_the_same(packet in any_packet()) {
        let message = Message::parse(&packet).expect("what the test set up");
        prop_assert_eq!(emitted(&message), packet);
    }

    #[test]
    fn any_bytes_parse_or_fail(mut bytes in vec(any::<u8>(), 0..120), fix in any::<bool>()) {
        if fix && bytes.len() >= 40 {
            bytes.truncate(bytes.len() / 8 * 8);
            bytes[1] = (bytes.len() / 8 - 1) as u8;
            bytes[0] = 59;
            bytes[2] = 16;
            bytes[3] = 0x21;
        }
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert_eq!(emitted(&message).len(), bytes.len());
        }
    }

    #[test]
    fn parameters_read_what_they_write(contents in vec(any::<u8>(), 0..100)) {
        if let Ok(parsed) = Puzzle::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        if let Ok(parsed) = DiffieHellman::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        if let Ok(parsed) = HostId::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        if let Ok(parsed) = Signature::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        if let Ok(parsed) = RegInfo::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        if let Ok(parsed) = RegItems::parse(&contents) {
            gives_back(&contents, |out| parsed.write(out));
        }
        // These have reserved fields, which are written as zero.
        if let Ok(parsed) = Solution::parse(&contents) {
            let mut zeroed = contents.clone();
            zeroed[1] = 0;
            gives_back(&zeroed, |out| parsed.write(out));
        }
        if let Ok(parsed) = Notification::parse(&contents) {
            let mut zeroed = contents.clone();
            zeroed[..2].fill(0);
            gives_back(&zeroed, |out| parsed.write(out));
        }
        if let Ok(parsed) = LocatorSet::parse(&contents) {
            let mut written = Vec::new();
            parsed.write(&mut written);
            prop_assert_eq!(LocatorSet::parse(&written), Ok(parsed));
        }
        prop_assert_eq!(u16_list(&contents).is_some(), contents.len() % 2 == 0);
        prop_assert_eq!(u32_list(&contents).is_some(), contents.len() % 4 == 0);
    }

    #[test]
    fn host_identities_of_any_length(
        identity in vec(any::<u8>(), 0..300),
        domain in vec(any::<u8>(), 0..50),
        algorithm: u16,
        domain_type in 0_u8..16,
    ) {
        let host = HostId { algorithm, identity: &identity, domain_type, domain: &domain };
        let mut written = Vec::new();
        host.write(&mut written);
        prop_assert_eq!(HostId::parse(&written), Ok(host));
    }

    #[test]
    fn locators_read_what_they_write(locators in vec(any_locator(), 0..8)) {
        let set = LocatorSet(locators);
        let mut written = Vec::new();
        set.write(&mut written);
        prop_assert_eq!(LocatorSet::parse(&written), Ok(set));
    }

    #[test]
    fn esp_and_rendezvous_read_what_they_write(
        spi: u32, sequence_low: u32, keymat_index: u16, old_spi: u32, new_spi: u32, v4: [u8; 4],
    ) {
        let mut written = Vec::new();
        EspHeader { spi, sequence_low }.write(&mut written);
        prop_assert_eq!(EspHeader::parse(&written).expect("what the test set up").0, EspHeader { spi, sequence_low });

        let info = EspInfo { keymat_index, old_spi, new_spi };
        let mut written = Vec::new();
        info.write(&mut written);
        prop_assert_eq!(EspInfo::parse(&written), Ok(info));

        let mut written = Vec::new();
        write_from_address(&mut written, IpAddr::from(v4));
        prop_assert_eq!(from_address(&written), Some(IpAddr::from(v4)));
    }

    /// A number within the window below the highest, or up to 2^31 above it, is found again.
    #[test]
    fn sequence_numbers_are_completed(highest in 0_u64..(1 << 40), ahead in -1023_i64..(1 << 31)) {
        let number = highest as i64 + ahead;
        if number >= 0 {
            let number = number as u64;
            prop_assert_eq!(full_sequence(number as u32, highest), Some(number));
        }
    }
}
