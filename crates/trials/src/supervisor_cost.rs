//! What the live supervisor host costs while its link is up: beside plain forwarding and a proxy.
//!
//! The place is that of [`gateway_cost`](crate::gateway_cost): three namespaces in a row, and three lanes side by side.
//! One has nothing, one the supervisor host, and over one the fixed host connects to a proxy on the gateway, which
//! splits the connection, as I-TCP does: it acknowledges what the mobile has not.

pub mod bench;

use crate::gateway_cost::bench::Load;
use crate::gateway_cost::{setting, title};
use crate::live::Trial;
use bench::{Costs, Sample, SplitBench, Way};
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
    name: "supervisor-cost",
    title: "What the supervisor host costs while its link is up",
    source: "an experiment of Outlast",
    measures: "Throughput and processor time through `outlast run --role supervisor`, beside plain forwarding \
               and a proxy that splits the connection",
    method,
    figures: &[&Cost],
};

/// Those that are judged carry packets of the link's size, as a wireless link's do.
const LOADS: [Load; 2] = [Load::Packets, Load::SuperSegments];

const fn bench(load: Load, extent: Extent) -> SplitBench {
    SplitBench {
        load,
        rounds: match extent {
            Extent::Quick => 6,
            Extent::Full => 30,
        },
        window: Duration::from_millis(2_000),
    }
}

fn method(extent: Extent) -> Vec<String> {
    let SplitBench { rounds, window, .. } = bench(Load::Packets, extent);
    vec![
        format!(
            "Three network namespaces in a row - a fixed host, a gateway, a mobile host - joined by veth pairs, so that \
             nothing but this machine's processors bounds what goes through. Between gateway and mobile host there are \
             three pairs, side by side: with nothing (plain forwarding), with `outlast run --role supervisor` \
             (m-tcp-adaptive; every packet goes through user space), and with nothing, where the fixed host connects to \
             socat on the gateway, which connects to the mobile host: a connection that is split. The fixed host sends \
             as much as it can over one after another, in turns of some milliseconds, in all six orders. {rounds} rounds \
             with turns for {}; for each, daemon, proxy and connections are made anew, and change lanes.",
            Unit::Seconds.show_exact(window.as_secs_f64()),
        ),
        "Shares are of what plain forwarding carries in the same round; medians over the rounds. Processor time is that of \
         the processes on the gateway, daemon or proxy, without what the kernel spends in interrupts; forwarding has \
         none but that."
            .to_owned(),
    ]
}

/// What goes through, and what it costs.
#[derive(Debug)]
pub struct Cost;

impl Figure for Cost {
    fn name(&self) -> &'static str {
        "cost"
    }

    fn title(&self) -> &'static str {
        "Throughput and processor time of the supervisor host, of plain forwarding and of a proxy"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let job = |load| {
            let bench = bench(load, extent);
            let setting = setting(title(load), bench.window, bench.duration());
            Job::new(title(load), &setting, 0).live(Trial::Split(bench))
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

fn samples(runs: &Runs, load: Load, way: Way) -> impl Iterator<Item = Sample> {
    let samples = costs(runs, load)
        .into_iter()
        .flat_map(|costs| costs.samples);
    samples.filter(move |sample| sample.way == way)
}

fn middle(values: impl Iterator<Item = f64>) -> Option<Measured> {
    median(values.map(Some))
}

fn table(runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("load", "Load"),
        Column::text("way", "Through"),
        Column::text("acknowledgements", "Acknowledgements"),
        Column::quantity("per_s", "Payload", Unit::BitsPerSecond),
        Column::quantity("share", "of plain", Unit::Share),
        Column::fixed("us_per_packet", "Processor time for 1,448 bytes, µs", 2),
    ])
    .titled("Medians over the rounds");
    for load in LOADS {
        for way in Way::ALL {
            let of = |what: fn(&Sample) -> f64| {
                middle(samples(runs, load, way).map(|sample| what(&sample)))
                    .map(|middle| middle.value)
            };
            table.push([
                Shown::from(title(load)),
                Shown::from(way.name()),
                Shown::from(match way {
                    Way::Proxy => "ahead",
                    Way::Plain | Way::Supervisor => "end to end",
                }),
                Shown::from(of(|sample| sample.per_s)),
                Shown::from(of(|sample| sample.per_s / sample.plain_per_s)),
                Shown::from(of(|sample| sample.cpu_us_per_packet)),
            ]);
        }
    }
    for load in LOADS {
        for (way, why) in costs(runs, load)
            .into_iter()
            .flat_map(|costs| costs.missing)
        {
            table.note(format!("Not measured, {}, {way}: {why}", title(load)));
        }
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
    let share = |load, way| {
        middle(samples(runs, load, way).map(|sample| sample.per_s / sample.plain_per_s))
    };
    let rate = middle(samples(runs, Load::Packets, Way::Supervisor).map(|sample| sample.per_s));
    let beside_proxy = share(Load::Packets, Way::Supervisor)
        .zip(share(Load::Packets, Way::Proxy))
        .map(|(ours, proxy)| Measured {
            value: ours.value / proxy.value,
            standard_deviation: None,
            count: ours.count,
        });
    vec![
        own_claim(
            "supervisor-cost",
            "The supervisor host carries packets of 1,500 bytes at 100 Mbit/s at least, which the paper reckoned for its \
             Pentium.",
            Unit::BitsPerSecond,
            Published::AtLeast(100e6),
        )
        .judge(rate),
        own_claim(
            "supervisor-cost",
            "Packets of 1,500 bytes: the supervisor host carries at least a quarter of what the proxy does, which copies \
             and forgets (medians).",
            Unit::Share,
            Published::AtLeast(0.25),
        )
        .judge(beside_proxy),
    ]
}
