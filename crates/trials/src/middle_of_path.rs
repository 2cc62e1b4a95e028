//! What outages cost that are not next to the gateway: in the middle of the path, several at once, one inside another.
//!
//! In virtual time: a mobile host, its link, two further links, a fixed host.

use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::own_claim;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;
use outlast_scenario::result::World;

/// The trial.
pub static EXPERIMENT: Experiment = Experiment {
    name: "middle-of-path",
    title: "Outages in the middle of the path",
    source: "an experiment of Outlast",
    measures: "How much longer than its outages a transfer is held up, by which link goes away and where gateways stand",
    method,
    figures: &[&Matrix],
};

/// A link that goes away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Away {
    /// 0 is the mobile host's link, 1 and 2 are those behind it.
    link: usize,
    from_s: u64,
    to_s: u64,
}

/// Which links go away, and when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Case {
    title: &'static str,
    away: &'static [Away],
}

const fn away(link: usize, from_s: u64, to_s: u64) -> Away {
    Away { link, from_s, to_s }
}

/// The first is what the others are held against.
const CASES: [Case; 9] = [
    case("none", &[]),
    case("mobile's link", &[away(0, 3, 9)]),
    case("middle", &[away(1, 3, 9)]),
    case("far end", &[away(2, 3, 9)]),
    case("both at once", &[away(0, 3, 9), away(1, 3, 9)]),
    case("link inside middle", &[away(0, 5, 7), away(1, 3, 9)]),
    case("middle inside link", &[away(0, 3, 9), away(1, 5, 7)]),
    case("link, then middle", &[away(0, 3, 7), away(1, 6, 9)]),
    case("middle, then link", &[away(0, 6, 9), away(1, 3, 7)]),
];

const fn case(title: &'static str, away: &'static [Away]) -> Case {
    Case { title, away }
}

/// Where gateways with `hold` stand, and how they know of outages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Gateways {
    None,
    /// At both ends of the mobile host's link, which alone tells them of its outages.
    Link,
    /// At the same places, and they go by silence alone.
    Silent,
    /// At both ends of the mobile host's link and of the next one, each told by its own.
    Each,
}

const GATEWAYS: [Gateways; 4] = [
    Gateways::None,
    Gateways::Link,
    Gateways::Silent,
    Gateways::Each,
];

const DIRECTIONS: [Direction; 2] = [Direction::Download, Direction::Upload];

/// A transfer that is held up for less than this beyond its outages goes on as if they were pauses, in seconds:
/// the mechanisms' limit of a round trip and 50 ms, and what slow start costs on this path.
const SOON_S: f64 = 0.5;
/// Of a sender that waits for its timer after an outage of six seconds, in seconds.
const STALLED_S: f64 = 1.0;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "In virtual time. The mobile host's link has 10 Mbit/s and 10 ms one way; behind it are the middle with 20 Mbit/s \
             and 5 ms, and the far end with 100 Mbit/s and 5 ms. One transfer of 12 MB takes about ten seconds (Linux 6, CUBIC, \
             SACK). Links go away as the table says; what they had queued is lost. Runs of each cell: {}.",
            repetitions(extent)
        ),
        "Held up: the time from start to end, less that of the same transfer without an outage and without gateways, less \
         the time in which at least one link was away. Link: `hold` at both ends of the mobile host's link, told by its \
         carrier. Silence: the same, and nobody tells. Each: `hold` at both ends of the middle link besides, \
         told by that one's carrier."
            .to_owned(),
    ]
}

fn repetitions(extent: Extent) -> u32 {
    extent.choose(3, 20)
}

impl Gateways {
    const fn title(self) -> &'static str {
        match self {
            Self::None => "no gateway",
            Self::Link => "link",
            Self::Silent => "silence",
            Self::Each => "each",
        }
    }
}

fn name(case: Case, gateways: Gateways, direction: Direction) -> String {
    format!(
        "{direction}, away: {}, hold: {}",
        case.title,
        gateways.title()
    )
}

fn scenario(case: Case, gateways: Gateways, direction: Direction) -> String {
    let mechanism = match gateways {
        Gateways::None => "none",
        _ => "hold",
    };
    let indicators = match gateways {
        Gateways::Silent => "silence",
        _ => "link",
    };
    let outage = |table: &str, link| {
        let of_link = case.away.iter().find(|away| away.link == link);
        of_link.map_or(String::new(), |away| {
            let length = away.to_s - away.from_s;
            format!(
                "[{table}.outages]\nprocess = \"single\"\nstart = \"{} s\"\nlength = \"{length} s\"\n",
                away.from_s
            )
        })
    };
    let at_middle = match gateways {
        Gateways::Each => "fixed_end = \"hold\"\nmobile_end = \"hold\"\n",
        _ => "",
    };
    format!(
        "name = \"{}\"\n[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 75\nin_flight = \"lost\"\n{}\
         [[hops]]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = 75\nin_flight = \"lost\"\n{at_middle}{}\
         [[hops]]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = 75\nin_flight = \"lost\"\n{}\
         [workload]\nkind = \"bulk\"\nbytes = \"12 MB\"\ndirection = \"{direction}\"\n\
         [stack]\nprofile = \"linux-6\"\n\
         [outlast]\ngateway = \"{mechanism}\"\nmobile = \"{mechanism}\"\nindicators = \"{indicators}\"\n\
         [run]\nseed = 1\ndeadline = \"120 s\"\n",
        name(case, gateways, direction),
        outage("link", 0),
        outage("hops", 1),
        outage("hops", 2),
    )
}

