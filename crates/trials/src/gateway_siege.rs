//! `outlast run` under siege: killed at random moments, and amid somebody's hostile packets.
//!
//! Three namespaces as in [`gateway_matrix`](crate::gateway_matrix). Honest transfers cross the gateway
//! while the link goes away and comes back. Each round of them is played three times: without the daemon,
//! with the daemon and nothing done to it, and with the daemon besieged.

mod attacker;
mod daemon;
mod random;
pub mod transfers;
pub mod trial;

use crate::gateway_matrix::trial::Observed;
use crate::live::Trial;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, own_claim};
use outlast_experiments::record::Runs;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_report::judgement::{Claim, Judged, Measured, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::{Congestion, IpVersion, Mechanism};
use std::collections::BTreeSet;
use transfers::{Outcome, Transferred};
use trial::{Besieged, DELAY, QUEUE, RATE_MBIT_PER_S, Round, Siege, SiegePath, SiegeTrial};

/// The siege.
pub static EXPERIMENT: Experiment = Experiment {
    name: "gateway-siege",
    title: "The gateway daemon killed at random moments, and amid hostile packets",
    source: "an experiment of Outlast",
    measures: "What becomes of honest transfers while the daemon is killed 200 times, and while somebody \
               sends ten million hostile packets",
    method,
    figures: &[&Kills, &Hostile],
};

/// How many times as long as the control an honest transfer may take.
pub const SLOWEST: f64 = 2.0;
/// By how many bytes the daemon's peak memory may grow under attack.
pub const MEMORY: f64 = (64 << 20) as f64;

fn method(extent: Extent) -> Vec<String> {
    let packets: u64 = hostile(extent)
        .into_iter()
        .filter_map(|cell| match cell.trial.siege {
            Siege::Hostile { packets, .. } => Some(packets * u64::from(cell.runs)),
            Siege::Kills { .. } => None,
        })
        .sum();
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet (TAP devices) of {RATE_MBIT_PER_S} Mbit/s and 40 ms round trip, with room for \
             {QUEUE} frames. In each round four transfers of {} kB start at once, two each way, over IPv4 \
             and IPv6, opened by either host; after 0.2 to 0.6 s the link goes away, by carrier, \
             neighbour or black hole, and comes back. The receiver compares a hash and then closes, \
             which the sender waits for. CUBIC; receive buffers of 256 kB at most.",
            trial::BYTES / 1_000,
        ),
        "Each round is played three times with the same times: without the daemon (the control; with the \
         same attacker where there is one), with the daemon and nothing done to it, and with the daemon \
         besieged. A transfer's slowdown is its time over that of the last transfer of its direction in \
         the control: transfers that share a link may end in either order. A transfer is lost if an end \
         hears nothing for a minute, if it takes two, if other bytes come than were sent, or if one end alone is told of \
         an error."
            .to_owned(),
        "Kills: in each round the daemon is ended by SIGKILL at a random moment between the round's begin \
         and 0.6 s after link-up, and started again within 0.6 s. Outages of 0.5 to 3 s. With \
         `acknowledge-ahead` a transfer may also end with an error at both ends: the daemon had the only \
         copy of what it had acknowledged."
            .to_owned(),
        format!(
            "Hostile packets, at least {packets} while the daemon runs: the attacker knows the \
             connections' addresses and ports, and no sequence number. He sends made-up handshakes and \
             their refusals, sweeps of one-byte segments with resets at the number just planted, \
             random segments, SYN floods, ICMP errors, resets, closed windows, FINs, damaged segments and \
             datagrams. While the link is up he sends {} packets a second, from beyond the fixed host's \
             router in its name and on the link in the mobile host's, so that the link keeps room; while \
             it is away, as many as the machine lets him, from beyond the router. Counted are those that \
             the kernel took.",
            attacker::PACE,
        ),
    ]
}

/// What the runs have in common that stand in a row.
#[derive(Clone, Copy, Debug)]
struct Cell {
    trial: SiegeTrial,
    runs: u32,
}

