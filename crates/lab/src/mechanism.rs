//! Which of the scenario's mechanisms the lab has, and where.

use crate::error::LabError;
use outlast_core::mechanisms::path::{Level, PathMechanismKind};
use outlast_scenario::{Mechanism, Outlast};

const AT_GATEWAYS: &str = "none, smart-link-1 to smart-link-4, hold, retransmission-cache, zero-window-ack, acknowledge-ahead";

/// What the gateways at the two ends of the link do, by [`Side::index`](crate::Side).
pub(crate) fn mechanisms(outlast: &Outlast) -> Result<[PathMechanismKind; 2], LabError> {
    if outlast.fixed != Mechanism::None {
        let mechanism = outlast.fixed;
        return Err(LabError::NoSuchMechanism {
            mechanism,
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
            return Err(LabError::NoSuchMechanism {
                mechanism,
                key,
                available: AT_GATEWAYS,
            });
        }
    })
}
