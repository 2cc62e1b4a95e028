//! From a scenario's gateways and cross traffic to those of a world; the lab has the same ones.

use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_scenario::result::HipResult;
use outlast_scenario::{
    Crash, Handoff, IpVersion as ScenarioIp, MobileIp, Pattern, Scenario, Traffic,
};
use outlast_world::{
    self as world, AgentsSetup, HipOutcome, HipSetup, IpVersion, MobileIpSetup, Pattern as When,
    RoamingSetup, TrafficSetup,
};

/// The gateways between which the mobile goes in run `index`.
///
/// `home_agent` stands in for `[outlast] home_agent`. `None` if the mobile stays at one gateway, of
/// which nothing else is asked.
#[must_use]
pub fn roaming(
    scenario: &Scenario,
    index: u32,
    home_agent: PathMechanismKind,
) -> Option<RoamingSetup> {
    let roaming = RoamingSetup {
        cells: scenario.cell_configs(index),
        home_agent,
        handoffs: scenario.handoffs.iter().map(handoff).collect(),
        crashes: scenario.crashes.iter().map(crash).collect(),
        agents: scenario.agents.map(|agents| AgentsSetup {
            delay: agents.delay,
            lost_after: agents.lost_after,
        }),
        mobile_ip: scenario.mobile_ip.map(mobile_ip),
    };
    scenario.has_roaming().then_some(roaming)
}

/// HIP between the hosts, if `scenario` has it.
#[must_use]
pub fn hip(scenario: &Scenario) -> Option<HipSetup> {
    let hip = scenario.hip?;
    Some(HipSetup {
        ip: ip(scenario.stack.ip),
        has_credit: hip.credit,
        address_delay: hip.address_delay,
        waiting: hip.waiting,
    })
}

/// The network protocol `version`.
#[must_use]
pub const fn ip(version: ScenarioIp) -> IpVersion {
    match version {
        ScenarioIp::V4 => IpVersion::V4,
        ScenarioIp::V6 => IpVersion::V6,
    }
}

/// What came of HIP.
#[must_use]
pub fn hip_result(outcome: &HipOutcome) -> HipResult {
    HipResult {
        readdressing_s: outcome
            .readdressings
            .iter()
            .map(Duration::as_secs_f64)
            .collect(),
        strayed_packets: outcome.strayed,
    }
}

/// The cross traffic of `scenario`.
#[must_use]
pub fn cross_traffic(scenario: &Scenario) -> Vec<TrafficSetup> {
    scenario.traffic.iter().map(traffic).collect()
}

fn traffic(traffic: &Traffic) -> TrafficSetup {
    let rate = traffic.rate;
    TrafficSetup {
        link: traffic.hop,
        way: traffic.direction.way(),
        pattern: match traffic.pattern {
            Pattern::Constant => When::Constant { rate },
            Pattern::Poisson => When::Poisson { rate },
            Pattern::OnOff { on, off } => When::OnOff { rate, on, off },
        },
        packet: u16::try_from(traffic.packet.0).unwrap_or(u16::MAX),
        begin: traffic.begin,
        end: traffic.end,
    }
}

/// A world counts gateways from zero.
const fn handoff(handoff: &Handoff) -> world::Handoff {
    world::Handoff {
        at: handoff.at,
        gap: handoff.gap,
        to: handoff.to - 1,
        update: handoff.update,
        forwards: handoff.forward,
    }
}

const fn crash(crash: &Crash) -> world::Crash {
    world::Crash {
        at: crash.at,
        gateway: crash.gateway - 1,
        back_after: crash.back_after,
    }
}

fn mobile_ip(mobile_ip: MobileIp) -> MobileIpSetup {
    MobileIpSetup {
        home: mobile_ip.home.map(|number| number - 1),
        has_foreign_agents: mobile_ip.foreign_agents,
        address_after: mobile_ip.address_after,
        detection: mobile_ip.detection.into(),
        advertisements: mobile_ip.advertisements,
        reverse_tunnel: mobile_ip.reverse_tunnel,
        delay: mobile_ip.delay,
        rate: mobile_ip.rate,
        loss: mobile_ip.loss,
    }
}
