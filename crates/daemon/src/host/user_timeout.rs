//! The table `[host.user_timeout]` of the configuration file: the User Timeout Option (RFC 5482).

mod programs;
mod rules;

pub(super) use programs::Programs;
#[cfg(test)]
pub(crate) use rules::RULES;

use outlast_base::time::Duration;
use outlast_host::user_timeout::{AdoptionLimits, LEAST_LOWER_LIMIT, UserTimeoutOption};
use outlast_linux::user_timeout::{
    LONGEST, MOST_CGROUPS, MOST_RULES, UserTimeoutConfig, UserTimeoutRule,
};
#[cfg(test)]
use outlast_scenario::keys::Section;
use outlast_scenario::keys::{Key, Kind};
use rules::Rule;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

const SECOND: u64 = 1_000_000_000;
/// What fits into a socket's `TCP_USER_TIMEOUT`.
const MOST: u64 = LONGEST.as_secs() * SECOND;

#[cfg(test)]
pub(crate) static USER_TIMEOUT: Section = Section {
    name: "host.user_timeout",
    is_list: false,
    keys: &[
        &ADVERTISE, &IN_OUTAGE, &AT_LEAST, &AT_MOST, &ONE_SIDED, &CGROUPS, &PER_PEER, &IN_ALL,
    ],
};
static ADVERTISE: Key = Key {
    name: "advertise",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"1 h\"",
    default: "`\"1 h\"`",
    meaning: "What peers are told (`ADV_UTO`): for how long this host wants connections to outlive \
              that nothing arrives.",
    source: "",
};
static IN_OUTAGE: Key = Key {
    name: "in_outage",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"12 h\"",
    default: "as at other times",
    meaning: "For how long this host's own end keeps connections while their link is away, where that is \
              longer.",
    source: "",
};
static AT_LEAST: Key = Key {
    name: "at_least",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"100 s\"",
    default: "`\"100 s\"`",
    meaning: "The shortest timeout of a connection (`L_LIMIT`); it is never shorter than the retransmission \
              timeout. Less than the default is below what RFC 1122, section 4.2.3.5, asks for.",
    source: "RFC 5482, section 3.1",
};
static AT_MOST: Key = Key {
    name: "at_most",
    kind: Kind::Duration(SECOND, MOST),
    example: "\"24 h\"",
    default: "`\"24 h\"`",
    meaning: "The longest timeout of a connection (`U_LIMIT`), whatever its peer asks for.",
    source: "",
};
#[cfg(test)]
static ONE_SIDED: Key = Key {
    name: "one_sided",
    kind: Kind::Switch,
    example: "true",
    default: "`true`",
    meaning: "Whether this host's own end keeps connections for `advertise` even where the peer sends \
              no option.",
    source: "",
};
#[cfg(test)]
static CGROUPS: Key = Key {
    name: "cgroups",
    kind: Kind::Texts,
    example: "[\"/sys/fs/cgroup/system.slice\"]",
    default: "all",
    meaning: "Whose sockets are meant: directories of cgroup v2, with what is below them; at most 8.",
    source: "",
};
static PER_PEER: Key = Key {
    name: "per_peer",
    kind: Kind::Integer(0, 1_000_000),
    example: "64",
    default: "`64`",
    meaning: "Connections of one peer - an address, or a network of 64 bits of IPv6 - that are kept for \
              longer than `advertise` because the peer asks for it. Further ones are kept as if it had \
              asked for nothing.",
    source: "",
};
static IN_ALL: Key = Key {
    name: "in_all",
    kind: Kind::Integer(0, 1_000_000),
    example: "4096",
    default: "`4096`",
    meaning: "Connections of all peers together that are kept for longer than `advertise`.",
    source: "",
};

/// What `[host.user_timeout]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UserTimeout {
    #[serde(deserialize_with = "advertise")]
    advertise: Duration,
    #[serde(deserialize_with = "in_outage")]
    in_outage: Option<Duration>,
    #[serde(deserialize_with = "at_least")]
    at_least: Duration,
    #[serde(deserialize_with = "at_most")]
    at_most: Duration,
    one_sided: bool,
    cgroups: Vec<PathBuf>,
    #[serde(deserialize_with = "per_peer")]
    per_peer: usize,
    #[serde(deserialize_with = "in_all")]
    in_all: usize,
    /// What holds for some connections instead: the first one that is about a connection.
    rules: Vec<Rule>,
}

