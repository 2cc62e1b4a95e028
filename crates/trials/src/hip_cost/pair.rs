//! Two hosts joined by a pair of virtual interfaces, which only this machine's processors bound.

use crate::gateway_matrix::trial::TrialError;
use crate::mobile_ip_matrix::place::ip;
use outlast_lab::LabError;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::AsFd;
use std::net::Ipv4Addr;

/// The address of the host that opens connections, and of the one that accepts them.
pub(super) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 70, 0, 1);
pub(super) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 70, 0, 2);

/// The interface of either host.
pub(super) const ETH: &str = "eth0";

/// Both hosts. They are gone when it is dropped.
pub(super) struct Pair {
    pub(super) left: Namespace,
    pub(super) right: Namespace,
}

impl Pair {
    /// Two hosts that reach each other.
    pub(super) fn new() -> Result<Self, TrialError> {
        let new = || Namespace::new().map_err(LabError::from);
        let pair = Self {
            left: new()?,
            right: new()?,
        };
        let join = || {
            let mut routes = RouteSocket::open()?;
            routes.add_veth(ETH, ETH, Some(pair.right.as_fd()))
        };
        let joined = pair.left.run(join).map_err(LabError::from)?;
        joined.map_err(LabError::from)?;
        for (host, address) in [(&pair.left, LEFT), (&pair.right, RIGHT)] {
            let lines = [
                "link set lo up".to_owned(),
                format!("address add {address}/24 dev {ETH}"),
                format!("link set {ETH} up"),
            ];
            ip(host, &lines)?;
        }
        Ok(pair)
    }
}
