//! What Mobile IP's tunnels cost: throughput and delay beside plain forwarding.
//!
//! A home agent, a foreign agent and mobile nodes of `outlast run` in namespaces, as fast as this
//! machine's processors are. The same traffic goes over plain forwarding, over our tunnels, over a
//! tunnel of the kernel's, and through a gateway on the NFQUEUE path, in turns of milliseconds.

pub mod bench;
pub mod place;

use crate::live::{Trial, without_link};
use bench::{Load, Observed, TunnelBench};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim};
use outlast_experiments::record::Runs;
use outlast_experiments::setting::{Setting, Task};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use place::Way;

/// The comparison.
pub static EXPERIMENT: Experiment = Experiment {
    name: "tunnel-cost",
    title: "What Mobile IP's tunnels cost in throughput and delay",
    source: "an experiment of Outlast",
    measures: "Throughput and round trip through tunnels of `outlast run`, beside plain forwarding, a tunnel of \
               the kernel's, and a gateway on the NFQUEUE path",
    method,
    figures: &[&Tunnels],
};

const LOADS: [Load; 3] = [Load::SuperSegments, Load::Packets, Load::RoundTrips];
/// How long the roles take until all are registered, and a round.
const SETTING_UP: Duration = Duration::from_secs(5);
const ROUND: Duration = Duration::from_secs(3);

fn method(extent: Extent) -> Vec<String> {
    let bench = bench(Load::Packets, extent);
    vec![
        "Network namespaces in a row - a fixed host, a host with a home agent, a router, and seven mobile hosts \
         behind it - joined by veth pairs, so that nothing but this machine's processors bounds what goes \
         through. What the fixed host sends takes one of seven ways. Plain: it is forwarded to the first mobile \
         host. Co-located: `outlast run` is home agent and, on the second mobile host, mobile node; the tunnel \
         IP in IP ends there. Foreign agent: the router is one for the third mobile host, and the tunnel's end. Both tunnels are in the kernel, by eBPF. User space: \
         beside the home agent is another one, and the way leads through it and to a mobile node at a co-located \
         address, both with `data_path = \"user-space\"`. \
         In UDP: the router translates the fourth's address, so that its tunnel is in UDP. \
         Kernel: a tunnel of the kernel's leads to the fifth, IP in IP if this kernel has it, else VXLAN. \
         NFQUEUE: a gateway with `hold` runs on the router's interface to the sixth, and sees every packet in \
         user space. What mobile nodes send goes back through the tunnel."
            .to_owned(),
        format!(
            "Each way has its turn, one after another, {} times a round: over TCP with super-segments (GSO, GRO), \
             {} MiB a turn; over TCP in packets of the link's size (TSO, GSO and GRO off on all interfaces but the \
             tunnels'), {} MiB; and {} datagrams of {} bytes there and back, one at a time. {} rounds, each with \
             new connections. One turn before them does not count. What a way carries in its turns of a round is \
             divided by what plain forwarding carries in those of its own; shown are medians over the rounds.",
            bench.turns,
            bench::SUPER_SEGMENTS_IN_TURN >> 20,
            bench::PACKETS_IN_TURN >> 20,
            bench::ROUND_TRIPS_IN_TURN,
            bench::SMALL,
            bench.rounds,
        ),
        LIMITS.to_owned(),
    ]
}

/// What bounds the tunnels, said where their numbers stand.
const LIMITS: &str = "What bounds the tunnels by eBPF: as plain forwarding, the processors' time in the kernel; \
    super-segments stay whole to the other end. What bounds the others: each packet is copied, parsed and written by \
    one thread at each end. The packets of a tunnel IP in IP cannot leave user space as super-segments, and each goes its whole way to the other end's socket \
    within the call that sends it. Those of a tunnel in UDP leave and come as super-segments (UDP GSO and GRO).";

const fn bench(load: Load, extent: Extent) -> TunnelBench {
    let (rounds, turns) = match extent {
        Extent::Quick => (5, 10),
        Extent::Full => (21, 20),
    };
    TunnelBench {
        load,
        rounds,
        turns,
    }
}

