//! Figures 10 and 11 (the far sender) and 12 (long cells): transfer times with and without M-TCP.

use super::claim;
use super::testbed::{DISCONNECTIONS, Detection, PROCESSES, Sender, Transfer, interval, trials};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Figures that show transfers without an optimum.
#[derive(Debug)]
pub struct Transfers {
    name: &'static str,
    title: &'static str,
    place: &'static str,
    transfers: fn(Mechanism) -> Vec<Transfer>,
    /// How far the share of cells in which M-TCP is faster may be from all of them.
    slack: Tolerance,
}

/// Figures 10 and 11.
pub static FAR_SENDER: Transfers = Transfers {
    name: "figures-10-and-11",
    title: "Figures 10 and 11: transfers from fifteen hops away",
    place: "figures 10 and 11",
    transfers: far,
    // "In most cases" (section 6.1).
    slack: Tolerance::Absolute(0.25),
};

/// Figure 12.
pub static LONG_CELLS: Transfers = Transfers {
    name: "figure-12",
    title: "Figure 12: 12 MB with cells of five minutes and disconnections of one",
    place: "figure 12",
    transfers: long,
    // Section 6.1 has no exception.
    slack: Tolerance::Exact,
};

/// Reason for which M-TCP gains more from far away.
const LOSS_BEYOND: &str = "the path of fifteen hops loses 5.1 % of the packets before the supervisor host, and what plain TCP sends again after a disconnection is \
    lost there as often. Without that loss the two shares differ by 0.9 % with normal disconnections and 0.4 % with exponential ones (12 MB). \
    Over the cells of figures 10 and 11 the shares differ by less than chance makes of them.";

fn far(gateway: Mechanism) -> Vec<Transfer> {
    let mut all = Vec::new();
    for process in PROCESSES {
        for kilobytes in [500, 1_000] {
            for down_ms in DISCONNECTIONS {
                all.push(Transfer {
                    sender: Sender::Far,
                    kilobytes,
                    process,
                    up_ms: 5_000,
                    down_ms,
                    gateway,
                    compressed: None,
                    detection: Detection::Told,
                });
            }
        }
    }
    all
}

fn long(gateway: Mechanism) -> Vec<Transfer> {
    [Sender::Near, Sender::Far]
        .into_iter()
        .flat_map(|sender| {
            PROCESSES.map(|process| Transfer {
                sender,
                kilobytes: 12_000,
                process,
                up_ms: 300_000,
                down_ms: 60_000,
                gateway,
                compressed: None,
                detection: Detection::Told,
            })
        })
        .collect()
}

impl Figure for Transfers {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mechanisms = [Mechanism::None, Mechanism::MTcp];
        let all: Vec<Transfer> = mechanisms.into_iter().flat_map(self.transfers).collect();
        let near = all.iter().map(near);
        let near: Vec<Transfer> = near.filter(|one| !all.contains(one)).collect();
        let transfers = all.iter().chain(&near);
        transfers.flat_map(|one| one.jobs(trials(extent))).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let all = (self.transfers)(Mechanism::MTcp);
        let (mut faster, mut cells) = (0_usize, 0_usize);
        for one in &all {
            let plain = plain(one);
            if let (Some(ours), Some(plain)) = (one.times(runs), plain.times(runs)) {
                cells += 1;
                faster += usize::from(ours.mean < plain.mean);
            }
        }
        let share = (cells > 0).then(|| Measured {
            value: faster as f64 / cells as f64,
            standard_deviation: None,
            count: cells,
        });
        Part::new(self.title)
            .table(table(runs, &all, false).titled(self.title))
            .claims(vec![
                claim(
                    self.place,
                    format!("M-TCP is faster than plain TCP (share of {}).", self.place),
                    Unit::Share,
                    Published::AtLeast(1.0),
                    self.slack,
                )
                .judge(share),
                Claim {
                    departure: Some(LOSS_BEYOND.into()),
                    ..claim(
                    self.place,
                    format!(
                        "Over 15 hops M-TCP gains less than over 5 ({}: its mean share of plain TCP's time, \
                         less that over 5 hops: lower end of the 95 % interval).",
                        self.place
                    ),
                    Unit::Share,
                    Published::AtLeast(0.0),
                    Tolerance::Exact,
                )
                }
                .judge(loss_by_distance(runs, &all)),
            ])
    }
}

