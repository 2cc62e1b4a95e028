//! What each rule of `hold` is worth: the same worlds with all rules, and with all but one.
//!
//! ```text
//! cargo run --release -p outlast-sim --example ablation            # what docs/results/hold-rules.md is made of
//! cargo run --release -p outlast-sim --example ablation -- 4 wake  # four times the worlds, some rules
//! ```
//!
//! Nine settings in virtual time: the crowd and the uploads with one gateway of `examples/sweeps`, with outages
//! drawn as there, the cells of the matrix of resume times, links that flap, connections that open around an
//! outage, links that lose packets, slow links with long queues, links that keep their queue while they are
//! down, and links that come back at a fifth of their rate. For each: the share of returns of the link after
//! which a connection had new bytes within a round trip and 50 ms, the time until then that 99 of 100 keep,
//! and the bytes on the link for each byte of payload that arrived. The first rows are without a gateway, with
//! all rules, and with `auto`.
//!
//! A second table is about the last two of these settings, whose senders mostly resume by themselves: how long the
//! transfers take from the link's return to their end, over what they take without a gateway.
//!
//! A third table tries a rule in a setting that was made for it: `-- 4 own` prints that alone.
//!
//! A fourth has transfers without SACK over links that keep their queue, and the same over links that lose it, told
//! by carrier: what the hosts' windows are worth after the return. `-- 24 sackless` prints that alone.

use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{HoldRule, HoldRules, PathMechanismKind};
use outlast_link::{
    ConfiguredRate, LinkConfig, OutageProcess, PipeConfig, RateChange, Way, WhileDown,
};
use outlast_scenario::Scenario;
use outlast_sim::{FlowSetup, Indicators, Outcome, Setup, Simulation, Stack, Workload, World};
use outlast_tcp::profile::Congestion;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

type Failure = Box<dyn Error + Send + Sync>;

const HOLD: PathMechanismKind = PathMechanismKind::Hold;
/// Rules about hosts that do not acknowledge selectively.
const SACKLESS_RULES: [HoldRule; 3] = [
    HoldRule::DoubtWithoutSack,
    HoldRule::SignalOnce,
    HoldRule::FillForSender,
];
const NONE: PathMechanismKind = PathMechanismKind::None;
const CONGESTIONS: [Congestion; 3] = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr];
/// Beyond a round trip, what a connection may take to have new bytes.
const PROMISE: Duration = Duration::from_millis(50);

/// Worlds of one kind.
struct Setting {
    name: &'static str,
    worlds: Vec<Setup>,
}

/// Who is tried.
#[derive(Clone, Copy)]
enum Trial {
    All,
    Without(HoldRule),
    Auto,
    Nobody,
}

/// What came of one trial in one setting.
#[derive(Default)]
struct Score {
    /// Times from the link's return until new bytes, in order; what never had any counts until the run's end.
    times: Vec<Duration>,
    within: usize,
    link_bytes: u64,
    payload_bytes: u64,
}

impl Trial {
    fn name(self) -> String {
        match self {
            Self::All => "all rules".to_owned(),
            Self::Without(rule) => format!("`{rule:?}` off"),
            Self::Auto => "`auto`".to_owned(),
            Self::Nobody => "no gateway".to_owned(),
        }
    }

    /// `setup` as this trial has it, whose gateways hold.
    fn apply(self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        match self {
            Self::All => {}
            Self::Without(rule) => setup.rules = HoldRules::default().without(rule),
            Self::Auto | Self::Nobody => {
                let mechanism = match self {
                    Self::Auto => PathMechanismKind::Auto,
                    _ => NONE,
                };
                for own in &mut setup.mechanisms {
                    if *own == HOLD {
                        *own = mechanism;
                    }
                }
            }
        }
        setup
    }
}

impl Score {
    fn add(&mut self, setup: &Setup, outcome: &Outcome) {
        let round_trip = setup.link.to_mobile.delay + setup.link.to_fixed.delay;
        for flow in &outcome.flows {
            for recovery in &flow.recoveries {
                let waited = outcome.ended.since(recovery.back);
                let time = recovery.first.unwrap_or(waited);
                // Whoever ends in that time leaves nothing to judge.
                if recovery.first.is_none() && waited <= round_trip + PROMISE {
                    continue;
                }
                self.within +=
                    usize::from(recovery.first.is_some() && time <= round_trip + PROMISE);
                self.times.push(time);
            }
            self.payload_bytes += flow.received[flow.receiver.index()];
        }
        let carried = outcome.link.iter().map(|way| way.delivered_bytes.0);
        self.link_bytes += carried.sum::<u64>();
    }