fn kills(extent: Extent) -> Vec<Cell> {
    let rounds = extent.choose(3, 10);
    let cell = |path, acknowledges_ahead, runs| Cell {
        trial: SiegeTrial {
            path,
            siege: Siege::Kills {
                rounds,
                acknowledges_ahead,
            },
        },
        runs: extent.choose(1, runs),
    };
    vec![
        cell(SiegePath::Ebpf, false, 7),
        cell(SiegePath::Nfqueue, false, 7),
        // It rewrites packets, which eBPF programs do not.
        cell(SiegePath::Nfqueue, true, 6),
    ]
}

fn hostile(extent: Extent) -> Vec<Cell> {
    let siege = extent.choose(
        Siege::Hostile {
            packets: 10_000,
            rounds: 2,
            outages_s: [1, 2],
        },
        Siege::Hostile {
            packets: 2_500_000,
            rounds: 4,
            outages_s: [2, 8],
        },
    );
    let paths = [SiegePath::Ebpf, SiegePath::Nfqueue];
    let cell = |path| Cell {
        trial: SiegeTrial { path, siege },
        runs: extent.choose(1, 2),
    };
    paths.map(cell).to_vec()
}

impl Cell {
    fn name(&self) -> String {
        let what = match self.trial.siege {
            Siege::Kills { .. } => "kills",
            Siege::Hostile { .. } => "hostile packets",
        };
        let (mechanism, path) = (self.trial.mechanism(), self.trial.path.name());
        format!("{what}, {mechanism} by {path}")
    }

    fn jobs(self) -> impl Iterator<Item = Job> {
        (0..self.runs).map(move |index| {
            let length = self.trial.expected();
            let setting = Setting {
                name: self.name(),
                rate_mbit_per_s: RATE_MBIT_PER_S,
                delay: DELAY,
                queue: QUEUE,
                outages: Outages::None,
                task: Task::Interactive {
                    interval: Duration::from_secs(1),
                    duration: length,
                },
                congestion: Congestion::Cubic,
                sack: true,
                ip: IpVersion::V4,
                gateway: Mechanism::Hold,
                mobile: Mechanism::None,
                seed: 1,
                deadline: length * 10,
            };
            Job::new(self.name(), &setting, index).live(Trial::Siege(self.trial))
        })
    }
}

fn besieged(cells: &[Cell], runs: &Runs) -> impl Iterator<Item = Besieged> {
    let records = cells.iter().flat_map(|cell| runs.of(&cell.name()));
    records.filter_map(|run| run.observed::<Observed>()?.siege)
}

/// The rounds, and the transfers of the besieged ones, of some runs.
struct Tally {
    runs: Vec<Besieged>,
}

impl Tally {
    fn of(cells: &[Cell], runs: &Runs) -> Self {
        Self {
            runs: besieged(cells, runs).collect(),
        }
    }

    fn rounds(&self) -> impl Iterator<Item = &Round> {
        self.runs.iter().flat_map(|run| &run.rounds)
    }

    fn transfers(&self) -> impl Iterator<Item = &Transferred> {
        self.rounds().flat_map(|round| &round.besieged)
    }

    fn count(&self, are: &[Outcome]) -> usize {
        let those = self.transfers();
        those.filter(|it| are.contains(&it.outcome)).count()
    }

    /// The share of the transfers that ended so.
    fn share(&self, are: &[Outcome]) -> Option<Measured> {
        let all = self.transfers().count();
        (all > 0).then(|| Measured {
            value: self.count(are) as f64 / all as f64,
            standard_deviation: None,
            count: all,
        })
    }

