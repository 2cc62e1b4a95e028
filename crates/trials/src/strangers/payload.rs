//! The payload of a transfer, whose bytes say where they belong.

/// After so many bytes the payload repeats itself; a prime number, so that no piece looks like the one before.
const PERIOD: u64 = 251;

/// The byte at this place.
pub(super) const fn byte_at(offset: u64) -> u8 {
    (offset % PERIOD) as u8
}

/// Whether `bytes` are those from this place on.
pub(super) fn is_right(offset: u64, bytes: &[u8]) -> bool {
    let sent = (offset..).map(byte_at);
    bytes
        .iter()
        .copied()
        .zip(sent)
        .all(|(got, sent)| got == sent)
}