/// In how many seconds at least one link is away.
fn away_s(case: Case) -> u64 {
    let is_away = |second: &u64| {
        case.away
            .iter()
            .any(|away| (away.from_s..away.to_s).contains(second))
    };
    (0..20).filter(is_away).count() as u64
}

#[derive(Debug)]
struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "For how long a transfer is held up beyond its outages"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for direction in DIRECTIONS {
            for case in CASES {
                for gateways in GATEWAYS {
                    let cell = name(case, gateways, direction);
                    let text = scenario(case, gateways, direction);
                    let job = |index| {
                        Job::from_toml(cell.clone(), text.clone(), index).in_world(World::Sim)
                    };
                    jobs.extend((0..repetitions(extent)).map(job));
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Held up beyond the outages")
            .table(table(runs))
            .claims(claims(runs))
    }
}

/// The mean over the runs of a cell; infinite if one did not come to its end.
fn held_up(runs: &Runs, case: Case, gateways: Gateways, direction: Direction) -> Option<f64> {
    let mean = |case, gateways| {
        let runs = runs.of(&name(case, gateways, direction));
        let times = runs.iter().map(|run| match run.result.completed {
            true => run.result.elapsed_s,
            false => f64::INFINITY,
        });
        let sum: f64 = times.sum();
        (!runs.is_empty()).then(|| sum / runs.len() as f64)
    };
    let undisturbed = mean(CASES[0], Gateways::None)?;
    Some(mean(case, gateways)? - undisturbed - away_s(case) as f64)
}

fn table(runs: &Runs) -> Table {
    let mut columns = vec![
        Column::text("direction", "Direction"),
        Column::text("away", "Away"),
    ];
    columns.extend(GATEWAYS.map(|gateways| {
        let key = gateways.title().replace(' ', "_");
        Column::fixed(format!("{key}_s"), format!("{}, s", gateways.title()), 2)
    }));
    let mut table = Table::new(columns).titled("Held up beyond the outages, in seconds");
    for direction in DIRECTIONS {
        for case in CASES {
            let mut row = vec![Shown::from(direction.name()), Shown::from(case.title)];
            row.extend(
                GATEWAYS.map(|gateways| match held_up(runs, case, gateways, direction) {
                    None => Shown::missing(),
                    Some(time) if time.is_finite() => Shown::from(time),
                    Some(_) => Shown::from("not ended").tone(Tone::Bad),
                }),
            );
            table.push(row);
        }
    }
    table.note(
        "Both at once: from 3 to 9 s. Link inside middle: the link from 5 to 7 s, the middle from 3 to 9 s; and the other way \
         round. Link, then middle: the link from 3 to 7 s, the middle from 6 to 9 s; and the other way round.",
    );
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str| {
        own_claim(
            "middle-of-path",
            statement,
            Unit::Share,
            Published::AtLeast(1.0),
        )
    };
    let share = |gateways: Gateways, which: &dyn Fn(Case) -> bool, holds: &dyn Fn(f64) -> bool| {
        let cases = CASES.into_iter().skip(1).filter(|case| which(*case));
        let both = cases.flat_map(|case| DIRECTIONS.map(|direction| (case, direction)));
        let times = both.filter_map(|(case, direction)| held_up(runs, case, gateways, direction));
        let judged: Vec<bool> = times.map(holds).collect();
        let good = judged.iter().filter(|&&holds| holds).count();
        (!judged.is_empty()).then(|| Measured {
            value: good as f64 / judged.len() as f64,
            standard_deviation: None,
            count: judged.len(),
        })
    };
    let any = |_: Case| true;
    let soon = |time: f64| time <= SOON_S;
    let is_near = |case: Case| case.away.iter().all(|away| away.link < 2);
    vec![
        own(
            "Without a gateway every transfer is held up for a second or more beyond its outages (share of cells).",
        )
        .judge(share(Gateways::None, &any, &|time| time >= STALLED_S)),
        own(
            "Gateways at the link that goes away, told by it, hold a transfer up for at most half a second \
             (share of cells).",
        )
        .judge(share(
            Gateways::Link,
            &|case| case.away.iter().all(|away| away.link == 0),
            &soon,
        )),
        own(
            "Gateways at each link that goes away hold a transfer up for at most half a second, whichever outage is inside \
             the other (share of cells).",
        )
        .judge(share(Gateways::Each, &is_near, &soon)),
        own(
            "Every transfer ends, wherever gateways stand (share of gateways).",
        )
        .judge({
            let all = GATEWAYS.map(|gateways| share(gateways, &any, &f64::is_finite));
            let all: Vec<f64> = all.into_iter().flatten().map(|it| it.value).collect();
            (!all.is_empty()).then(|| Measured {
                value: all.iter().sum::<f64>() / all.len() as f64,
                standard_deviation: None,
                count: all.len(),
            })
        }),
    ]
}
