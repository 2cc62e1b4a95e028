//! Any bytes as a packet: parsed, edited, cut, quoted. The first eight bytes choose the edits.
#![no_main]

#[path = "../../../crates/wire/tests/wire/common/exercise.rs"]
#[expect(dead_code, reason = "the other targets use the rest")]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((script, bytes)) = data.split_first_chunk::<8>() {
        let mut bytes = bytes.to_vec();
        mend_header_checksum(&mut bytes);
        exercise::packet(*script, &bytes);
    }
});

/// Makes the IPv4 header checksum right: a fuzzer does not guess it, and nothing behind a wrong
/// one is looked at. Where the last byte is odd it stays as it is.
fn mend_header_checksum(bytes: &mut [u8]) {
    let length = bytes.first().map_or(0, |byte| usize::from(byte & 15) * 4);
    let is_v4 = bytes.first().is_some_and(|byte| byte >> 4 == 4);
    let wanted = is_v4 && length >= 20 && bytes.last().is_some_and(|byte| byte & 1 == 0);
    let Some(header) = bytes.get_mut(..length).filter(|_| wanted) else {
        return;
    };
    header[10..12].fill(0);
    let sum = header.chunks(2).fold(0_u32, |sum, pair| {
        let sum = sum + u32::from(u16::from_be_bytes([pair[0], pair[1]]));
        (sum & 0xffff) + (sum >> 16)
    });
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
