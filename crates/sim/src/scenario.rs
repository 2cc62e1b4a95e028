//! Scenario files in the simulator, and their results.

use crate::outcome::{FlowOutcome, Outcome};
use crate::setup::{FlowSetup, Recording, Setup, Stack};
use crate::side::IpVersion;
use crate::workload::Workload;
use crate::world::World;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use outlast_core::mechanisms::path::{Level, PathMechanismKind};
use outlast_core::time::Duration;
use outlast_core::units::ByteCount;
use outlast_link::DropReason;
use outlast_scenario::result::{
    Drops, OutageResult, RunResult, Settings, TcpInForce, World as Made,
};
use outlast_scenario::{
    Congestion as Wish, Framing, IpVersion as ScenarioIp, Mechanism, Outlast, Profile as Name,
    Scenario, Stack as StackWish, Workload as Work,
};
use outlast_tcp::profile::{
    AIX_4_3, BSD_4_3_TAHOE, Congestion, FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997,
    Profile, SUNOS_5_6,
};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SimError {
    /// There is no such mechanism, or not there.
    #[error(
        "the simulator has no mechanism \"{mechanism}\" at `outlast.{key}` (it has: {available})"
    )]
    NoSuchMechanism {
        /// What was asked for.
        mechanism: Mechanism,
        /// Where: `gateway`, `mobile` or `fixed`.
        key: &'static str,
        /// What it has there.
        available: &'static str,
    },
    /// Programs need a real kernel.
    #[error("commands run in the lab only: use `outlast lab`, or another `workload.kind`")]
    Command,
    /// The profile has another congestion control.
    #[error("profile \"{profile}\" has no congestion control \"{congestion}\"")]
    NoSuchCongestionControl {
        /// The profile.
        profile: Name,
        /// What was asked for.
        congestion: Wish,
    },
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The result, in the form that lab and simulator share.
    pub result: RunResult,
    /// What only the simulator can tell.
    pub outcome: Outcome,
}

/// One run of a scenario, ready to begin.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    index: u32,
    setup: Setup,
}

/// Simulates run `index` of `scenario`, counted from zero.
///
/// # Errors
/// When the scenario asks for something that the simulator does not have.
pub fn run(scenario: &Scenario, index: u32) -> Result<RunReport, SimError> {
    Ok(Simulation::new(scenario, index)?.run())
}

impl<'a> Simulation<'a> {
    /// Run `index` of `scenario`, counted from zero.
    ///
    /// # Errors
    /// When the scenario asks for something that the simulator does not have.
    pub fn new(scenario: &'a Scenario, index: u32) -> Result<Self, SimError> {
        let stack = stack(scenario)?;
        let flow = FlowSetup {
            begin: Duration::ZERO,
            workload: workload(&scenario.workload)?,
            stacks: [stack; 2],
        };
        let setup = Setup {
            mechanisms: mechanisms(&scenario.outlast)?,
            flows: vec![flow],
            ip: match scenario.stack.ip {
                ScenarioIp::V4 => IpVersion::V4,
                ScenarioIp::V6 => IpVersion::V6,
            },
            mtu: u16::try_from(scenario.link.mtu).unwrap_or(u16::MAX),
            deadline: scenario.run.deadline,
            ..Setup::new(scenario.link_config(index))
        };
        Ok(Self {
            scenario,
            index,
            setup,
        })
    }

    /// Writes down what happens.
    #[must_use]
    pub fn with_recording(mut self, recording: Recording) -> Self {
        self.setup.recording = recording;
        self
    }

    /// The world of the run.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Carries the run out.
    #[must_use]
    pub fn run(self) -> RunReport {
        let Self {
            scenario,
            index,
            setup,
        } = self;
        let stack = setup.flows[0].stacks[0];
        let outcome = World::new(setup).run();
        RunReport {
            result: result(scenario, index, &stack, &outcome),
            outcome,
        }
    }
}

fn result(scenario: &Scenario, index: u32, stack: &Stack, outcome: &Outcome) -> RunResult {
    let flow = &outcome.flows[0];
    let elapsed = outcome
        .started
        .map_or(Duration::ZERO, |started| flow.ended.since(started));
    let received = flow.received[flow.receiver.index()];
    let tcp = in_force(scenario.stack.profile, stack);
    let framing = Framing {
        timestamps: tcp.timestamps,
        ..scenario.framing()
    };
    let sender = flow.sender();
    let drops = |reason| outcome.link.iter().map(|way| way.dropped(reason)).sum();
    RunResult {
        completed: flow.is_complete,
        intact: flow.is_intact(),
        elapsed_s: elapsed.as_secs_f64(),
        ideal_s: scenario
            .ideal_time(index, framing)
            .map(|ideal| ideal.as_secs_f64()),
        utilisation: scenario.utilisation(index, framing, ByteCount(received), elapsed),
        outages: outages(scenario, index, elapsed, flow),
        timeouts: Some(sender.timeouts),
        retransmitted_bytes: Some(sender.retransmitted_bytes),
        injected_packets: outcome.counts.resent + outcome.counts.rereceived,
        user_timeout_abort: flow.is_given_up(),
        error: flow.lost.map(|lost| lost.to_string()),
        bytes_received: Some(received),
        updates: flow.updates,
        ideal_updates: scenario.ideal_updates(index, framing),
        dropped_packets: Some(Drops {
            queue_full: drops(DropReason::QueueFull),
            loss: drops(DropReason::Loss),
            link_down: drops(DropReason::LinkDown),
            flushed: drops(DropReason::Flushed),
            in_flight: drops(DropReason::InFlight),
        }),
        settings: Settings::new(scenario, index, Made::Sim, tcp),
    }
}

