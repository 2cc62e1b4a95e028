//! The names of the recovery mechanisms, and where each may be asked for.

use crate::names::names;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_host::Mechanism as HostMechanism;

names! {
    /// What Outlast does at one place of the path.
    ///
    /// Every name of the design is here; whether the running program has the mechanism is for the
    /// runner to say.
    #[derive(Default)]
    pub enum Mechanism {
        /// Nothing: traffic passes as it is.
        #[default]
        None = "none",
        /// Smart link layer, level 1: one kept packet is re-received (Scott and Mapp).
        SmartLink1 = "smart-link-1",
        /// Smart link layer, level 2: as level 1, five times.
        SmartLink2 = "smart-link-2",
        /// Smart link layer, level 3: one kept packet is re-sent.
        SmartLink3 = "smart-link-3",
        /// Smart link layer, level 4: as level 3, five times.
        SmartLink4 = "smart-link-4",
        /// Keep what the link dropped and re-send it in order.
        Hold = "hold",
        /// Keep and re-send at the home agent (thesis).
        RetransmissionCache = "retransmission-cache",
        /// Close the sender's window during the outage (thesis).
        ZeroWindowAck = "zero-window-ack",
        /// Cache, acknowledge ahead, and close the window.
        AcknowledgeAhead = "acknowledge-ahead",
        /// M-TCP (Brown and Singh): at a gateway its supervisor host, at the mobile the mobile's half.
        MTcp = "m-tcp",
        /// M-TCP's supervisor host, but for senders that a window which shrinks does not stop.
        MTcpAdaptive = "m-tcp-adaptive",
        /// Whichever path mechanism suits the flow.
        Auto = "auto",
        /// TCP retransmission trigger of an end host (Schuetz and others).
        RetransmissionTrigger = "retransmission-trigger",
        /// Fast retransmission after a hand-off (Caceres and Iftode).
        FastRetransmit = "fast-retransmit",
    }
}

impl Mechanism {
    /// What a gateway on the path can do: `[outlast] gateway`.
    pub const AT_GATEWAY: [Self; 12] = [
        Self::None,
        Self::SmartLink1,
        Self::SmartLink2,
        Self::SmartLink3,
        Self::SmartLink4,
        Self::Hold,
        Self::RetransmissionCache,
        Self::ZeroWindowAck,
        Self::AcknowledgeAhead,
        Self::MTcp,
        Self::MTcpAdaptive,
        Self::Auto,
    ];

    /// What the mobile can do, path and endpoint mechanisms: `[outlast] mobile`.
    pub const AT_MOBILE: [Self; 14] = [
        Self::None,
        Self::SmartLink1,
        Self::SmartLink2,
        Self::SmartLink3,
        Self::SmartLink4,
        Self::Hold,
        Self::RetransmissionCache,
        Self::ZeroWindowAck,
        Self::AcknowledgeAhead,
        Self::MTcp,
        Self::MTcpAdaptive,
        Self::Auto,
        Self::RetransmissionTrigger,
        Self::FastRetransmit,
    ];

    /// What the fixed host can do: `[outlast] fixed`.
    pub const AT_FIXED: [Self; 3] = [
        Self::None,
        Self::RetransmissionTrigger,
        Self::FastRetransmit,
    ];

    /// The names for which [`Self::on_path`] has an answer, for messages.
    pub const ON_PATH: &'static str = "none, smart-link-1 to smart-link-4, hold, retransmission-cache, \
         zero-window-ack, acknowledge-ahead, m-tcp, m-tcp-adaptive, auto";

    /// What the agent beside a host's TCP does under this name; `None` if it is no mechanism of end
    /// hosts. `m-tcp` names one thing at a gateway, the supervisor host, and another at the mobile.
    #[must_use]
    pub const fn on_host(self) -> Option<HostMechanism> {
        match self {
            Self::RetransmissionTrigger => Some(HostMechanism::RetransmissionTrigger),
            Self::FastRetransmit => Some(HostMechanism::FastRetransmit),
            Self::MTcp => Some(HostMechanism::MTcp),
            _ => None,
        }
    }

    /// The names for which [`Self::on_host`] has an answer, for messages.
    pub const ON_HOST: &'static str =
        "none, retransmission-trigger, fast-retransmit; at the mobile also m-tcp";

    /// What a gateway does under this name; `None` if it is a mechanism of end hosts, or one that
    /// the installed version does not have.
    #[must_use]
    pub const fn on_path(self) -> Option<PathMechanismKind> {
        Some(match self {
            Self::None => PathMechanismKind::None,
            Self::SmartLink1 => PathMechanismKind::SmartLink(Level::One),
            Self::SmartLink2 => PathMechanismKind::SmartLink(Level::Two),
            Self::SmartLink3 => PathMechanismKind::SmartLink(Level::Three),
            Self::SmartLink4 => PathMechanismKind::SmartLink(Level::Four),
            Self::Hold => PathMechanismKind::Hold,
            Self::RetransmissionCache => PathMechanismKind::RetransmissionCache,
            Self::ZeroWindowAck => PathMechanismKind::ZeroWindowAck,
            Self::AcknowledgeAhead => PathMechanismKind::AcknowledgeAhead,
            Self::Auto => PathMechanismKind::Auto,
            Self::MTcp => PathMechanismKind::MTcp,
            Self::MTcpAdaptive => PathMechanismKind::MTcpAdaptive,
            Self::RetransmissionTrigger | Self::FastRetransmit => {
                return None;
            }
        })
    }

    /// The names of `mechanisms`.
    pub(crate) const fn names<const N: usize>(mechanisms: [Self; N]) -> [&'static str; N] {
        let mut names = [""; N];
        let mut index = 0;
        while index < N {
            names[index] = mechanisms[index].name();
            index += 1;
        }
        names
    }
}
