//! Shows whether a change of the code has changed what happens: four hundred random worlds, each as one line.
//!
//! A world is drawn from its number alone: hosts' TCP, mechanisms, outages, faults, indicators, workloads,
//! crowds, cross traffic, hand-offs. Its line holds hashes of what it has come to: captures of both ends of
//! the link, the packet trace, the senders' variables, all counters. A change that claims to change no
//! behaviour leaves every line as it is:
//!
//! ```text
//! cargo run --release -p outlast-world --example byte_equality -- before.txt   # writes the table
//! ...                                                                          # change the code
//! cargo run --release -p outlast-world --example byte_equality -- before.txt   # compares with it
//! ```

use core::fmt::Debug;
use outlast_base::random::Stream;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::{ConfiguredRate, InFlight, LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_tcp::profile::{
    AIX_4_3, BSD_4_3_TAHOE, Congestion, FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997,
    Profile, SUNOS_5_6,
};
use outlast_world::{
    AgentsSetup, Crash, FlowSetup, Handoff, HopSetup, Indicators, IpVersion, Outcome, Pattern,
    Recording, RoamingSetup, Setup, Stack, TrafficSetup, Workload, World,
};
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

const WORLDS: u64 = 400;

const PROFILES: [&Profile; 8] = [
    &LINUX_6,
    &BSD_4_3_TAHOE,
    &NETBSD_1997,
    &FREEBSD_2_2,
    &SUNOS_5_6,
    &AIX_4_3,
    &LINUX_2_2,
    &LINUX_2_4,
];

/// Draws the parts of one world.
struct Draw(Stream);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn milliseconds(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        let place = self.below(values.len() as u64);
        values[usize::try_from(place).expect("few")]
    }

    fn pipe(&mut self) -> PipeConfig {
        let rate = self.one_of(&[500_000, 2_000_000, 10_000_000, 30_000_000]);
        let has_faults = self.one_in(3);
        let chances = [0.0, 0.001, 0.01, 0.05];
        let mut fault = || {
            if has_faults {
                self.one_of(&chances)
            } else {
                0.0
            }
        };
        let (loss, duplicate, reorder) = (fault(), fault(), fault());
        PipeConfig {
            rate: BitRate::from_bits_per_second(rate),
            delay: self.milliseconds(1, 150),
            queue: self.one_of(&[10, 30, 75, 300]),
            loss,
            duplicate,
            reorder,
        }
    }

    fn outages(&mut self) -> OutageProcess {
        let (up, down) = (self.milliseconds(200, 4_000), self.milliseconds(50, 4_000));
        match self.below(6) {
            0 => OutageProcess::Periodic {
                first: self.milliseconds(100, 3_000),
                up,
                down,
            },
            1 => OutageProcess::Exponential { up, down },
            2 => OutageProcess::Uniform { up, down },
            // A link that flaps.
            3 => OutageProcess::Periodic {
                first: self.milliseconds(100, 2_000),
                up: self.milliseconds(20, 400),
                down: self.milliseconds(10, 300),
            },
            _ => OutageProcess::Single {
                start: self.milliseconds(10, 5_000),
                length: self.milliseconds(100, 30_000),
            },
        }
    }

    fn link(&mut self) -> LinkConfig {
        LinkConfig {
            to_mobile: self.pipe(),
            to_fixed: self.pipe(),
            outages: self.outages(),
            in_flight: self.one_of(&[InFlight::Delivered, InFlight::Lost]),
            seed: self.below(u64::MAX),
            ..LinkConfig::default()
        }
    }

    fn stack(&mut self) -> Stack {
        let is_modern = !self.one_in(3);
        let wish = |draw: &mut Self| match draw.below(4) {
            0 => Some(true),
            1 => Some(false),
            _ => None,
        };
        Stack {
            profile: match is_modern {
                true => &LINUX_6,
                false => self.one_of(&PROFILES),
            },
            congestion: match self.below(4) {
                0 => Some(Congestion::Reno),
                1 => Some(Congestion::Bbr),
                2 => Some(Congestion::Cubic),
                _ => None,
            },
            sack: wish(self),
            timestamps: wish(self),
            receive_buffer: self.one_in(6).then_some(32_768),
            ..Stack::default()
        }
    }

    fn workload(&mut self, most: u64) -> Workload {
        match self.below(5) {
            0 => Workload::Interactive {
                interval: self.milliseconds(50, 800),
                update: ByteCount(self.between(1, 9_000)),
                request: ByteCount(40),
                duration: self.milliseconds(3_000, 15_000),
            },
            1 => Workload::RequestResponse {
                requests: self.between(2, 30).try_into().expect("few"),
                request: ByteCount(self.between(1, 4_000)),
                response: ByteCount(self.between(1, 60_000)),
                think: self.milliseconds(0, 500),
            },
            _ => Workload::Bulk {
                bytes: ByteCount(self.between(most / 20, most)),
                way: self.one_of(&Way::BOTH),
            },
        }
    }

    fn flows(&mut self) -> Vec<FlowSetup> {
        let (count, most) = match self.below(8) {
            0 => (self.between(40, 120), 60_000),
            1 | 2 => (self.between(3, 12), 700_000),
            3 => (2, 1_500_000),
            _ => (1, 3_000_000),
        };
        let stacks = [self.stack(), self.stack()];
        let spread = self.one_of(&[50, 1_000, 6_000]);
        (0..count)
            .map(|number| FlowSetup {
                begin: match number {
                    0 => Duration::ZERO,
                    _ => self.milliseconds(0, spread),
                },
                workload: self.workload(most),
                stacks: match number {
                    0 => stacks,
                    _ if self.one_in(3) => [self.stack(), self.stack()],
                    _ => stacks,
                },
            })
            .collect()
    }

    fn mechanism(&mut self) -> PathMechanismKind {
        match self.one_in(2) {
            true => PathMechanismKind::Hold,
            false => self.one_of(&PathMechanismKind::ALL),
        }
    }

    fn mechanisms(&mut self) -> [PathMechanismKind; 2] {
        match self.below(4) {
            0 => [self.mechanism(), PathMechanismKind::None],
            1 => [PathMechanismKind::None, self.mechanism()],
            2 => [self.mechanism(), self.mechanism()],
            _ => [self.mechanism(); 2],
        }
    }

    fn traffic(&mut self) -> Vec<TrafficSetup> {
        let count = if self.one_in(4) { 2 } else { 0 };
        (0..count)
            .map(|_| {
                let rate = self.one_of(&[50_000, 400_000]);
                let rate = BitRate::from_bits_per_second(rate).expect("not zero");
                TrafficSetup {
                    link: 0,
                    way: self.one_of(&Way::BOTH),
                    pattern: match self.one_in(2) {
                        true => Pattern::Constant { rate },
                        false => Pattern::Poisson { rate },
                    },
                    packet: self.one_of(&[80, 600, 1_400]),
                    begin: Duration::ZERO,
                    end: None,
                }
            })
            .collect()
    }

    fn roaming(&mut self) -> RoamingSetup {
        let handoff = |draw: &mut Self, at, to| Handoff {
            at,
            gap: draw.milliseconds(100, 4_000),
            to,
            update: draw.milliseconds(0, 200),
            forwards: draw.one_in(2),
        };
        let first = self.milliseconds(300, 2_000);
        let handoffs = vec![
            handoff(self, first, 1),
            handoff(self, first + Duration::from_secs(6), 0),
        ];
        let crash = Crash {
            at: self.milliseconds(500, 9_000),
            gateway: 1,
            back_after: self.one_in(2).then_some(Duration::from_secs(1)),
        };
        RoamingSetup {
            cells: vec![self.link()],
            home_agent: PathMechanismKind::None,
            handoffs,
            mobile_ip: None,
            crashes: if self.one_in(3) {
                vec![crash]
            } else {
                Vec::new()
            },
            agents: (!self.one_in(4)).then_some(AgentsSetup {
                delay: Duration::from_millis(5),
                lost_after: Duration::from_secs(20),
            }),
        }
    }

    fn setup(&mut self) -> Setup {
        let link = self.link();
        let mut setup = Setup {
            mechanisms: self.mechanisms(),
            indicators: self.one_of(&[Indicators::Link, Indicators::Silence]),
            rate: match self.below(3) {
                0 => ConfiguredRate::Unknown,
                _ => ConfiguredRate::Link,
            },
            flows: self.flows(),
            traffic: self.traffic(),
            ip: self.one_of(&[IpVersion::V4, IpVersion::V6]),
            deadline: Duration::from_secs(60),
            recording: Recording {
                traced_packets: Some(1_000_000),
                captures: true,
                variables: true,
            },
            ..Setup::new(link)
        };
        match self.below(12) {
            0 => {
                setup.hops = vec![HopSetup {
                    link: self.link(),
                    mechanisms: self.mechanisms(),
                }];
            }
            1 => {
                setup.roaming = Some(self.roaming());
                setup.mechanisms = [self.mechanism(), PathMechanismKind::None];
                if self.one_in(2) {
                    setup.mechanisms[0] = PathMechanismKind::ZeroWindowAck;
                }
            }
            _ => {}
        }
        setup
    }
}

