//! Damping: which changes are believed of an indicator that flaps.
//!
//! After RFC 2439 (BGP route flap damping), per link. Each time that a link is said to be down a
//! penalty grows by [`FLAP`]; it halves every [`DampingConfig::half_life`].
//!
//! | phase | begins | down | up |
//! |---|---|---|---|
//! | calm | the penalty has fallen to `reuse` | told at once | told at once |
//! | damped | the penalty has reached `cut_off` | told at once | told when calm again, or after `hold_down` |
//! | distrusted | `hold_down` is over, and it has gone on; or calm, and a return reaches `cut_off` | told when calm again | told already |
//!
//! So a change is late by `hold_down` at most, and an indicator that lies neither makes the
//! gateway send more than a few times a second nor keeps packets from a link for longer. What
//! the first packet after a silence shows is not damped: nobody but the peers themselves can show
//! it, and no more often than an answer can be overdue.
//!
//! A departure: RFC 2439 withholds a route for as long as it flaps. Here the last word is that
//! packets pass.

use super::{Indicator, LinkEvent, LinkId, LinkState};
use alloc::collections::BTreeMap;
use outlast_base::time::{Duration, Instant};

/// What one change to down adds to the penalty, as routers have it.
pub const FLAP: u32 = 1_000;

/// Links whose penalties are remembered. Another one is not damped until there is room.
const MOST: usize = 1_024;

/// When indicators are no longer believed at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DampingConfig {
    /// In this time a penalty halves.
    pub half_life: Duration,
    /// From this penalty on, a link's return is told late.
    pub cut_off: u32,
    /// A penalty no larger than this is forgiven.
    pub reuse: u32,
    /// No change is told later than this.
    pub hold_down: Duration,
}

impl Default for DampingConfig {
    /// A link that comes and goes once a second is never damped; one that does so twice a second
    /// is after some seconds, and one that flaps faster at the fifth time.
    fn default() -> Self {
        Self {
            half_life: Duration::from_secs(2),
            cut_off: 4 * FLAP,
            reuse: 2 * FLAP,
            hold_down: Duration::from_secs(4),
        }
    }
}

impl DampingConfig {
    /// No penalty is larger (RFC 2439, section 4.2): `hold_down` after the last change every one
    /// has fallen to `reuse`. Whatever the configuration, `cut_off` can be reached.
    fn ceiling(&self) -> u32 {
        let mut ceiling = u64::from(self.reuse);
        let mut rest = self.hold_down;
        while rest >= self.half_life && ceiling < u64::from(u32::MAX) {
            ceiling *= 2;
            rest -= self.half_life;
        }
        let remaining = decayed(FLAP << 8, rest, self.half_life).max(1);
        let ceiling = ceiling * u64::from(FLAP << 8) / u64::from(remaining);
        u32::try_from(ceiling).unwrap_or(u32::MAX).max(self.cut_off)
    }
}

/// A link whose indicators are not believed at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DampedLink {
    /// Which one.
    pub link: LinkId,
    /// What its indicators said last.
    pub said: LinkState,
    /// What holds instead.
    pub told: LinkState,
    /// At the moment; [`FLAP`] for each change to down, and what is left of former ones.
    pub penalty: u32,
    /// Since when.
    pub since: Instant,
    /// When it is looked at again, unless it changes before.
    pub until: Instant,
}

/// The penalties of all links.
#[derive(Debug)]
pub struct Damping {
    config: DampingConfig,
    dampers: BTreeMap<LinkId, Damper>,
    /// When the next one is due.
    next: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Damper {
    /// As it was at `at`.
    penalty: u32,
    at: Instant,
    said: LinkState,
    by: Indicator,
    told: LinkState,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Calm,
    Damped { since: Instant },
    Distrusted { since: Instant },
}

/// What becomes of something that an indicator says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ruling {
    /// It is believed at once.
    Tell,
    /// Up, but not yet.
    Later,
    /// The indicator is not believed.
    Ignore,
}

/// What is left of `penalty` after `elapsed`.
fn decayed(penalty: u32, elapsed: Duration, half_life: Duration) -> u32 {
    /// 2^(-n/8), in units of 2^-16.
    const EIGHTHS: [u64; 9] = [
        65_536, 60_097, 55_109, 50_535, 46_341, 42_495, 38_968, 35_734, 32_768,
    ];
    let half_life = half_life.as_nanos();
    if half_life == 0 {
        return 0;
    }
    let halvings = elapsed.as_nanos() / half_life;
    if halvings >= 32 {
        return 0;
    }
    // In units of 2^-16 half-lives.
    let part = ((elapsed.as_nanos() % half_life) << 16) / half_life;
    let part = u64::try_from(part).unwrap_or(0);
    let (eighth, within) = (usize::try_from(part >> 13).unwrap_or(0), part & 0x1fff);
    let [from, to] = [EIGHTHS[eighth], EIGHTHS[eighth + 1]];
    let factor = from - (((from - to) * within) >> 13);
    let penalty = (u64::from(penalty) * factor) >> (16 + halvings);
    u32::try_from(penalty).unwrap_or(u32::MAX)
}

