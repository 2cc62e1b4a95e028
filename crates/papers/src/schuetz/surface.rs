//! Figures 10 to 12: net transmission time by length of the connected and the disconnected period.
//!
//! The paper draws surfaces. Here is a table of the medians, and curves against the length of the
//! disconnected period with the quartiles of all transfers that it interrupts.

use super::claim;
use super::single::{self, connected, disconnected};
use super::testbed::{
    EXPECTED, PROTOTYPE, PROTOTYPE_TODAY, PROTOTYPE_WITHOUT_QUEUE, Readdressing, Variant,
};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Claim, Departure, Judged, Measured, Published, Tolerance};
use outlast_report::page::Highlight;
use outlast_report::plot::{Axis, Curves, Point, Series};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;

/// One of the figures.
#[derive(Debug)]
pub struct Surface {
    name: &'static str,
    title: &'static str,
    heading: &'static str,
    variant: Variant,
    readdressing: Readdressing,
    claims: fn(&Surface, Extent, &Runs) -> Vec<Judged>,
}

/// Figure 10.
pub static FIGURE_10: Surface = Surface {
    name: "figure-10",
    title: "Net transmission time of standard TCP",
    heading: "Figure 10 of the paper: standard TCP",
    variant: Variant::Tcp,
    readdressing: PROTOTYPE,
    claims: of_tcp,
};

/// Figure 10 with a receive buffer that leaves the queue empty.
pub static FIGURE_10_WITHOUT_QUEUE: Surface = Surface {
    name: "figure-10-empty-queue",
    title: "Figure 10 with a receive buffer of 128 kB, which leaves the queue empty",
    heading: "Figure 10 with a receive buffer of 128 kB, which leaves the queue empty",
    variant: Variant::Tcp,
    readdressing: PROTOTYPE_WITHOUT_QUEUE,
    claims: of_tcp_without_queue,
};

/// Figure 11.
pub static FIGURE_11: Surface = Surface {
    name: "figure-11",
    title: "Net transmission time with the user timeout option",
    heading: "Figure 11 of the paper: with the user timeout option",
    variant: Variant::UserTimeout,
    readdressing: PROTOTYPE,
    claims: of_user_timeout,
};

/// Figure 12.
pub static FIGURE_12: Surface = Surface {
    name: "figure-12",
    title: "Net transmission time with the retransmission trigger",
    heading: "Figure 12 of the paper: with the retransmission trigger as well",
    variant: Variant::Trigger,
    readdressing: PROTOTYPE,
    claims: of_trigger,
};

/// Figure 12 as the paper expects it of a better implementation of HIP.
pub static FIGURE_12_EXPECTED: Surface = Surface {
    name: "figure-12-expected",
    title: "Figure 12 with the readdressing time that the paper expects",
    heading: "Figure 12 with the readdressing time that the paper expects",
    variant: Variant::Trigger,
    readdressing: EXPECTED,
    claims: of_expected_trigger,
};

/// Figure 12 between today's hosts.
pub static FIGURE_12_LINUX_6: Surface = Surface {
    name: "figure-12-linux-6",
    title: "Figure 12 between hosts with Linux 6",
    heading: "Figure 12 between hosts with Linux 6",
    variant: Variant::Trigger,
    readdressing: PROTOTYPE_TODAY,
    claims: of_trigger_between_linux_6,
};

/// Figure 10 with HIP.
pub static FIGURE_10_BY_HIP: Surface = Surface {
    name: "figure-10",
    title: "Net transmission time of standard TCP over HIP",
    heading: "Figure 10 of the paper: standard TCP",
    variant: Variant::Tcp,
    readdressing: Readdressing::Hip,
    claims: of_tcp,
};

/// Figure 11 with HIP.
pub static FIGURE_11_BY_HIP: Surface = Surface {
    name: "figure-11",
    title: "Net transmission time over HIP with the user timeout option",
    heading: "Figure 11 of the paper: with the user timeout option",
    variant: Variant::UserTimeout,
    readdressing: Readdressing::Hip,
    claims: of_user_timeout,
};

/// Figure 12 with HIP.
pub static FIGURE_12_BY_HIP: Surface = Surface {
    name: "figure-12",
    title: "Net transmission time over HIP with the retransmission trigger",
    heading: "Figure 12 of the paper: with the retransmission trigger as well",
    variant: Variant::Trigger,
    readdressing: Readdressing::Hip,
    claims: of_trigger_by_hip,
};