    fn show(&mut self) -> String {
        self.times.sort();
        let count = self.times.len();
        let Some(slow) = self
            .times
            .get((count * 99 / 100).min(count.saturating_sub(1)))
        else {
            return "–".to_owned();
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
        let [share, bytes] = [
            self.within as f64 / count as f64,
            self.link_bytes as f64 / self.payload_bytes.max(1) as f64,
        ];
        let (share, slow) = (100.0 * share, slow.as_secs_f64());
        format!("{share:.1} %, {slow:.2} s, {bytes:.4}")
    }
}

/// A sweep of `examples/sweeps` at one point of its grid: the scenario before `[sweep]`, with what the sweep
/// sets and draws.
struct Sweep {
    text: String,
    name: &'static str,
    /// When the outage begins, and how long it lasts, in seconds: evenly, and evenly by its logarithm.
    start: [f64; 2],
    length: [f64; 2],
}

impl Sweep {
    fn load(name: &'static str, start: [f64; 2], length: [f64; 2]) -> Result<Self, Failure> {
        let path = directory().join(name);
        let text = std::fs::read_to_string(path)?;
        let (text, _) = text.split_once("[sweep]").ok_or("no [sweep]")?;
        Ok(Self {
            text: text.to_owned(),
            name,
            start,
            length,
        })
    }

    /// One world: `keys` go into `[link]`, `tables` before it.
    fn world(&self, seed: u64, keys: &str, tables: &str) -> Result<Setup, Failure> {
        let mut stream = Stream::new(seed, "ablation.sweep");
        let between = |[least, most]: [f64; 2], share: f64| least + (most - least) * share;
        let start = between(self.start, stream.unit());
        let length = between(self.length.map(f64::ln), stream.unit()).exp();
        let outage =
            format!("process = \"single\"\nstart = \"{start:.3} s\"\nlength = \"{length:.3} s\"");
        let text = self.text.replace("process = \"single\"", &outage);
        let text = text.replacen("[link]\n", &format!("{tables}\n[link]\n{keys}\n"), 1);
        let scenario = Scenario::parse(&text, self.name, &directory());
        let mut scenario = scenario.map_err(|error| error.render(100))?;
        scenario.run.seed = seed;
        Ok(Simulation::new(&scenario, 0)?.setup().clone())
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sweeps")
}

/// Three downloads and two uploads that share a link: `crowd.toml`, with a gateway at both ends.
fn crowd(repeat: u64) -> Result<Setting, Failure> {
    let sweep = Sweep::load("crowd.toml", [0.5, 10.0], [0.2, 40.0])?;
    let mut worlds = Vec::new();
    for congestion in ["cubic", "reno"] {
        for queue in [20, 50, 100] {
            for seed in 0..2 * repeat {
                let keys = format!("queue = {queue}");
                let tables = format!(
                    "[outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[stack]\ncongestion = \"{congestion}\""
                );
                worlds.push(sweep.world(seed, &keys, &tables)?);
            }
        }
    }
    Ok(Setting {
        name: "crowd",
        worlds,
    })
}

/// Uploads past a gateway that has only acknowledgements to give: `one-end.toml`.
fn one_end(repeat: u64) -> Result<Setting, Failure> {
    let sweep = Sweep::load("one-end.toml", [0.5, 8.0], [0.2, 20.0])?;
    let mut worlds = Vec::new();
    for congestion in ["cubic", "reno", "bbr"] {
        for loss in ["0.0", "0.001", "0.01"] {
            for seed in 0..3 * repeat {
                let keys = format!("loss = {loss}");
                let tables = format!(
                    "[outlast]\ngateway = \"hold\"\n[stack]\ncongestion = \"{congestion}\""
                );
                worlds.push(sweep.world(seed, &keys, &tables)?);
            }
        }
    }
    Ok(Setting {
        name: "one end",
        worlds,
    })
}

fn link(rate: u64, queue: usize, outages: OutageProcess, seed: u64) -> LinkConfig {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(rate),
        delay: Duration::from_millis(20),
        queue,
        ..PipeConfig::default()
    };
    LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        outages,
        seed,
        ..LinkConfig::default()
    }
}