    fn slowdowns(&self, reference: fn(&Round) -> &[Transferred]) -> Vec<f64> {
        let mut all: Vec<f64> = self
            .rounds()
            .flat_map(|round| round.slowdowns(reference(round)))
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    fn slowest(&self, reference: fn(&Round) -> &[Transferred]) -> Option<f64> {
        self.slowdowns(reference).last().copied()
    }

    fn middle(&self, reference: fn(&Round) -> &[Transferred]) -> Option<f64> {
        let all = self.slowdowns(reference);
        all.get(all.len() / 2).copied()
    }

    fn most(&self, value: impl Fn(&Besieged) -> f64) -> Option<f64> {
        self.runs.iter().map(value).reduce(f64::max)
    }

    fn sum(&self, value: impl Fn(&Besieged) -> u64) -> u64 {
        self.runs.iter().map(value).sum()
    }

    fn left(&self) -> usize {
        self.runs.iter().map(|run| run.left.len()).sum()
    }

    fn seeds(&self) -> String {
        let seeds: BTreeSet<String> = self.runs.iter().map(|run| run.seed.to_string()).collect();
        seeds.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn control(round: &Round) -> &[Transferred] {
    &round.control
}

fn undisturbed(round: &Round) -> &[Transferred] {
    &round.undisturbed
}

const LOST: [Outcome; 3] = [Outcome::Hung, Outcome::Damaged, Outcome::HalfBroken];

fn own(statement: impl Into<String>, unit: Unit, published: Published) -> Claim {
    own_claim("gateway-siege", statement.into(), unit, published)
}

fn at_most(limit: f64) -> Published {
    Published::AtMost(limit)
}

/// The kills as one figure.
#[derive(Debug)]
pub struct Kills;

impl Figure for Kills {
    fn name(&self) -> &'static str {
        "kills"
    }

    fn title(&self) -> &'static str {
        "What becomes of transfers whose gateway's daemon is killed"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        kills(extent).into_iter().flat_map(Cell::jobs).collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = kills(extent);
        Part::new("SIGKILL at random moments")
            .table(kills_table(&cells, runs))
            .claims(kills_claims(&cells, runs))
    }
}

fn kills_table(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("mechanism", "Mechanism"),
        Column::text("path", "Data path"),
        Column::quantity("kills", "Kills", Unit::Count),
        Column::quantity("amid", "amid outages", Unit::Count),
        Column::quantity("transfers", "Transfers", Unit::Count),
        Column::quantity("intact", "Intact", Unit::Count),
        Column::quantity("broken", "Error at both ends", Unit::Count),
        Column::quantity("lost", "Lost", Unit::Count),
        Column::quantity("control_middle", "Of the control, median", Unit::Factor),
        Column::quantity("control_most", "worst", Unit::Factor),
        Column::quantity(
            "undisturbed_most",
            "Of the undisturbed, worst",
            Unit::Factor,
        ),
        Column::quantity("left", "Left behind", Unit::Count),
        Column::text("seed", "Seed"),
    ])
    .titled("Honest transfers while the daemon is killed");
    for cell in cells {
        let tally = Tally::of(std::slice::from_ref(cell), runs);
        let rounds = || tally.rounds().filter(|round| !round.besieged.is_empty());
        let amid = rounds().filter(|round| round.is_killed_amid()).count();
        table.push([
            Shown::from(cell.trial.mechanism()),
            Shown::from(cell.trial.path.name()),
            Shown::from(rounds().count() as u64),
            Shown::from(amid as u64),
            Shown::from(tally.transfers().count() as u64),
            Shown::from(tally.count(&[Outcome::Intact]) as u64),
            Shown::from(tally.count(&[Outcome::Broken]) as u64),
            Shown::from(tally.count(&LOST) as u64),
            Shown::from(tally.middle(control)),
            Shown::from(tally.slowest(control)),
            Shown::from(tally.slowest(undisturbed)),
            Shown::from(tally.left() as u64),
            Shown::from(tally.seeds()),
        ]);
    }
    table.note(
        "Of the control: a transfer's time over that of the last of its direction without the daemon. Of \
         the undisturbed: over that with a daemon that is not killed. `OUTLAST_SEED` takes the seed back. \
         Left behind: processes in the gateway's namespace, nftables rules and files after the last \
         daemon was asked to end.",
    );
    table
}

