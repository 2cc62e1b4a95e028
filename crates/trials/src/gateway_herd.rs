//! Thousands of connections that come back at once, with `outlast run` on the gateway and without.
//!
//! Three namespaces as in [`gateway_matrix`](crate::gateway_matrix). The fixed host says something
//! small on each of 5,000 connections again and again; the link goes away for seconds, and comes back.

mod crowd;
pub mod trial;

use crate::gateway_matrix::cells::DataPath;
use crate::gateway_matrix::trial::Observed;
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::{Congestion, IpVersion, Mechanism};
use trial::{CONNECTIONS, DELAY, Herd, HerdTrial, MESSAGE, PERIOD, QUEUE, RATE_MBIT_PER_S};

/// The herd.
pub static EXPERIMENT: Experiment = Experiment {
    name: "gateway-herd",
    title: "How 5,000 connections come back at once behind the gateway daemon",
    source: "an experiment of Outlast",
    measures: "When each of 5,000 connections goes on after an outage, and what the burst asks of the link",
    method,
    figures: &[&Return],
};

/// What is offered in a tenth of a second may exceed what the link carries in it by a quarter - what
/// hosts send themselves is not the gateway's to spread, and a connection with much to send fills the
/// link's queue again as it had filled it - and by what is sent ahead of its time, ten milliseconds'
/// worth.
pub const MOST_OFFERED: f64 = 1.25 + 0.1 * 1.25;

fn method(_extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet (TAP devices) of {RATE_MBIT_PER_S} Mbit/s each way and 40 ms round trip, with \
             room for {QUEUE} frames. {CONNECTIONS} TCP connections; on each the fixed host says \
             {MESSAGE} bytes every {} s, evenly spread. After {} s both ends of the link lose their \
             carrier. `outlast run --mechanism hold` runs on the gateway and is told the link's rate; \
             the control runs the same without it.",
            PERIOD.as_secs(),
            PERIOD.as_secs(),
        ),
        "Every byte that is read is compared with what was said. A connection has gone on when its \
         application reads something after link-up."
            .to_owned(),
        "Fair share: the last connection goes on no later than the link needs to carry everything \
         that was owed at link-up (said and not read) and what was said since, each message in a \
         packet of its own, and one round trip and 50 ms; counted from the first sign of life, which \
         is when the first frame of ARP or IPv4 comes out of the link at the gateway."
            .to_owned(),
        format!(
            "The burst: bytes of IP packets that are offered to the link towards the mobile host, in \
             tenths of a second since link-up, as the link counts them. In none of them may they be \
             more than {} of what the link carries. What the gateway has kept of connections with \
             little to send goes out at the link's rate, at most ten milliseconds ahead of time; what \
             the hosts send themselves by then comes on top.",
            Unit::Share.show_exact(MOST_OFFERED),
        ),
    ]
}

/// What the runs have in common that are compared with each other.
#[derive(Clone, Copy, Debug)]
struct Cell {
    trial: HerdTrial,
}

fn cells(extent: Extent) -> Vec<Cell> {
    let outages: &[u64] = extent.choose(&[4], &[4, 20]);
    let daemons: &[Option<DataPath>] = extent.choose(
        &[None, Some(DataPath::Auto)],
        &[None, Some(DataPath::Auto), Some(DataPath::Nfqueue)],
    );
    let cell = |&seconds: &u64| {
        daemons.iter().map(move |&daemon| Cell {
            trial: HerdTrial {
                outage: Duration::from_secs(seconds),
                daemon,
            },
        })
    };
    outages.iter().flat_map(cell).collect()
}

impl Cell {
    fn name(&self) -> String {
        let who = match self.trial.daemon {
            None => "control".to_owned(),
            Some(path) => format!("daemon by {}", path.name()),
        };
        format!("{} s, {who}", self.trial.outage.as_secs())
    }

    fn job(&self) -> Job {
        let Self { trial } = self;
        let setting = Setting {
            name: self.name(),
            rate_mbit_per_s: RATE_MBIT_PER_S,
            delay: DELAY,
            queue: QUEUE,
            outages: Outages::Single {
                start: PERIOD,
                length: trial.outage,
            },
            task: Task::Interactive {
                interval: PERIOD,
                duration: trial.length(),
            },
            congestion: Congestion::Cubic,
            sack: true,
            ip: IpVersion::V4,
            gateway: trial.daemon.map_or(Mechanism::None, |_| Mechanism::Hold),
            mobile: Mechanism::None,
            seed: 1,
            deadline: trial.deadline(),
        };
        Job::new(self.name(), &setting, 0).live(Trial::Herd(*trial))
    }

    fn herd<'r>(&self, runs: &'r Runs) -> Option<(&'r Record, Herd)> {
        let run = runs.of(&self.name()).first()?;
        Some((run, run.observed::<Observed>()?.herd?))
    }
}

/// The return as one figure.
#[derive(Debug)]
pub struct Return;

impl Figure for Return {
    fn name(&self) -> &'static str {
        "return"
    }

    fn title(&self) -> &'static str {
        "When the connections go on, and what the link is offered meanwhile"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells(extent).iter().map(Cell::job).collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells(extent);
        Part::new("5,000 connections after an outage")
            .table(table(&cells, runs))
            .claims(claims(&cells, runs))
    }
}

