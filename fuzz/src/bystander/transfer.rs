//! An honest transfer over a link with a gateway at its near end, in virtual time.

use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::gateway::{DropCause, Gateway, GatewayConfig};
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::{Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState};
use outlast_gateway::mechanisms::path::Verdict;
use outlast_tcp::{Config, Endpoint, Event, profile};
use outlast_wire::{Packet, SeqNumber};
use std::collections::VecDeque;

pub(crate) const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
/// One way.
const DELAY: Duration = Duration::from_millis(20);
/// What each host's application sends.
const BYTES: u64 = 600_000;
/// It does not send it all at once, so that there are pauses.
const PORTION: u64 = 60_000;
const BETWEEN_PORTIONS: Duration = Duration::from_secs(3);

/// When a host got how many bytes in all, at each delivery.
pub(crate) type Deliveries = Vec<(Instant, u64)>;

pub(crate) struct Transfer {
    pub(crate) now: Instant,
    pub(crate) gateway: Gateway,
    /// The gateway sees what passes: it was started.
    pub(crate) is_seen: bool,
    near: Endpoint,
    far: Endpoint,
    is_up: bool,
    on_link: VecDeque<(Instant, Direction, Packet)>,
    next_portion: Option<Instant>,
    /// What each host's application is still to write, beyond the portions so far.
    unwritten: [u64; 2],
    /// What of its portions its host has had no room for yet.
    waiting: [u64; 2],
    /// By the near and by the far host.
    pub(crate) deliveries: [Deliveries; 2],
    pub(crate) is_failed: bool,
}

impl Transfer {
    pub(crate) fn new(config: GatewayConfig) -> Self {
        let mut gateway = Gateway::new(config);
        // So fast that the packets of nobody take no time on it.
        let rate = BitRate::from_bits_per_second(1 << 60);
        gateway.add_link(Instant::ZERO, LINK.interface, LinkConfig { rate });
        let mut config = Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
        config.profile = &profile::LINUX_6;
        let far = config.mirrored();
        Self {
            now: Instant::ZERO,
            gateway,
            is_seen: true,
            near: Endpoint::connect(Instant::ZERO, config),
            far: Endpoint::listen(far),
            is_up: true,
            on_link: VecDeque::new(),
            next_portion: Some(Instant::ZERO),
            unwritten: [BYTES; 2],
            waiting: [0; 2],
            deliveries: Default::default(),
            is_failed: false,
        }
    }

    /// The next numbers of the near and of the far host.
    pub(crate) fn numbers(&self) -> [SeqNumber; 2] {
        [&self.near, &self.far].map(|host| host.trace().snd_nxt)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.near.state().is_synchronized() && self.far.state().is_synchronized()
    }

    pub(crate) fn is_complete(&self) -> bool {
        let all = |deliveries: &Deliveries| deliveries.last().is_some_and(|last| last.1 == BYTES);
        self.deliveries.iter().all(all)
    }

    pub(crate) fn change_link(&mut self, state: LinkState) {
        self.is_up = state == LinkState::Up;
        let event = LinkEvent {
            link: LINK,
            state,
            indicator: Indicator::Carrier,
        };
        self.gateway.handle_link(self.now, event);
        if !self.is_up {
            for (_, direction, packet) in core::mem::take(&mut self.on_link) {
                if direction == ToLink && self.is_seen {
                    self.gateway
                        .handle_drop(self.now, LINK, &packet, DropCause::Outage);
                }
            }
        }
        self.drain();
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        self.drain();
        while let Some(at) = self.next_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.meet_deadlines();
            self.drain();
        }
        self.now = until;
    }

    fn next_at(&self) -> Option<Instant> {
        let hosts = [&self.near, &self.far].map(|host| host.poll_timeout().map(|(at, _)| at));
        let gateway = self.gateway.poll_timeout().map(|(at, _)| at);
        let link = self.on_link.front().map(|(at, ..)| *at);
        let others = [gateway, link, self.next_portion];
        hosts.into_iter().chain(others).flatten().min()
    }

    fn meet_deadlines(&mut self) {
        let now = self.now;
        for host in [&mut self.near, &mut self.far] {
            if host.poll_timeout().is_some_and(|(at, _)| at <= now) {
                host.handle_timeout(now);
            }
        }
        if self.gateway.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.gateway.handle_timeout(now);
        }
        if self.next_portion.is_some_and(|at| at <= now) && self.is_open() {
            self.write();
        } else if self.next_portion.is_some_and(|at| at <= now) {
            self.next_portion = Some(now + BETWEEN_PORTIONS);
        }
        while self.on_link.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, direction, packet)) = self.on_link.pop_front() else {
                break;
            };
            match direction {
                ToLink => self.far.handle_packet(now, &packet),
                FromLink if !self.is_seen => self.near.handle_packet(now, &packet),
                FromLink => {
                    let verdict = self.gateway.handle_packet(now, LINK, FromLink, &packet);
                    if verdict == Verdict::Pass {
                        self.near.handle_packet(now, &packet);
                    }
                }
            }
            self.drain();
        }
    }

    /// The next portion of each application.
    fn write(&mut self) {
        for (unwritten, waiting) in self.unwritten.iter_mut().zip(&mut self.waiting) {
            let portion = PORTION.min(*unwritten);
            *unwritten -= portion;
            *waiting += portion;
        }
        let is_over = self.unwritten == [0; 2];
        self.next_portion = (!is_over).then_some(self.now + BETWEEN_PORTIONS);
    }

    fn put_on_link(&mut self, direction: Direction, packet: Packet) {
        if self.is_up {
            self.on_link
                .push_back((self.now + DELAY, direction, packet));
        } else if direction == ToLink && self.is_seen {
            // What the gateway passes in an outage is lost.
            self.gateway
                .handle_drop(self.now, LINK, &packet, DropCause::Outage);
        }
    }

    /// Everything that is to happen now.
    fn drain(&mut self) {
        loop {
            let mut is_quiet = true;
            let hosts = [&mut self.near, &mut self.far];
            for (host, waiting) in hosts.into_iter().zip(&mut self.waiting) {
                if *waiting > 0 {
                    // The rest is written once there is room, as an application does that waits for it.
                    *waiting -= host.send(self.now, *waiting);
                }
            }
            while let Some(packet) = self.near.poll_transmit(self.now) {
                is_quiet = false;
                let verdict = match self.is_seen {
                    true => self.gateway.handle_packet(self.now, LINK, ToLink, &packet),
                    false => Verdict::Pass,
                };
                if verdict == Verdict::Pass {
                    self.put_on_link(ToLink, packet);
                }
            }
            while let Some(packet) = self.far.poll_transmit(self.now) {
                is_quiet = false;
                self.put_on_link(FromLink, packet);
            }
            while let Some(transmit) = self.gateway.poll_transmit() {
                is_quiet = false;
                match transmit.direction {
                    ToLink => self.put_on_link(ToLink, transmit.packet),
                    FromLink => self.near.handle_packet(self.now, &transmit.packet),
                }
            }
            while self.gateway.poll_event().is_some() {}
            let hosts = [&mut self.near, &mut self.far];
            for (host, deliveries) in hosts.into_iter().zip(&mut self.deliveries) {
                while let Some(event) = host.poll_event() {
                    self.is_failed |= matches!(event, Event::Failed(_));
                }
                if host.recv(self.now, u64::MAX) > 0 {
                    deliveries.push((self.now, host.received()));
                }
            }
            if is_quiet {
                break;
            }
        }
    }
}
