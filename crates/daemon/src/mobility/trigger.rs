//! The retransmission trigger beside a mobile node: a completed registration says that the link is up.
//!
//! Connections that wait for a retransmission timeout retransmit at once, as by the role `host`.

use outlast_base::time::Instant;
use outlast_gateway::links::{Indicator, InterfaceId, LinkEvent, LinkId, LinkState};
use outlast_host::{Event, Host, HostConfig, Mechanism};
use outlast_linux::clock;
use outlast_linux::lack::Lack;
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::stack::TcpStack;

/// The agent beside the kernel's TCP.
pub(super) struct Trigger {
    host: Host,
    stack: TcpStack,
}

impl Trigger {
    /// One for this network namespace; `None`, and a line in the log, where the kernel has none.
    pub(super) fn open() -> Option<Self> {
        match TcpStack::open(0) {
            Ok(stack) => {
                let config = HostConfig {
                    // Peers hear of the move by the registration; what a slow start after each move would cost is not
                    // measured.
                    wakes_peer: false,
                    forces_slow_start: false,
                    ..HostConfig::new(Mechanism::RetransmissionTrigger)
                };
                let host = Host::new(clock::now(), config);
                Some(Self { host, stack })
            }
            Err(error) => {
                let Lack { what, remedy } = error.lack();
                tracing::warn!(
                    "connections wait for their timeouts after a move: {what}; {remedy} (see `outlast doctor`)"
                );
                None
            }
        }
    }

    /// The node can be reached again.
    pub(super) fn pull(
        &mut self,
        now: Instant,
        interfaces: impl Iterator<Item = InterfaceIndex>,
    ) -> anyhow::Result<()> {
        for InterfaceIndex(index) in interfaces {
            let event = LinkEvent {
                link: LinkId::of_interface(InterfaceId(index)),
                state: LinkState::Up,
                indicator: Indicator::Notify,
            };
            self.host.handle_link(now, event, &mut self.stack);
        }
        self.drain()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now, &mut self.stack);
        if let Err(error) = self.drain() {
            tracing::warn!("{error:#}");
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout().map(|(at, _)| at)
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        self.stack.flush()?;
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Pass {
                    connections,
                    stalled,
                    ..
                } => tracing::info!(connections, stalled, "looked through the connections"),
                Event::ListFailed(error) => {
                    tracing::warn!("the connections could not be listed: {error}");
                }
            }
        }
        Ok(())
    }
}
