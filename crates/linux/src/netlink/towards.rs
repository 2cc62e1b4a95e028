//! Where packets to an address leave.

use super::{InterfaceIndex, NetlinkError, Prefix, Request, RouteSocket, family, route_address};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use std::net::IpAddr;

impl RouteSocket {
    /// The interface by which packets with `mark` from `source` to `destination` leave; `None` if there is no
    /// way, or it ends at this host.
    ///
    /// # Errors
    /// When the kernel's answer cannot be understood.
    pub fn interface_towards(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        mark: u32,
    ) -> Result<Option<InterfaceIndex>, NetlinkError> {
        let mut ask = RouteMessage::default();
        ask.header.address_family = family(destination);
        ask.header.destination_prefix_length = Prefix::of_host(destination).length;
        ask.header.source_prefix_length = Prefix::of_host(source).length;
        ask.attributes = vec![
            RouteAttribute::Destination(route_address(destination)),
            RouteAttribute::Source(route_address(source)),
            RouteAttribute::Mark(mark),
        ];
        let request = Request::new(0, format!("find the way from {source} to {destination}"));
        match self.exchange(RouteNetlinkMessage::GetRoute(ask), request) {
            Ok(Some(RouteNetlinkMessage::NewRoute(way))) => {
                let by = way.attributes.iter().find_map(|one| match one {
                    RouteAttribute::Oif(index) => Some(InterfaceIndex(*index)),
                    _ => None,
                });
                Ok(by.filter(|_| way.header.kind == RouteType::Unicast))
            }
            Err(NetlinkError::Refused { .. }) => Ok(None),
            Ok(answer) => Err(NetlinkError::Malformed(format!(
                "{answer:?} instead of a route"
            ))),
            Err(error) => Err(error),
        }
    }
}
