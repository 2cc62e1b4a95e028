//! Registration requests of a mobile node, their repetition, and replies (RFC 5944, section 3.6).

use super::{Attachment, MobileNode, NodeEvent, NodeTimeout};
use crate::budget::Budget;
use crate::clock::{NtpClock, Stamps};
use crate::datagram::{FROM_THIS_LINK, agent_socket, message};
use crate::transmit::{Verdict, Via};
use crate::tunnel::{Outside, Tunnel};
use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    Extension, Extensions, Lifetime, RegistrationReply, RegistrationRequest, ReplyCode,
    RequestFlags, SecuredPair, UdpTunnelRequest,
};

/// No request is repeated sooner (section 3.6.3).
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
/// By how much of itself a timeout may be longer.
const SPREAD: f64 = 0.25;
/// What the first timeout adds to two round trips.
const MARGIN: Duration = Duration::from_millis(100);
/// One request a second on average; after a rest so many may follow each other.
const BURST: u32 = 3;
const BETWEEN_REQUESTS: Duration = Duration::from_secs(1);
const IPV4_IN_IP: u8 = 4;
/// Between two signs of life, where the home agent leaves it open (RFC 3519, sections 3.2 and 4.9).
const KEEP_ALIVE: Duration = Duration::from_secs(110);
/// The shortest time between two (RFC 3519, section 4.10).
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What a mobile node has asked its home agent for, and got.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    stage: Stage,
    /// The mobile node's place when its last registration was completed.
    last_place: Attachment,
    /// When that comes to its end.
    until: Option<Instant>,
    stamps: Stamps,
    round_trip: Duration,
    /// A foreign agent said that it grants no more.
    longest: Lifetime,
    budget: Budget,
    alive: Option<KeepAlive>,
    stream: Stream,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// There is nowhere to register.
    Idle,
    /// A request is to be sent.
    Waiting {
        since: Instant,
        at: Instant,
        timeout: Duration,
    },
    /// A request is on its way.
    Requesting {
        since: Instant,
        sent_at: Instant,
        identification: u64,
        lifetime: Lifetime,
        timeout: Duration,
    },
    /// The home agent has accepted.
    Complete { renew_at: Option<Instant> },
}

/// Signs of life in a tunnel in UDP.
#[derive(Clone, Copy, Debug)]
struct KeepAlive {
    every: Duration,
    next_at: Instant,
    sequence: u16,
}

impl Registration {
    pub(super) fn new(now: Instant, clock: NtpClock, seed: u64) -> Self {
        Self {
            stage: Stage::Idle,
            last_place: Attachment::Nowhere,
            until: None,
            stamps: Stamps::new(clock),
            round_trip: Duration::ZERO,
            longest: Lifetime::INFINITE,
            budget: Budget::new(now, BURST, BETWEEN_REQUESTS),
            alive: None,
            stream: Stream::new(seed, "registration requests"),
        }
    }

    /// The mobile node has come to another place, and registers there.
    pub(super) fn begin(&mut self, now: Instant) {
        self.longest = Lifetime::INFINITE;
        self.alive = None;
        self.renew(now);
    }

    /// Registers again at the place where the mobile node is.
    pub(super) fn renew(&mut self, now: Instant) {
        let timeout = self.first_timeout();
        self.stage = Stage::Waiting {
            since: now,
            at: now,
            timeout,
        };
    }

