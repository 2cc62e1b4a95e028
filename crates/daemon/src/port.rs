//! An interface that is a port: a bridge, a bond or a switch takes every packet of it.

use super::Daemon;
use outlast_linux::netlink::RouteSocket;

impl Daemon {
    /// Says so where a bridge has the packets that the gateway waits for.
    pub(super) fn follow_port(&mut self) {
        let now = self.indicators.port_of();
        if now == self.port_of.as_ref().map(|(index, _)| *index) {
            return;
        }
        self.port_of = now.map(|index| {
            let name = RouteSocket::open().and_then(|mut route| route.name(index));
            (index, name.unwrap_or_else(|_| index.to_string()))
        });
        let interface = &self.settings.interface;
        match &self.port_of {
            Some((_, of)) => tracing::warn!(
                "{interface} is a port of {of}, which takes every packet: nothing can be kept here. \
                 Run it on {of}"
            ),
            None => tracing::info!("{interface} is a port no longer"),
        }
    }
}