/// Fowler, Noll and Vo's hash, variant 1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn hash_of(value: &impl Debug) -> u64 {
    hash(format!("{value:?}").as_bytes())
}

/// What a world has come to, as one line of the table.
fn line(number: u64, mut outcome: Outcome) -> String {
    let [fixed, mobile] = outcome.captures.take().expect("they are asked for");
    let trace = outcome.trace.take();
    let variables = outcome.variables.take();
    let taken: u64 = outcome.gateways.iter().flatten().map(|one| one.taken).sum();
    let resumes: u64 = outcome
        .gateways
        .iter()
        .flatten()
        .map(|one| one.resumes)
        .sum();
    format!(
        "{number} captures {:016x} {:016x} trace {:016x} variables {:016x} counters {:016x} events {} taken {taken} resumes {resumes}",
        hash(&fixed),
        hash(&mobile),
        hash_of(&trace),
        hash_of(&variables),
        hash_of(&outcome),
        outcome.events,
    )
}

fn table() -> String {
    let lines = (0..WORLDS).map(|number| {
        let setup = Draw(Stream::new(number, "byte equality")).setup();
        let kinds = setup.mechanisms;
        let indicators = setup.indicators;
        let line = line(number, World::new(setup).run());
        format!("{line} {} {} {indicators:?}\n", kinds[0], kinds[1])
    });
    lines.collect()
}

/// Says which worlds have come to something else than in `before`; returns whether there is one.
fn compare(before: &str, now: &str) -> io::Result<bool> {
    let differing: Vec<_> = before
        .lines()
        .zip(now.lines())
        .filter(|(before, now)| before != now)
        .collect();
    let mut out = io::stdout().lock();
    for (before, now) in &differing {
        writeln!(out, "before {before}\nnow    {now}")?;
    }
    let is_same = before.lines().count() == now.lines().count() && differing.is_empty();
    writeln!(out, "{} of {WORLDS} worlds differ", differing.len())?;
    Ok(is_same)
}

fn main() -> io::Result<ExitCode> {
    // An option is no table's name.
    let path = std::env::args()
        .nth(1)
        .filter(|path| !path.starts_with('-'));
    let Some(path) = path else {
        writeln!(io::stderr(), "usage: byte_equality TABLE")?;
        return Ok(ExitCode::from(2));
    };
    let now = table();
    if !fs::exists(&path)? {
        fs::write(path, now)?;
        return Ok(ExitCode::SUCCESS);
    }
    match compare(&fs::read_to_string(path)?, &now)? {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}