fn flow(begin: Duration, workload: Workload, congestion: Congestion, sack: bool) -> FlowSetup {
    let stack = Stack {
        congestion: Some(congestion),
        sack: Some(sack),
        ..Stack::default()
    };
    FlowSetup {
        begin,
        workload,
        stacks: [stack; 2],
    }
}

fn bulk(bytes: u64, way: Way) -> Workload {
    Workload::Bulk {
        bytes: ByteCount(bytes),
        way,
    }
}

/// The cells of the matrix of resume times, with both kinds of indicators.
fn matrix(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    let placements = [[HOLD; 2], [HOLD, NONE], [NONE, HOLD]];
    let indicators = [Indicators::Link, Indicators::Silence];
    for congestion in CONGESTIONS {
        for (sack, way) in [true, false]
            .into_iter()
            .flat_map(|s| Way::BOTH.map(|w| (s, w)))
        {
            for (seconds, mechanisms) in [1, 10, 30]
                .into_iter()
                .flat_map(|s| placements.map(|p| (s, p)))
            {
                for (indicators, later) in indicators
                    .into_iter()
                    .flat_map(|i| (0..repeat).map(move |r| (i, r)))
                {
                    let start = Duration::from_millis(3_000 + 370 * later);
                    let length = Duration::from_secs(seconds);
                    let outages = OutageProcess::Single { start, length };
                    worlds.push(Setup {
                        mechanisms,
                        indicators,
                        flows: vec![flow(Duration::ZERO, bulk(8_000_000, way), congestion, sack)],
                        deadline: start + length * 4 + Duration::from_secs(20),
                        ..Setup::new(link(10_000_000, 75, outages, later))
                    });
                }
            }
        }
    }
    Setting {
        name: "matrix",
        worlds,
    }
}

/// Links that are up for half a second to three, and down for a tenth to a half.
fn flaps(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    for congestion in CONGESTIONS {
        for (way, seed) in Way::BOTH
            .into_iter()
            .flat_map(|w| (0..4 * repeat).map(move |s| (w, s)))
        {
            let mut stream = Stream::new(seed, "ablation.flaps");
            let outages = OutageProcess::Uniform {
                up: stream.uniform(Duration::from_millis(1_500)),
                down: stream.uniform(Duration::from_millis(300)),
            };
            let flows = [way, way.reverse()].map(|way| {
                flow(
                    Duration::ZERO,
                    bulk(3_000_000, way),
                    congestion,
                    seed % 2 == 0,
                )
            });
            worlds.push(Setup {
                mechanisms: [HOLD; 2],
                flows: flows.into(),
                deadline: Duration::from_secs(60),
                ..Setup::new(link(10_000_000, 75, outages, seed))
            });
        }
    }
    Setting {
        name: "flaps",
        worlds,
    }
}

/// Sixty connections that open in the ten seconds around an outage of four, beside two downloads.
fn handshakes(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    for (congestion, seed) in CONGESTIONS
        .into_iter()
        .flat_map(|c| (0..2 * repeat).map(move |s| (c, s)))
    {
        let mut stream = Stream::new(seed, "ablation.handshakes");
        let outages = OutageProcess::Single {
            start: Duration::from_secs(4),
            length: stream.uniform(Duration::from_secs(4)),
        };
        let mut flows = vec![
            flow(
                Duration::ZERO,
                bulk(20_000_000, Way::ToMobile),
                congestion,
                true,
            ),
            flow(
                Duration::ZERO,
                bulk(20_000_000, Way::ToFixed),
                congestion,
                true,
            ),
        ];
        for number in 0..60 {
            let workload = Workload::RequestResponse {
                requests: 3,
                request: ByteCount(300),
                response: ByteCount(8_000),
                think: Duration::from_millis(200),
            };
            let begin = Duration::from_millis(1_000 + 140 * number);
            flows.push(flow(begin, workload, congestion, true));
        }
        worlds.push(Setup {
            mechanisms: [HOLD; 2],
            flows,
            deadline: Duration::from_secs(30),
            ..Setup::new(link(10_000_000, 30, outages, seed))
        });
    }
    Setting {
        name: "handshakes",
        worlds,
    }
}

