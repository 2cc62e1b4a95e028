//! What the gateway daemon costs as long as its link is up.
//!
//! Three namespaces in a row, joined by veth pairs: as fast as this machine's processors are. The
//! one in the middle has several interfaces side by side: with nothing, with the daemon on the eBPF
//! path, and with an empty program. What goes through is measured over each in turns of
//! milliseconds, and over one with the daemon on the NFQUEUE path.

pub mod bench;
pub mod cost;
pub mod programs;
pub(crate) mod row;
pub(crate) mod turns;

use crate::live::{Trial, without_link};
use bench::{Bench, Load};
use cost::{Cost, Sample, Series};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::Runs;
use outlast_experiments::setting::{Setting, Task};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;
use std::collections::BTreeSet;

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "gateway-cost",
    title: "What the gateway daemon costs while its link is up",
    source: "an experiment of Outlast",
    measures: "Throughput and packet rate through a gateway with `outlast run` on the eBPF path, on \
               the NFQUEUE path, and without; what its programs in the kernel need",
    method,
    figures: &[&Throughput, &programs::Programs],
};

/// The share of plain forwarding that the eBPF path is to keep.
pub const WANTED: f64 = 0.95;

const LOADS: [Load; 3] = [Load::SuperSegments, Load::Packets, Load::Datagrams];

fn method(extent: Extent) -> Vec<String> {
    vec![
        method_of_place(),
        method_of_rounds(bench(Load::Packets, extent)),
        programs::method(extent),
    ]
}

fn method_of_place() -> String {
    format!(
        "Three network namespaces in a row - a fixed host, a gateway, a mobile host - joined by veth \
         pairs, so that nothing but this machine's processors bounds what goes through. Between \
         gateway and mobile host there are three pairs, side by side: on one of the gateway's \
         interfaces `outlast run --mechanism hold` runs on the eBPF path; an empty program is \
         attached to another, where the daemon's are, and passes every packet: what it costs, every \
         eBPF path costs; to the third nothing is attached: plain forwarding. The fixed host sends \
         as much as it can over one after another, in turns: over a TCP connection with \
         super-segments (GSO), {} MiB a turn; over one in packets of 1,500 bytes (TSO, GSO and GRO \
         off on all interfaces), {} MiB; and datagrams of 64 bytes, for {}. Each has as many turns, \
         and their order goes through all six that there are.",
        turns::SUPER_SEGMENTS_IN_TURN >> 20,
        turns::PACKETS_IN_TURN >> 20,
        Unit::Seconds.show_exact(turns::DATAGRAM_TURN.as_secs_f64()),
    )
}

fn method_of_rounds(bench: Bench) -> String {
    format!(
        "{} rounds with turns for {}, after {} that do not count; for each, the daemon, the program \
         and the connections are made anew, and change interfaces. In one round of {} the NFQUEUE \
         path, of which nothing is claimed, is measured after the others, alone, for a third of that \
         time. What each carries in the time of its turns is divided by what plain forwarding carries \
         in that of its own, which gives one share for each round; shown are medians over the rounds, \
         with the quarter and the three-quarter point of these shares. Bits are those that the \
         receiving application reads; datagrams those that leave the gateway, which nobody reads.",
        bench.rounds,
        Unit::Seconds.show_exact(bench.window.as_secs_f64()),
        Unit::Seconds.show_exact(bench::WARM_UP.as_secs_f64()),
        Bench::NFQUEUE_ROUNDS,
    )
}

/// As many rounds as let each series have each interface equally often.
const fn bench(load: Load, extent: Extent) -> Bench {
    match extent {
        Extent::Quick => Bench {
            load,
            rounds: 12,
            window: Duration::from_millis(2_000),
        },
        Extent::Full => Bench {
            load,
            rounds: 42,
            window: Duration::from_millis(4_500),
        },
    }
}

/// The name of a load, which its runs bear.
pub(crate) const fn title(load: Load) -> &'static str {
    match load {
        Load::SuperSegments => "TCP, super-segments",
        Load::Packets => "TCP, 1,500 bytes",
        Load::Datagrams => "UDP, 64 bytes",
    }
}

const fn unit(load: Load) -> Unit {
    match load {
        Load::SuperSegments | Load::Packets => Unit::BitsPerSecond,
        Load::Datagrams => Unit::Count,
    }
}

fn job(load: Load, extent: Extent) -> Job {
    let bench = bench(load, extent);
    let setting = setting(title(load), bench.window, bench.duration());
    Job::new(title(load), &setting, 0).live(Trial::Bench(bench))
}

/// What the scenario says of a job that takes so long: nothing of it is emulated.
pub(crate) fn setting(name: &str, interval: Duration, duration: Duration) -> Setting {
    Setting {
        task: Task::Interactive { interval, duration },
        congestion: row::CONGESTION,
        gateway: Mechanism::Hold,
        ..without_link(name, duration)
    }
}

/// What goes through.
#[derive(Debug)]
pub struct Throughput;

