//! The paper's testbed (section II): a mobile host on 2 Mbit/s WaveLAN, two support stations, a
//! stationary host on Ethernet, 4.3BSD-Tahoe at both ends.
//!
//! - WaveLAN's 2 Mbit/s carry acknowledgements, framing and gaps as well, none of which the link
//!   here has: its rate is what makes the paper's greatest throughput of 1.6 Mbit/s (section III.D),
//!   so that the first bar of figure 2 is no result but the base of the others.
//! - The round trip is "well under 1 millisecond" (section IV.B): 0.25 ms each way here. BSD's
//!   interface queue has room for 50 packets (`IFQ_MAXLEN`).
//! - A hand-off between cells that do not overlap is an outage from the crossing until the old
//!   station's routes are changed: the rendezvous delay, and 0.15 s for registration (figure 5; the
//!   same comes from 2.8 s and 1.65 s of figures 6 and 8). The mobile's own route is right 0.1 s
//!   earlier; here both ways come back together. Nobody is told when the link is back.
//! - A hand-off between overlapping cells loses nothing (section III.C) and is no event here: what
//!   it costs the paper, encapsulation and forwarding, needs Mobile IP, which is not modelled.
//! - A transfer has 4 Mbyte, taken for 2²² bytes: at 1.4 Mbit/s that is the paper's "roughly 24" s.
//!   The crossings come every 8 s. The first is 6.5 s after the first byte: only one between 5 s and
//!   8 s gives three of them both in 24 s and in 29 s, as the paper has it, and this is the middle.

use outlast_base::time::Duration;
use outlast_experiments::job::Job;
use outlast_scenario::Direction;
use outlast_scenario::result::World;

/// How the mobile moves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Motion {
    /// It stays in its cell.
    None,
    /// It moves between cells that overlap.
    Overlapping,
    /// It moves between cells that do not, and hears the new station this long after it has left
    /// the old one.
    Apart {
        /// The rendezvous delay.
        rendezvous: Duration,
    },
}

/// When the mobile crosses into another cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Crossings {
    /// Every eight beaconing periods of a second.
    EveryEightSeconds,
    /// Once, in the middle of a short transfer.
    Once,
}

/// No rendezvous delay: the new station's beacon comes as the mobile leaves.
pub const AT_ONCE: Duration = Duration::ZERO;
/// The new station's beacon comes a whole period later.
pub const A_SECOND: Duration = Duration::from_secs(1);

/// From the beacon of the new station until the old one's routes are changed (figure 5).
pub const REGISTRATION: Duration = Duration::from_millis(150);

/// The remedy: an agent at the mobile.
const HELPED: &str = "[outlast]\nmobile = \"fast-retransmit\"\n\n";

/// The rate that makes 1.6 Mbit/s of payload: 1460 of 1500 bytes.
const RATE_KBIT_PER_S: u32 = 1_644;
/// One-way delay.
const DELAY: Duration = Duration::from_micros(250);
/// Packets that may wait.
const QUEUE: u32 = 50;
/// Bytes of the transfers with crossings every eight seconds.
const LONG: u64 = 4 << 20;
/// Bytes of the transfers with one crossing: five seconds.
const SHORT: u64 = 1_000_000;
/// From the first byte to the first crossing.
const FIRST: Duration = Duration::from_millis(6_500);
/// From one crossing to the next.
const PERIOD: Duration = Duration::from_secs(8);
/// From the first byte to a single crossing.
const ONCE: Duration = Duration::from_secs(3);

impl Motion {
    /// The four scenarios of section III.A.
    pub const ALL: [Self; 4] = [
        Self::None,
        Self::Overlapping,
        Self::Apart {
            rendezvous: AT_ONCE,
        },
        Self::Apart {
            rendezvous: A_SECOND,
        },
    ];

