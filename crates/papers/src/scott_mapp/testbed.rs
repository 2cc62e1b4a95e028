//! Where the figures are measured: on this machine's kernel, or on the model of a historic one.
//!
//! The paper names neither kernel nor version. Its channel is the "ethertap" driver of Linux
//! (section 5.1), which Linux 2.4 of January 2001 replaced, and the work was begun in March 2000
//! (section 1.1): the stable Linux of that time was 2.2, so that [`Profile::Linux22`] is taken for the
//! paper's stack. [`Profile::Linux24`] and [`Profile::Linux6`] stand beside it.

use super::channel;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::setting::Setting;
use outlast_report::judgement::Claim;
use outlast_report::plot::Axis;
use outlast_scenario::Profile;
use outlast_scenario::result::World;

/// The longest time that a scenario can have: a sender that waits still has given up before.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Where the figures are measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Testbed {
    /// The live lab, with this machine's own kernel at both ends.
    Lab,
    /// The simulator, with this stack at both ends.
    Sim(Profile),
}

impl Testbed {
    /// The simulator with the stack that is taken for the paper's.
    pub const OF_THE_PAPER: Self = Self::Sim(Profile::Linux22);

    /// Run `index` of `setting` here.
    #[must_use]
    pub fn job(self, cell: String, setting: &Setting, index: u32) -> Job {
        match self {
            Self::Lab => Job::new(cell, setting, index),
            Self::Sim(profile) => {
                Job::from_toml(cell, setting.to_toml_on(profile), index).in_world(World::Sim)
            }
        }
    }

    /// One-way delay of the link.
    ///
    /// The paper's link had none, and it matters: on a link with delay, what is on its way when the
    /// link goes down arrives, but is not acknowledged; a receiver that re-receives an old segment
    /// then answers with an ACK that is news to the sender, so that levels 1 and 2 work better than
    /// the paper says.
    #[must_use]
    pub fn delay(self) -> Duration {
        match self {
            Self::Lab => Duration::from_millis(1),
            Self::Sim(_) => Duration::ZERO,
        }
    }

    /// The name of the cell that is called `cell` in the lab.
    #[must_use]
    pub fn cell(self, cell: String) -> String {
        match self {
            Self::Lab => cell,
            Self::Sim(profile) => format!("{cell}, {profile}"),
        }
    }

    /// Trials of each series at each availability. The paper has 14.
    #[must_use]
    pub fn trials(self, extent: Extent) -> u32 {
        match self {
            Self::Lab => extent.choose(3, 14),
            Self::Sim(_) => extent.choose(2, 14),
        }
    }

    /// Size of a transfer: the paper's 50 Mbyte, or in a quick lab one that takes a few connected
    /// periods.
    #[must_use]
    pub fn bytes(self, extent: Extent) -> ByteCount {
        match self {
            Self::Lab => ByteCount(extent.choose(4_000_000, 50_000_000)),
            Self::Sim(_) => ByteCount(50_000_000),
        }
    }

    /// When a transfer of this size is given up at an availability of `percent`. The paper waited
    /// until TCP gave up, and so does the simulator; in the lab that would take a quarter of an
    /// hour and more per stall.
    #[must_use]
    pub fn deadline(self, extent: Extent, percent: u32) -> Duration {
        match self {
            Self::Lab => {
                let at_rate = self.bytes(extent).as_u64() * 8 / u64::from(channel::RATE_MBIT_PER_S);
                let at_best = Duration::from_micros(at_rate) * 100 / percent;
                Duration::from_secs((at_best * self.patience(extent)).as_secs() + 1)
            }
            Self::Sim(_) => LONGEST,
        }
    }

    /// The axis of durations: where nobody ends a transfer early, the unaided ones take a hundred
    /// times as long as the others.
    #[must_use]
    pub fn durations(self, axis: Axis) -> Axis {
        match self {
            Self::Lab => axis,
            Self::Sim(_) => axis.logarithmic(),
        }
    }

    /// What ends a transfer that fails, in words.
    #[must_use]
    pub fn end(self) -> &'static str {
        match self {
            Self::Lab => "before the deadline",
            Self::Sim(_) => "before TCP gave the connection up",
        }
    }

    /// The claim, with why this machine's kernel may differ.
    #[must_use]
    pub fn departing(self, claim: Claim, in_lab: &'static str) -> Claim {
        match self {
            Self::Lab => Claim {
                departure: Some(in_lab.into()),
                ..claim
            },
            Self::Sim(_) => claim,
        }
    }

    /// The claim, with why the model may differ.
    #[must_use]
    pub fn departing_in_sim(self, claim: Claim, in_sim: &'static str) -> Claim {
        match self {
            Self::Lab => claim,
            Self::Sim(_) => Claim {
                departure: Some(in_sim.into()),
                ..claim
            },
        }
    }

    /// How long transfers are and when they count as failed, and whose TCP it is, in words.
    pub(super) fn method(self, extent: Extent) -> Vec<String> {
        let size = format!(
            "A transfer has {} MB",
            self.bytes(extent).as_u64() / 1_000_000
        );
        match self {
            Self::Lab => vec![
                format!(
                    "{size} and counts as failed after {} times the time that it needs at best on \
                     average.",
                    self.patience(extent)
                ),
                "The TCP is this machine's Linux with its defaults (CUBIC, SACK, timestamps, RACK \
                 and tail loss probes), where the paper had one of its time."
                    .to_owned(),
            ],
            Self::Sim(profile) => vec![
                format!(
                    "{size} and counts as failed when TCP gives the connection up, as in the paper, \
                     after fifteen retransmissions of one segment."
                ),
                format!(
                    "The TCP is the model of {profile}. The paper names no version; its driver, \
                     ethertap, is one that Linux 2.4 replaced, and its work was begun in March 2000, \
                     when 2.2 was the stable one. The last section repeats what depends on the \
                     stack most with linux-2.4 and linux-6."
                ),
                "Tolerances are those of the lab's experiment. A first look had the lab's delay of \
                 1 ms each way, where level 1 restarts at once: what is on its way when the link goes \
                 down arrives, but its ACK is lost, and the receiver that re-receives an old segment \
                 repeats that ACK. The paper's link had no delay, and has none here."
                    .to_owned(),
            ],
        }
    }

    /// How many times the time that a transfer needs at best on average it may take.
    fn patience(self, extent: Extent) -> u32 {
        extent.choose(4, 5)
    }
}