impl Figure for Throughput {
    fn name(&self) -> &'static str {
        "throughput"
    }

    fn title(&self) -> &'static str {
        "Throughput and packet rate with the daemon on either path, and without"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        LOADS.iter().map(|&load| job(load, extent)).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let least = LOADS
            .iter()
            .filter_map(|&load| share(runs, load, Series::Ebpf))
            .min_by(|a, b| a.value.total_cmp(&b.value));
        Part::new("Throughput and packet rate")
            .table(table(runs))
            .claims(claims(runs))
            .highlight(Highlight {
                label: "Kept by the eBPF path".to_owned(),
                value: least.map_or("–".to_owned(), |least| Unit::Share.show(least.value)),
                note: "of plain forwarding, the least of three".to_owned(),
                tone: least.map_or(Tone::Plain, |least| tone(least.value)),
            })
    }
}

fn tone(share: f64) -> Tone {
    if share >= WANTED {
        Tone::Good
    } else {
        Tone::Bad
    }
}

fn cost(runs: &Runs, load: Load) -> Option<Cost> {
    runs.of(title(load)).first()?.observed()
}

fn samples(runs: &Runs, load: Load, series: Series) -> impl Iterator<Item = Sample> {
    let cost = cost(runs, load).into_iter();
    cost.flat_map(|cost| cost.samples)
        .filter(move |sample| sample.series == series)
}

/// The median in a second.
fn per_s(runs: &Runs, load: Load, series: Series) -> Option<f64> {
    let samples = samples(runs, load, series);
    median(samples.map(|sample| Some(sample.per_s))).map(|median| median.value)
}

/// The shares of plain forwarding.
fn shares(runs: &Runs, load: Load, series: Series) -> impl Iterator<Item = f64> {
    samples(runs, load, series)
        .filter_map(|sample| sample.plain_per_s.map(|plain| sample.per_s / plain))
}

/// Their median.
fn share(runs: &Runs, load: Load, series: Series) -> Option<Measured> {
    median(shares(runs, load, series).map(Some))
}

/// Their quarter and three-quarter point.
fn middle_half(shares: impl Iterator<Item = f64>) -> Option<String> {
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    let (low, high) = (
        shares.get(shares.len() / 4)?,
        shares.get(shares.len() * 3 / 4)?,
    );
    let shown = [low, high].map(|share| Unit::Share.show(*share));
    Some(shown.join(" to "))
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("load", "Load"),
        Column::text("plain", "Plain"),
        Column::text("ebpf", "eBPF path"),
        Column::quantity("ebpf_share", "of plain", Unit::Share),
        Column::text("ebpf_half", "quarter points"),
        Column::quantity("empty_share", "Empty program, of plain", Unit::Share),
        Column::text("empty_half", "quarter points"),
        Column::text("nfqueue", "NFQUEUE path"),
        Column::quantity("nfqueue_share", "of plain", Unit::Share),
        Column::text("noise", "Plain itself"),
    ])
    .titled("Medians of what goes through in a second");
    for load in LOADS {
        let speed = |series| {
            per_s(runs, load, series)
                .map_or(Shown::missing(), |per_s| Shown::from(shown(load, per_s)))
        };
        let ratio = |series| share(runs, load, series).map(|share| share.value);
        let kept = ratio(Series::Ebpf);
        table.push([
            Shown::from(title(load)),
            speed(Series::Plain),
            speed(Series::Ebpf),
            kept.map_or(Shown::missing(), |kept| Shown::from(kept).tone(tone(kept))),
            Shown::from(middle_half(shares(runs, load, Series::Ebpf))),
            Shown::from(ratio(Series::Empty)),
            Shown::from(middle_half(shares(runs, load, Series::Empty))),
            speed(Series::Nfqueue),
            Shown::from(ratio(Series::Nfqueue)),
            Shown::from(spread(runs, load)),
        ]);
    }
    table.note(
        "Plain itself: the quarter and the three-quarter point of plain forwarding over the rounds, \
         over its median: how far this machine's other work moves the numbers from round to round. \
         It moves what is measured side by side together, and the shares less.",
    );
    for (name, why) in missing(runs) {
        table.note(format!("Not measured, {name}: {why}"));
    }
    if let Some(circumstances) = circumstances(runs) {
        table.note(circumstances);
    }
    table
}

fn shown(load: Load, per_s: f64) -> String {
    match unit(load) {
        Unit::Count => format!("{:.0} thousand packets/s", per_s / 1e3),
        unit => unit.show(per_s),
    }
}

/// The middle half of plain forwarding.
fn spread(runs: &Runs, load: Load) -> Option<String> {
    let middle = per_s(runs, load, Series::Plain)?;
    middle_half(samples(runs, load, Series::Plain).map(|sample| sample.per_s / middle))
}

fn missing(runs: &Runs) -> BTreeSet<(String, String)> {
    let costs = LOADS.iter().filter_map(|&load| cost(runs, load));
    costs.flat_map(|cost| cost.missing).collect()
}

fn circumstances(runs: &Runs) -> Option<String> {
    let cost = LOADS.iter().find_map(|&load| cost(runs, load))?;
    Some(format!(
        "Linux {}, {}, {} processors, which sender, gateway and receiver share.",
        cost.kernel, cost.congestion, cost.processors,
    ))
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let judged = |load| {
        let statement = format!(
            "{}: with the daemon on the eBPF path at least 95 % of plain forwarding goes through \
             (median).",
            title(load)
        );
        own_claim(
            "gateway-cost",
            statement,
            Unit::Share,
            Published::AtLeast(WANTED),
        )
        .judge(share(runs, load, Series::Ebpf))
    };
    LOADS.into_iter().map(judged).collect()
}
