//! The generated stream that modelled payload is a stretch of.
//!
//! The byte at `offset` of stream `stream` is byte `offset % 8`, counted from the least
//! significant, of `mix(mix(stream) + offset / 8)`, where the addition is modulo 2^64 and `mix` is
//! the output function of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
//! generators", OOPSLA 2014, figure 15) on a state that was advanced once. Any stretch can be
//! made without those before it; no two places of a stream look alike, so that a byte that
//! strayed shows.

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
    let mut word = offset / 8;
    let mut next = || {
        let bytes = mix(start.wrapping_add(word)).to_le_bytes();
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
        let byte = |offset: u64| {
            let mut one = [0];
            fill(3, offset, &mut one);
            one[0]
        };
        for start in [0, 1, 7, 8, 1 << 33, u64::MAX - 9] {
            for length in 0..40 {
                let mut bytes = [0; 40];
                fill(3, start, &mut bytes[..length]);
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
