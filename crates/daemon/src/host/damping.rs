//! The table `[host.damping]`: what is made of indicators that flap, by the gateway's damping.

use super::status::DampedLink;
use super::{Daemon, user_timeout};
use crate::keys;
use crate::status::Damped;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::DampingConfig;
use outlast_linux::netlink::InterfaceIndex;
#[cfg(test)]
use outlast_scenario::keys::Section;
use outlast_scenario::keys::{Key, Kind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// As long as passes because of one link are apart anyway: a return that lasts is never later for damping.
const DEFAULT_HOLD_DOWN: Duration = Duration::from_millis(500);

#[cfg(test)]
pub(crate) static DAMPING: Section = Section {
    name: "host.damping",
    is_list: false,
    keys: &[
        &keys::DAMPING_ENABLED,
        &keys::HALF_LIFE,
        &CUT_OFF,
        &keys::REUSE,
        &HOLD_DOWN,
    ],
};
static CUT_OFF: Key = Key {
    name: "cut_off",
    kind: Kind::Integer(1_000, 1_000_000),
    example: "4000",
    default: "`4000`",
    meaning: "From this penalty on, a return is believed late.",
    source: "RFC 2439, section 4.2",
};
static HOLD_DOWN: Key = Key {
    name: "hold_down",
    kind: Kind::Duration(100_000_000, 3_600_000_000_000),
    example: "\"500 ms\"",
    default: "`\"500 ms\"`",
    meaning: "No return is believed later than this. While the link goes on to flap after that, losses are not \
              believed, and each return is.",
    source: "RFC 2439, section 4.2",
};

/// What `[host.damping]` says.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Damping {
    enabled: bool,
    #[serde(deserialize_with = "half_life")]
    half_life: Duration,
    #[serde(deserialize_with = "cut_off")]
    cut_off: u32,
    #[serde(deserialize_with = "reuse")]
    reuse: u32,
    #[serde(deserialize_with = "hold_down")]
    hold_down: Duration,
}

impl Default for Damping {
    fn default() -> Self {
        let plain = DampingConfig::default();
        Self {
            enabled: true,
            half_life: plain.half_life,
            cut_off: plain.cut_off,
            reuse: plain.reuse,
            hold_down: DEFAULT_HOLD_DOWN,
        }
    }
}

impl Damping {
    /// As the agent takes it; `None`: indicators are believed at once.
    pub(super) fn config(self) -> Option<DampingConfig> {
        self.enabled.then_some(DampingConfig {
            half_life: self.half_life,
            cut_off: self.cut_off,
            reuse: self.reuse,
            hold_down: self.hold_down,
        })
    }

    /// What is wrong, if anything is.
    pub(super) fn problem(self) -> Option<String> {
        let Self { reuse, cut_off, .. } = self;
        (reuse >= cut_off).then(|| {
            format!(
                "damping: reuse = {reuse} is no less than cut_off = {cut_off}: a penalty could not be \
                 forgiven before it counts"
            )
        })
    }
}

impl Daemon {
    /// The links whose indicators flap.
    pub(super) fn damped(&self, now: Instant) -> Vec<DampedLink> {
        let links = self.host.damped_links(now);
        let named = links.filter_map(|link| {
            let index = InterfaceIndex(link.link.interface.0);
            Some(DampedLink {
                interface: self.interfaces.name_of(index)?.to_owned(),
                link: Damped::of(now, link),
            })
        });
        named.collect()
    }
}

fn penalty<'de, D: Deserializer<'de>>(key: &Key, value: D) -> Result<u32, D::Error> {
    let number = user_timeout::count(key, value)?;
    u32::try_from(number).map_err(D::Error::custom)
}

fn half_life<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    user_timeout::duration(&keys::HALF_LIFE, value)
}

fn cut_off<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    penalty(&CUT_OFF, value)
}

fn reuse<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    penalty(&keys::REUSE, value)
}

fn hold_down<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    user_timeout::duration(&HOLD_DOWN, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_gateway::links::FLAP;

    #[test]
    fn what_the_page_says_is_the_default() {
        let Damping {
            half_life,
            cut_off,
            reuse,
            hold_down,
            ..
        } = Damping::default();
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("short");
        for (key, value) in [
            (&keys::HALF_LIFE, nanos(half_life)),
            (&CUT_OFF, cut_off.into()),
            (&keys::REUSE, reuse.into()),
            (&HOLD_DOWN, nanos(hold_down)),
        ] {
            let written = key.kind.write(value).expect("it has a text");
            assert!(key.default.contains(&written), "{}: {written}", key.name);
        }
        assert_eq!(cut_off, 4 * FLAP);
    }
}
