//! Section 6.1: how M-TCP's and plain TCP's times vary, and how far M-TCP is from the optimum by size.
//!
//! There are no runs of its own: those of figures 7 to 11 are held against each other. A comparison of means is
//! judged by the lower end of its 95 % interval, so that chance cannot pass for it.

use super::claim;
use super::near_sender::NearSender;
use super::testbed::{DISCONNECTIONS, Detection, PROCESSES, Sender, Transfer, interval};
use super::transfers::FAR_SENDER;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;

/// Claims on several figures together.
#[derive(Debug)]
pub struct Section61;

/// Sizes of figures 7, 8, 10 and 11.
const KILOBYTES: [u32; 2] = [500, 1_000];
/// Reason for which the growth up to 500 kB is not shown.
const WITHIN_CHANCE: &str = "the difference grows on average, from 167 to 276 ms at the quick extent, by less than chance makes of it.";

const MECHANISMS: [Mechanism; 2] = [Mechanism::MTcp, Mechanism::None];

fn transfer(
    sender: Sender,
    (process, kilobytes, down_ms): (&'static str, u32, u32),
    gateway: Mechanism,
) -> Transfer {
    Transfer {
        sender,
        kilobytes,
        process,
        up_ms: 5_000,
        down_ms,
        gateway,
        compressed: None,
        detection: Detection::Told,
    }
}

/// Size and disconnection of each cell of figures 7 and 8 with one distribution.
fn cells(process: &'static str) -> impl Iterator<Item = (&'static str, u32, u32)> {
    KILOBYTES
        .into_iter()
        .flat_map(move |kilobytes| DISCONNECTIONS.map(|down_ms| (process, kilobytes, down_ms)))
}

fn all_cells() -> impl Iterator<Item = (&'static str, u32, u32)> {
    PROCESSES.into_iter().flat_map(cells)
}

/// The standard deviation of a cell's times, as a share of their mean.
fn variation(
    runs: &Runs,
    sender: Sender,
    cell: (&'static str, u32, u32),
    gateway: Mechanism,
) -> Option<f64> {
    let times = transfer(sender, cell, gateway).times(runs)?;
    Some(times.standard_deviation? / times.mean)
}

/// The lower end of the 95 % interval of the mean of `values`.
fn lower_end(values: impl IntoIterator<Item = f64>) -> Option<Measured> {
    let sample = Sample::of(values)?;
    Some(Measured {
        value: sample.mean - interval(&sample)?,
        standard_deviation: None,
        count: sample.count,
    })
}

/// By how many seconds each transfer of `kilobytes` with M-TCP exceeds its optimum, and by which share.
fn over_optimum(runs: &Runs, kilobytes: u32) -> Vec<(f64, f64)> {
    let all = PROCESSES.into_iter().flat_map(|process| {
        DISCONNECTIONS.map(|down_ms| {
            let cell = (process, kilobytes, down_ms);
            transfer(Sender::Near, cell, Mechanism::MTcp)
        })
    });
    all.filter_map(|one| {
        let (times, optima) = (one.times(runs)?.mean, one.optima(runs)?.mean);
        Some((times - optima, times / optima - 1.0))
    })
    .collect()
}

impl Figure for Section61 {
    fn name(&self) -> &'static str {
        "section-6-1"
    }

    fn title(&self) -> &'static str {
        "What the text says of figures 7 to 11 together"
    }

    /// The runs of figures 7 to 11.
    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let near = NearSender.jobs(extent);
        near.into_iter().chain(FAR_SENDER.jobs(extent)).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Section 6.1: figures 7 to 11 together")
            .table(by_size(runs))
            .table(variations(runs))
            .claims(claims(runs))
    }
}

fn by_size(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("file_kb", "File, kB"),
        Column::quantity("over_s", "Over optimum", Unit::Seconds),
        Column::quantity("over", "Share of it", Unit::Share),
    ]);
    for kilobytes in [100, 500, 1_000] {
        let over = over_optimum(runs, kilobytes);
        let mean = |of: fn(&(f64, f64)) -> f64| {
            Cell::from(Sample::of(over.iter().map(of)).map(|sample| sample.mean))
        };
        table.push([
            Cell::from(kilobytes.to_string()),
            mean(|over| over.0),
            mean(|over| over.1),
        ]);
    }
    table.titled("M-TCP over five hops beside the optimum, mean over the cells of figure 9")
}

