//! The generated stream that modelled payload is a stretch of.
//!
//! The byte at `offset` of stream `stream` is byte `offset % 8`, counted from the least
//! significant, of `mix(mix(stream) + offset / 8)`, where the addition is modulo 2^64 and `mix` is
//! the output function of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014, figure 15) on a state that was advanced once. Any stretch can be
//! made without those before it; no two places of a stream look alike, so that a byte that
//! strayed shows.
//!
//! A stream may also be of another [`Content`], for those who compress payload.

/// English text that repeats itself only after more than a packet.
static TEXT: &[u8] = include_bytes!("../../../LICENSE-APACHE");

/// What generated streams are made of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Content {
    /// Random numbers, as this module describes: nothing makes them smaller.
    #[default]
    Random,
    /// English text: the Apache licence, over and over. DEFLATE makes half of packets of 1,500 bytes.
    Text,
    /// A stand-in for programs: most of its words are idioms that come again, the others have operands of their
    /// own. DEFLATE makes 63 % of packets of 1,500 bytes, and 62 % of GNU Bash or the C library.
    Binary,
}

impl Content {
    /// The number of a stream of this content; of random content, `number` itself.
    ///
    /// Of the others, only the lower 32 bits of `number` tell streams apart.
    #[must_use]
    pub const fn stream(self, number: u64) -> u64 {
        match self {
            Self::Random => number,
            Self::Text => TEXT_STREAM | number & NUMBER,
            Self::Binary => BINARY_STREAM | number & NUMBER,
        }
    }

    const fn of(stream: u64) -> Self {
        match stream & !NUMBER {
            TEXT_STREAM => Self::Text,
            BINARY_STREAM => Self::Binary,
            _ => Self::Random,
        }
    }
}

const NUMBER: u64 = 0xffff_ffff;
/// "text" and "code": of random numbers one in 2^32 begins so.
const TEXT_STREAM: u64 = 0x7465_7874 << 32;
const BINARY_STREAM: u64 = 0x636f_6465 << 32;

/// Fills `out` with the bytes of `stream` from `offset` on. Offsets wrap at 2^64.
///
/// ```
/// use outlast_wire::pattern;
///
/// let mut whole = [0; 32];
/// pattern::fill(7, 1000, &mut whole);
/// let mut part = [0; 5];
/// pattern::fill(7, 1011, &mut part);
/// assert_eq!(part, whole[11..16]);
/// ```
pub fn fill(stream: u64, offset: u64, out: &mut [u8]) {
    let start = mix(stream);
    let made = match Content::of(stream) {
        Content::Random => u64::to_le_bytes,
        Content::Text => return fill_text(start, offset, out),
        Content::Binary => unit_of_binary,
    };
    let mut word = offset / 8;
    let mut next = || {
        let bytes = made(mix(start.wrapping_add(word)));
        // 2^61 words, then the stream starts anew.
        word = word.wrapping_add(1) & (u64::MAX >> 3);
        bytes
    };
    let skip = (offset % 8) as usize;
    let out = match skip {
        0 => out,
        _ => {
            let (head, rest) = out.split_at_mut(out.len().min(8 - skip));
            head.copy_from_slice(&next()[skip..skip + head.len()]);
            rest
        }
    };
    let (words, tail) = out.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = next();
    }
    if !tail.is_empty() {
        tail.copy_from_slice(&next()[..tail.len()]);
    }
}

/// Each stream begins at another place of the text.
fn fill_text(start: u64, offset: u64, out: &mut [u8]) {
    let length = TEXT.len() as u64;
    let before_wrap = usize::try_from(u64::MAX - offset).unwrap_or(usize::MAX);
    let (mut out, wrapped) = out.split_at_mut(out.len().min(before_wrap.saturating_add(1)));
    if !wrapped.is_empty() {
        fill_text(start, 0, wrapped);
    }
    let mut from = ((start % length + offset % length) % length) as usize;
    while !out.is_empty() {
        let text = &TEXT[from..];
        let (now, rest) = out.split_at_mut(out.len().min(text.len()));
        now.copy_from_slice(&text[..now.len()]);
        (from, out) = (0, rest);
    }
}

/// Two words of a program.
fn unit_of_binary(random: u64) -> [u8; 8] {
    /// Of 256 units so many are idioms.
    const IDIOMS: u64 = 180;
    let seed = match random >> 56 < IDIOMS {
        // Some idioms come much more often than others.
        true => {
            let rank = u64::from((random as u16).trailing_ones());
            1_000 + 2 * (rank << 4 | random >> 16 & 15)
        }
        false => random,
    };
    let [a, b, c, d] = word_of_binary(mix(seed));
    let [e, f, g, h] = word_of_binary(mix(seed.wrapping_add(1)));
    [a, b, c, d, e, f, g, h]
}

/// Operation, registers, and an operand that is often small.
fn word_of_binary(random: u64) -> [u8; 4] {
    let [rank, kind, registers, size, low, high, ..] = random.to_le_bytes();
    let rank = (rank & 0x7f).trailing_ones() as u8;
    let operation = 0x40_u8.wrapping_add((rank * 8 + (kind & 7)).wrapping_mul(5));
    let operand = match size & 7 {
        0..3 => [0, 0],
        3..5 => [low & 0x1f, 0],
        _ => [low, high],
    };
    [operation, 0xc0 | registers & 15, operand[0], operand[1]]
}

const fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_pure_function_of_stream_and_offset() {
        for content in [Content::Random, Content::Text, Content::Binary] {
            any_stretch_is_like_its_bytes(content.stream(3));
        }
    }

    fn any_stretch_is_like_its_bytes(stream: u64) {
        let byte = |offset: u64| {
            let mut one = [0];
            fill(stream, offset, &mut one);
            one[0]
        };
        for start in [0, 1, 7, 8, 1 << 33, u64::MAX - 9] {
            for length in 0..40 {
                let mut bytes = [0; 40];
                fill(stream, start, &mut bytes[..length]);
                for (at, &found) in (0..).zip(&bytes[..length]) {
                    assert_eq!(found, byte(start.wrapping_add(at)), "{start} {length} {at}");
                }
            }
        }
    }

    #[test]
    fn first_output_of_splitmix64_with_seed_zero() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn streams_differ() {
        let [mut a, mut b] = [[0; 16]; 2];
        fill(0, 0, &mut a);
        fill(1, 0, &mut b);
        assert_ne!(a, b);
    }
}