/// Figure 12 with HIP between today's hosts.
pub static FIGURE_12_TODAY: Surface = Surface {
    name: "figure-12-today",
    title: "Figure 12 with HIP between hosts with Linux 6",
    heading: "Figure 12 with HIP between hosts with Linux 6",
    variant: Variant::Trigger,
    readdressing: Readdressing::Today,
    claims: of_trigger_today,
};

/// Connected periods after which every transfer still runs: it takes 21 s at best.
pub(super) const INTERRUPTED: u32 = 20;
/// Connected periods from which on every transfer is over.
pub(super) const OVER: u32 = 24;
/// Time of a transfer without disconnection, as the paper has it without and with HIP.
pub(super) const BEST_S: f64 = 21.0;
/// Greatest timeout of Linux 2.4, after which the ninth retransmission has failed.
const LONGEST_TIMEOUT_S: f64 = 120.0;
/// How well times are read off the figures.
pub(super) const READ_OFF: Tolerance = Tolerance::Relative(0.1);
/// Why the worst cell, whose disconnection comes after 2 s, is slower than the paper's.
const AFTER_SLOW_START: &str = "in the worst cell, after 2 s, slow start had just overfilled the queue and left a \
    small window. The timeout halves it, and Reno needs many seconds to fill the link again; disconnections that come \
    later find a larger window, and Linux 6 keeps its own (figure-12-linux-6). What window the paper's hosts had is not told.";
/// Reason for which connections abort later.
const LATER: &str = "a timeout follows the round trip, which the queue lengthens from 100 ms to 190 ms as the window grows: \
    nine retransmissions take 156 to 195 s here. With a receive buffer of 128 kB, which leaves the queue empty, \
    all connections abort beyond 143 s with an assumed time of readdressing, and beyond 156 s with HIP.";
/// Reason for which the ninth failure comes later.
const ABORTS_LATER: &str = "the timeout follows the round trip, which the queue lengthens as the window grows: the ninth retransmission comes \
    158 s after a disconnection that begins after 2 s, and 194 s after one that begins after 20 s. With a receive buffer of 128 kB, which leaves the \
    queue empty, it comes after 153 s, wherever the disconnection begins (figure-10-empty-queue).";
/// Reason for which the connected period matters.
const BY_CONNECTED: &str = "the queue grows with the connected period, and with it the round trip and the timeout, so that the doubled timeouts \
    meet the end of a disconnection elsewhere: after 78 s a transfer takes 108 s if the disconnection begins after 2 s, and 30 s if after 8 s. With a \
    receive buffer of 128 kB, which leaves the queue empty, the medians of one length differ by 5 % at most (figure-10-empty-queue).";
/// Reason for which a few lengths do not give the median of many.
const FEW_LENGTHS: &str = "the quick extent has two lengths beyond 143 s, 156 and 208 s; over the five of the full one the median is \
    within the published range.";
/// Why readdressing takes less than the paper says of it.
const SOONER: &str = "readdressing here is three messages, UPDATE, its answer with an echo request, and the echo, so that the \
    correspondent knows of the new address one and a half round trips after the mobile has it.";

impl Figure for Surface {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        single::jobs(extent, self.variant, self.readdressing)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let part = Part::new(self.heading)
            .table(self.table(extent, runs))
            .figure(
                self.curves(extent, runs).draw(),
                format!(
                    "Median net transmission time by length of the disconnected period, over all \
                     connected periods up to {INTERRUPTED} s, with quartiles; where it is missing \
                     the transfers were aborted. Compare {}.",
                    self.heading
                ),
            )
            .claims((self.claims)(self, extent, runs));
        if self.variant != Variant::Trigger {
            return part;
        }
        let worst = self.worst_ratio(extent, runs);
        part.highlight(Highlight {
            label: format!("Trigger, {}", self.readdressing.name()),
            value: worst.map_or("–".to_owned(), |worst| Unit::Share.show(worst.value)),
            note: "of constant connectivity plus readdressing, in the worst cell".to_owned(),
            tone: worst.map_or(Tone::Plain, |worst| match worst.value <= 1.02 {
                true => Tone::Good,
                false => Tone::Bad,
            }),
        })
    }
}