/// Two transfers, one each way, over a link that loses two packets in a hundred.
fn lossy(repeat: u64) -> Setting {
    let config = |outages, seed| {
        let mut config = link(10_000_000, 75, outages, seed);
        config.to_mobile.loss = 0.02;
        config.to_fixed.loss = 0.02;
        config
    };
    Setting {
        name: "loss",
        worlds: transfers(repeat, 3_000_000, config),
    }
}

/// A transfer each way over 256 kbit/s with room for three seconds' worth of packets: what silence is taken for may
/// be a queue.
fn slow(repeat: u64) -> Setting {
    Setting {
        name: "slow",
        worlds: transfers(repeat, 400_000, |outages, seed| {
            link(256_000, 64, outages, seed)
        }),
    }
}

/// A transfer each way over a link that keeps what is in its queue while it is down, as modems do.
fn kept(repeat: u64) -> Setting {
    Setting {
        name: "kept queue",
        worlds: transfers(repeat, 10_000_000, |outages, seed| LinkConfig {
            while_down: WhileDown::Queued,
            ..link(10_000_000, 75, outages, seed)
        }),
    }
}

/// A transfer each way over 20 Mbit/s that are 4 Mbit/s when the link is back; gateways are not told the rate.
fn falling(repeat: u64) -> Setting {
    let config = |outages, seed| {
        let OutageProcess::Single { start, length } = outages else {
            unreachable!("each of these worlds has one outage")
        };
        let rate = BitRate::from_bits_per_second(4_000_000);
        LinkConfig {
            while_down: WhileDown::Queued,
            rate_changes: vec![RateChange {
                at: start + length,
                to_mobile: rate,
                to_fixed: rate,
            }],
            ..link(20_000_000, 75, outages, seed)
        }
    };
    let mut worlds = transfers(repeat, 10_000_000, config);
    for setup in &mut worlds {
        setup.rate = ConfiguredRate::Unknown;
    }
    Setting {
        name: "rate falls",
        worlds,
    }
}

/// Requests past gateways that have no memory left: nothing is kept of what the link drops.
fn no_memory(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    for (congestion, seed) in CONGESTIONS
        .into_iter()
        .flat_map(|c| (0..10 * repeat).map(move |s| (c, s)))
    {
        let mut stream = Stream::new(seed, "ablation.no memory");
        let start = Duration::from_millis(2_000) + stream.uniform(Duration::from_secs(1));
        let length = Duration::from_secs(2) + stream.uniform(Duration::from_secs(20));
        let workload = Workload::RequestResponse {
            requests: 400,
            request: ByteCount(64),
            response: ByteCount(200),
            think: Duration::from_millis(50),
        };
        worlds.push(Setup {
            mechanisms: [HOLD; 2],
            limits: Limits {
                held_in_all: ByteCount(10),
                ..Limits::default()
            },
            flows: vec![flow(Duration::ZERO, workload, congestion, seed % 2 == 0)],
            deadline: Duration::from_secs(120),
            ..Setup::new(link(
                10_000_000,
                75,
                OutageProcess::Single { start, length },
                seed,
            ))
        });
    }
    Setting {
        name: "no memory",
        worlds,
    }
}

/// An upload over 20 Mbit/s that are 4 Mbit/s when the link is back, which the gateway is not told: what goes out
/// at the return overfills the queue.
fn overfull(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    for (congestion, queue, seed) in CONGESTIONS.into_iter().flat_map(|c| {
        [30, 100]
            .into_iter()
            .flat_map(move |q| (0..5 * repeat).map(move |s| (c, q, s)))
    }) {
        let mut stream = Stream::new(seed, "ablation.overfull");
        let start = Duration::from_millis(2_000) + stream.uniform(Duration::from_secs(3));
        let length = Duration::from_secs(3) + stream.uniform(Duration::from_secs(2));
        let rate = BitRate::from_bits_per_second(4_000_000);
        let outages = OutageProcess::Single { start, length };
        worlds.push(Setup {
            mechanisms: [NONE, HOLD],
            flows: vec![flow(
                Duration::ZERO,
                bulk(14_000_000, Way::ToFixed),
                congestion,
                true,
            )],
            deadline: Duration::from_secs(120),
            ..Setup::new(LinkConfig {
                rate_changes: vec![RateChange {
                    at: start + length,
                    to_mobile: rate,
                    to_fixed: rate,
                }],
                ..link(20_000_000, queue, outages, seed)
            })
        });
    }
    Setting {
        name: "overfull queue",
        worlds,
    }
}