impl Default for UserTimeout {
    fn default() -> Self {
        let (option, limits) = (UserTimeoutOption::default(), AdoptionLimits::default());
        Self {
            advertise: Duration::from_secs(3_600),
            in_outage: None,
            at_least: LEAST_LOWER_LIMIT,
            at_most: option.at_most,
            one_sided: true,
            cgroups: Vec::new(),
            per_peer: limits.per_peer,
            in_all: limits.in_all,
            rules: Vec::new(),
        }
    }
}

impl UserTimeout {
    /// What is wrong, if anything is.
    pub(super) fn problem(&self) -> Option<String> {
        let Self {
            advertise,
            at_least,
            at_most,
            ..
        } = self;
        let shown = |key: &Key, value: &Duration| {
            let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
            let written = key.kind.write(nanos).unwrap_or_default();
            format!("{} = \"{written}\"", key.name)
        };
        if at_least > at_most {
            let (least, most) = (shown(&AT_LEAST, at_least), shown(&AT_MOST, at_most));
            return Some(format!(
                "user_timeout: {least} is longer than {most}: nothing would be left to adopt"
            ));
        }
        let settled = self.settled();
        let of_rules = settled.iter().map(|rule| (rule.advertise, rule.in_outage));
        let all: Vec<_> = [(*advertise, self.in_outage)]
            .into_iter()
            .chain(of_rules)
            .collect();
        if let Some((told, _)) = all.iter().find(|(told, _)| told > at_most) {
            let (told, most) = (shown(&ADVERTISE, told), shown(&AT_MOST, at_most));
            return Some(format!(
                "user_timeout: {told} is longer than {most}: this host would break its word"
            ));
        }
        if self.rules.len() > MOST_RULES {
            let count = self.rules.len();
            return Some(format!(
                "user_timeout: {count} rules: {MOST_RULES} at most are allowed"
            ));
        }
        let numbered = (1..).zip(&self.rules);
        let mut problems = numbered.filter_map(|(number, rule)| Some((number, rule.problem()?)));
        if let Some((number, problem)) = problems.next() {
            return Some(format!("user_timeout: rule {number}: {problem}"));
        }
        for (advertise, in_outage) in all {
            if let Some(longer) = in_outage.filter(|longer| *longer < advertise) {
                let (told, longer) = (shown(&ADVERTISE, &advertise), shown(&IN_OUTAGE, &longer));
                return Some(format!(
                    "user_timeout: {longer} is shorter than {told}: an outage would end connections \
                     sooner"
                ));
            }
        }
        if self.cgroups.len() > MOST_CGROUPS {
            let count = self.cgroups.len();
            return Some(format!(
                "user_timeout: {count} cgroups: name {MOST_CGROUPS} at most, or one above them"
            ));
        }
        None
    }

    /// The rules, with what holds where they say nothing.
    fn settled(&self) -> Vec<UserTimeoutRule> {
        let settled = |rule: &Rule| rule.settled(self.advertise, self.in_outage);
        self.rules.iter().map(settled).collect()
    }

    /// Whether some connections are kept for longer while their link is away.
    fn stretches(&self) -> bool {
        let of_rules = self.settled().iter().any(|rule| rule.in_outage.is_some());
        self.in_outage.is_some() || of_rules
    }

    /// In a few words.
    pub(super) fn shown(&self) -> String {
        let seconds = |time: &Duration| format!("{} s", time.as_secs_f64());
        let whose = match self.cgroups.as_slice() {
            [] => "all sockets".to_owned(),
            cgroups => {
                let names = cgroups.iter().map(|path| path.display().to_string());
                names.collect::<Vec<_>>().join(", ")
            }
        };
        let rules = match self.rules.len() {
            0 => String::new(),
            1 => ", 1 rule".to_owned(),
            count => format!(", {count} rules"),
        };
        format!(
            "{}, adopts {} to {}, {whose}{rules}",
            seconds(&self.advertise),
            seconds(&self.at_least),
            seconds(&self.at_most)
        )
    }

