//! Numbers with a unit, as people write them.

use outlast_base::time::Duration;

/// Why a text is not a quantity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// It does not begin with a number.
    NoNumber,
    /// The number is below zero.
    Negative,
    /// Only a number.
    NoUnit,
    /// A unit that this kind of quantity does not have, with one that may have been meant.
    UnknownUnit {
        unit: String,
        meant: Option<&'static str>,
    },
    /// Finer than the quantity goes, for instance half a byte.
    TooFine,
    /// Not representable.
    TooLarge,
}

/// A kind of quantity: its units, each with its worth in base units, and what people write
/// instead.
pub(crate) struct Units {
    pub(crate) units: &'static [(&'static str, u64)],
    aliases: &'static [(&'static str, &'static str)],
    /// The base unit in words, for messages.
    pub(crate) base: &'static str,
    /// How nothing at all is written.
    zero: &'static str,
}

/// Durations, in nanoseconds.
pub(crate) const DURATION: Units = Units {
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    aliases: &[
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("msec", "ms"),
        ("millis", "ms"),
        ("milliseconds", "ms"),
        ("usec", "us"),
        ("µs", "us"),
        ("μs", "us"),
        ("m", "min"),
        ("mins", "min"),
        ("minute", "min"),
        ("minutes", "min"),
        ("hour", "h"),
        ("hours", "h"),
    ],
    base: "nanosecond",
    zero: "0 s",
};

/// Rates, in bits per second.
pub(crate) const RATE: Units = Units {
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
    aliases: &[
        ("bps", "bit/s"),
        ("bits/s", "bit/s"),
        ("kbps", "kbit/s"),
        ("kbit", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gbit", "Gbit/s"),
    ],
    base: "bit per second",
    zero: "0 bit/s",
};

/// Sizes, in bytes.
pub(crate) const SIZE: Units = Units {
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ],
    aliases: &[
        ("byte", "B"),
        ("bytes", "B"),
        ("k", "kB"),
        ("m", "MB"),
        ("g", "GB"),
        ("mbyte", "MB"),
    ],
    base: "byte",
    zero: "0 B",
};

impl Units {
    /// The units, as a list for a message.
    pub(crate) fn list(&self) -> String {
        let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Reads a number and a unit; the answer is in base units.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, Fault> {
        let text = text.trim();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let (digits, decimals) = decimal(number).ok_or(Fault::NoNumber)?;
        if negative {
            return Err(Fault::Negative);
        }
        if unit.is_empty() {
            return Err(Fault::NoUnit);
        }
        let worth = self.worth(unit)?;
        let scaled = digits
            .checked_mul(u128::from(worth))
            .ok_or(Fault::TooLarge)?;
        let divisor = 10_u128.checked_pow(decimals).ok_or(Fault::TooFine)?;
        if scaled % divisor != 0 {
            return Err(Fault::TooFine);
        }
        u64::try_from(scaled / divisor).map_err(|_| Fault::TooLarge)
    }

    fn worth(&self, unit: &str) -> Result<u64, Fault> {
        if let Some((_, worth)) = self.units.iter().find(|(name, _)| *name == unit) {
            return Ok(*worth);
        }
        let same_letters = self
            .units
            .iter()
            .map(|(name, _)| *name)
            .find(|name| name.eq_ignore_ascii_case(unit));
        let alias = || {
            let found = self
                .aliases
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(unit));
            found.map(|(_, meant)| *meant)
        };
        let meant = same_letters.or_else(alias);
        Err(Fault::UnknownUnit {
            unit: unit.to_owned(),
            meant,
        })
    }

    /// Writes `value` base units in the largest unit that needs no more than three decimals; in
    /// whole powers of 1024 where that is shorter, as in `2 KiB`.
    pub(crate) fn format(&self, value: u64) -> String {
        if value == 0 {
            return self.zero.to_owned();
        }
        let decimal_units = self.units.iter().filter(|unit| !is_binary(unit));
        let (name, worth) = decimal_units
            .rev()
            .find(|(_, worth)| value >= *worth && value.is_multiple_of((worth / 1_000).max(1)))
            .unwrap_or(&self.units[0]);
        let (whole, rest) = (value / worth, value % worth);
        let decimal = if rest == 0 {
            format!("{whole} {name}")
        } else {
            let thousandths = format!("{:03}", rest / (worth / 1_000));
            format!("{whole}.{} {name}", thousandths.trim_end_matches('0'))
        };
        let mut binary_units = self.units.iter().filter(|unit| is_binary(unit)).rev();
        let binary = binary_units.find(|(_, worth)| value.is_multiple_of(*worth));
        let binary = binary.map(|(name, worth)| format!("{} {name}", value / worth));
        binary
            .filter(|binary| binary.len() < decimal.len())
            .unwrap_or(decimal)
    }
}

fn is_binary((name, _): &(&str, u64)) -> bool {
    name.ends_with("iB")
}

/// The digits of `number` without its point, and how many of them stand behind the point.
fn decimal(number: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_point = number.contains('.');
    if whole.is_empty() || fraction.contains('.') || (has_point && fraction.is_empty()) {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, u32::try_from(fraction.len()).ok()?))
}

/// Writes a duration with its unit.
pub(crate) fn format_duration(duration: Duration) -> String {
    DURATION.format(outlast_base::time::saturating_nanos(duration))
}
