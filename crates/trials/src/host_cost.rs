//! What the agent of the role `host` costs while nothing happens: throughput and processor time with agents at both
//! hosts, and without any.
//!
//! The hosts are those of [`gateway_cost`](crate::gateway_cost), twice. The agent's BPF programs are of a cgroup, and so are
//! called for the connections of both, but at their beginning and end only, and leave those of another network namespace as
//! they are. So both are measured side by side, in turns of milliseconds.

pub mod bench;

use crate::gateway_cost::bench::Load;
use crate::gateway_cost::{setting, title};
use crate::live::Trial;
use bench::{AgentBench, Costs, Pair, Sample};
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
        window: Duration::from_millis(900),
    }
}

fn method(extent: Extent) -> Vec<String> {
    let AgentBench { rounds, window, .. } = bench(Load::Packets, extent);
    vec![
        format!(
            "Two rows of three network namespaces - a fixed host, a router, a mobile host - joined by veth pairs, so that \
             nothing but this machine's processors bounds what goes through. `outlast run --role host` with its defaults runs at \
             both end hosts of one row, and of the other row in the next round. A TCP connection over each row sends as much as it can, \
             in turns of {} MiB (in super-segments {}) with the other one's, for {} in all, in each of {rounds} rounds with new connections and \
             new agents.",
            bench::bytes_in_turn(Load::Packets) >> 20,
            bench::bytes_in_turn(Load::SuperSegments) >> 20,
            Unit::Seconds.show_exact(window.as_secs_f64()),
        ),
        "The control is measured in each round, too, in turn before the agents begin and after they have ended: the rows are \
         what they were, but no agent runs. What it differs from 100 % by is the method's. Shares are of what the row without agents carried \
         in its turns of that round; medians over the rounds. Processor time is that of the process that sends and \
         receives, kernel included."
            .to_owned(),
    ]
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

fn middle(runs: &Runs, load: Load, what: impl Fn(&Sample) -> f64) -> Option<Measured> {
    let samples = costs(runs, load)?.samples;
    median(samples.iter().map(|sample| Some(what(sample))))
}

fn throughput(pair: &Pair) -> f64 {
    pair.with.per_s / pair.without.per_s
}

fn processor(pair: &Pair) -> f64 {
    pair.with.cpu_us_per_packet / pair.without.cpu_us_per_packet
}

fn agents(sample: &Sample) -> &Pair {
    &sample.agents
}

fn control(sample: &Sample) -> &Pair {
    &sample.control
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
        let of =
            |what: &dyn Fn(&Sample) -> f64| middle(runs, load, what).map(|middle| middle.value);
        table.push([
            Shown::from(title(load)),
            Shown::from("none"),
            Shown::from(of(&|sample| sample.agents.without.per_s)),
            Shown::from(1.0),
            Shown::from(of(&|sample| sample.agents.without.cpu_us_per_packet)),
            Shown::from(1.0),
            Shown::missing(),
        ]);
        let row = |name: &'static str, pair: fn(&Sample) -> &Pair, agents_ms: Option<f64>| {
            [
                Shown::from(title(load)),
                Shown::from(name),
                Shown::from(of(&|sample| pair(sample).with.per_s)),
                Shown::from(of(&|sample| throughput(pair(sample)))),
                Shown::from(of(&|sample| pair(sample).with.cpu_us_per_packet)),
                Shown::from(of(&|sample| processor(pair(sample)))),
                Shown::from(agents_ms),
            ]
        };
        let agents_ms = of(&|sample| sample.agents_s * 1e3);
        table.push(row("at both hosts", agents, agents_ms));
        table.push(row("control: none", control, None));
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
    let worst = |what: fn(&Pair) -> f64, of: fn(f64, f64) -> f64| {
        let all = LOADS
            .iter()
            .filter_map(|&load| middle(runs, load, |sample| what(agents(sample))));
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