    pub(super) fn stop(&mut self) {
        self.stage = Stage::Idle;
        self.alive = None;
    }

    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Complete { .. })
    }

    /// Whether the registration has just come to its end.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            self.until = None;
            self.last_place = Attachment::Nowhere;
        }
        is_over
    }

    pub(super) fn renewal_due(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Complete { renew_at: Some(at) } if at <= now)
    }

    pub(super) fn request_due(&self, now: Instant) -> bool {
        match self.stage {
            Stage::Waiting { at, .. } => at <= now,
            Stage::Requesting {
                sent_at, timeout, ..
            } => sent_at + timeout <= now,
            Stage::Idle | Stage::Complete { .. } => false,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<(Instant, NodeTimeout)> {
        let stage = match self.stage {
            Stage::Idle | Stage::Complete { renew_at: None } => None,
            Stage::Waiting { at, .. } => Some((at, NodeTimeout::Request)),
            Stage::Requesting {
                sent_at, timeout, ..
            } => Some((sent_at + timeout, NodeTimeout::Request)),
            Stage::Complete { renew_at: Some(at) } => Some((at, NodeTimeout::Renewal)),
        };
        let expiry = self.until.map(|at| (at, NodeTimeout::Expiry));
        let alive = self.alive.map(|one| (one.next_at, NodeTimeout::KeepAlive));
        [stage, expiry, alive].into_iter().flatten().min()
    }

    /// The number of the sign of life that is due.
    pub(super) fn keep_alive(&mut self, now: Instant) -> Option<u16> {
        let alive = self.alive.as_mut().filter(|one| one.next_at <= now)?;
        alive.next_at = now + alive.every;
        alive.sequence = alive.sequence.wrapping_add(1);
        Some(alive.sequence)
    }

    /// Spread, and so are those that double it: thousands that have lost their requests together do
    /// not repeat them together.
    fn first_timeout(&mut self) -> Duration {
        let shortest = (self.round_trip * 2 + MARGIN).max(SHORTEST_TIMEOUT);
        shortest.mul_f64(1.0 + SPREAD * self.stream.unit())
    }

    /// Asks again at once, or after `wait`.
    fn again(&mut self, now: Instant, wait: Duration) {
        let (since, timeout) = match self.stage {
            Stage::Requesting { since, timeout, .. } | Stage::Waiting { since, timeout, .. } => {
                (since, timeout)
            }
            Stage::Idle | Stage::Complete { .. } => (now, self.first_timeout()),
        };
        self.stage = Stage::Waiting {
            since,
            at: now + wait,
            timeout,
        };
    }
}

impl MobileNode {
    /// Sends the request that is due, or again.
    pub(super) fn request(&mut self, now: Instant) {
        let lifetime = self.wanted_lifetime();
        let registration = &mut self.registration;
        let (since, timeout, is_repeated) = match registration.stage {
            Stage::Idle | Stage::Complete { .. } => return,
            Stage::Waiting { since, timeout, .. } => (since, timeout, false),
            Stage::Requesting { since, timeout, .. } => {
                // At most the lifetime that is asked for (section 3.6.3).
                let longest = self.config.lifetime.duration();
                let longest = longest.unwrap_or(Duration::MAX).max(SHORTEST_TIMEOUT);
                (since, (timeout * 2).min(longest), true)
            }
        };
        if let Err(at) = registration.budget.take(now) {
            self.counters.put_off += 1;
            registration.stage = Stage::Waiting { since, at, timeout };
            return;
        }
        let identification = registration.stamps.next(now);
        registration.stage = Stage::Requesting {
            since,
            sent_at: now,
            identification,
            lifetime,
            timeout,
        };
        self.counters.requests += 1;
        self.counters.repeated += u64::from(is_repeated);
        self.send_request(identification, lifetime);
    }

    /// Ends the registration at the present care-of address, if one may hold there.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if self.registration.until.is_some() || !matches!(self.registration.stage, Stage::Idle) {
            let identification = self.registration.stamps.next(now);
            self.counters.requests += 1;
            self.send_request(identification, Lifetime::DEREGISTRATION);
        }
        self.registration.until = None;
        self.registration.last_place = Attachment::Nowhere;
    }

    fn wanted_lifetime(&self) -> Lifetime {
        match self.attachment {
            Attachment::Home { .. } => Lifetime::DEREGISTRATION,
            Attachment::Foreign { .. } => {
                let agent = self.surroundings.current();
                let offered = agent.map_or(Lifetime::INFINITE, |one| one.registration_lifetime);
                let longest = self.registration.longest;
                self.config.lifetime.min(offered).min(longest)
            }
            Attachment::CoLocated(_) | Attachment::Nowhere => self.config.lifetime,
        }
    }

    fn send_request(&mut self, identification: u64, lifetime: Lifetime) {
        let (home_address, home_agent) = (self.config.home_address, self.config.home_agent);
        let mut flags = RequestFlags::default();
        if self.config.reverse_tunnel {
            flags = flags | RequestFlags::REVERSE_TUNNEL;
        }
        if self.config.simultaneous_bindings {
            flags = flags | RequestFlags::SIMULTANEOUS_BINDINGS;
        }
        let (source, to, care_of_address, via) = match self.attachment {
            Attachment::Nowhere => return,
            Attachment::Home { link } => {
                flags = RequestFlags::default();
                // Its advertisement says where it is: no ARP is needed.
                let agent = self.surroundings.current();
                let via = agent.map_or(Via::Link(link), |agent| {
                    Via::Neighbour(agent.link, agent.node)
                });
                (home_address, home_agent, home_address, via)
            }
            Attachment::Foreign {
                agent,
                care_of_address,
            } => {
                let Some(current) = self.surroundings.current() else {
                    return;
                };
                let via = Via::Neighbour(current.link, current.node);
                (home_address, agent, care_of_address, via)
            }
            Attachment::CoLocated(at) => {
                flags = flags | RequestFlags::DECAPSULATES;
                (at.address, home_agent, at.address, Via::Route)
            }
        };
        let request = RegistrationRequest {
            flags,
            lifetime,
            home_address,
            home_agent,
            care_of_address,
            identification,
        };
        let payload = self.sign(&request);
        let ttl = flags
            .has(RequestFlags::REVERSE_TUNNEL)
            .then_some(FROM_THIS_LINK);
        let packet = message(agent_socket(source), agent_socket(to), ttl, &payload);
        self.send(packet, via);
    }

    fn sign(&self, request: &RegistrationRequest) -> alloc::vec::Vec<u8> {
        let mut message = request.emit();
        let is_co_located = matches!(self.attachment, Attachment::CoLocated(_));
        if self.config.udp_tunnel && is_co_located {
            message = message.udp_tunnel_request(UdpTunnelRequest {
                is_forced: false,
                is_via_required_agent: false,
                encapsulation: IPV4_IN_IP,
            });
        }
        message = self.config.home.sign(SecuredPair::MobileHome, message);
        let is_foreign = matches!(self.attachment, Attachment::Foreign { .. });
        if let Some(foreign) = self.config.foreign.as_ref().filter(|_| is_foreign) {
            message = foreign.sign(SecuredPair::MobileForeign, message);
        }
        message.finish()
    }

    pub(super) fn handle_reply(&mut self, now: Instant, payload: &[u8]) -> Verdict {
        let Ok((reply, extensions)) = RegistrationReply::parse(payload) else {
            return Verdict::Pass;
        };
        let Stage::Requesting {
            identification,
            since,
            sent_at,
            lifetime,
            ..
        } = self.registration.stage
        else {
            self.counters.ignored += 1;
            return Verdict::Taken;
        };
        // The low halves.
        let is_answer = reply.identification as u32 == identification as u32
            && reply.home_address == self.config.home_address;
        if !is_answer || !self.is_authentic(&reply, extensions) {
            self.counters.ignored += 1;
            return Verdict::Taken;
        }
        self.registration.round_trip = now.since(sent_at);
        if reply.code.is_accepted() && (reply.lifetime > Lifetime(0) || lifetime == Lifetime(0)) {
            let granted = reply.lifetime.min(lifetime);
            self.complete(now, since, sent_at, granted, extensions);
        } else {
            self.counters.refused += 1;
            let at = self.attachment;
            let code = reply.code;
            self.events.push_back(NodeEvent::Refused { at, code });
            self.handle_refusal(now, &reply);
        }
        Verdict::Taken
    }

    /// Whether a reply comes from who it says: the home agent signs its own, and a foreign agent's are
    /// signed where that was agreed.
    fn is_authentic(&self, reply: &RegistrationReply, extensions: Extensions<'_>) -> bool {
        let is_foreign = matches!(self.attachment, Attachment::Foreign { .. });
        if let Some(foreign) = self.config.foreign.as_ref().filter(|_| is_foreign)
            && !extensions
                .only_authentication(SecuredPair::MobileForeign)
                .is_some_and(|one| foreign.verify(&one))
        {
            return false;
        }
        match reply.code.is_from_foreign_agent() {
            true => is_foreign,
            false => {
                let all = extensions.authentications(SecuredPair::MobileHome);
                self.config.home.verify_all(all)
            }
        }
    }

    fn complete(
        &mut self,
        now: Instant,
        since: Instant,
        sent_at: Instant,
        granted: Lifetime,
        extensions: Extensions<'_>,
    ) {
        self.counters.accepted += 1;
        let at = self.attachment;
        let registration = &mut self.registration;
        let has_moved = registration.last_place != at;
        registration.last_place = at;
        // Granted times count from when the request was sent (section 3.6.2.2).
        let lifetime = granted.duration().filter(|_| granted != Lifetime(0));
        registration.until = lifetime.map(|lifetime| sent_at + lifetime);
        registration.stage = Stage::Complete {
            renew_at: lifetime.map(|lifetime| sent_at + lifetime * 2 / 3),
        };
        if let Attachment::CoLocated(own) = at {
            self.set_up_tunnel(now, own.address, extensions);
        }
        let took = now.since(since);
        self.events.push_back(NodeEvent::Registered {
            at,
            has_moved,
            took,
        });
    }

    /// The tunnel to the home agent: in UDP if it says so.
    fn set_up_tunnel(&mut self, now: Instant, own: Ipv4Addr, extensions: Extensions<'_>) {
        let home_agent = self.config.home_agent;
        let mut signed = extensions.covered_by_home_authentication();
        let yes = signed.find_map(|extension| match extension {
            Extension::UdpTunnelReply(reply) if reply.is_assent() => Some(reply),
            _ => None,
        });
        let outside = match yes {
            Some(_) => Outside::Udp(agent_socket(home_agent)),
            None => Outside::Ip(home_agent),
        };
        if self.tunnel.as_ref().map(Tunnel::outside) != Some(outside) {
            let secret = self.secrets.next_u64();
            self.tunnel = Some(Tunnel::new(now, agent_socket(own), outside, secret));
        }
        let every = yes.map(|reply| match reply.keep_alive_s {
            0 => KEEP_ALIVE,
            seconds => Duration::from_secs(seconds.into()).max(SHORTEST_KEEP_ALIVE),
        });
        self.registration.alive = every.map(|every| KeepAlive {
            every,
            next_at: now + every,
            sequence: 0,
        });
    }

    fn handle_refusal(&mut self, now: Instant, reply: &RegistrationReply) {
        match reply.code {
            ReplyCode::HOME_IDENTIFICATION => {
                self.counters.resynchronised += 1;
                let seconds = reply.identification >> 32;
                self.registration.stamps.resynchronise(now, seconds);
                self.registration.again(now, Duration::ZERO);
            }
            ReplyCode::FOREIGN_LIFETIME if reply.lifetime > Lifetime(0) => {
                self.registration.longest = reply.lifetime;
                self.registration.again(now, Duration::ZERO);
            }
            code if code.is_from_foreign_agent() => {
                let refusing = self.surroundings.current();
                let other = self.surroundings.best(now, refusing.as_ref());
                match other {
                    Some(agent) => self.attach_to(now, agent),
                    None => self.ask_later(now),
                }
            }
            _ => self.ask_later(now),
        }
        if self.registration.request_due(now) {
            self.request(now);
        }
    }

    /// A refusal that may not last: the next request comes when an unanswered one would be repeated,
    /// and the one after it later still.
    fn ask_later(&mut self, now: Instant) {
        if let Stage::Requesting { timeout, .. } = &mut self.registration.stage {
            let wait = *timeout;
            let longest = self.config.lifetime.duration();
            *timeout = (wait * 2).min(longest.unwrap_or(Duration::MAX).max(SHORTEST_TIMEOUT));
            self.registration.again(now, wait);
        }
    }
}
