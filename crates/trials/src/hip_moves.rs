//! Real programs between two hosts that change their addresses, with HIP and without, live.
//!
//! `ssh`, `curl` and `iperf3` go on through changes of the mobile host's network and family, of the fixed host's,
//! and of both at once with a rendezvous server's help, each after an outage. Measured is how soon after the new
//! address each connection has something new.
//!
//! Left out: uploads, make-before-break, several peers.

mod place;
pub(crate) mod roles;
pub mod trial;

use crate::gateway_matrix::programs::Program;
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::Cubic;
use outlast_scenario::{Direction, IpVersion, Mechanism};
use trial::{MovesTrial, Observed, PROGRAMS};

/// The trial.
pub static EXPERIMENT: Experiment = Experiment {
    name: "hip-moves",
    title: "Programs that go on through changes of address with HIP",
    source: "an experiment of Outlast",
    measures: "Time from a new address until each connection has something new, with `outlast run --role hip`",
    method,
    figures: &[&Moves],
};

/// Three round trips and 50 ms.
pub const LIMIT_S: f64 = 3.0 * 0.020 + 0.050;

/// What helps connections through moves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Help {
    /// Nothing: the control.
    None,
    /// HIP whose readdressing tells TCP nothing.
    NoTrigger,
    /// HIP as it is by default.
    Hip,
}

impl Help {
    /// All, in the order of the table.
    pub const ALL: [Self; 3] = [Self::None, Self::NoTrigger, Self::Hip];

    /// What readers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "without HIP",
            Self::NoTrigger => "HIP without the trigger",
            Self::Hip => "HIP",
        }
    }
}

/// Who moves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Who {
    /// The mobile host.
    Mobile,
    /// The fixed host.
    Fixed,
    /// Both at once.
    Both,
}

impl Who {
    /// In the order in which they move.
    pub const ALL: [Self; 4] = [Self::Mobile, Self::Mobile, Self::Both, Self::Fixed];

    /// What readers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Mobile => "mobile host",
            Self::Fixed => "fixed host",
            Self::Both => "both",
        }
    }

    /// Each of them.
    const fn each(self) -> &'static [Self] {
        match self {
            Self::Mobile => &[Self::Mobile],
            Self::Fixed => &[Self::Fixed],
            Self::Both => &[Self::Mobile, Self::Fixed],
        }
    }
}

fn method(extent: Extent) -> Vec<String> {
    let programs = PROGRAMS.map(Program::title).join(", ");
    let trial = trial_of(Help::Hip, extent);
    let outages = (0..trial.moves).map(|number| trial.outage(number).as_secs());
    let longest = outages.max().unwrap_or(0);
    vec![
        format!(
            "Three network namespaces: a fixed host, a router, and a mobile host behind an emulated Ethernet of {} \
             Mbit/s and 20 ms round trip, with room for {} packets. {programs} run at once, all data from the fixed \
             host to the mobile one: a line each 50 ms that comes back, a file, and a stream. `outlast run --role hip` \
             runs on both hosts, and a rendezvous server on the router.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
        ),
        format!(
            "In turn the mobile host loses all its addresses twice, both hosts do, and the fixed host does; after 1 to \
             {longest} s each gets others, of another network and at the mobile host of one family, IPv4 or IPv6, in \
             turn. {} such moves; the next one comes when curl has read another {} kB. From the last new address on \
             the mobile host's kernel is looked at every 2 ms for new bytes of each connection. The limit is three \
             round trips and 50 ms, {}.",
            trial.moves,
            trial::BYTES_BETWEEN / 1000,
            Unit::Seconds.show_exact(LIMIT_S),
        ),
        "The control speaks to the fixed host's address instead of its tag. The other one has HIP, with `trigger = \
         false`: a connection then waits for its own retransmission timeout."
            .to_owned(),
    ]
}

/// The trial of one row.
fn trial_of(help: Help, extent: Extent) -> MovesTrial {
    let moves = match help {
        Help::None => 1,
        Help::NoTrigger => extent.choose(4, 8),
        Help::Hip => extent.choose(8, 50),
    };
    MovesTrial { help, moves }
}

