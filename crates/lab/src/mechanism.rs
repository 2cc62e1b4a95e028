//! Which of the scenario's mechanisms the lab has, and where.

use crate::error::LabError;
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_scenario::{Mechanism, Outlast};

/// What the gateways at the two ends of the link do, by [`Side::index`](crate::Side).
pub(crate) fn mechanisms(outlast: &Outlast) -> Result<[PathMechanismKind; 2], LabError> {
    if outlast.fixed != Mechanism::None {
        return Err(LabError::NoSuchMechanism {
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

fn at_gateway(mechanism: Mechanism, key: &'static str) -> Result<PathMechanismKind, LabError> {
    mechanism.on_path().ok_or(LabError::NoSuchMechanism {
        mechanism,
        key,
        available: Mechanism::ON_PATH,
    })
}
