//! Which of the scenario's mechanisms the lab has, and where.

use crate::error::LabError;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_host::Mechanism as HostMechanism;
use outlast_scenario::{Hop, Indicators as Wish, Mechanism, Outlast, Scenario};
use outlast_world::{Gateways, Indicators};

/// What the lab has at the mobile, for messages.
const AT_MOBILE: &str = "none, smart-link-1 to smart-link-4, hold, retransmission-cache, \
     zero-window-ack, acknowledge-ahead, m-tcp, m-tcp-adaptive, auto, retransmission-trigger";

/// The gateways at the two ends of the mobile's link.
pub(crate) fn gateways(outlast: &Outlast) -> Result<Gateways, LabError> {
    let mobile = match agent_at_mobile(outlast)? {
        Some(_) => Mechanism::None,
        None => outlast.mobile,
    };
    Ok(Gateways {
        mechanisms: [
            at_gateway(outlast.gateway, "outlast.gateway")?,
            at_gateway(mobile, "outlast.mobile")?,
        ],
        indicators: indicators(outlast),
        rate: outlast.rate,
        shares_rate: outlast.shares_rate,
        compresses: outlast.compresses,
        ..Gateways::default()
    })
}

/// The agents beside the hosts' TCP, by [`Side::index`](outlast_world::Side::index). That of the fixed host
/// hears of the end of a readdressing, and of the requests of the mobile host's.
pub(crate) fn agents(scenario: &Scenario) -> Result<[Option<HostMechanism>; 2], LabError> {
    let outlast = &scenario.outlast;
    let mobile = agent_at_mobile(outlast)?;
    match outlast.fixed {
        Mechanism::None => Ok([None, mobile]),
        Mechanism::RetransmissionTrigger => {
            Ok([Some(HostMechanism::RetransmissionTrigger), mobile])
        }
        mechanism => Err(LabError::NoSuchMechanism {
            mechanism,
            key: "outlast.fixed",
            available: "none, retransmission-trigger",
        }),
    }
}

/// The agent beside the mobile's TCP.
fn agent_at_mobile(outlast: &Outlast) -> Result<Option<HostMechanism>, LabError> {
    match outlast.mobile.on_host() {
        // The kernel has no way to be made to retransmit fast.
        Some(HostMechanism::FastRetransmit) => Err(LabError::NoSuchMechanism {
            mechanism: outlast.mobile,
            key: "outlast.mobile",
            available: AT_MOBILE,
        }),
        agent => Ok(agent),
    }
}

/// The gateways at the two ends of `hop`.
pub(crate) fn gateways_of_hop(outlast: &Outlast, hop: &Hop) -> Result<Gateways, LabError> {
    Ok(Gateways {
        mechanisms: [
            at_gateway(hop.fixed_end, "hops.fixed_end")?,
            at_gateway(hop.mobile_end, "hops.mobile_end")?,
        ],
        indicators: indicators(outlast),
        rate: outlast.rate,
        shares_rate: outlast.shares_rate,
        compresses: outlast.compresses,
        ..Gateways::default()
    })
}

fn indicators(outlast: &Outlast) -> Indicators {
    match outlast.indicators {
        Wish::Link => Indicators::Link,
        Wish::Silence => Indicators::Silence,
    }
}

/// That where the ways to all gateways meet.
pub(crate) fn home_agent(outlast: &Outlast) -> Result<PathMechanismKind, LabError> {
    at_gateway(outlast.home_agent, "outlast.home_agent")
}

fn at_gateway(mechanism: Mechanism, key: &'static str) -> Result<PathMechanismKind, LabError> {
    mechanism.on_path().ok_or(LabError::NoSuchMechanism {
        mechanism,
        key,
        available: Mechanism::ON_PATH,
    })
}