fn kills_claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let of = |mechanism| {
        let those = cells.iter().copied();
        those
            .filter(|cell| cell.trial.mechanism() == mechanism)
            .collect::<Vec<_>>()
    };
    let (hold, ahead) = (of("hold"), of("acknowledge-ahead"));
    let all = Tally::of(cells, runs);
    let is_measured = !all.runs.is_empty();
    vec![
        own(
            "With `hold` every transfer is intact (share of transfers).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(Tally::of(&hold, runs).share(&[Outcome::Intact])),
        own(
            "With `acknowledge-ahead` every transfer is intact or ends with an error at both ends (share \
             of transfers).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(Tally::of(&ahead, runs).share(&[Outcome::Intact, Outcome::Broken])),
        own(
            "No intact transfer takes longer than twice as long as without a daemon (worst of all).",
            Unit::Factor,
            at_most(SLOWEST),
        )
        .judge(mean(all.slowest(control))),
        own(
            "Nothing is left behind (processes, rules and files).",
            Unit::Count,
            at_most(0.0),
        )
        .judge(mean(is_measured.then(|| all.left() as f64))),
    ]
}

/// The hostile packets as one figure.
#[derive(Debug)]
pub struct Hostile;

impl Figure for Hostile {
    fn name(&self) -> &'static str {
        "hostile"
    }

    fn title(&self) -> &'static str {
        "What becomes of transfers beside an attacker who knows addresses and ports"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        hostile(extent).into_iter().flat_map(Cell::jobs).collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = hostile(extent);
        Part::new("Hostile packets")
            .table(hostile_table(&cells, runs))
            .claims(hostile_claims(&cells, runs))
    }
}

fn hostile_table(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("path", "Data path"),
        Column::quantity("packets", "Hostile packets", Unit::Count),
        Column::quantity("crossed", "Crossed the daemon", Unit::Count),
        Column::quantity("odd", "of them odd", Unit::Count),
        Column::quantity("transfers", "Transfers", Unit::Count),
        Column::quantity("intact", "Intact", Unit::Count),
        Column::quantity("lost", "Not intact", Unit::Count),
        Column::quantity(
            "control_most",
            "Of the attacked without daemon, worst",
            Unit::Factor,
        ),
        Column::quantity(
            "quiet_middle",
            "Of the daemon without attack, median",
            Unit::Factor,
        ),
        Column::quantity("quiet_most", "worst", Unit::Factor),
        Column::quantity("memory_before", "Peak memory before", Unit::Bytes),
        Column::quantity("memory_after", "after", Unit::Bytes),
        Column::quantity("left", "Left behind", Unit::Count),
        Column::text("seed", "Seed"),
    ])
    .titled("Honest transfers while somebody attacks their connections");
    for cell in cells {
        let tally = Tally::of(std::slice::from_ref(cell), runs);
        let transfers = tally.transfers().count();
        let intact = tally.count(&[Outcome::Intact]);
        table.push([
            Shown::from(cell.trial.path.name()),
            Shown::from(tally.sum(|run| run.packets)),
            Shown::from(tally.sum(|run| run.crossed)),
            Shown::from(tally.sum(|run| run.odd)),
            Shown::from(transfers as u64),
            Shown::from(intact as u64),
            Shown::from((transfers - intact) as u64),
            Shown::from(tally.slowest(control)),
            Shown::from(tally.middle(undisturbed)),
            Shown::from(tally.slowest(undisturbed)),
            Shown::from(tally.most(|run| run.memory[0] as f64)),
            Shown::from(tally.most(|run| run.memory[1] as f64)),
            Shown::from(tally.left() as u64),
            Shown::from(tally.seeds()),
        ]);
    }
    table.note(
        "Crossed: all packets that the daemon counted, those of the transfers and of the rounds without \
         attack among them. Odd: segments that fit no connection, or are damaged. The daemon is the same \
         process from the first round to the last, and answers at the end.",
    );
    table
}

fn hostile_claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let all = Tally::of(cells, runs);
    let is_measured = !all.runs.is_empty();
    let growth = |run: &Besieged| run.memory[1].saturating_sub(run.memory[0]) as f64;
    vec![
        own(
            "Every transfer is intact (share of transfers).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(all.share(&[Outcome::Intact])),
        own(
            "No transfer takes longer than twice as long as with the attack and no daemon (worst of all).",
            Unit::Factor,
            at_most(SLOWEST),
        )
        .judge(mean(all.slowest(control))),
        own(
            "No transfer takes longer than twice as long as with the daemon and no attack (worst of all).",
            Unit::Factor,
            at_most(SLOWEST),
        )
        .judge(mean(all.slowest(undisturbed))),
        own(
            "The daemon's peak memory grows by no more than this under attack (most of all runs).",
            Unit::Bytes,
            at_most(MEMORY),
        )
        .judge(mean(all.most(growth))),
        own(
            "Nothing is left behind (processes, rules and files).",
            Unit::Count,
            at_most(0.0),
        )
        .judge(mean(is_measured.then(|| all.left() as f64))),
    ]
}