impl Surface {
    /// The reason for slow cells with the trigger, between hosts that have it: those with Linux 2.4.
    fn after_slow_start(&self) -> Option<Departure> {
        match self.readdressing {
            Readdressing::Assumed(_) | Readdressing::AssumedWithoutQueue(_) | Readdressing::Hip => {
                Some(AFTER_SLOW_START.into())
            }
            Readdressing::AssumedToday(_) | Readdressing::Today => None,
        }
    }

    fn of<'a>(&self, runs: &'a Runs, up: u32, down: u32) -> &'a [Record] {
        single::of(runs, self.variant, self.readdressing, up, down)
    }

    /// The median of a pair of lengths.
    fn median(&self, runs: &Runs, up: u32, down: u32) -> Option<f64> {
        single::quartiles(self.of(runs, up, down), up, down).map(|[_, median, _]| median)
    }

    /// The medians of all pairs whose disconnection interrupts, with the pair.
    fn medians(&self, extent: Extent, runs: &Runs, downs: impl Fn(u32) -> bool) -> Vec<f64> {
        let pairs = interrupted(extent)
            .flat_map(|up| disconnected(extent).iter().map(move |&down| (up, down)));
        let pairs = pairs.filter(|&(_, down)| downs(down));
        pairs
            .filter_map(|(up, down)| self.median(runs, up, down))
            .collect()
    }

    /// By which share the median of each interrupted pair differs from that of standard TCP.
    fn changes(&self, extent: Extent, runs: &Runs, downs: impl Fn(u32) -> bool) -> Vec<f64> {
        let pairs = interrupted(extent)
            .flat_map(|up| disconnected(extent).iter().map(move |&down| (up, down)));
        let pairs = pairs.filter(|&(_, down)| downs(down));
        let change = |(up, down)| {
            let ours = self.median(runs, up, down)?;
            let standard = single::of(runs, Variant::Tcp, self.readdressing, up, down);
            let [_, standard, _] = single::quartiles(standard, up, down)?;
            Some(match ours == standard {
                true => 0.0,
                false => (ours / standard - 1.0).abs(),
            })
        };
        pairs.filter_map(change).collect()
    }

    /// Net times of all interrupted transfers with one length of the disconnected period.
    fn quartiles(&self, extent: Extent, runs: &Runs, down: u32) -> Option<[f64; 3]> {
        let all: Vec<Record> = interrupted(extent)
            .flat_map(|up| self.of(runs, up, down).to_vec())
            .collect();
        single::quartiles(&all, 0, down)
    }

    /// The time of a transfer that no disconnection interrupts.
    fn undisturbed(&self, extent: Extent, runs: &Runs) -> Option<f64> {
        let over = connected(extent).iter().rfind(|&&up| up >= OVER)?;
        self.median(runs, *over, 0)
    }

    /// The largest median, as a share of the undisturbed time and the readdressing.
    fn worst_ratio(&self, extent: Extent, runs: &Runs) -> Option<Measured> {
        let best = self.undisturbed(extent, runs)? + self.readdressing.allowance().as_secs_f64();
        extreme(&self.medians(extent, runs, |_| true), f64::max).map(|worst| Measured {
            value: worst.value / best,
            ..worst
        })
    }

    fn aborted(
        &self,
        extent: Extent,
        runs: &Runs,
        downs: impl Fn(u32) -> bool + Copy,
    ) -> Option<Measured> {
        let pairs = interrupted(extent)
            .flat_map(|up| disconnected(extent).iter().map(move |&down| (up, down)));
        let pairs = pairs.filter(|&(_, down)| downs(down));
        share(
            pairs.flat_map(|(up, down)| self.of(runs, up, down)),
            |record| !record.succeeded(),
        )
    }

    /// The greatest difference between medians after one length of the disconnected period, as a share of
    /// the least of them. Lengths at which a median is an abort have no difference.
    fn spread_by_connected(&self, extent: Extent, runs: &Runs) -> Option<Measured> {
        let spreads = disconnected(extent).iter().filter_map(|&down| {
            let medians = self.medians(extent, runs, |other| other == down);
            let (least, greatest) = (
                medians.iter().copied().reduce(f64::min)?,
                medians.iter().copied().reduce(f64::max)?,
            );
            greatest.is_finite().then(|| greatest / least - 1.0)
        });
        extreme(&spreads.collect::<Vec<_>>(), f64::max)
    }

    /// The times from the beginning of the disconnection to the last retransmission before an abort.
    fn last_retransmissions(&self, extent: Extent, runs: &Runs) -> Option<Measured> {
        let pairs = interrupted(extent)
            .flat_map(|up| disconnected(extent).iter().map(move |&down| (up, down)));
        let times = pairs.flat_map(|(up, down)| {
            let aborted = self.of(runs, up, down).iter();
            let aborted = aborted.filter(|record| !record.succeeded());
            aborted.map(move |record| record.result.elapsed_s - f64::from(up) - LONGEST_TIMEOUT_S)
        });
        mean(times)
    }

    fn table(&self, extent: Extent, runs: &Runs) -> Table {
        let mut columns = vec![Column::quantity(
            "disconnected_s",
            "Disconnected",
            Unit::Seconds,
        )];
        columns.extend(connected(extent).iter().map(|up| {
            Column::quantity(
                format!("net_after_{up}_s"),
                format!("after {up} s"),
                Unit::Seconds,
            )
        }));
        columns.push(Column::quantity(
            "interquartile_s",
            "Quartiles apart",
            Unit::Seconds,
        ));
        let mut table = Table::new(columns);
        for &down in disconnected(extent) {
            let mut row = vec![Cell::from(f64::from(down))];
            row.extend(connected(extent).iter().map(|&up| {
                let median = self.median(runs, up, down);
                median.map_or(Cell::missing(), |median| match median.is_finite() {
                    true => Cell::from(median),
                    false => Cell::from("aborted").tone(Tone::Bad),
                })
            }));
            let spread = self
                .quartiles(extent, runs, down)
                .map(|[low, _, high]| high - low);
            row.push(Cell::from(spread.filter(|spread| spread.is_finite())));
            table.push(row);
        }
        table.note(format!(
            "The last column is of all transfers with a connected period up to {INTERRUPTED} s."
        ));
        table.titled(format!(
            "{}, {}: median net transmission time by connected and disconnected period",
            self.variant.name(),
            self.readdressing.name()
        ))
    }

    fn curves(&self, extent: Extent, runs: &Runs) -> Curves {
        let points = disconnected(extent).iter().filter_map(|&down| {
            let [low, median, high] = self.quartiles(extent, runs, down)?;
            let point = Point::new(f64::from(down), median);
            Some(match high.is_finite() {
                true => point.between(low, high),
                false => point,
            })
        });
        Curves {
            x: Axis::new("Disconnected", Unit::Seconds).range(0.0, 208.0),
            y: Axis::new("Net transmission time", Unit::Seconds).range(0.0, 150.0),
            series: vec![Series {
                name: self.variant.name().to_owned(),
                is_control: self.variant == Variant::Tcp,
                points: points.collect(),
            }],
            optimum: Some((
                "best case of the paper".to_owned(),
                vec![(0.0, BEST_S), (208.0, BEST_S)],
            )),
        }
    }
}

