//! Any bytes as a capture file; what is read of it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_wire::pcapng::{Block, Encoder, Interface, Reader, ip_packet};

fuzz_target!(|data: &[u8]| {
    let mut interfaces: Vec<Interface<'_>> = Vec::new();
    let mut encoder: Option<Encoder> = None;
    let mut expected = Vec::new();
    for block in Reader::new(data) {
        let Ok(block) = block else { break };
        match (&block, &mut encoder) {
            (Block::Section(section), encoder) => {
                // One section in a file of ours.
                interfaces.clear();
                expected.clear();
                *encoder = Some(Encoder::new(section));
            }
            (Block::Interface(interface), Some(encoder)) => {
                let id = encoder.interface(interface.name.as_deref().unwrap_or_default());
                assert_eq!(id, interface.id);
                interfaces.push(interface.clone());
            }
            (Block::Packet(packet), Some(encoder)) => {
                let interface = &interfaces[packet.interface.0 as usize];
                if let Some(ip) = ip_packet(interface, packet.data) {
                    assert!(packet.data.ends_with(ip));
                }
                let mut packet = packet.clone();
                // Nanoseconds in 64 bits end in the year 2554.
                packet.time = packet.time.min(std::time::Duration::from_nanos(u64::MAX));
                encoder.packet(&packet);
                expected.push(packet);
            }
            (_, None) => panic!("a file starts with a section"),
        }
    }
    let Some(mut encoder) = encoder else { return };
    let file = encoder.take();
    let packets: Vec<_> = Reader::new(&file)
        .map(|block| block.expect("our own file is good"))
        .filter_map(|block| match block {
            Block::Packet(packet) => Some(packet),
            Block::Section(_) | Block::Interface(_) => None,
        })
        .collect();
    assert_eq!(packets, expected);
});
