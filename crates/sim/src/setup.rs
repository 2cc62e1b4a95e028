//! From a scenario to a world.

use crate::error::SimError;
use outlast_core::mechanisms::path::{Level, PathMechanismKind};
use outlast_scenario::{
    Congestion as Wish, HostStack, Mechanism, Outlast, Profile as Name, Scenario,
    Stack as StackWish, Workload as Work,
};
use outlast_tcp::profile::{
    AIX_4_3, BSD_4_3_TAHOE, Congestion, FREEBSD_2_2, LINUX_2_2, LINUX_2_4, LINUX_6, NETBSD_1997,
    Profile, SUNOS_5_6,
};
use outlast_world::{Side, Stack, Workload};

/// The TCP of the hosts, by [`Side::index`].
pub(crate) fn stacks(scenario: &Scenario) -> Result<[Stack; 2], SimError> {
    let [fixed, mobile] = Side::BOTH.map(|side| stack(scenario, side));
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

fn stack(scenario: &Scenario, side: Side) -> Result<Stack, SimError> {
    let StackWish {
        profile: _,
        retries,
        congestion,
        sack,
        timestamps,
        receive_buffer,
        ip: _,
        mobile: _,
        fixed: _,
    } = scenario.stack;
    let host = host(&scenario.stack, side);
    let profile = profile(&scenario.stack, side);
    let receive_buffer = host.receive_buffer.or(receive_buffer);
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
        receive_buffer: receive_buffer
            .map(|bytes| u32::try_from(bytes.as_u64()).unwrap_or(u32::MAX)),
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

pub(crate) fn workload(workload: &Work) -> Result<Workload, SimError> {
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

/// What the gateways at the two ends of the link do, by [`Side::index`](outlast_world::Side::index).
pub(crate) fn mechanisms(outlast: &Outlast) -> Result<[PathMechanismKind; 2], SimError> {
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
        Mechanism::ZeroWindowAck => PathMechanismKind::ZeroWindowAck,
        Mechanism::AcknowledgeAhead => PathMechanismKind::AcknowledgeAhead,
        Mechanism::MTcp
        | Mechanism::Auto
        | Mechanism::RetransmissionTrigger
        | Mechanism::FastRetransmit => {
            return Err(SimError::NoSuchMechanism {
                mechanism,
                key,
                available: "none, smart-link-1 to smart-link-4, hold, retransmission-cache, zero-window-ack, acknowledge-ahead",
            });
        }
    })
}