/// A download with BBR over a link that is up for half a second in five.
fn contacts(repeat: u64) -> Setting {
    let mut worlds = Vec::new();
    for (delay, seed) in [1, 10, 25]
        .into_iter()
        .flat_map(|d| (0..5 * repeat).map(move |s| (d, s)))
    {
        let outages = OutageProcess::Uniform {
            up: Duration::from_millis(500),
            down: Duration::from_millis(4_500),
        };
        let mut link = link(10_000_000, 75, outages, seed);
        link.to_mobile.delay = Duration::from_millis(delay);
        link.to_fixed.delay = Duration::from_millis(delay);
        worlds.push(Setup {
            mechanisms: [HOLD; 2],
            flows: vec![flow(
                Duration::ZERO,
                bulk(6_000_000, Way::ToMobile),
                Congestion::Bbr,
                true,
            )],
            deadline: Duration::from_secs(600),
            ..Setup::new(link)
        });
    }
    Setting {
        name: "contacts",
        worlds,
    }
}

/// A transfer each way of so many bytes, an outage of two to twelve seconds, both kinds of indicators.
fn transfers(
    repeat: u64,
    bytes: u64,
    link: impl Fn(OutageProcess, u64) -> LinkConfig,
) -> Vec<Setup> {
    let mut worlds = Vec::new();
    for congestion in CONGESTIONS {
        for (indicators, seed) in [Indicators::Link, Indicators::Silence]
            .into_iter()
            .flat_map(|i| (0..4 * repeat).map(move |s| (i, s)))
        {
            let mut stream = Stream::new(seed, "ablation.transfers");
            let start = Duration::from_millis(2_000) + stream.uniform(Duration::from_secs(2));
            let length = Duration::from_secs(2) + stream.uniform(Duration::from_secs(10));
            let flows = Way::BOTH.map(|way| {
                let sack = seed % 2 == 0;
                flow(Duration::ZERO, bulk(bytes, way), congestion, sack)
            });
            worlds.push(Setup {
                mechanisms: [HOLD; 2],
                indicators,
                flows: flows.into(),
                deadline: Duration::from_secs(120),
                ..Setup::new(link(OutageProcess::Single { start, length }, seed))
            });
        }
    }
    worlds
}

/// One outage of seven to seventeen seconds, told by carrier, amid transfers without SACK, `ways` of them at once, over a
/// link that treats its queue as `while_down` says.
fn sackless(
    repeat: u64,
    name: &'static str,
    congestion: Congestion,
    ways: &[Way],
    while_down: WhileDown,
    lengths: [Duration; 2],
) -> Setting {
    let [shortest, longest] = lengths;
    let mut worlds = Vec::new();
    for seed in 0..repeat {
        let mut stream = Stream::new(seed, "ablation.sackless");
        let start = Duration::from_millis(2_000) + stream.uniform(Duration::from_secs(2));
        let length = shortest + stream.uniform(longest - shortest);
        let outages = OutageProcess::Single { start, length };
        let flows = ways
            .iter()
            .map(|way| flow(Duration::ZERO, bulk(10_000_000, *way), congestion, false));
        worlds.push(Setup {
            mechanisms: [HOLD; 2],
            flows: flows.collect(),
            deadline: Duration::from_secs(120),
            ..Setup::new(LinkConfig {
                while_down,
                ..link(10_000_000, 75, outages, seed)
            })
        });
    }
    Setting { name, worlds }
}