fn job(help: Help, extent: Extent) -> Job {
    let trial = trial_of(help, extent);
    let setting = Setting {
        name: help.title().to_owned(),
        rate_mbit_per_s: trial::RATE_MBIT_PER_S,
        delay: trial::DELAY,
        queue: trial::QUEUE,
        outages: Outages::Single {
            start: Duration::from_secs(2),
            length: trial.outage(0),
        },
        task: Task::Bulk {
            bytes: ByteCount(trial.payload()),
            direction: Direction::Download,
        },
        congestion: Cubic,
        sack: true,
        ip: IpVersion::V4,
        gateway: Mechanism::None,
        mobile: Mechanism::None,
        seed: 1,
        deadline: trial.expected() * 2,
    };
    Job::new(help.title(), &setting, 0).live(Trial::Moves(trial))
}

/// All moves as one figure.
#[derive(Debug)]
struct Moves;

impl Figure for Moves {
    fn name(&self) -> &'static str {
        "moves"
    }

    fn title(&self) -> &'static str {
        "New bytes after a new address"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        Help::ALL.map(|help| job(help, extent)).into()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("New bytes after a new address")
            .table(table(runs))
            .table(late_table(runs))
            .claims(claims(runs))
    }
}

/// What was seen of the run with `help`.
fn seen(help: Help, runs: &Runs) -> Option<(&Record, Observed)> {
    let run = runs.of(help.title()).first()?;
    Some((run, run.observed::<Observed>()?))
}

/// The resume times of all connections at all moves; `None` where nothing came.
fn resumes(observed: &Observed) -> impl Iterator<Item = Option<f64>> {
    observed.moves.iter().flat_map(|moved| moved.resume_s)
}

/// Programs of which at least one connection was lost.
fn lost(observed: &Observed) -> usize {
    let is_lost = |number: &usize| {
        let has_error = observed.errors.get(*number).is_some_and(Option::is_some);
        let mut resumes = observed.moves.iter().map(|moved| moved.resume_s[*number]);
        has_error || resumes.any(|resume| resume.is_none())
    };
    (0..PROGRAMS.len()).filter(is_lost).count()
}

/// One row for each help and program.
fn table(runs: &Runs) -> Table {
    let columns = vec![
        Column::text("help", "With"),
        Column::text("program", "Program"),
        Column::quantity("moves", "Moves", Unit::Count),
        Column::quantity("longest_s", "Longest outage", Unit::Seconds),
        Column::quantity("median_s", "Median", Unit::Seconds),
        Column::quantity("ninth_s", "9 of 10", Unit::Seconds),
        Column::quantity("worst_s", "Worst", Unit::Seconds),
        Column::quantity("late", "Beyond the limit", Unit::Count),
        Column::text("end", "In the end"),
    ];
    let mut table = Table::new(columns).titled("From the new address until new bytes are there");
    for help in Help::ALL {
        let Some((_, observed)) = seen(help, runs) else {
            continue;
        };
        for (number, program) in PROGRAMS.into_iter().enumerate() {
            table.push(row(help, program, number, &observed));
        }
    }
    table
}

fn row(help: Help, program: Program, number: usize, observed: &Observed) -> Vec<Shown> {
    let all = observed.moves.iter().map(|moved| moved.resume_s[number]);
    let mut times: Vec<f64> = all.clone().flatten().collect();
    times.sort_by(f64::total_cmp);
    let is_whole = times.len() == observed.moves.len();
    let at = |share: f64| match is_whole {
        true => {
            let place = (times.len().saturating_sub(1)) as f64 * share;
            Shown::from(times.get(place.round() as usize).copied())
        }
        false => Shown::from("never").tone(Tone::Bad),
    };
    let longest = observed.moves.iter().map(|moved| moved.outage_s);
    let late = all.filter(|time| time.is_none_or(|time| time > LIMIT_S));
    let end = match observed.errors.get(number) {
        Some(None) => Shown::from("intact"),
        _ => Shown::from("lost").tone(Tone::Bad),
    };
    vec![
        Shown::from(help.title()),
        Shown::from(program.title()),
        Shown::from(observed.moves.len() as u64),
        Shown::from(longest.reduce(f64::max)),
        at(0.5),
        at(0.9),
        at(1.0),
        Shown::from(late.count() as u64),
        end,
    ]
}