    fn config(&self) -> UserTimeoutConfig {
        UserTimeoutConfig {
            option: UserTimeoutOption {
                advertise: self.advertise,
                at_least: self.at_least,
                at_most: self.at_most,
            },
            limits: AdoptionLimits {
                per_peer: self.per_peer,
                in_all: self.in_all,
            },
            is_one_sided: self.one_sided,
            cgroups: self.cgroups.clone(),
            in_outage: self.in_outage,
            rules: self.settled(),
        }
    }
}

pub(super) fn duration<'de, D: Deserializer<'de>>(
    key: &Key,
    value: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(value)?;
    let (least, most) = key.kind.bounds().unwrap_or((0, u64::MAX));
    let nanos = key.kind.quantity(&text);
    let nanos = nanos.filter(|nanos| (least..=most).contains(nanos));
    nanos.map(Duration::from_nanos).ok_or_else(|| {
        let (name, range) = (key.name, key.kind.range());
        D::Error::custom(format!("{name} = \"{text}\": {range} is allowed"))
    })
}

fn advertise<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    duration(&ADVERTISE, value)
}

fn in_outage<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    duration(&IN_OUTAGE, value).map(Some)
}

fn at_least<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    duration(&AT_LEAST, value)
}

fn at_most<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    duration(&AT_MOST, value)
}

pub(super) fn count<'de, D: Deserializer<'de>>(key: &Key, value: D) -> Result<usize, D::Error> {
    let number = u64::deserialize(value)?;
    let (least, most) = key.kind.bounds().unwrap_or((0, u64::MAX));
    let number = Some(number).filter(|number| (least..=most).contains(number));
    number
        .and_then(|number| usize::try_from(number).ok())
        .ok_or_else(|| {
            let (name, range) = (key.name, key.kind.range());
            D::Error::custom(format!("{name}: {range} is allowed"))
        })
}

fn per_peer<'de, D: Deserializer<'de>>(value: D) -> Result<usize, D::Error> {
    count(&PER_PEER, value)
}

fn in_all<'de, D: Deserializer<'de>>(value: D) -> Result<usize, D::Error> {
    count(&IN_ALL, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<UserTimeout, String> {
        let settings: UserTimeout = toml::from_str(text).map_err(|error| error.to_string())?;
        settings.problem().map_or(Ok(settings), Err)
    }

    #[test]
    fn an_empty_table_has_the_defaults() {
        assert_eq!(read(""), Ok(UserTimeout::default()));
        let settings = read("advertise = \"5 min\"\nat_most = \"2 h\"\nper_peer = 0");
        let settings = settings.expect("sound");
        assert_eq!(settings.advertise, Duration::from_secs(300));
        assert_eq!(settings.at_most, Duration::from_secs(7_200));
        assert_eq!(settings.per_peer, 0);
    }

    #[test]
    fn what_cannot_hold_is_refused_and_the_key_is_named() {
        for (text, words) in [
            ("advertise = \"0 s\"", "1 s"),
            ("advertise = \"30 days\"", "advertise"),
            ("advertise = \"600 h\"", "576 h"),
            ("advertise = 5", "string"),
            (
                "at_least = \"2 h\"\nat_most = \"1 h\"",
                "at_least = \"2 h\"",
            ),
            ("advertise = \"48 h\"", "at_most = \"24 h\""),
            ("in_all = 1000001", "in_all"),
            ("forever = true", "forever"),
            ("in_outage = \"30 min\"", "in_outage = \"30 min\""),
            ("[[rules]]\nadvertise = \"5 min\"", "rule 1: say which"),
            ("[[rules]]\nport = 22", "rule 1: say what"),
            ("[[rules]]\nport = 0\nadvertise = \"5 min\"", "port = 0"),
            ("[[rules]]\npeer = \"192.0.2.7/24\"", "192.0.2.0/24"),
            ("[[rules]]\nport = 22\nadvertise = \"48 h\"", "48 h"),
            ("[[rules]]\nprot = 22", "prot"),
        ] {
            let problem = read(text).expect_err(text);
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
