//! What HIP costs: a crowd of hosts at one server, and tunnels side by side with WireGuard.
//!
//! Two namespaces joined by a pair of virtual interfaces, so that nothing but this machine's processors bounds what
//! goes through.
//!
//! Left out: several connections at once, uploads and downloads at once, suites other than the preferred one.

mod crowd;
mod pair;
mod server;
pub mod trial;
mod wireguard;

use crate::live::{Trial, without_link};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, median, own_claim};
use outlast_experiments::record::Runs;
use outlast_experiments::setting::{Setting, Task};
use outlast_report::judgement::{Claim, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use trial::{
    CostTrial, First, HIP, IDENTITIES, LOCAL_SCOPE, Observed, PLAIN, Sample, Step, WIREGUARD,
};

/// The trial.
pub static EXPERIMENT: Experiment = Experiment {
    name: "hip-cost",
    title: "What HIP costs, beside WireGuard, and with many hosts at one server",
    source: "an experiment of Outlast",
    measures: "Throughput of ESP and time of the base exchange beside WireGuard; 1,000 associations that readdress at once",
    method,
    figures: &[&Crowd, &Tunnels, &Exchanges],
};

/// All of a crowd are to be readdressed within this time, in seconds.
pub const SOON_S: f64 = 5.0;

fn method(extent: Extent) -> Vec<String> {
    let hosts = hosts(extent);
    let CostTrial::Tunnels { rounds, window } = tunnels(extent) else {
        unreachable!("tunnels are tunnels")
    };
    vec![
        "Two network namespaces joined by a veth pair with an MTU of 1,500 bytes, so that nothing but this machine's \
         processors bounds what goes through: both hosts share them."
            .to_owned(),
        format!(
            "The crowd: `outlast run --role hip` with `admits = \"anyone\"` on one host; on the other one thread drives \
             {hosts} hosts of the crate `hip`, each with an ECDSA P-256 identity and an IPv4 address of its own. They \
             open their associations, 16 at a time, then all change their address at once, then the server changes its \
             own. Each sends a datagram through its association in each step, which comes out of the server's TUN \
             device and is answered there. The server raises its puzzle from 50 exchanges a second on, as it always \
             does."
        ),
        format!(
            "Throughput: one TCP connection (CUBIC) without a tunnel, through `outlast run --role hip` on both hosts \
             (AES-128-GCM, MTU 1,440) between tags and between local-scope addresses of IPv4, and through `boringtun-cli` on both hosts (MTU 1,420, its default of four \
             threads), one after another, {rounds} rounds of {} each. Processor time is that of the tunnel's program, \
             with what the kernel does on its behalf; medians.",
            Unit::Seconds.show_exact(window.as_secs_f64()),
        ),
        "First connections: both ends of a tunnel begin anew, and a TCP connection through it is made, then a second \
         one. The first one waits for the base exchange or the handshake."
            .to_owned(),
    ]
}

const fn hosts(extent: Extent) -> usize {
    match extent {
        Extent::Quick => 200,
        Extent::Full => 1_000,
    }
}

const fn tunnels(extent: Extent) -> CostTrial {
    let (rounds, window) = match extent {
        Extent::Quick => (3, Duration::from_secs(1)),
        Extent::Full => (15, Duration::from_secs(2)),
    };
    CostTrial::Tunnels { rounds, window }
}

const fn exchanges(extent: Extent) -> CostTrial {
    let rounds = match extent {
        Extent::Quick => 3,
        Extent::Full => 25,
    };
    CostTrial::Exchanges { rounds }
}

fn job(name: &'static str, trial: CostTrial) -> Job {
    let duration = trial.expected();
    let setting = Setting {
        task: Task::Interactive {
            interval: Duration::from_secs(1),
            duration,
        },
        deadline: duration * 4 + Duration::from_secs(60),
        ..without_link(name, duration)
    };
    Job::new(name, &setting, 0).live(Trial::Cost(trial))
}

fn own(statement: String, unit: Unit, published: Published) -> Claim {
    own_claim("hip-cost", statement, unit, published)
}

fn seen(name: &str, runs: &Runs) -> Option<Observed> {
    runs.of(name).first()?.observed()
}

/// Many hosts at one server.
#[derive(Debug)]
struct Crowd;

const CROWD: &str = "crowd";

impl Figure for Crowd {
    fn name(&self) -> &'static str {
        "crowd"
    }

    fn title(&self) -> &'static str {
        "Many associations at one server, all readdressing at once"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let hosts = hosts(extent);
        vec![job(CROWD, CostTrial::Crowd { hosts })]
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let observed = seen(CROWD, runs);
        let steps = observed.as_ref().map_or(&[][..], |it| &it.steps);
        let least = |of: fn(&Step) -> usize| {
            let hosts = hosts(extent) as f64;
            let shares = steps.iter().map(|step| of(step) as f64 / hosts);
            mean(shares.reduce(f64::min))
        };
        let readdressed = steps.iter().skip(1).map(|step| step.complete.last_s);
        let claims = vec![
            own(
                "Every host has its association, and is readdressed, in each step (share, least of all steps)."
                    .to_owned(),
                Unit::Share,
                Published::AtLeast(1.0),
            )
            .judge(least(|step| step.complete.count)),
            own(
                "Through every association a datagram is answered in each step (share, least of all steps)."
                    .to_owned(),
                Unit::Share,
                Published::AtLeast(1.0),
            )
            .judge(least(|step| step.answered.count)),
            own(
                format!("When all move at once, the last one is readdressed within {SOON_S} s."),
                Unit::Seconds,
                Published::AtMost(SOON_S),
            )
            .judge(mean(readdressed.reduce(f64::max))),
        ];
        Part::new(self.title())
            .table(crowd_table(observed.as_ref()))
            .claims(claims)
    }
}

