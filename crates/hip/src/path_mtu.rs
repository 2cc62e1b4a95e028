//! What the path to a peer takes, as this host's TCP was told so that it sends again what is too long then.

use crate::beet::HEADER_LEN;
use outlast_base::time::{Duration, Instant};

/// By how much less the path is said to take: full segments are too long then, and few bytes are lost.
const STEP: u32 = 2;
/// No path of IPv6 takes less (RFC 8200, section 5).
const LEAST: u32 = 1_280;
/// The kernel goes by a path MTU for so long (RFC 8201, section 4).
const LASTS: Duration = Duration::from_secs(600);

/// The last that TCP was told, in bytes, and when that was.
#[derive(Debug, Default)]
pub(crate) struct PathMtu(Option<(u32, Instant)>);

impl PathMtu {
    /// A smaller one, for which a connection's longest segment of so many bytes is too long; nothing if that is short anyway,
    /// or the path as small as can be.
    pub(crate) fn shorter(&mut self, now: Instant, longest: usize) -> Option<u32> {
        let longest = u32::try_from(HEADER_LEN + longest).ok()?;
        let known = self.0.filter(|(_, at)| now.since(*at) < LASTS);
        let least = known.map_or(longest, |(mtu, _)| mtu.min(longest));
        let mtu = least.checked_sub(STEP).filter(|&mtu| mtu >= LEAST)?;
        self.0 = Some((mtu, now));
        Some(mtu)
    }
}