/// The connected periods after which every transfer still runs.
fn interrupted(extent: Extent) -> impl Iterator<Item = u32> {
    connected(extent)
        .iter()
        .copied()
        .filter(|&up| up <= INTERRUPTED)
}

pub(super) fn extreme(values: &[f64], of: fn(f64, f64) -> f64) -> Option<Measured> {
    let value = values.iter().copied().reduce(of)?;
    Some(Measured {
        value,
        standard_deviation: None,
        count: values.len(),
    })
}

/// Section 4.1.1: no connection outlives a long disconnection.
fn aborted_beyond(figure: &Surface, extent: Extent, runs: &Runs) -> Judged {
    Claim {
        departure: Some(LATER.into()),
        ..claim(
            "section 4.1.1",
            "Beyond 143 s all connections abort.",
            Unit::Share,
            Published::AtLeast(1.0),
            Tolerance::Exact,
        )
    }
    .judge(figure.aborted(extent, runs, |down| down > 143))
}

/// Section 4.1: the time of nine failed retransmissions.
fn aborts_after(figure: &Surface, extent: Extent, runs: &Runs) -> Judged {
    Claim {
        departure: Some(ABORTS_LATER.into()),
        ..claim(
            "section 4.1",
            "Nine retransmissions have failed after about 150 s of disconnection (mean over the aborted connections, less the \
             wait of 120 s after the ninth).",
            Unit::Seconds,
            Published::About(150.0),
            READ_OFF,
        )
    }
    .judge(figure.last_retransmissions(extent, runs))
}