/// By how much M-TCP's mean share of plain TCP's time over 15 hops exceeds that over 5 hops, over the same
/// cells: the lower end of the 95 % interval, so that chance cannot pass for it.
fn loss_by_distance(runs: &Runs, all: &[Transfer]) -> Option<Measured> {
    let share = |one: &Transfer| Some(one.times(runs)?.mean / plain(one).times(runs)?.mean);
    let far = all.iter().filter(|one| one.sender == Sender::Far);
    let more = Sample::of(far.filter_map(|one| Some(share(one)? - share(&near(one))?)))?;
    Some(Measured {
        value: more.mean - interval(&more)?,
        standard_deviation: None,
        count: more.count,
    })
}

/// The transfer by a sender that is five hops away.
fn near(transfer: &Transfer) -> Transfer {
    Transfer {
        sender: Sender::Near,
        ..*transfer
    }
}

fn plain(transfer: &Transfer) -> Transfer {
    Transfer {
        gateway: Mechanism::None,
        ..*transfer
    }
}

/// Times with M-TCP beside those without, and the optimum if `has_optimum`.
#[must_use]
pub fn table(runs: &Runs, transfers: &[Transfer], has_optimum: bool) -> Table {
    let mut columns = vec![
        Column::text("sender", "Sender"),
        Column::text("distribution", "Distribution"),
        Column::text("file_kb", "File, kB"),
        Column::quantity("disconnection_s", "Disconnection", Unit::Seconds),
    ];
    if has_optimum {
        columns.push(Column::quantity("optimum_s", "Optimum", Unit::Seconds));
    }
    columns.extend([
        Column::quantity("m_tcp_s", "M-TCP", Unit::Seconds),
        Column::quantity("m_tcp_interval_s", "± 95 %", Unit::Seconds),
    ]);
    if has_optimum {
        columns.push(Column::quantity(
            "over_optimum",
            "Over optimum",
            Unit::Share,
        ));
    }
    columns.extend([
        Column::quantity("tcp_s", "TCP", Unit::Seconds),
        Column::quantity("tcp_interval_s", "± 95 %", Unit::Seconds),
        Column::text("tcp_failed", "TCP failed"),
        Column::quantity("share", "M-TCP / TCP", Unit::Share),
    ]);
    let mut table = Table::new(columns);
    for one in transfers {
        let (ours, without) = (one.times(runs), plain(one).times(runs));
        let mut row = vec![
            Cell::from(one.sender.name()),
            Cell::from(one.process),
            Cell::from(one.kilobytes.to_string()),
            Cell::from(f64::from(one.down_ms) / 1_000.0),
        ];
        if has_optimum {
            row.push(Cell::from(one.optima(runs).map(|sample| sample.mean)));
        }
        row.extend([
            Cell::from(ours.map(|sample| sample.mean)),
            Cell::from(ours.and_then(|sample| interval(&sample))),
        ]);
        if has_optimum {
            let over = one.over_optimum(runs).map(|sample| sample.mean - 1.0);
            row.push(Cell::from(over));
        }
        row.extend([
            Cell::from(without.map(|sample| sample.mean)),
            Cell::from(without.and_then(|sample| interval(&sample))),
            Cell::from(plain(one).failures(runs).to_string()),
            Cell::from(
                ours.zip(without)
                    .map(|(ours, without)| ours.mean / without.mean),
            ),
        ]);
        table.push(row);
    }
    table
}