    /// As tables and legends name it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::None => "no motion".to_owned(),
            Self::Overlapping => "overlapping cells".to_owned(),
            Self::Apart { rendezvous } => {
                format!("{} s rendezvous delay", rendezvous.as_secs())
            }
        }
    }

    /// How long a hand-off keeps packets from crossing, if it does.
    #[must_use]
    pub fn interruption(self) -> Option<Duration> {
        match self {
            Self::None | Self::Overlapping => None,
            Self::Apart { rendezvous } => Some(rendezvous + REGISTRATION),
        }
    }
}

/// Run `index` of a transfer by a mobile that moves like this.
#[must_use]
pub fn job(
    cell: String,
    motion: Motion,
    crossings: Crossings,
    direction: Direction,
    index: u32,
) -> Job {
    let down = motion.interruption();
    job_with(cell, motion, down, crossings, direction, index, "")
}

/// One run of the testbed with the remedy, an agent at the mobile.
#[must_use]
pub fn helped_job(
    cell: String,
    motion: Motion,
    crossings: Crossings,
    direction: Direction,
    index: u32,
) -> Job {
    let down = motion.interruption();
    job_with(cell, motion, down, crossings, direction, index, HELPED)
}

/// One run of a single hand-off with the remedy whose registration takes `registration`.
#[must_use]
pub fn sooner_job(
    cell: String,
    rendezvous: Duration,
    registration: Duration,
    direction: Direction,
    index: u32,
) -> Job {
    let motion = Motion::Apart { rendezvous };
    let down = Some(rendezvous + registration);
    job_with(
        cell,
        motion,
        down,
        Crossings::Once,
        direction,
        index,
        HELPED,
    )
}

fn job_with(
    cell: String,
    motion: Motion,
    down: Option<Duration>,
    crossings: Crossings,
    direction: Direction,
    index: u32,
    outlast: &str,
) -> Job {
    let outages = match (down, crossings) {
        (None, _) => String::new(),
        (Some(down), Crossings::EveryEightSeconds) => format!(
            "[link.outages]\nprocess = \"periodic\"\nstart = \"{} ms\"\nup = \"{} ms\"\n\
             down = \"{} ms\"\n",
            FIRST.as_millis(),
            (PERIOD.saturating_sub(down)).as_millis(),
            down.as_millis()
        ),
        (Some(length), Crossings::Once) => format!(
            "[link.outages]\nprocess = \"single\"\nstart = \"{} ms\"\nlength = \"{} ms\"\n",
            ONCE.as_millis(),
            length.as_millis()
        ),
    };
    let bytes = match crossings {
        Crossings::EveryEightSeconds => LONG,
        Crossings::Once => SHORT,
    };
    let text = format!(
        "name = \"{}\"\n\n\
         [link]\nrate = \"{RATE_KBIT_PER_S} kbit/s\"\ndelay = \"{} us\"\nqueue = {QUEUE}\n\
         in_flight = \"lost\"\n{outages}\n\
         [workload]\nkind = \"bulk\"\nbytes = \"{bytes} B\"\ndirection = \"{direction}\"\n\n\
         [stack]\nprofile = \"bsd-4.3-tahoe\"\n\n{outlast}\
         [run]\nseed = 1\ndeadline = \"300 s\"\n",
        motion.name(),
        DELAY.as_micros()
    );
    Job::from_toml(cell, text, index).in_world(World::Sim)
}

/// The testbed in words.
pub(super) fn method() -> String {
    format!(
        "A mobile sends to a stationary host over a link of {RATE_KBIT_PER_S} kbit/s, which gives \
         the 1.6 Mbit/s of payload that the paper's WaveLAN gave at best, with {} ms of delay each \
         way and room for {QUEUE} packets; 4.3BSD-Tahoe at both ends. A hand-off between cells that \
         do not overlap is an outage of the rendezvous delay and {} ms of registration, as figures 5 \
         and 6 of the paper measure it; one between overlapping cells loses nothing. Mobile IP itself \
         is not modelled.",
        DELAY.as_micros() as f64 / 1e3,
        REGISTRATION.as_millis()
    )
}