/// Section 4.1.1: the length of the connected period.
fn impact_of_connected(figure: &Surface, extent: Extent, runs: &Runs) -> Judged {
    Claim {
        departure: Some(BY_CONNECTED.into()),
        ..claim(
            "section 4.1.1",
            "The length of the connected period, 2 s or more, has very little impact on the net transmission time \
             (greatest difference of medians at one length of the disconnected period).",
            Unit::Share,
            Published::AtMost(0.0),
            // As far as times can be read off the figures.
            Tolerance::Absolute(0.1),
        )
    }
    .judge(figure.spread_by_connected(extent, runs))
}

/// The claims on aborts and on the connected period, with the queue's part in them removed.
fn of_tcp_without_queue(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    vec![
        aborted_beyond(figure, extent, runs),
        aborts_after(figure, extent, runs),
        impact_of_connected(figure, extent, runs),
    ]
}

fn of_tcp(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let at = |down| {
        figure
            .quartiles(extent, runs, down)
            .map(|[_, median, _]| median)
    };
    let mut claims = vec![
        claim(
            "section 4.1.1",
            "Up to 130 s of disconnection no connection aborts (share that does).",
            Unit::Share,
            Published::AtMost(0.0),
            Tolerance::Exact,
        )
        .judge(figure.aborted(extent, runs, |down| down <= 130)),
        aborted_beyond(figure, extent, runs),
        aborts_after(figure, extent, runs),
        impact_of_connected(figure, extent, runs),
        claim(
            "section 4.1.1",
            "In the worst case the net transmission time exceeds 100 s.",
            Unit::Seconds,
            Published::AtLeast(100.0),
            READ_OFF,
        )
        .judge({
            let medians = figure.medians(extent, runs, |down| down <= 130);
            let finite: Vec<f64> = medians.into_iter().filter(|m| m.is_finite()).collect();
            extreme(&finite, f64::max)
        }),
        claim(
            "section 4.1",
            "With a connected period from 24 s the transfer is over before the disconnection.",
            Unit::Seconds,
            Published::About(22.0),
            READ_OFF,
        )
        .judge(figure.undisturbed(extent, runs).map(|value| Measured {
            value,
            standard_deviation: None,
            count: 1,
        })),
    ];
    for (peak, dip) in [(26, 39), (52, 39), (52, 78), (91, 78)] {
        let difference = at(peak).zip(at(dip)).map(|(peak, dip)| Measured {
            value: peak - dip,
            standard_deviation: None,
            count: 2,
        });
        claims.push(
            claim(
                "section 4.1.1",
                format!(
                    "There is a peak at {peak} s and a dip at {dip} s of disconnection: the median \
                     at the peak is longer."
                ),
                Unit::Seconds,
                Published::AtLeast(0.0),
                Tolerance::Exact,
            )
            .judge(difference),
        );
    }
    claims
}

fn of_user_timeout(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let long = figure.medians(extent, runs, |down| down > 143);
    let changes = figure.changes(extent, runs, |down| down < 130);
    let middle =
        |values: &[f64]| outlast_experiments::present::median(values.iter().copied().map(Some));
    vec![
        claim(
            "section 4.1.2",
            "No connection aborts (share that does).",
            Unit::Share,
            Published::AtMost(0.0),
            Tolerance::Exact,
        )
        .judge(figure.aborted(extent, runs, |_| true)),
        claim(
            "section 4.1.2",
            "Below 130 s of disconnection times differ very little from those without the option (most by which a \
             cell's median does).",
            Unit::Share,
            Published::AtMost(0.0),
            // As far as times can be read off the figures.
            Tolerance::Absolute(0.1),
        )
        .judge(extreme(&changes, f64::max)),
        Claim {
            departure: Some(FEW_LENGTHS.into()),
            ..claim(
                "section 4.1.2",
                "After long disconnections, beyond 143 s, most connections take 105 to 140 s (median).",
                Unit::Seconds,
                Published::Between(105.0, 140.0),
                READ_OFF,
            )
        }
        .judge(middle(&long)),
    ]
}