impl Damper {
    fn new(now: Instant, event: LinkEvent) -> Self {
        Self {
            penalty: 0,
            at: now,
            said: LinkState::Up,
            by: event.indicator,
            told: LinkState::Up,
            phase: Phase::Calm,
        }
    }

    /// Takes note of another change to down.
    fn charge(&mut self, now: Instant, config: &DampingConfig) {
        self.decay(now, config);
        let penalty = self.penalty.saturating_add(FLAP);
        self.penalty = penalty.min(config.ceiling());
    }

    fn decay(&mut self, now: Instant, config: &DampingConfig) {
        self.penalty = decayed(self.penalty, now.since(self.at), config.half_life);
        self.at = now;
    }

    /// When the penalty will have fallen to `reuse`, as of `at`.
    fn forgiven_at(&self, config: &DampingConfig) -> Instant {
        let (mut early, mut late) = (Duration::ZERO, config.half_life.saturating_mul(32));
        if self.penalty <= config.reuse {
            return self.at;
        }
        while late - early > Duration::from_millis(1) {
            let middle = early + (late - early) / 2;
            match decayed(self.penalty, middle, config.half_life) <= config.reuse {
                true => late = middle,
                false => early = middle,
            }
        }
        self.at + late
    }

    /// When the phase is looked at again.
    fn due(&self, config: &DampingConfig) -> Option<Instant> {
        let forgiven = self.forgiven_at(config);
        match self.phase {
            Phase::Calm => None,
            Phase::Damped { since } if self.said == LinkState::Up => {
                Some(forgiven.min(since + config.hold_down))
            }
            Phase::Damped { .. } | Phase::Distrusted { .. } => Some(forgiven),
        }
    }

    /// An indicator says something else than before.
    fn hear(&mut self, now: Instant, event: LinkEvent, config: &DampingConfig) -> Ruling {
        (self.said, self.by) = (event.state, event.indicator);
        self.look(now, config);
        match event.state {
            LinkState::Down => {
                self.charge(now, config);
                if self.phase == Phase::Calm && self.penalty >= config.cut_off {
                    self.phase = Phase::Damped { since: now };
                }
                match self.phase {
                    Phase::Distrusted { .. } => Ruling::Ignore,
                    Phase::Calm | Phase::Damped { .. } => Ruling::Tell,
                }
            }
            LinkState::Up => match self.phase {
                Phase::Damped { since } if now.since(since) >= config.hold_down => {
                    self.phase = Phase::Distrusted { since };
                    Ruling::Tell
                }
                Phase::Damped { .. } => Ruling::Later,
                Phase::Calm | Phase::Distrusted { .. } => Ruling::Tell,
            },
        }
    }

    /// Time has come to `now`: the phase may be over. What is to be told then is `said`.
    fn look(&mut self, now: Instant, config: &DampingConfig) {
        self.decay(now, config);
        match self.phase {
            Phase::Damped { .. } | Phase::Distrusted { .. } if self.penalty <= config.reuse => {
                self.phase = Phase::Calm;
            }
            Phase::Damped { since }
                if self.said == LinkState::Up && now.since(since) >= config.hold_down =>
            {
                self.phase = Phase::Distrusted { since };
            }
            _ => {}
        }
    }

    /// Whether `said` holds.
    fn believes(&self) -> bool {
        match self.phase {
            Phase::Calm => true,
            Phase::Damped { .. } => self.said == LinkState::Down,
            Phase::Distrusted { .. } => self.said == LinkState::Up,
        }
    }

    /// Whether nothing would be different without it.
    fn is_forgettable(&self, now: Instant, config: &DampingConfig) -> bool {
        let penalty = decayed(self.penalty, now.since(self.at), config.half_life);
        self.phase == Phase::Calm && self.said == LinkState::Up && penalty < FLAP / 2
    }
}

impl Damping {
    /// Nobody has flapped yet.
    #[must_use]
    pub const fn new(config: DampingConfig) -> Self {
        Self {
            config,
            dampers: BTreeMap::new(),
            next: None,
        }
    }