fn table(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::quantity("outage_s", "Outage", Unit::Seconds),
        Column::text("daemon", "Daemon"),
        Column::quantity("resumed", "Went on", Unit::Count),
        Column::quantity("median_s", "Median", Unit::Seconds),
        Column::quantity("centile_99_s", "99 of 100", Unit::Seconds),
        Column::quantity("last_s", "Last", Unit::Seconds),
        Column::quantity("first_sign_s", "First sign", Unit::Seconds),
        Column::quantity("fair_share_s", "Fair share", Unit::Seconds),
        Column::quantity("fairness", "Jain's index", Unit::Number),
        Column::quantity("busiest", "Busiest 0.1 s", Unit::Share),
        Column::quantity("dropped", "Dropped", Unit::Count),
        Column::quantity("complete", "Whole", Unit::Count),
    ])
    .titled("From link-up until each connection's application has read something new");
    for cell in cells {
        let daemon = match cell.trial.daemon {
            None => Shown::from("none"),
            Some(_) => Shown::from(data_path(cell, runs)),
        };
        let of = |value: fn(&Herd) -> Option<f64>| {
            Shown::from(cell.herd(runs).and_then(|(_, herd)| value(&herd)))
        };
        let count = |value: fn(&Herd) -> u64| {
            let known = cell.herd(runs).map(|(_, herd)| value(&herd));
            Shown::from(known)
        };
        let sign = cell.herd(runs).and_then(|(run, _)| first_sign(run));
        table.push([
            Shown::from(cell.trial.outage.as_secs_f64()),
            daemon,
            count(|herd| herd.resumed as u64),
            of(|herd| herd.median_s),
            of(|herd| herd.centile_99_s),
            of(|herd| herd.last_s),
            Shown::from(sign),
            of(|herd| Some(herd.fair_share_s())),
            of(|herd| herd.fairness),
            of(|herd| Some(herd.busiest())).tone(Tone::Plain),
            count(|herd| herd.dropped),
            count(|herd| herd.complete as u64),
        ]);
    }
    table.note(
        "Fair share: when the last connection is to have gone on, from the first sign on. Busiest: the \
         most that was offered to the link in a tenth of a second, as a share of what it carries. \
         Dropped: frames that found the link's queue full until the last connection went on. Whole: connections over which \
         everything came as it was sent.",
    );
    table
}

fn data_path(cell: &Cell, runs: &Runs) -> String {
    let noticed = runs.of(&cell.name()).first();
    let noticed = noticed.and_then(|run| run.observed::<Observed>()?.noticed);
    let path = noticed
        .as_ref()
        .map_or("–", |noticed| noticed.data_path.as_str());
    path.split(':').next().unwrap_or(path).to_owned()
}

fn first_sign(run: &Record) -> Option<f64> {
    run.observed::<Observed>()?.first_sign_s
}

/// How long after the first sign the last connection went on, as a multiple of its fair share.
fn wait((run, herd): (&Record, Herd)) -> f64 {
    let last = herd.last_s.unwrap_or(f64::INFINITY);
    (last - first_sign(run).unwrap_or(0.0)) / herd.fair_share_s()
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, unit, published| {
        own_claim("gateway-herd", statement, unit, published)
    };
    let of = |assisted: bool| {
        let those = move |cell: &&Cell| cell.trial.daemon.is_some() == assisted;
        cells
            .iter()
            .filter(those)
            .filter_map(|cell| cell.herd(runs))
    };
    let worst = |values: Vec<f64>| mean(values.into_iter().reduce(f64::max));
    let least = |values: Vec<f64>| mean(values.into_iter().reduce(f64::min));
    let resumed = |(_, herd): (&Record, Herd)| herd.resumed as f64 / herd.connections as f64;
    vec![
        own(
            "With the daemon every connection goes on (share of connections, least of all runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(least(of(true).map(resumed).collect())),
        own(
            "With the daemon the last connection goes on within its fair share (multiple of it, most of \
             all runs).",
            Unit::Factor,
            Published::AtMost(1.0),
        )
        .judge(worst(of(true).map(wait).collect())),
        own(
            "With the daemon the link is never offered more than its rate, a quarter and ten \
             milliseconds' worth (share of the rate in a tenth of a second, most of all runs).",
            Unit::Share,
            Published::AtMost(MOST_OFFERED),
        )
        .judge(worst(of(true).map(|(_, herd)| herd.busiest()).collect())),
        own(
            "Without it the last connection waits longer than with it (the least wait of all runs without it, as a multiple of the \
             longest with it).",
            Unit::Factor,
            Published::AtLeast(1.0),
        )
        .judge(
            least(of(false).map(wait).collect())
                .zip(worst(of(true).map(wait).collect()))
                .map(|(without, with)| Measured {
                    value: without.value / with.value,
                    ..without
                }),
        ),
        own(
            "Everything that was said is read as it was said, with the daemon and without (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(runs.all(), |run| run.result.intact == Some(true))),
    ]
}
