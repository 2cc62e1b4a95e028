//! Which of the scenario's mechanisms the lab has, and where.

use crate::error::LabError;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_host::Mechanism as HostMechanism;
use outlast_scenario::{Hop, Indicators as Wish, Mechanism, Outlast, Scenario};
use outlast_world::{Gateways, Indicators};

/// The gateways at the two ends of the mobile's link.
pub(crate) fn gateways(outlast: &Outlast) -> Result<Gateways, LabError> {
    let mobile = match outlast.mobile.on_host() {
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
///
/// # Errors
/// [`LabError::NoSuchMechanism`] for a mechanism of gateways at the fixed host. At the mobile host such a mechanism
/// belongs to a [gateway](gateways).
pub(crate) fn agents(scenario: &Scenario) -> Result<[Option<HostMechanism>; 2], LabError> {
    let outlast = &scenario.outlast;
    let fixed = outlast.fixed.on_host();
    if fixed.is_none() && outlast.fixed != Mechanism::None {
        return Err(LabError::NoSuchMechanism {
            mechanism: outlast.fixed,
            key: "outlast.fixed",
            available: Mechanism::ON_HOST,
        });
    }
    Ok([fixed, outlast.mobile.on_host()])
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
