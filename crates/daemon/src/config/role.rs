//! The roles that sit on a path: a gateway, and the supervisor host of M-TCP.

use super::Mechanism;
use crate::failure::Failure;
use outlast_gateway::mechanisms::path::PathMechanismKind;

/// What a daemon on a path is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PathRole {
    /// A gateway with any mechanism.
    #[default]
    Gateway,
    /// M-TCP's supervisor host, with a mechanism of M-TCP.
    Supervisor,
}

impl PathRole {
    /// The mechanism where neither the command line nor the file names one.
    const fn default_mechanism(self) -> PathMechanismKind {
        match self {
            Self::Gateway => PathMechanismKind::Hold,
            // The published scheme stalls Linux senders.
            Self::Supervisor => PathMechanismKind::MTcpAdaptive,
        }
    }

    const fn has(self, mechanism: PathMechanismKind) -> bool {
        match self {
            Self::Gateway => true,
            Self::Supervisor => matches!(
                mechanism,
                PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
            ),
        }
    }

    /// Settles the mechanism.
    ///
    /// # Errors
    ///
    /// If the role does not have the mechanism that was asked for.
    pub(super) fn settle(self, asked: Option<Mechanism>) -> Result<Mechanism, Failure> {
        let mechanism = asked.unwrap_or(Mechanism(self.default_mechanism()));
        if self.has(mechanism.0) {
            return Ok(mechanism);
        }
        Err(Failure::Usage(format!(
            "a supervisor does not do \"{mechanism}\": take m-tcp-adaptive or m-tcp, or --role \
             gateway"
        )))
    }
}