fn crowd_table(observed: Option<&Observed>) -> Table {
    let mut table = Table::new([
        Column::text("what", "Step"),
        Column::quantity("hosts", "Hosts", Unit::Count),
        Column::quantity("per_s", "In a second", Unit::Number),
        Column::quantity("median_s", "Complete: median", Unit::Seconds),
        Column::quantity("last_s", "Last", Unit::Seconds),
        Column::quantity("answered_s", "Answered: median", Unit::Seconds),
        Column::quantity("last_answered_s", "Last answered", Unit::Seconds),
        Column::quantity("server_s", "Server's processor time each", Unit::Seconds),
        Column::quantity("resident", "Server's memory afterwards", Unit::Bytes),
    ])
    .titled("How long each host takes");
    for step in observed.map_or(&[][..], |it| &it.steps) {
        let count = step.complete.count.max(1) as f64;
        table.push([
            Shown::from(step.what.as_str()),
            Shown::from(step.complete.count as u64),
            Shown::from(count / step.elapsed_s),
            Shown::from(step.complete.median_s),
            Shown::from(step.complete.last_s),
            Shown::from(step.answered.median_s),
            Shown::from(step.answered.last_s),
            Shown::from(step.server_s / count),
            Shown::from(step.resident as f64),
        ]);
    }
    if let Some(observed) = observed {
        let before = Unit::Bytes.show(observed.resident_before as f64);
        table.note(format!(
            "Before the first exchange the server's daemon had {before} resident. Times of base exchanges are from \
             each host's own I1, those of moves from the moment at which all move."
        ));
    }
    table
}

/// Throughput.
#[derive(Debug)]
struct Tunnels;

const TUNNELS: &str = "tunnels";
const WAYS: [&str; 4] = [PLAIN, HIP, LOCAL_SCOPE, WIREGUARD];