    /// When [`Self::take_due`] is to be called.
    #[must_use]
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }

    /// What has been said and is not told.
    pub fn untold(&self) -> impl Iterator<Item = LinkEvent> {
        let untold = self.dampers.iter().filter(|(_, d)| d.told != d.said);
        untold.map(|(link, damper)| LinkEvent {
            link: *link,
            state: damper.said,
            indicator: damper.by,
        })
    }

    /// The links whose indicators are not believed at once.
    pub fn damped(&self, now: Instant) -> impl Iterator<Item = DampedLink> {
        let config = self.config;
        self.dampers.iter().filter_map(move |(&link, damper)| {
            let (Phase::Damped { since } | Phase::Distrusted { since }) = damper.phase else {
                return None;
            };
            Some(DampedLink {
                link,
                said: damper.said,
                told: damper.told,
                penalty: decayed(damper.penalty, now.since(damper.at), config.half_life),
                since,
                until: damper.due(&config).unwrap_or(now),
            })
        })
    }

    fn plan(&mut self) {
        let due = self.dampers.values().filter_map(|d| d.due(&self.config));
        self.next = due.min();
    }

    /// What becomes of `event`; `None` if there is no room for its link.
    pub fn rule(&mut self, now: Instant, event: LinkEvent) -> Option<Ruling> {
        let config = self.config;
        let damper = match self.dampers.get_mut(&event.link) {
            Some(damper) => damper,
            None if event.state == LinkState::Up => return Some(Ruling::Tell),
            None => self.admit(now, event)?,
        };
        let ruling = match damper.said == event.state {
            // Said again. Where something else was told, that goes on to hold, be it right or not.
            true if damper.told == event.state => Ruling::Tell,
            true => Ruling::Ignore,
            false => damper.hear(now, event, &config),
        };
        if ruling == Ruling::Tell {
            damper.told = event.state;
        }
        self.plan();
        Some(ruling)
    }

    /// Whether somebody is believed who says that a link was away and is back: a return. Each is charged as a change to
    /// down; those that are damped or distrusted are not believed.
    pub fn rule_return(&mut self, now: Instant, event: LinkEvent) -> Option<Ruling> {
        let config = self.config;
        let damper = match self.dampers.get_mut(&event.link) {
            Some(damper) => damper,
            None => self.admit(now, event)?,
        };
        damper.look(now, &config);
        damper.charge(now, &config);
        if damper.phase == Phase::Calm && damper.penalty >= config.cut_off {
            damper.phase = Phase::Distrusted { since: now };
        }
        let ruling = match damper.phase {
            Phase::Calm => Ruling::Tell,
            _ => Ruling::Ignore,
        };
        self.plan();
        Some(ruling)
    }

    fn admit(&mut self, now: Instant, event: LinkEvent) -> Option<&mut Damper> {
        if self.dampers.len() >= MOST {
            let config = self.config;
            self.dampers
                .retain(|_, damper| !damper.is_forgettable(now, &config));
        }
        (self.dampers.len() < MOST).then(|| {
            let damper = self.dampers.entry(event.link);
            damper.or_insert_with(|| Damper::new(now, event))
        })
    }

    /// A link whose time has come, with what is to be told of it.
    pub fn take_due(&mut self, now: Instant) -> Option<Option<LinkEvent>> {
        if self.next? > now {
            return None;
        }
        let config = self.config;
        let is_due = |damper: &Damper| damper.due(&config).is_some_and(|at| at <= now);
        let due = self.dampers.iter_mut().find(|(_, damper)| is_due(damper));
        let told = due.and_then(|(link, damper)| {
            damper.look(now, &config);
            let is_news = damper.believes() && damper.told != damper.said;
            is_news.then(|| {
                damper.told = damper.said;
                LinkEvent {
                    link: *link,
                    state: damper.said,
                    indicator: damper.by,
                }
            })
        });
        self.plan();
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: DampingConfig = DampingConfig {
        half_life: Duration::from_secs(2),
        cut_off: 4_000,
        reuse: 2_000,
        hold_down: Duration::from_secs(4),
    };

    #[test]
    fn a_penalty_halves_in_each_half_life() {
        for (ms, left) in [(0, 8_000), (2_000, 4_000), (4_000, 2_000), (6_000, 1_000)] {
            let elapsed = Duration::from_millis(ms);
            assert_eq!(decayed(8_000, elapsed, CONFIG.half_life), left, "{ms} ms");
        }
        // 8000 / sqrt 2
        let part = decayed(8_000, Duration::from_secs(1), CONFIG.half_life);
        assert!((5_650..5_665).contains(&part), "{part}");
        assert_eq!(
            decayed(u32::MAX, Duration::from_secs(64), CONFIG.half_life),
            0
        );
        let mut before = u32::MAX;
        for ms in 0..10_000 {
            let left = decayed(8_000, Duration::from_millis(ms), CONFIG.half_life);
            assert!(left <= before, "{ms} ms");
            before = left;
        }
    }

    #[test]
    fn without_a_half_life_all_is_forgiven_at_once() {
        let config = DampingConfig {
            half_life: Duration::ZERO,
            ..CONFIG
        };
        let link = LinkId::of_interface(crate::links::InterfaceId(1));
        let mut damping = Damping::new(config);
        let now = Instant::from_millis(1_000);
        for _ in 0..10 {
            for state in [LinkState::Down, LinkState::Up] {
                let indicator = Indicator::Carrier;
                let event = LinkEvent {
                    link,
                    state,
                    indicator,
                };
                assert_eq!(damping.rule(now, event), Some(Ruling::Tell));
            }
        }
        assert_eq!(damping.take_due(now), None);
    }

    #[test]
    fn the_largest_penalty_is_forgiven_after_the_hold_down_time() {
        assert_eq!(CONFIG.ceiling(), 8_000);
        let odd = DampingConfig {
            hold_down: Duration::from_secs(5),
            ..CONFIG
        };
        // 2000 * 2^2.5
        assert!(
            (11_300..11_330).contains(&odd.ceiling()),
            "{}",
            odd.ceiling()
        );
        let short = DampingConfig {
            hold_down: Duration::from_millis(1),
            ..CONFIG
        };
        assert_eq!(short.ceiling(), short.cut_off);
    }
}
