//! How a home agent answers registration requests (RFC 5944, section 3.8.2 and 3.8.3).

use super::bindings::Binding;
use super::{HomeAgent, HomeEvent, HomeLimits};
use crate::ReverseTunnels;
use crate::budget::{Answers, Asker, Budget};
use crate::clock::{is_after, is_near};
use crate::datagram::{Datagram, agent_socket, is_unicast, message};
use crate::security::SecurityAssociation;
use crate::transmit::{Arp, Arrival, Transmit, Via};
use crate::tunnel::{Outside, Tunnel};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    Extension, Extensions, Lifetime, RegistrationReply, RegistrationRequest, ReplyCode,
    RequestFlags, SecuredPair, UdpTunnelReply, UdpTunnelRequest,
};

const IPV4_IN_IP: u8 = 4;

/// Reports of refusals: so many at once after a rest, then one in each [`BETWEEN_REPORTS`].
const REPORTS: u32 = 20;
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

/// Bounds of refusals and of their reports, and each mobile node's latest identification.
#[derive(Debug)]
pub(super) struct Refusals {
    answers: Answers,
    reports: Budget,
    latest: BTreeMap<Ipv4Addr, u64>,
}

impl Refusals {
    pub(super) fn new(now: Instant, limits: HomeLimits, seed: u64) -> Self {
        let (in_all, per_source) = (limits.refusals_per_second, limits.refusals_per_source);
        Self {
            answers: Answers::new(now, in_all, per_source, seed),
            reports: Budget::new(now, REPORTS, BETWEEN_REPORTS),
            latest: BTreeMap::new(),
        }
    }
}

/// A request that a home agent has read.
struct Asked<'a> {
    request: RegistrationRequest,
    extensions: Extensions<'a>,
    datagram: &'a Datagram<'a>,
    arrival: Arrival,
}

/// Fate of a request that is not granted.
#[derive(Clone, Copy, Debug)]
enum Denied {
    /// It is discarded without an answer (section 3.8.2.1); the code says why.
    Silently(ReplyCode),
    /// Its sender is answered with a code. Every answer is signed (section 3.8.3.3).
    Openly(ReplyCode),
}

impl Denied {
    const fn code(self) -> ReplyCode {
        match self {
            Self::Silently(code) | Self::Openly(code) => code,
        }
    }
}

/// The proof that a foreign agent has relayed a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Authenticity {
    /// The one authenticator is right.
    Authentic,
    /// Nothing is to be proved.
    Unclaimed,
    /// The authenticator is missing or wrong, or there are several.
    Wrong,
    /// There is an authenticator, and no association (section 3.8.2.1, case d).
    Unknown,
}

/// Outer headers of a tunnel, and the answer to the question for one in UDP.
type OuterHeaders = (Outside, Option<UdpAnswer>);

/// The answer to a question for a tunnel in UDP.
#[derive(Clone, Copy, Debug)]
struct UdpAnswer {
    reply: UdpTunnelReply,
    /// The foreign agent has asked, not the mobile node.
    is_for_foreign_agent: bool,
}

/// What a request is granted.
struct Granted {
    code: ReplyCode,
    lifetime: Lifetime,
    outside: Outside,
    udp_answer: Option<UdpAnswer>,
}