/// How much longer transfers without SACK take from the link's return on than without a gateway: mean and worst.
fn show_sackless(out: &mut impl Write, repeat: u64, trials: &[Trial]) -> Result<(), Failure> {
    let kinds: [(&str, &[Way]); 3] = [
        ("upload", &[Way::ToFixed]),
        ("two transfers", &Way::BOTH),
        ("download", &[Way::ToMobile]),
    ];
    let long = [2_000, 12_000].map(Duration::from_millis);
    let short = [300, 2_000].map(Duration::from_millis);
    for (heading, while_down, lengths) in [
        ("kept queue", WhileDown::Queued, long),
        ("lost queue", WhileDown::Dropped, long),
        ("kept queue, 0.3 to 2 s", WhileDown::Queued, short),
        ("lost queue, 0.3 to 2 s", WhileDown::Dropped, short),
    ] {
        write!(out, "| {heading}, no SACK ({repeat} outages) |")?;
        let mut columns = Vec::new();
        for congestion in CONGESTIONS {
            for (name, ways) in kinds {
                write!(out, " {congestion:?}, {name} |")?;
                let setting = sackless(repeat, name, congestion, ways, while_down, lengths);
                let alone = |setup: &Setup| remainder(setup, Trial::Nobody);
                let alone: Vec<_> = setting.worlds.iter().map(alone).collect();
                columns.push((setting, alone));
            }
        }
        writeln!(out, "\n|---|{}", "---:|".repeat(columns.len()))?;
        for trial in trials {
            write!(out, "| {} |", trial.name())?;
            for (setting, alone) in &columns {
                // What ends with the outage leaves nothing to compare.
                let worlds = setting.worlds.iter().zip(alone);
                let worlds = worlds.filter(|(_, alone)| **alone > 0.5);
                let ratios = worlds.map(|(setup, alone)| remainder(setup, *trial) / alone);
                let ratios: Vec<f64> = ratios.collect();
                let worst = ratios.iter().copied().fold(0.0, f64::max);
                let (mean, _) = mean_and_error(&ratios);
                write!(out, " {mean:.2}, {worst:.2} |")?;
                out.flush()?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn score(setting: &Setting, trial: Trial) -> Score {
    let mut score = Score::default();
    for setup in &setting.worlds {
        let outcome = World::new(trial.apply(setup)).run();
        score.add(setup, &outcome);
    }
    score
}

/// From the link's return until the last transfer of `setup` has ended, in seconds, as `trial` has it.
fn remainder(setup: &Setup, trial: Trial) -> f64 {
    let outcome = World::new(trial.apply(setup)).run();
    let OutageProcess::Single { start, length } = setup.link.outages else {
        unreachable!("each of these worlds has one outage")
    };
    let back = outcome.started.unwrap_or(Instant::ZERO) + start + length;
    let ends = outcome.flows.iter().map(|flow| flow.ended.since(back));
    ends.max().unwrap_or_default().as_secs_f64()
}

/// How much longer the worlds of `setting` take with each trial than without a gateway, with and
/// without selective acknowledgements: mean, 95th percentile and worst.
fn show_slowdowns(
    out: &mut impl Write,
    setting: &Setting,
    trials: &[Trial],
) -> Result<(), Failure> {
    for sack in [true, false] {
        let of_kind = |setup: &&Setup| setup.flows[0].stacks[0].sack == Some(sack);
        let alone = |setup| (setup, remainder(setup, Trial::Nobody));
        let worlds = setting.worlds.iter().filter(of_kind).map(alone);
        // What ends with the outage leaves nothing to compare.
        let worlds: Vec<_> = worlds.filter(|(_, alone)| *alone > 0.5).collect();
        let heading = if sack { "SACK" } else { "no SACK" };
        writeln!(
            out,
            "\n{}, {heading} ({} runs)\n",
            setting.name,
            worlds.len()
        )?;
        writeln!(
            out,
            "| | mean | 95th percentile | worst |\n|---|---:|---:|---:|"
        )?;
        for trial in trials {
            let ratios = worlds
                .iter()
                .map(|(setup, alone)| remainder(setup, *trial) / alone);
            let mut ratios: Vec<f64> = ratios.collect();
            ratios.sort_by(f64::total_cmp);
            let Some(worst) = ratios.last() else { continue };
            #[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let late = ratios[ratios.len() * 95 / 100];
            let name = trial.name();
            writeln!(out, "| {name} | {mean:.2} | {late:.2} | {worst:.2} |")?;
        }
    }
    Ok(())
}

/// A rule in a setting that was made for it: the score with all rules and without it, how long the workloads
/// take, in seconds, and how much longer than with all rules in the same world, with its standard error.
fn show_own(out: &mut impl Write, setting: &Setting, rule: HoldRule) -> Result<(), Failure> {
    let run = |trial: Trial| {
        let mut score = Score::default();
        let mut times = Vec::new();
        for setup in &setting.worlds {
            let outcome = World::new(trial.apply(setup)).run();
            score.add(setup, &outcome);
            let ends = outcome
                .flows
                .iter()
                .map(|flow| flow.ended.since(flow.began));
            times.push(ends.max().unwrap_or_default().as_secs_f64());
        }
        (score, times)
    };
    let (all, with_all) = run(Trial::All);
    let (without, times) = run(Trial::Without(rule));
    let (nobody, alone) = run(Trial::Nobody);
    for (trial, mut score, times) in [
        (Trial::Nobody, nobody, alone),
        (Trial::All, all, with_all.clone()),
        (Trial::Without(rule), without, times),
    ] {
        let longer: Vec<f64> = times.iter().zip(&with_all).map(|(a, b)| a - b).collect();
        let mut sorted = times;
        sorted.sort_by(f64::total_cmp);
        let late = sorted[sorted.len() * 95 / 100];
        let (mean, _) = mean_and_error(&sorted);
        let (more, error) = mean_and_error(&longer);
        writeln!(
            out,
            "| {} ({} runs) | {} | {} | {mean:.2} | {late:.2} | {more:.2} ± {error:.2} |",
            setting.name,
            setting.worlds.len(),
            trial.name(),
            score.show(),
        )?;
    }
    out.flush()?;
    Ok(())
}

/// The mean of `values` and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "counts of a trial")]
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (count - 1.0)).sqrt();
    (mean, deviation / count.sqrt())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let repeat = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let mut wanted: Vec<String> = arguments.map(|name| name.to_lowercase()).collect();
    let wants_own = wanted.is_empty() || wanted.iter().any(|name| name == "own");
    let wants_sackless = wanted.is_empty() || wanted.iter().any(|name| name == "sackless");
    let wants_all = wanted.is_empty();
    wanted.retain(|name| name != "own" && name != "sackless");
    let settings = [
        crowd(repeat)?,
        one_end(repeat)?,
        matrix(repeat),
        flaps(repeat),
        handshakes(repeat),
        lossy(repeat),
        slow(repeat),
        kept(repeat),
        falling(repeat),
    ];
    let mut trials = vec![Trial::Nobody, Trial::All, Trial::Auto];
    trials.extend(HoldRule::ALL.map(Trial::Without));
    trials.retain(|trial| {
        let name = trial.name().to_lowercase();
        wants_all || wanted.iter().any(|wanted| name.contains(wanted))
    });
    let mut out = io::stdout().lock();
    if wants_own {
        writeln!(
            out,
            "| setting | | within, 99th percentile, bytes | seconds, mean | 95th percentile | longer |"
        )?;
        writeln!(out, "|---|---|---|---:|---:|---:|")?;
        let own = [
            (no_memory(repeat), HoldRule::WakeNear),
            (overfull(repeat), HoldRule::ResendOvertaken),
            (contacts(repeat), HoldRule::Nudge),
        ];
        for (setting, rule) in own {
            show_own(&mut out, &setting, rule)?;
        }
        writeln!(out)?;
    }
    if wants_sackless {
        let mut compared = vec![Trial::All];
        compared.extend(SACKLESS_RULES.map(Trial::Without));
        show_sackless(&mut out, repeat, &compared)?;
    }
    if trials.is_empty() {
        return Ok(());
    }
    write!(out, "| |")?;
    for setting in &settings {
        write!(out, " {} ({} runs) |", setting.name, setting.worlds.len())?;
    }
    writeln!(out, "\n|---|{}", "---|".repeat(settings.len()))?;
    for trial in &trials {
        write!(out, "| {} |", trial.name())?;
        for setting in &settings {
            write!(out, " {} |", score(setting, *trial).show())?;
            out.flush()?;
        }
        writeln!(out)?;
    }
    let [.., kept, falling] = &settings;
    trials.retain(|trial| !matches!(trial, Trial::Nobody));
    for setting in [kept, falling] {
        show_slowdowns(&mut out, setting, &trials)?;
    }
    Ok(())
}
