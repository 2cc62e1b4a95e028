//! How long it takes until thousands of mobile nodes, which all move at once, are registered again.
//!
//! All have addresses of their own and one home agent. In virtual time messages wait for the home agent's
//! link, and are lost when its queue is full; live the home agent is `outlast run`, and the mobile nodes are
//! the same machines behind sockets of one program.

mod crowd;
mod in_virtual_time;
mod live;
pub mod trial;

use crate::live::{Trial, without_link};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::Setting;
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use trial::{CrowdPlace, CrowdTrial, Move};

/// The crowds.
pub static EXPERIMENT: Experiment = Experiment {
    name: "mobile-ip-crowd",
    title: "How long until thousands of mobile nodes that move at once are registered",
    source: "an experiment of Outlast",
    measures: "Time from the move of all until the last mobile node has its reply, 10,000 in virtual time and 1,000 \
               before a home agent of `outlast run`, also beside a flood of forged requests",
    method,
    figures: &[&Crowds],
};

const IN_VIRTUAL_TIME: usize = 10_000;
const LIVE: usize = 1_000;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "All mobile nodes have an address of their own, and change it at the same moment; each then sends a \
             request to the home agent. They authenticate with HMAC-MD5. The time runs until the last of them has \
             its reply. In virtual time: {IN_VIRTUAL_TIME} of them, a round trip of {} ms, and a link of the home \
             agent's of 10, 100 or 1,000 Mbit/s with room for {} packets each way; what finds no room is lost, and \
             repeated after a second at the earliest (RFC 5944, section 3.6.3). The home agent itself takes no time.",
            2 * in_virtual_time::DELAY.as_millis(),
            in_virtual_time::QUEUE,
        ),
        format!(
            "Live: {LIVE} of them before `outlast run --role home-agent` in a namespace of its own, without delay. \
             The mobile nodes are the machines that `outlast run --role mobile-node` drives, behind the sockets of \
             one program, so that what is measured is the home agent. Once more while somebody sends forged \
             requests for all of them, 50 every 10 ms. Runs of each: {}; shown is the median, and of counts the \
             last run's.",
            repetitions(extent)
        ),
    ]
}

fn repetitions(extent: Extent) -> u32 {
    extent.choose(3, 9)
}

#[derive(Clone, Copy, Debug)]
struct Row {
    name: &'static str,
    trial: CrowdTrial,
}

const ROWS: [Row; 5] = {
    const fn virtual_time(name: &'static str, mbit_per_s: u64) -> Row {
        let trial = CrowdTrial {
            size: IN_VIRTUAL_TIME,
            place: CrowdPlace::VirtualTime { mbit_per_s },
        };
        Row { name, trial }
    }
    const fn live(name: &'static str, is_flood: bool) -> Row {
        let trial = CrowdTrial {
            size: LIVE,
            place: CrowdPlace::Live { is_flood },
        };
        Row { name, trial }
    }
    [
        virtual_time("virtual time, 10 Mbit/s", 10),
        virtual_time("virtual time, 100 Mbit/s", 100),
        virtual_time("virtual time, 1 Gbit/s", 1_000),
        live("live", false),
        live("live, beside a flood", true),
    ]
};

impl Row {
    const fn is_live(self) -> bool {
        matches!(self.trial.place, CrowdPlace::Live { .. })
    }

    /// A run in virtual time always comes to the same.
    fn repetitions(self, extent: Extent) -> u32 {
        match self.is_live() {
            true => repetitions(extent),
            false => 1,
        }
    }

    fn job(self, index: u32) -> Job {
        let duration = self.trial.expected();
        let setting = Setting {
            rate_mbit_per_s: match self.trial.place {
                CrowdPlace::VirtualTime { mbit_per_s } => mbit_per_s as u32,
                CrowdPlace::Live { .. } => 100_000,
            },
            delay: Duration::from_millis(1),
            ..without_link(self.name, duration)
        };
        Job::new(self.name, &setting, index).live(Trial::Crowd(self.trial))
    }
}

/// How long, by where.
#[derive(Debug)]
struct Crowds;

impl Figure for Crowds {
    fn name(&self) -> &'static str {
        "crowds"
    }

    fn title(&self) -> &'static str {
        "Time until all are registered"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let jobs = |row: &Row| {
            let row = *row;
            (0..row.repetitions(extent)).map(move |index| row.job(index))
        };
        ROWS.iter().flat_map(jobs).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Time until all are registered")
            .table(table(runs))
            .claims(claims(runs))
    }
}

fn moves(runs: &Runs, row: Row) -> impl Iterator<Item = Move> {
    runs.of(row.name)
        .iter()
        .filter_map(Record::observed::<Move>)
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("where", "Where"),
        Column::quantity("size", "Mobile nodes", Unit::Count),
        Column::quantity("took_s", "Until all are registered", Unit::Seconds),
        Column::quantity("registered", "Registered", Unit::Count),
        Column::quantity("requests", "Requests", Unit::Count),
        Column::quantity("lost", "Messages lost", Unit::Count),
        Column::quantity("forged", "Forged requests", Unit::Count),
        Column::quantity("bound", "Reached where they are", Unit::Count),
    ])
    .titled("Time until all are registered");
    for row in ROWS {
        let took = median(moves(runs, row).map(|one| Some(one.took_s)));
        let last = moves(runs, row).last();
        let size = row.trial.size;
        let count = |count: Option<u64>| count.map(|count| count as f64);
        let registered = last.as_ref().map(|one| one.registered);
        let tone = match registered == Some(size) {
            true => Tone::Plain,
            false => Tone::Bad,
        };
        table.push([
            Shown::from(row.name),
            Shown::from(size as f64),
            Shown::from(took.map(|took| took.value)),
            Shown::from(registered.map(|count| count as f64)).tone(tone),
            Shown::from(count(last.as_ref().map(|one| one.requests))),
            Shown::from(count(last.as_ref().map(|one| one.lost))),
            Shown::from(count(last.as_ref().map(|one| one.forged))),
            match row.is_live() {
                true => Shown::from(last.map(|one| one.bound as f64)),
                false => Shown::missing(),
            },
        ]);
    }
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let own = |statement: &str| {
        own_claim(
            "mobile-ip-crowd",
            statement.to_owned(),
            Unit::Share,
            Published::AtLeast(1.0),
        )
    };
    let share = |row: Row, count: fn(&Move) -> usize| {
        let shares = moves(runs, row).map(|one| count(&one) as f64 / row.trial.size as f64);
        mean(shares.reduce(f64::min))
    };
    let [slow, .., live, flood] = ROWS;
    vec![
        own("10,000 mobile nodes before a link of 10 Mbit/s are all registered in the end (share, least of all runs).")
            .judge(share(slow, |one| one.registered)),
        own("1,000 mobile nodes are reached where they are after all moved at once (share, least of all runs).")
            .judge(share(live, |one| one.bound)),
        own("They are beside a flood of forged requests, too, and none of these moves anybody (share, least of all \
             runs).")
            .judge(share(flood, |one| one.bound)),
    ]
}