impl HomeAgent {
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram<'_>,
    ) {
        let parsed = RegistrationRequest::parse(datagram.payload);
        // An answer to a group would have many receivers.
        let (Ok((request, extensions)), true) = (parsed, is_unicast(*datagram.source.ip())) else {
            self.counters.malformed += 1;
            return;
        };
        let asked = Asked {
            request,
            extensions,
            datagram,
            arrival,
        };
        match self.consider(now, &asked) {
            Ok(granted) => self.accept(now, &asked, &granted),
            Err(denied) => self.refuse(now, &asked, denied),
        }
    }

    fn consider(&self, now: Instant, asked: &Asked<'_>) -> Result<Granted, Denied> {
        self.authenticate(asked)?;
        let request = &asked.request;
        let refused = |code| Err(Denied::Openly(code));
        let clock = self.config.clock.at(now);
        let latest = self.refusals.latest.get(&request.home_address);
        let is_new = latest.is_none_or(|latest| is_after(request.identification, *latest));
        if !is_new || !is_near(request.identification, clock, self.config.replay_tolerance) {
            return refused(ReplyCode::HOME_IDENTIFICATION);
        }
        if self.foreign_authenticity(asked) == Authenticity::Wrong {
            return refused(ReplyCode::HOME_FOREIGN_AUTHENTICATION);
        }
        let flags = request.flags;
        if flags.has_any(RequestFlags::RESERVED) {
            return refused(ReplyCode::HOME_POORLY_FORMED);
        }
        if request.home_agent != self.config.address {
            return refused(ReplyCode::HOME_UNKNOWN_AGENT);
        }
        let is_home = request.care_of_address == request.home_address;
        if is_home && !request.is_deregistration() || !is_unicast(request.care_of_address) {
            return refused(ReplyCode::HOME_POORLY_FORMED);
        }
        match (
            self.config.reverse_tunnels,
            flags.has(RequestFlags::REVERSE_TUNNEL),
        ) {
            (ReverseTunnels::Refused, true) => {
                return refused(ReplyCode::HOME_REVERSE_TUNNEL);
            }
            (ReverseTunnels::Demanded, false) if !request.is_deregistration() => {
                return refused(ReplyCode::HOME_REVERSE_TUNNEL_MANDATORY);
            }
            _ => {}
        }
        let (outside, udp_answer) = self.outside(asked).map_err(Denied::Openly)?;
        let keeps_one = self.bindings.most() == 1;
        let asks_for_more = flags.has(RequestFlags::SIMULTANEOUS_BINDINGS);
        Ok(Granted {
            code: match asks_for_more && keeps_one {
                true => ReplyCode::ACCEPTED_WITHOUT_SIMULTANEOUS_BINDINGS,
                false => ReplyCode::ACCEPTED,
            },
            lifetime: request.lifetime.min(self.config.longest_lifetime),
            outside,
            udp_answer,
        })
    }

    /// Checks who has sent a request (section 3.8.2.1, cases a and d).
    fn authenticate(&self, asked: &Asked<'_>) -> Result<(), Denied> {
        let unauthentic = ReplyCode::HOME_MOBILE_AUTHENTICATION;
        let mut extensions = asked.extensions.authentications(SecuredPair::MobileHome);
        let Some(associations) = self.config.mobiles.get(&asked.request.home_address) else {
            return Err(Denied::Silently(unauthentic));
        };
        if extensions.next().is_none() {
            return Err(Denied::Silently(unauthentic));
        }
        let foreign = self.foreign_authenticity(asked);
        if foreign == Authenticity::Unknown {
            return Err(Denied::Silently(ReplyCode::HOME_FOREIGN_AUTHENTICATION));
        }
        // All that are there have to be right.
        let mut extensions = asked.extensions.authentications(SecuredPair::MobileHome);
        let is_right = extensions.all(|extension| {
            let named = associations.iter().find(|one| one.spi() == extension.spi);
            named.is_some_and(|one| one.verify(&extension))
        });
        match (is_right, foreign) {
            (true, _) => Ok(()),
            // Neither of the two has proved anything.
            (false, Authenticity::Wrong) => Err(Denied::Silently(unauthentic)),
            (false, _) => Err(Denied::Openly(unauthentic)),
        }
    }

    /// Checks the foreign agent's authenticator. A deregistration needs none (section 3.8.1).
    fn foreign_authenticity(&self, asked: &Asked<'_>) -> Authenticity {
        let foreign = self.config.foreign_agents.get(asked.datagram.source.ip());
        let mut extensions = asked.extensions.authentications(SecuredPair::ForeignHome);
        let Some(foreign) = foreign else {
            return match extensions.next() {
                Some(_) => Authenticity::Unknown,
                None => Authenticity::Unclaimed,
            };
        };
        if asked.request.is_deregistration() {
            return Authenticity::Unclaimed;
        }
        let only = asked
            .extensions
            .only_authentication(SecuredPair::ForeignHome);
        match only.is_some_and(|one| foreign.verify(&one)) {
            true => Authenticity::Authentic,
            false => Authenticity::Wrong,
        }
    }

    /// The association by which an answer is signed: the one that the request names, or else the oldest,
    /// which the mobile node is most likely to have (section 3.8.2.1).
    fn signing_association(&self, asked: &Asked<'_>) -> Option<&SecurityAssociation> {
        let associations = self.config.mobiles.get(&asked.request.home_address)?;
        let mut extensions = asked.extensions.authentications(SecuredPair::MobileHome);
        let spi = extensions.next()?.spi;
        let named = associations.iter().find(|one| one.spi() == spi);
        named.or_else(|| associations.first())
    }

    /// Chooses the tunnel's outer headers (RFC 3519, section 4.6): UDP where an address translator has
    /// changed the request's source, or where the mobile node insists.
    fn outside(&self, asked: &Asked<'_>) -> Result<OuterHeaders, ReplyCode> {
        let request = &asked.request;
        let plain = Outside::Ip(request.care_of_address);
        let other_encapsulation = RequestFlags::MINIMAL_ENCAPSULATION | RequestFlags::GRE;
        let is_plain = !request.flags.has_any(other_encapsulation);
        let Some(wish) = UdpWish::of(asked) else {
            return match is_plain {
                true => Ok((plain, None)),
                false => Err(ReplyCode::HOME_ENCAPSULATION),
            };
        };
        let answer = |reply| UdpAnswer {
            reply,
            is_for_foreign_agent: wish.is_foreign_agents,
        };
        let is_co_located = request.flags.has(RequestFlags::DECAPSULATES);
        let is_deregistration = request.is_deregistration();
        // Section 4.6.1: what decapsulates has to be what asks.
        if wish.is_foreign_agents == is_co_located && !is_deregistration {
            return Err(ReplyCode::HOME_POORLY_FORMED);
        }
        let is_translated = *asked.datagram.source.ip() != request.care_of_address;
        let UdpTunnelRequest {
            is_forced,
            is_via_required_agent,
            encapsulation,
        } = wish.request;
        if is_deregistration || !(is_translated || is_forced) {
            let no = UdpTunnelReply {
                code: UdpTunnelReply::NO,
                is_forced: false,
                keep_alive_s: 0,
            };
            return match is_plain {
                true => Ok((plain, Some(answer(no)))),
                false => Err(ReplyCode::HOME_ENCAPSULATION),
            };
        }
        let offer = self.config.udp_tunnels;
        let offer = offer.filter(|offer| is_translated || offer.accepts_forced);
        // Through a foreign agent that demands it, the tunnel has another source than the request.
        let offer = offer.filter(|_| !is_via_required_agent && wish.is_authentic);
        let Some(offer) = offer else {
            return Err(ReplyCode::HOME_PROHIBITED);
        };
        match encapsulation {
            IPV4_IN_IP => {}
            // Section 3.1.4: the flags say it.
            0 if is_plain => {}
            _ => return Err(ReplyCode::HOME_UDP_ENCAPSULATION),
        }
        let yes = UdpTunnelReply {
            code: UdpTunnelReply::YES,
            is_forced: !is_translated,
            keep_alive_s: offer.keep_alive_s,
        };
        Ok((Outside::Udp(asked.datagram.source), Some(answer(yes))))
    }

    fn accept(&mut self, now: Instant, asked: &Asked<'_>, granted: &Granted) {
        let request = asked.request;
        if !request.is_deregistration() && !self.bind(now, asked, granted) {
            let denied = Denied::Openly(ReplyCode::HOME_TOO_MANY_BINDINGS);
            return self.refuse(now, asked, denied);
        }
        self.counters.accepted += 1;
        let latest = &mut self.refusals.latest;
        latest.insert(request.home_address, request.identification);
        if request.is_deregistration() {
            self.unbind(now, asked);
        }
        let reply = RegistrationReply {
            code: granted.code,
            lifetime: granted.lifetime,
            home_address: request.home_address,
            home_agent: self.config.address,
            identification: request.identification,
        };
        if let Some(message) = self.signed(asked, reply, granted.udp_answer) {
            self.answer(asked, &message);
        }
    }

    /// Makes a binding, and intercepts what is for the mobile node. Returns false if it has too many.
    fn bind(&mut self, now: Instant, asked: &Asked<'_>, granted: &Granted) -> bool {
        let request = asked.request;
        let (home_address, care_of_address) = (request.home_address, request.care_of_address);
        let was_away = self.bindings.has(home_address);
        let known = self.bindings.of(home_address);
        let mut known = known.filter(|one| one.tunnel.outside() == granted.outside);
        let old = known
            .find(|one| one.care_of_address == care_of_address)
            .map(|one| one.tunnel.clone());
        drop(known);
        let source = agent_socket(self.config.address);
        let has_moved = old.is_none();
        // A renewal goes on with what is known of the tunnel's MTU.
        let secret = self.secrets.next_u64();
        let tunnel = old.unwrap_or_else(|| Tunnel::new(now, source, granted.outside, secret));
        let binding = Binding {
            care_of_address,
            tunnel,
            is_reverse: request.flags.has(RequestFlags::REVERSE_TUNNEL),
            expires_at: granted.lifetime.duration().map(|lifetime| now + lifetime),
        };
        let keeps_others = request.flags.has(RequestFlags::SIMULTANEOUS_BINDINGS)
            && granted.code == ReplyCode::ACCEPTED;
        if self
            .bindings
            .add(home_address, binding, keeps_others)
            .is_err()
        {
            return false;
        }
        if !was_away {
            self.announce(now, home_address, None);
            let link = self.config.link;
            let address = home_address;
            let proxy = Arp::StartProxy { link, address };
            self.outbox.push_back(Transmit::Arp(proxy));
        }
        self.events.push_back(HomeEvent::Bound {
            home_address,
            care_of_address,
            has_moved,
        });
        true
    }

    /// Ends one binding, or all if the mobile node is at home.
    fn unbind(&mut self, now: Instant, asked: &Asked<'_>) {
        let address = asked.request.home_address;
        let is_home = asked.request.care_of_address == address;
        let was_away = self.bindings.has(address);
        let mut bindings = self.bindings.of(address);
        let was_there = bindings.any(|one| one.care_of_address == asked.request.care_of_address);
        drop(bindings);
        let only = (!is_home).then_some(asked.request.care_of_address);
        self.bindings.remove(address, only);
        if was_away && !self.bindings.has(address) {
            let link = self.config.link;
            self.stop_announcing(address);
            let proxy = Arp::StopProxy { link, address };
            self.outbox.push_back(Transmit::Arp(proxy));
        }
        if is_home {
            // Nobody on the home link is to send to this agent any more (section 4.6).
            if was_away {
                self.announce(now, address, Some(asked.arrival.from));
            }
            let home_address = address;
            self.events.push_back(HomeEvent::Home { home_address });
        } else if was_there {
            self.events.push_back(HomeEvent::Deregistered {
                home_address: address,
                care_of_address: asked.request.care_of_address,
            });
        }
    }

    fn refuse(&mut self, now: Instant, asked: &Asked<'_>, denied: Denied) {
        let request = asked.request;
        let code = denied.code();
        self.counters.refused += 1;
        match code {
            ReplyCode::HOME_IDENTIFICATION => self.counters.refused_for_identification += 1,
            ReplyCode::HOME_MOBILE_AUTHENTICATION => self.counters.refused_for_authentication += 1,
            _ => {}
        }
        if self.refusals.reports.take(now).is_ok() {
            self.events.push_back(HomeEvent::Refused {
                home_address: request.home_address,
                code,
            });
        }
        match self.refusal(now, asked, denied) {
            Some(message) => self.answer(asked, &message),
            None => self.counters.unanswered += 1,
        }
    }

    /// The reply that refuses a request, if it is to be sent.
    fn refusal(&mut self, now: Instant, asked: &Asked<'_>, denied: Denied) -> Option<Vec<u8>> {
        let Denied::Openly(code) = denied else {
            return None;
        };
        let request = asked.request;
        let asker = Asker::v4(*asked.datagram.source.ip());
        if !self.refusals.answers.take(now, asker) {
            return None;
        }
        let low = request.identification & 0xffff_ffff;
        let high = match code {
            ReplyCode::HOME_IDENTIFICATION => self.config.clock.at(now) & !0xffff_ffff,
            _ => request.identification & !0xffff_ffff,
        };
        let reply = RegistrationReply {
            code,
            lifetime: Lifetime(0),
            home_address: request.home_address,
            home_agent: self.config.address,
            identification: high | low,
        };
        let message = self.signed(asked, reply, None)?;
        // Anybody can send a forged or a recorded request: the answer is no longer than that.
        let is_of_anybody = matches!(
            code,
            ReplyCode::HOME_MOBILE_AUTHENTICATION | ReplyCode::HOME_IDENTIFICATION
        );
        (!is_of_anybody || message.len() <= asked.datagram.payload.len()).then_some(message)
    }

    /// A reply with its authenticators, in the order of section 3.8.3.3; `None` to a stranger.
    fn signed(
        &self,
        asked: &Asked<'_>,
        reply: RegistrationReply,
        udp_answer: Option<UdpAnswer>,
    ) -> Option<Vec<u8>> {
        let association = self.signing_association(asked)?;
        let mut message = reply.emit();
        let of = |is_for_foreign_agent| {
            udp_answer
                .filter(move |one| one.is_for_foreign_agent == is_for_foreign_agent)
                .map(|one| one.reply)
        };
        if let Some(udp_reply) = of(false) {
            message = message.udp_tunnel_reply(udp_reply);
        }
        message = association.sign(SecuredPair::MobileHome, message);
        if let Some(udp_reply) = of(true) {
            message = message.udp_tunnel_reply(udp_reply);
        }
        let foreign = self.config.foreign_agents.get(asked.datagram.source.ip());
        if let Some(foreign) = foreign.filter(|_| !asked.request.is_deregistration()) {
            message = foreign.sign(SecuredPair::ForeignHome, message);
        }
        Some(message.finish())
    }

    /// Sends a reply to where the request came from.
    fn answer(&mut self, asked: &Asked<'_>, reply: &[u8]) {
        let source = asked.datagram.source;
        let own = agent_socket(self.config.address);
        let packet = message(own, source, None, reply);
        // To a mobile node at home past its binding, even when that stays (section 3.8.3.1).
        let via = match *source.ip() == asked.request.home_address {
            true => Via::Neighbour(asked.arrival.link, asked.arrival.from),
            false => Via::Route,
        };
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}

/// A question for a tunnel in UDP (RFC 3519, section 3.1).
#[derive(Clone, Copy, Debug)]
struct UdpWish {
    request: UdpTunnelRequest,
    /// It stands behind the mobile node's authentication.
    is_foreign_agents: bool,
    /// Its sender has authenticated it.
    is_authentic: bool,
}

impl UdpWish {
    /// The question in a request whose authenticators are right. A foreign agent's counts before the mobile
    /// node's: both together contradict each other.
    fn of(asked: &Asked<'_>) -> Option<Self> {
        let wish = |extension| match extension {
            Extension::UdpTunnelRequest(request) => Some(request),
            _ => None,
        };
        let extensions = asked.extensions;
        let mut behind = extensions.behind_home_authentication();
        if let Some(request) = behind.find_map(wish) {
            let mut signatures = behind.authentications(SecuredPair::ForeignHome);
            return Some(Self {
                request,
                is_foreign_agents: true,
                is_authentic: signatures.next().is_some(),
            });
        }
        let request = extensions.covered_by_home_authentication().find_map(wish)?;
        Some(Self {
            request,
            is_foreign_agents: false,
            is_authentic: true,
        })
    }
}
