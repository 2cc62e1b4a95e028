//! How long a hand-off takes with each way of movement detection, live.
//!
//! A mobile node without an address of the link's goes to and fro between the cells of two foreign agents.
//! The home agent's reply ends a hand-off. Measured is what the thesis's table 4.1 reckons.
//!
//! Left out: distances. The agents are next to each other, so that the table's L and T are nothing.

mod cells;
pub mod trial;

use crate::live::{Trial, without_link};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{claim, mean, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::Setting;
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use trial::{Detection, DetectionTrial, Observed};

/// Hand-offs by way of detection.
pub static EXPERIMENT: Experiment = Experiment {
    name: "mobile-ip-detection",
    title: "How long a hand-off takes with each way of movement detection",
    source: "an experiment of Outlast, beside a thesis on TCP over Mobile IP, about 2002, table 4.1",
    measures: "Time from a mobile node's move between two foreign agents until it has its home agent's reply, with \
               `outlast run` in all roles",
    method,
    figures: &[&HandOffs],
};

/// Hand-offs of one run.
const OF_A_RUN: u32 = 10;
/// By how much a mean may differ from the thesis's, in seconds. Of ten hand-offs the mean scatters by a tenth of
/// a second, of thirty by half of that; L, T and C are nothing here.
const TOLERANCE_S: f64 = 0.15;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Network namespaces: a home agent, two foreign agents, a router between them, and a mobile host that \
             hears one of the foreign agents and has no address but its home address. `outlast run` has all four \
             roles. Foreign agents advertise themselves once a second, each interval a tenth shorter or longer, for \
             three seconds; with `link` once a minute, as nobody waits for them. The mobile host is moved to the \
             other agent's cell {OF_A_RUN} times a run, after 1 to 3 s each, drawn evenly. With `link` it loses the \
             carrier meanwhile, otherwise nothing tells it. Runs for each way: {}, up to four at once.",
            runs_of_each(extent)
        ),
        "The time runs from the move until the accepting reply of the home agent is at the mobile host. Packets take \
         no time between the agents: of table 4.1's formulas only the wait for the movement's detection is left, \
         0 to 1 s for eager and 2 to 3 s for lazy cell switching. The move is made by the program `ip`, whose start is part \
         of the time."
            .to_owned(),
    ]
}

fn runs_of_each(extent: Extent) -> u32 {
    extent.choose(3, 10)
}

fn job(detection: Detection, index: u32) -> Job {
    let trial = DetectionTrial {
        detection,
        hand_offs: OF_A_RUN,
    };
    let duration = trial.expected();
    let setting = Setting {
        delay: Duration::from_millis(1),
        ..without_link(detection.name(), duration)
    };
    Job::new(detection.name(), &setting, index).live(Trial::Detection(trial))
}

/// How long hand-offs take.
#[derive(Debug)]
struct HandOffs;

impl Figure for HandOffs {
    fn name(&self) -> &'static str {
        "hand-offs"
    }

    fn title(&self) -> &'static str {
        "Time of a hand-off, by way of detection"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let jobs = |detection| (0..runs_of_each(extent)).map(move |index| job(detection, index));
        Detection::ALL.into_iter().flat_map(jobs).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Time of a hand-off, by way of detection")
            .table(table(runs))
            .claims(claims(runs))
    }
}

/// Of all hand-offs; `None` is one that did not come to its end.
fn times(runs: &Runs, detection: Detection) -> Vec<Option<f64>> {
    let observed = runs.of(detection.name()).iter();
    let observed = observed.filter_map(Record::observed::<Observed>);
    observed.flat_map(|one| one.hand_offs_s).collect()
}

fn completed(runs: &Runs, detection: Detection) -> Vec<f64> {
    times(runs, detection).into_iter().flatten().collect()
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("detection", "Detection"),
        Column::text("completed", "Hand-offs"),
        Column::quantity("least_s", "Shortest", Unit::Seconds),
        Column::quantity("mean_s", "Mean", Unit::Seconds),
        Column::quantity("greatest_s", "Longest", Unit::Seconds),
        Column::quantity("published_least_s", "Table 4.1: shortest", Unit::Seconds),
        Column::quantity("published_mean_s", "mean", Unit::Seconds),
        Column::quantity("published_greatest_s", "longest", Unit::Seconds),
    ])
    .titled("Time of a hand-off, by way of detection");
    for detection in Detection::ALL {
        let all = times(runs, detection).len();
        let completed = completed(runs, detection);
        let tone = match completed.len() == all {
            true => Tone::Plain,
            false => Tone::Bad,
        };
        let count = format!("{} of {all}", completed.len());
        let ours = Sample::of(completed);
        let published = detection.published_s();
        table.push([
            Shown::from(detection.name()),
            Shown::from(count).tone(tone),
            Shown::from(ours.map(|ours| ours.least)),
            Shown::from(ours.map(|ours| ours.mean)),
            Shown::from(ours.map(|ours| ours.greatest)),
            Shown::from(published.map(|[least, ..]| least)),
            Shown::from(published.map(|[_, mean, _]| mean)),
            Shown::from(published.map(|[.., greatest]| greatest)),
        ]);
    }
    table.note(
        "Table 4.1 without L, T and C, which are nothing here. An interval between two advertisements is up to 1.1 s \
         (RFC 5944 has them vary), so that the longest waits are longer than the thesis's and the shortest ones \
         shorter. Prefix matching and link indications are not in the table.",
    );
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let thesis = |detection: Detection| {
        let published = detection.published_s().map_or(0.0, |[_, mean, _]| mean);
        claim(
            "a thesis on TCP over Mobile IP, about 2002",
            "table 4.1",
            format!("{detection}: mean time of a hand-off without L, T and C.").into(),
            Unit::Seconds,
            Published::About(published),
            Tolerance::Absolute(TOLERANCE_S),
        )
        .judge(mean(completed(runs, detection)))
    };
    let own = |statement: &str, unit, published| {
        own_claim("mobile-ip-detection", statement.to_owned(), unit, published)
    };
    let all = Detection::ALL.into_iter().flat_map(|one| times(runs, one));
    let all: Vec<Option<f64>> = all.collect();
    let ended = all.iter().flatten().count();
    let share = (!all.is_empty()).then(|| Measured {
        value: ended as f64 / all.len() as f64,
        standard_deviation: None,
        count: all.len(),
    });
    vec![
        thesis(Detection::Eager),
        thesis(Detection::Lazy),
        own(
            "Link indications: the mean time of a hand-off is shorter than the least mean of the table.",
            Unit::Seconds,
            Published::AtMost(0.5),
        )
        .judge(mean(completed(runs, Detection::Link))),
        own(
            "Every hand-off ends with a registration (share).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share),
    ]
}