impl Figure for Tunnels {
    fn name(&self) -> &'static str {
        "tunnels"
    }

    fn title(&self) -> &'static str {
        "Throughput of one TCP connection"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        vec![job(TUNNELS, tunnels(extent))]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let observed = seen(TUNNELS, runs).unwrap_or_default();
        let of = |way: &str, value: fn(&Sample) -> Option<f64>| {
            let samples = observed.samples.iter().filter(|sample| sample.way == way);
            median(samples.filter_map(value).map(Some))
        };
        let mut table = Table::new([
            Column::text("way", "Through"),
            Column::quantity("bits_per_s", "Throughput", Unit::BitsPerSecond),
            Column::quantity(
                "sender_s",
                "Sender's processor time for 1 GB",
                Unit::Seconds,
            ),
            Column::quantity("receiver_s", "Receiver's", Unit::Seconds),
        ])
        .titled("Medians");
        for way in WAYS {
            let shown = |measured: Option<Measured>| Shown::from(measured.map(|it| it.value));
            table.push([
                Shown::from(way),
                shown(of(way, |sample| Some(sample.bits_per_s))),
                shown(of(way, |sample| sample.cpu_s_per_gb.map(|[left, _]| left))),
                shown(of(way, |sample| {
                    sample.cpu_s_per_gb.map(|[_, right]| right)
                })),
            ]);
        }
        for (way, why) in &observed.missing {
            table.note(format!("{way}: {why}."));
        }
        let bits = |way| of(way, |sample| Some(sample.bits_per_s));
        let share = bits(HIP).zip(bits(WIREGUARD)).map(|(hip, other)| Measured {
            count: hip.count,
            ..Measured::single(hip.value / other.value)
        });
        let claim = own(
            "Through HIP goes at least as much as through WireGuard (share).".to_owned(),
            Unit::Share,
            Published::AtLeast(1.0),
        );
        Part::new(self.title())
            .table(table)
            .claims(vec![claim.judge(share)])
    }
}

/// First connections.
#[derive(Debug)]
struct Exchanges;

const EXCHANGES: &str = "exchanges";

impl Figure for Exchanges {
    fn name(&self) -> &'static str {
        "exchanges"
    }

    fn title(&self) -> &'static str {
        "The first connection through a tunnel"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        vec![job(EXCHANGES, exchanges(extent))]
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let observed = seen(EXCHANGES, runs).unwrap_or_default();
        let mut table = Table::new([
            Column::text("way", "Through"),
            Column::quantity("first_s", "First connection", Unit::Seconds),
            Column::quantity("second_s", "Second", Unit::Seconds),
            Column::quantity("exchange_s", "Exchange alone", Unit::Seconds),
        ])
        .titled("Until a TCP connection is there: medians");
        let of = |way: &str, value: fn(&First) -> f64| {
            let firsts = observed.firsts.iter().filter(|first| first.way == way);
            median(firsts.map(|first| Some(value(first))))
        };
        let ways = IDENTITIES.map(|(_, way)| way).into_iter();
        for way in ways.chain([WIREGUARD]) {
            let shown = |value| Shown::from(of(way, value).map(|it| it.value));
            table.push([
                Shown::from(way),
                shown(|first| first.first_s),
                shown(|first| first.second_s),
                shown(|first| first.first_s - first.second_s),
            ]);
        }
        for (way, why) in &observed.missing {
            table.note(format!("{way}: {why}."));
        }
        let slowest = IDENTITIES.map(|(_, way)| of(way, |first| first.first_s).map(|it| it.value));
        let slowest = slowest.into_iter().flatten().reduce(f64::max);
        let claim = own(
            "With every identity the first connection is there within 100 ms (slowest median)."
                .to_owned(),
            Unit::Seconds,
            Published::AtMost(0.1),
        );
        Part::new(self.title())
            .table(table)
            .claims(vec![claim.judge(mean(slowest))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_job() {
        for extent in [Extent::Quick, Extent::Full] {
            for figure in EXPERIMENT.figures {
                assert_eq!(figure.jobs(extent).len(), 1, "{}", figure.name());
            }
        }
    }
}