/// What came beyond the limit with HIP: behind other data in the link's queue, or for another reason.
fn late_table(runs: &Runs) -> Table {
    let columns = vec![
        Column::quantity("move", "Move", Unit::Count),
        Column::text("who", "Who moved"),
        Column::quantity("outage_s", "Outage", Unit::Seconds),
        Column::text("program", "Program"),
        Column::quantity("resume_s", "New bytes after", Unit::Seconds),
        Column::quantity("first_s", "First new bytes of any", Unit::Seconds),
        Column::quantity("used", "Link used until then", Unit::Share),
        Column::quantity("late_s", "Emulator late by", Unit::Seconds),
    ];
    let mut table = Table::new(columns).titled("With HIP, beyond the limit");
    let observed = seen(Help::Hip, runs).map(|(_, observed)| observed);
    let moves = observed.map_or_else(Vec::new, |observed| observed.moves);
    for (number, moved) in moves.iter().enumerate() {
        let first = moved.resume_s.iter().flatten().copied().reduce(f64::min);
        for (at, program) in PROGRAMS.into_iter().enumerate() {
            let resume = moved.resume_s[at];
            if resume.is_some_and(|resume| resume <= LIMIT_S) {
                continue;
            }
            table.push([
                Shown::from(number as u64 + 1),
                Shown::from(moved.who.as_str()),
                Shown::from(moved.outage_s),
                Shown::from(program.title()),
                Shown::from(resume),
                Shown::from(first),
                Shown::from(moved.used[at]),
                Shown::from(moved.late_s),
            ]);
        }
    }
    let full = Unit::Seconds.show(queue_s());
    table.note(format!(
        "The link's queue is {full} long when it is full, as two downloads have it. \"Link used\" is the payload of all \
         three connections that had come since the new address, as a share of what the link carries in that time. \
         Where it is large and the first new bytes came early, the path worked, and what is late has waited behind \
         the other programs' data."
    ));
    table
}

/// How long a packet waits in a full queue, in seconds.
fn queue_s() -> f64 {
    // Frames of the downloads are as long as the link takes.
    let bits = f64::from(trial::QUEUE) * 1_514.0 * 8.0;
    bits / (f64::from(trial::RATE_MBIT_PER_S) * 1e6)
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let own = |statement: &str, unit, published| {
        own_claim("hip-moves", statement.to_owned(), unit, published)
    };
    let count = |value: usize| Measured::single(value as f64);
    let with = |help| seen(help, runs).map(|(_, observed)| observed);
    let hip = with(Help::Hip);
    let within = hip.as_ref().map(|observed| {
        let all = resumes(observed).count();
        let those = resumes(observed).filter(|time| time.is_some_and(|time| time <= LIMIT_S));
        Measured {
            count: all,
            ..Measured::single(those.count() as f64 / all.max(1) as f64)
        }
    });
    let of = |help| with(help).and_then(|observed| median(resumes(&observed)));
    vec![
        own(
            "With HIP no program loses its connection, and every hash is right (programs that do).",
            Unit::Count,
            Published::AtMost(0.0),
        )
        .judge(hip.as_ref().map(|observed| count(lost(observed)))),
        own(
            "Without HIP every program loses its connection at the first move (programs that do).",
            Unit::Count,
            Published::AtLeast(PROGRAMS.len() as f64),
        )
        .judge(with(Help::None).map(|observed| count(lost(&observed)))),
        own(
            "With HIP new bytes are there within three round trips and 50 ms of the new address (share of \
             connections and moves).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(within),
        own(
            "Without the trigger new bytes come later than that (median).",
            Unit::Seconds,
            Published::AtLeast(LIMIT_S),
        )
        .judge(of(Help::NoTrigger)),
    ]
}
