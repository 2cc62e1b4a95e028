//! From a scenario to a world.

use crate::error::SimError;
use crate::topology;
use outlast_base::random::Stream;
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_host::Mechanism as HostMechanism;
use outlast_scenario::{
    Congestion as Wish, Connection, HostStack, Indicators as ScenarioIndicators, Mechanism,
    Outlast, Profile as Name, Scenario, Stack as StackWish, Workload as Work,
};
use outlast_tcp::profile::{
    AIX_4_3, BSD_4_3_TAHOE, Congestion, FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997,
    Profile, SUNOS_5_6,
};
use outlast_world::{FlowSetup, HopSetup, Indicators, RoamingSetup, Setup, Side, Stack, Workload};

/// The world of run `index` of `scenario`, counted from zero.
pub(crate) fn setup(scenario: &Scenario, index: u32) -> Result<Setup, SimError> {
    let mut link = scenario.link_config(index);
    link.to_mobile.delay += scenario.stack.host_latency;
    link.to_fixed.delay += scenario.stack.host_latency;
    Ok(Setup {
        mechanisms: mechanisms(&scenario.outlast)?,
        agents: agents(&scenario.outlast)?,
        indicators: match scenario.outlast.indicators {
            ScenarioIndicators::Link => Indicators::Link,
            ScenarioIndicators::Silence => Indicators::Silence,
        },
        rate: scenario.outlast.rate,
        shares_rate: scenario.outlast.shares_rate,
        compresses: scenario.outlast.compresses,
        content: scenario.content.of_streams(),
        hops: hops(scenario, index)?,
        roaming: roaming(scenario, index)?,
        traffic: topology::cross_traffic(scenario),
        flows: flows(scenario)?,
        hip: topology::hip(scenario),
        ip: topology::ip(scenario.ip_inside()),
        mtu: u16::try_from(scenario.mtu_inside()).unwrap_or(u16::MAX),
        clock_phases: clock_phases(scenario, link.seed),
        deadline: scenario.run.deadline,
        ..Setup::new(link)
    })
}

/// The TCP of the hosts, by [`Side::index`], who give a connection up after `user_timeout`, if that
/// is on.
fn stacks(wishes: &StackWish, user_timeout: Option<Duration>) -> Result<[Stack; 2], SimError> {
    let [fixed, mobile] = Side::BOTH.map(|side| stack(wishes, side, user_timeout));
    Ok([fixed?, mobile?])
}

/// Whose TCP the host at `side` has.
pub(crate) fn profile(stack: &StackWish, side: Side) -> Name {
    host(stack, side).profile.unwrap_or(stack.profile)
}

fn host(stack: &StackWish, side: Side) -> HostStack {
    match side {
        Side::Fixed => stack.fixed,
        Side::Mobile => stack.mobile,
    }
}

fn stack(
    wishes: &StackWish,
    side: Side,
    user_timeout: Option<Duration>,
) -> Result<Stack, SimError> {
    let StackWish {
        profile: _,
        retries,
        max_rto,
        congestion,
        sack,
        timestamps,
        timer_phase: _,
        host_latency: _,
        receive_buffer,
        ip: _,
        mobile: _,
        fixed: _,
    } = *wishes;
    let profile = profile(wishes, side);
    let receive_buffer = host(wishes, side).receive_buffer.or(receive_buffer);
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
        max_rto: host(wishes, side).max_rto.or(max_rto),
        retries: retries.map(|retries| u8::try_from(retries).unwrap_or(u8::MAX)),
        receive_buffer: receive_buffer
            .map(|bytes| u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX)),
        user_timeout,
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

/// What the gateways at the two ends of the mobile's link do, by [`Side::index`].
fn mechanisms(outlast: &Outlast) -> Result<[PathMechanismKind; 2], SimError> {
    let mobile = match outlast.mobile.on_host() {
        Some(_) => Mechanism::None,
        None => outlast.mobile,
    };
    Ok([
        at_gateway(outlast.gateway, "outlast.gateway")?,
        at_gateway(mobile, "outlast.mobile")?,
    ])
}

/// The agents beside the hosts' TCP, by [`Side::index`].
fn agents(outlast: &Outlast) -> Result<[Option<HostMechanism>; 2], SimError> {
    let fixed = outlast.fixed.on_host();
    if fixed.is_none() && outlast.fixed != Mechanism::None {
        return Err(SimError::NoSuchMechanism {
            mechanism: outlast.fixed,
            key: "outlast.fixed",
            available: Mechanism::ON_HOST,
        });
    }
    Ok([fixed, outlast.mobile.on_host()])
}

fn at_gateway(mechanism: Mechanism, key: &'static str) -> Result<PathMechanismKind, SimError> {
    mechanism.on_path().ok_or(SimError::NoSuchMechanism {
        mechanism,
        key,
        available: Mechanism::ON_PATH,
    })
}

/// Every connection, that of `[workload]` first.
fn flows(scenario: &Scenario) -> Result<Vec<FlowSetup>, SimError> {
    let patience = scenario.outlast.user_timeout;
    let setup = |connection: Connection<'_>| {
        Ok(FlowSetup {
            begin: connection.begin,
            workload: workload(connection.workload)?,
            stacks: stacks(connection.stack, patience)?,
        })
    };
    scenario.connections().map(setup).collect()
}

/// The links behind that of the mobile, in run `index`.
fn hops(scenario: &Scenario, index: u32) -> Result<Vec<HopSetup>, SimError> {
    let hops = scenario.hops.iter().enumerate();
    hops.filter_map(|(number, hop)| Some((hop, scenario.hop_config(index, number)?)))
        .map(|(hop, link)| {
            let mechanisms = [
                at_gateway(hop.fixed_end, "hops.fixed_end")?,
                at_gateway(hop.mobile_end, "hops.mobile_end")?,
            ];
            Ok(HopSetup { link, mechanisms })
        })
        .collect()
}

/// The gateways between which the mobile goes in run `index`, if more than one link is asked for.
fn roaming(scenario: &Scenario, index: u32) -> Result<Option<RoamingSetup>, SimError> {
    let home_agent = at_gateway(scenario.outlast.home_agent, "outlast.home_agent")?;
    let mut roaming = topology::roaming(scenario, index, home_agent);
    let latency = scenario.stack.host_latency;
    for cell in roaming.iter_mut().flat_map(|roaming| &mut roaming.cells) {
        cell.to_mobile.delay += latency;
        cell.to_fixed.delay += latency;
    }
    Ok(roaming)
}

/// Where both hosts' tick counters stand at the beginning, if the scenario says where they stand
/// when the first byte of payload is sent. At which moment of a millisecond that is, nobody can
/// say of a host; it decides how timestamps round, and is drawn.
fn clock_phases(scenario: &Scenario, seed: u64) -> Option<[Duration; 2]> {
    let at_opening = scenario.timer_phase_before(scenario.handshake())?;
    let mut random = Stream::new(seed, "sim.moment");
    let moment = Duration::from_nanos(random.next_u64() % 1_000_000);
    Some([at_opening + moment; 2])
}
