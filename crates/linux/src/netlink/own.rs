//! When an address that was added is in use.

use super::{NetlinkError, Prefix, Request, RouteSocket, family, route_address};
use crate::clock;
use crate::timer::Timer;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use outlast_base::time::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::net::IpAddr;

impl RouteSocket {
    /// Waits until this host takes what is sent to `address`, which an interface that is ready has,
    /// for its own. The kernel gets an address of IPv6 going in the background, and a busy machine
    /// takes its time for that.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] if it is not so after a minute, and an error if the kernel does not answer.
    pub fn await_address(&mut self, address: IpAddr) -> Result<(), NetlinkError> {
        const PATIENCE: Duration = Duration::from_secs(60);
        const PAUSE: Duration = Duration::from_millis(1);
        let refused = |source: io::Error| NetlinkError::Refused {
            request: format!("take {address} for this host's own"),
            source,
        };
        let given_up = clock::now() + PATIENCE;
        let mut timer = Timer::new().map_err(refused)?;
        while !self.is_own(address)? {
            let now = clock::now();
            if now > given_up {
                return Err(refused(io::ErrorKind::TimedOut.into()));
            }
            timer.set(Some(now + PAUSE)).map_err(refused)?;
            let mut timers = [PollFd::new(&timer, PollFlags::IN)];
            match poll(&mut timers, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(refused(errno.into())),
            }
        }
        Ok(())
    }

    /// Whether a packet to `address` would be this host's own.
    fn is_own(&mut self, address: IpAddr) -> Result<bool, NetlinkError> {
        let mut ask = RouteMessage::default();
        ask.header.address_family = family(address);
        ask.header.destination_prefix_length = Prefix::of_host(address).length;
        let destination = RouteAttribute::Destination(route_address(address));
        ask.attributes.push(destination);
        let request = Request::new(0, format!("find the way to {address}"));
        match self.exchange(RouteNetlinkMessage::GetRoute(ask), request) {
            Ok(Some(RouteNetlinkMessage::NewRoute(way))) => Ok(way.header.kind == RouteType::Local),
            // There is none.
            Err(NetlinkError::Refused { .. }) => Ok(false),
            Ok(answer) => Err(NetlinkError::Malformed(format!(
                "{answer:?} instead of a route"
            ))),
            Err(error) => Err(error),
        }
    }
}