const fn title(load: Load) -> &'static str {
    match load {
        Load::SuperSegments => "TCP, super-segments",
        Load::Packets => "TCP, packets",
        Load::RoundTrips => "UDP, round trip",
    }
}

const fn unit(load: Load) -> Unit {
    match load {
        Load::SuperSegments | Load::Packets => Unit::BitsPerSecond,
        Load::RoundTrips => Unit::Seconds,
    }
}

fn job(load: Load, extent: Extent) -> Job {
    let bench = bench(load, extent);
    let duration = SETTING_UP + ROUND * bench.rounds;
    let setting = Setting {
        task: Task::Interactive {
            interval: ROUND,
            duration,
        },
        ..without_link(title(load), duration)
    };
    Job::new(title(load), &setting, 0).live(Trial::Tunnels(bench))
}

/// What goes through, and how fast.
#[derive(Debug)]
struct Tunnels;

impl Figure for Tunnels {
    fn name(&self) -> &'static str {
        "tunnels"
    }

    fn title(&self) -> &'static str {
        "Throughput and round trip, by what is on the way"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        LOADS.iter().map(|&load| job(load, extent)).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        Part::new("Throughput and round trip")
            .table(table(runs))
            .claims(claims(runs))
    }
}

fn observed(runs: &Runs, load: Load) -> Option<Observed> {
    runs.of(title(load)).first()?.observed()
}

/// The median over the rounds; `None` for a way that there is not.
fn value(runs: &Runs, load: Load, way: Way) -> Option<f64> {
    let observed = observed(runs, load)?;
    let rounds = observed.rounds.iter();
    let values = rounds.filter_map(|round| round.get(&way).copied());
    Some(median(values.map(Some))?.value)
}

/// The median over the rounds of one way's value divided by another's; `None` where either way is not there.
fn ratio(runs: &Runs, load: Load, way: Way, to: Way) -> Option<Measured> {
    let observed = observed(runs, load)?;
    let shares = observed
        .rounds
        .iter()
        .filter_map(|round| Some(round.get(&way)? / round.get(&to)?));
    median(shares.map(Some))
}

fn table(runs: &Runs) -> Table {
    let mut columns = vec![Column::text("way", "Way")];
    for load in LOADS {
        columns.push(Column::text(title(load), title(load)));
        columns.push(Column::quantity(
            format!("{} of plain", title(load)),
            "of plain",
            Unit::Share,
        ));
    }
    let mut table = Table::new(columns).titled("Medians over the rounds");
    for way in Way::ALL {
        let mut row = vec![Shown::from(way.title())];
        for load in LOADS {
            let value = value(runs, load, way);
            let share = ratio(runs, load, way, Way::Plain).map(|share| share.value);
            row.push(value.map_or(Shown::missing(), |value| {
                Shown::from(unit(load).show(value))
            }));
            row.push(Shown::from(share));
        }
        table.push(row);
    }
    if let Some(observed) = LOADS.iter().find_map(|&load| observed(runs, load)) {
        let tunnel = match (observed.kernel_tunnel, observed.lacking) {
            (Some(name), _) => format!("the kernel's tunnel is {name}"),
            (None, why) => format!(
                "this kernel has no tunnel of its own: {}",
                why.unwrap_or_default()
            ),
        };
        table.note(format!(
            "Linux {}, cubic, {} processors, which all hosts share; {tunnel}.",
            observed.kernel, observed.processors,
        ));
        if let Some(why) = observed.untranslated {
            table.note(format!("There is no tunnel in UDP here: {why}."));
        }
    }
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let mut claims = Vec::new();
    for load in [Load::SuperSegments, Load::Packets] {
        for way in [
            Way::CoLocated,
            Way::ForeignAgent,
            Way::UserSpace,
            Way::Translated,
        ] {
            let statement = format!(
                "{}: the {} carries at least as much as a gateway on the NFQUEUE path without a tunnel (median \
                 of their ratio).",
                title(load),
                way.title()
            );
            let claim = own_claim(
                "tunnel-cost",
                statement,
                Unit::Share,
                Published::AtLeast(1.0),
            );
            claims.push(claim.judge(ratio(runs, load, way, Way::Nfqueue)));
        }
    }
    claims
}