/// The outages that began during the run, and how long after each the receiver had new bytes.
fn outages(
    scenario: &Scenario,
    index: u32,
    elapsed: Duration,
    flow: &FlowOutcome,
) -> Vec<OutageResult> {
    let resumed = flow.resumed.iter().copied().chain(core::iter::repeat(None));
    let outages = scenario.link_config(index).outages_until(elapsed);
    outages
        .iter()
        .zip(resumed)
        .map(|(outage, resumed)| OutageResult {
            resume_s: resumed.map(|after| after.as_secs_f64()),
            ..OutageResult::new(outage)
        })
        .collect()
}

fn in_force(name: Name, stack: &Stack) -> TcpInForce {
    let profile = stack.profile;
    let offers = *profile.offers;
    let congestion = stack.congestion.unwrap_or(*profile.congestion);
    TcpInForce {
        profile: Some(name),
        kernel: None,
        congestion: match congestion {
            Congestion::Reno => Wish::Reno,
            Congestion::Cubic => Wish::Cubic,
            Congestion::Bbr => Wish::Bbr,
        }
        .to_string(),
        sack: stack.sack.unwrap_or(offers.sack),
        timestamps: stack.timestamps.unwrap_or(offers.timestamps),
    }
}

fn stack(scenario: &Scenario) -> Result<Stack, SimError> {
    let StackWish {
        profile,
        retries,
        congestion,
        sack,
        timestamps,
        ip: _,
    } = scenario.stack;
    let constants = constants(profile);
    let wish = congestion.map(|wish| match wish {
        Wish::Cubic => Congestion::Cubic,
        Wish::Reno => Congestion::Reno,
        Wish::Bbr => Congestion::Bbr,
    });
    let has = |wish: &Congestion| {
        *constants.congestion == *wish || constants.congestion_choices.contains(wish)
    };
    if let (Some(congestion), Some(wish)) = (congestion, &wish)
        && !has(wish)
    {
        return Err(SimError::NoSuchCongestionControl {
            profile,
            congestion,
        });
    }
    Ok(Stack {
        profile: constants,
        congestion: wish,
        sack,
        timestamps,
        retries: retries.map(|retries| u8::try_from(retries).unwrap_or(u8::MAX)),
        user_timeout: scenario.outlast.user_timeout,
    })
}

fn constants(profile: Name) -> &'static Profile {
    match profile {
        Name::Bsd43Tahoe => &BSD_4_3_TAHOE,
        Name::Netbsd1997 => &NETBSD_1997,
        Name::Freebsd22 => &FREEBSD_2_2,
        Name::Sunos56 => &SUNOS_5_6,
        Name::Aix43 => &AIX_4_3,
        Name::Linux22 => &LINUX_2_2,
        Name::Linux24 => &LINUX_2_4,
        Name::Linux6 => &LINUX_6,
    }
}

fn workload(workload: &Work) -> Result<Workload, SimError> {
    Ok(match *workload {
        Work::Bulk { bytes, direction } => Workload::Bulk {
            bytes,
            way: direction.way(),
        },
        Work::Interactive {
            interval,
            update,
            request,
            duration,
        } => Workload::Interactive {
            interval,
            update,
            request,
            duration,
        },
        Work::RequestResponse {
            requests,
            request,
            response,
            think,
        } => Workload::RequestResponse {
            requests,
            request,
            response,
            think,
        },
        Work::Command(_) => return Err(SimError::Command),
    })
}

/// What the gateways at the two ends of the link do, by [`Side::index`](crate::Side::index).
fn mechanisms(outlast: &Outlast) -> Result<[PathMechanismKind; 2], SimError> {
    if outlast.fixed != Mechanism::None {
        return Err(SimError::NoSuchMechanism {
            mechanism: outlast.fixed,
            key: "fixed",
            available: "none",
        });
    }
    Ok([
        at_gateway(outlast.gateway, "gateway")?,
        at_gateway(outlast.mobile, "mobile")?,
    ])
}

fn at_gateway(mechanism: Mechanism, key: &'static str) -> Result<PathMechanismKind, SimError> {
    Ok(match mechanism {
        Mechanism::None => PathMechanismKind::None,
        Mechanism::SmartLink1 => PathMechanismKind::SmartLink(Level::One),
        Mechanism::SmartLink2 => PathMechanismKind::SmartLink(Level::Two),
        Mechanism::SmartLink3 => PathMechanismKind::SmartLink(Level::Three),
        Mechanism::SmartLink4 => PathMechanismKind::SmartLink(Level::Four),
        Mechanism::Hold => PathMechanismKind::Hold,
        Mechanism::RetransmissionCache => PathMechanismKind::RetransmissionCache,
        Mechanism::ZeroWindowAck
        | Mechanism::AcknowledgeAhead
        | Mechanism::MTcp
        | Mechanism::Auto
        | Mechanism::RetransmissionTrigger
        | Mechanism::FastRetransmit => {
            return Err(SimError::NoSuchMechanism {
                mechanism,
                key,
                available: "none, smart-link-1 to smart-link-4, hold, retransmission-cache",
            });
        }
    })
}