fn variations(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("sender", "Sender"),
        Column::text("distribution", "Distribution"),
        Column::quantity("m_tcp", "M-TCP", Unit::Share),
        Column::quantity("tcp", "TCP", Unit::Share),
    ]);
    for sender in [Sender::Near, Sender::Far] {
        for process in PROCESSES {
            let mean = |gateway| {
                let all = cells(process).filter_map(|cell| variation(runs, sender, cell, gateway));
                Cell::from(Sample::of(all).map(|sample| sample.mean))
            };
            let [m_tcp, tcp] = MECHANISMS.map(mean);
            table.push([Cell::from(sender.name()), Cell::from(process), m_tcp, tcp]);
        }
    }
    table.note(
        "Standard deviation over mean of a cell's times, 500 kB and 1 MB: mean over the cells.",
    );
    table.titled("Variation of transfer times")
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let mut claims = of_size(runs);
    claims.extend(of_variation(runs));
    claims
}

/// A difference that is to be more than nothing.
fn more(place: &'static str, statement: &'static str, unit: Unit) -> Claim {
    claim(
        place,
        statement,
        unit,
        Published::AtLeast(0.0),
        Tolerance::Exact,
    )
}

/// Figure 9: the difference from the optimum by size.
fn of_size(runs: &Runs) -> Vec<Judged> {
    let growth = |small, large| {
        let (small, large) = (over_optimum(runs, small), over_optimum(runs, large));
        lower_end(
            large
                .iter()
                .zip(&small)
                .map(|(large, small)| large.0 - small.0),
        )
    };
    vec![
        Claim {
            departure: Some(WITHIN_CHANCE.into()),
            ..more(
                "figure 9",
                "The difference between M-TCP and the optimum grows from 100 kB to 500 kB (lower end of the 95 % interval).",
                Unit::Seconds,
            )
        }
        .judge(growth(100, 500)),
        more(
            "figure 9",
            "The difference between M-TCP and the optimum grows from 500 kB to 1 MB (lower end of the 95 % interval).",
            Unit::Seconds,
        )
        .judge(growth(500, 1_000)),
    ]
}

/// Figure 8 and section 6.1: variation of the times.
fn of_variation(runs: &Runs) -> Vec<Judged> {
    let by_process =
        cells("normal")
            .zip(cells("exponential"))
            .filter_map(|(normal, exponential)| {
                let of = |cell| variation(runs, Sender::Near, cell, Mechanism::MTcp);
                Some(of(exponential)? - of(normal)?)
            });
    let beyond_m_tcp = |sender| {
        lower_end(all_cells().filter_map(move |cell| {
            let [m_tcp, tcp] = MECHANISMS.map(|gateway| variation(runs, sender, cell, gateway));
            Some(tcp? - m_tcp?)
        }))
    };
    let by_distance = |gateway| {
        lower_end(all_cells().filter_map(move |cell| {
            let of = |sender| variation(runs, sender, cell, gateway);
            Some(of(Sender::Far)? - of(Sender::Near)?)
        }))
    };
    vec![
        more(
            "figure 8",
            "With exponential disconnections M-TCP varies more than with normal ones (standard deviation over mean, lower \
             end of the 95 % interval of the difference).",
            Unit::Share,
        )
        .judge(lower_end(by_process)),
        more(
            "section 6.1",
            "Over 5 hops TCP varies more than M-TCP (standard deviation over mean, lower end of the 95 % interval of the \
             difference).",
            Unit::Share,
        )
        .judge(beyond_m_tcp(Sender::Near)),
        more(
            "section 6.1",
            "Over 15 hops TCP varies more than M-TCP (standard deviation over mean, lower end of the 95 % interval of the \
             difference).",
            Unit::Share,
        )
        .judge(beyond_m_tcp(Sender::Far)),
        more(
            "section 6.1",
            "M-TCP varies more over 15 hops than over 5 (standard deviation over mean, lower end of the 95 % interval of the \
             difference).",
            Unit::Share,
        )
        .judge(by_distance(Mechanism::MTcp)),
        more(
            "section 6.1",
            "TCP varies more over 15 hops than over 5 (standard deviation over mean, lower end of the 95 % interval of the \
             difference).",
            Unit::Share,
        )
        .judge(by_distance(Mechanism::None)),
    ]
}