fn of_trigger(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let all = figure.medians(extent, runs, |_| true);
    let efficiency: Vec<f64> = all.iter().map(|net| BEST_S / net).collect();
    let mut claims = vec![
        claim(
            "section 4.1.3",
            "The net transmission time is at least 24 s in every cell (least median).",
            Unit::Seconds,
            Published::AtLeast(24.0),
            // 2.5 s are given, and 25 MB need 20.7 s on the link: a tenth less than 24 s could not fail.
            Tolerance::Exact,
        )
        .judge(extreme(&all, f64::min)),
        Claim {
            departure: Some(AFTER_SLOW_START.into()),
            ..claim(
                "section 4.1.3",
                "The net transmission time is at most 27 s in every cell (greatest median).",
                Unit::Seconds,
                Published::Between(24.0, 27.0),
                READ_OFF,
            )
        }
        .judge(extreme(&all, f64::max)),
        Claim {
            departure: Some(
                format!(
                    "{AFTER_SLOW_START} The paper disagrees with itself: its 27 s at most (section 4.1.3) are 78 % of the best case of 21 s."
                )
                .into(),
            ),
            ..claim(
                "section 4.1.4",
                "Performance is within 72 to 86 % of the best case of 21 s (worst cell).",
                Unit::Share,
                Published::Between(0.72, 0.86),
                Tolerance::Exact,
            )
        }
        .judge(extreme(&efficiency, f64::min)),
    ];
    claims.push(own(figure, extent, runs));
    claims
}

fn of_expected_trigger(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let all = figure.medians(extent, runs, |_| true);
    let efficiency: Vec<f64> = all.iter().map(|net| BEST_S / net).collect();
    vec![
        Claim {
            departure: Some(AFTER_SLOW_START.into()),
            ..claim(
                "section 4.1.4",
                "With better implementations of HIP, 86 to 96 % of the best case are expected (worst \
                 cell).",
                Unit::Share,
                Published::Between(0.86, 0.96),
                Tolerance::Exact,
            )
        }
        .judge(extreme(&efficiency, f64::min)),
        own(figure, extent, runs),
    ]
}

fn of_trigger_by_hip(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let mut claims = of_expected_trigger(figure, extent, runs);
    claims.extend(of_readdressing(figure, extent, runs));
    claims
}

fn of_trigger_between_linux_6(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    vec![own(figure, extent, runs)]
}

fn of_trigger_today(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let mut claims = vec![own(figure, extent, runs)];
    claims.extend(of_readdressing(figure, extent, runs));
    claims
}

/// What the paper says of HIP's readdressing itself, and what it is to cost here.
fn of_readdressing(figure: &Surface, extent: Extent, runs: &Runs) -> Vec<Judged> {
    let pairs =
        interrupted(extent).flat_map(|up| disconnected(extent).iter().map(move |&down| (up, down)));
    let records = pairs.flat_map(|(up, down)| figure.of(runs, up, down));
    let times: Vec<f64> = records
        .filter_map(|record| record.result.hip.as_ref())
        .flat_map(|hip| hip.readdressing_s.iter().copied())
        .collect();
    let share = figure.worst_ratio(extent, runs).map(|worst| Measured {
        value: 1.0 / worst.value,
        ..worst
    });
    vec![
        Claim {
            departure: Some(SOONER.into()),
            ..claim(
                "section 4.1.3",
                "Readdressing should take two to three round trips, 200 to 300 ms (the longest one).",
                Unit::Seconds,
                Published::Between(0.2, 0.3),
                Tolerance::Exact,
            )
        }
        .judge(extreme(&times, f64::max)),
        Claim {
            departure: figure.after_slow_start(),
            ..own_claim(
                figure.name,
                "Every cell has at least 98 % of the performance of constant connectivity plus three round trips \
                 (worst cell).",
                Unit::Share,
                Published::AtLeast(0.98),
            )
        }
        .judge(share),
    ]
}

fn own(figure: &Surface, extent: Extent, runs: &Runs) -> Judged {
    Claim {
        departure: figure.after_slow_start(),
        ..own_claim(
            figure.name,
            "With the trigger the median of every cell is within 2 % of constant connectivity plus \
             readdressing (worst cell).",
            Unit::Share,
            Published::AtMost(1.02),
        )
    }
    .judge(figure.worst_ratio(extent, runs))
}
