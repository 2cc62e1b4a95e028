//! What the agent of the role `host` costs while nothing happens: throughput and processor time with agents at both
//! hosts, and without any.
//!
//! The hosts are those of [`gateway_cost`](crate::gateway_cost). The agent's BPF programs are of a cgroup, and so of every
//! connection of this process, whichever network namespace it is in: with and without it are measured in turn.

pub mod bench;

use crate::gateway_cost::bench::Load;
use crate::gateway_cost::{setting, title};
use crate::live::Trial;
use bench::{AgentBench, Costs, Sample};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "host-cost",
    title: "What the agent beside a host's TCP costs while nothing happens",
    source: "an experiment of Outlast",
    measures: "Throughput and processor time of one TCP connection with `outlast run --role host` at both hosts, and \
               without it",
    method,
    figures: &[&Cost],
};

const LOADS: [Load; 2] = [Load::SuperSegments, Load::Packets];

const fn bench(load: Load, extent: Extent) -> AgentBench {
    AgentBench {
        load,
        rounds: match extent {
            Extent::Quick => 6,
            Extent::Full => 30,
        },
        window: Duration::from_millis(600),
    }
}

fn method(extent: Extent) -> Vec<String> {
    let AgentBench { rounds, window, .. } = bench(Load::Packets, extent);
    vec![format!(
        "Three network namespaces in a row - a fixed host, a router, a mobile host - joined by veth pairs, so that nothing but \
         this machine's processors bounds what goes through. One TCP connection sends as much as it can for {}, with \
         `outlast run --role host` and its defaults at both end hosts, and without it; in each of {rounds} rounds once each, in \
         turn the one and the other first, with a new connection and new agents. Shares are of what was carried without agents in \
         the same round; medians over the rounds. Processor time is that of the process that sends and receives, kernel \
         included.",
        Unit::Seconds.show_exact(window.as_secs_f64()),
    )]
}

/// What goes through, and what it costs.
#[derive(Debug)]
struct Cost;

impl Figure for Cost {
    fn name(&self) -> &'static str {
        "cost"
    }

    fn title(&self) -> &'static str {
        "Throughput and processor time with the agent and without"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let job = |load| {
            let bench = bench(load, extent);
            let setting = setting(title(load), bench.window, bench.duration());
            Job::new(title(load), &setting, 0).live(Trial::Agent(bench))
        };
        LOADS.map(job).into()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Throughput and processor time")
            .table(table(runs))
            .claims(claims(runs))
    }
}

fn costs(runs: &Runs, load: Load) -> Option<Costs> {
    runs.of(title(load)).first().and_then(Record::observed)
}

fn middle(runs: &Runs, load: Load, what: fn(&Sample) -> f64) -> Option<Measured> {
    let samples = costs(runs, load)?.samples;
    median(samples.iter().map(|sample| Some(what(sample))))
}

fn throughput(sample: &Sample) -> f64 {
    sample.with.per_s / sample.without.per_s
}

fn processor(sample: &Sample) -> f64 {
    sample.with.cpu_us_per_packet / sample.without.cpu_us_per_packet
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("load", "Load"),
        Column::text("agents", "Agents"),
        Column::quantity("per_s", "Payload", Unit::BitsPerSecond),
        Column::quantity("share", "of that without", Unit::Share),
        Column::fixed("us_per_packet", "Processor time for 1,448 bytes, µs", 3),
        Column::quantity("cpu_share", "of that without", Unit::Share),
        Column::fixed("agents_ms", "Agents' processor time, ms", 1),
    ])
    .titled("Medians over the rounds");
    for load in LOADS {
        let of = |what| middle(runs, load, what).map(|middle| middle.value);
        table.push([
            Shown::from(title(load)),
            Shown::from("none"),
            Shown::from(of(|sample| sample.without.per_s)),
            Shown::from(1.0),
            Shown::from(of(|sample| sample.without.cpu_us_per_packet)),
            Shown::from(1.0),
            Shown::missing(),
        ]);
        table.push([
            Shown::from(title(load)),
            Shown::from("at both hosts"),
            Shown::from(of(|sample| sample.with.per_s)),
            Shown::from(of(throughput)),
            Shown::from(of(|sample| sample.with.cpu_us_per_packet)),
            Shown::from(of(processor)),
            Shown::from(of(|sample| sample.agents_s * 1e3)),
        ]);
    }
    if let Some(costs) = LOADS.iter().find_map(|&load| costs(runs, load)) {
        table.note(format!(
            "Linux {}, {} processors, which all hosts share.",
            costs.kernel, costs.processors
        ));
    }
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str, published| {
        own_claim("host-cost", statement, Unit::Share, published)
    };
    let worst = |what: fn(&Sample) -> f64, of: fn(f64, f64) -> f64| {
        let all = LOADS.iter().filter_map(|&load| middle(runs, load, what));
        all.reduce(|one, other| match of(one.value, other.value) == one.value {
            true => one,
            false => other,
        })
    };
    vec![
        own(
            "With agents at both hosts a connection carries at least 97 % of what it does without (the lower median of the \
             loads).",
            Published::AtLeast(0.97),
        )
        .judge(worst(throughput, f64::min)),
        own(
            "It takes at most 103 % of the processor time (the higher median of the loads).",
            Published::AtMost(1.03),
        )
        .judge(worst(processor, f64::max)),
    ]
}
