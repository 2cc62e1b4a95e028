//! How a home agent answers registration requests (RFC 5944, section 3.8.2 and 3.8.3).

use super::bindings::Binding;
use super::{HomeAgent, HomeEvent};
use crate::ReverseTunnels;
use crate::clock::{is_after, is_near};
use crate::datagram::{Datagram, agent_socket, is_unicast, message};
use crate::security::SecurityAssociation;
use crate::transmit::{Arp, Arrival, Transmit, Via};
use crate::tunnel::{Outside, Tunnel};
use alloc::collections::BTreeMap;
use core::net::Ipv4Addr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    Extension, Extensions, Lifetime, MessageBuilder, RegistrationReply, RegistrationRequest,
    ReplyCode, RequestFlags, SecuredPair, UdpTunnelReply, UdpTunnelRequest,
};

const IPV4_IN_IP: u8 = 4;

/// How many refusals may be sent to whoever was not authenticated, and each mobile node's latest
/// identification.
#[derive(Debug)]
pub(super) struct Refusals {
    per_second: u32,
    left: u32,
    since: Instant,
    latest: BTreeMap<Ipv4Addr, u64>,
}

impl Refusals {
    pub(super) const fn new(per_second: u32) -> Self {
        Self {
            per_second,
            left: per_second,
            since: Instant::ZERO,
            latest: BTreeMap::new(),
        }
    }

    /// Whether a refusal may be sent now.
    fn allow(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.left = self.per_second;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

/// A request that a home agent has read.
struct Asked<'a> {
    request: RegistrationRequest,
    extensions: Extensions<'a>,
    datagram: &'a Datagram<'a>,
    arrival: Arrival,
}

/// Why a request is refused, and what of it is known to be true.
#[derive(Clone, Copy, Debug)]
struct Refused {
    code: ReplyCode,
    is_authenticated: bool,
}

/// What a request is granted.
struct Granted {
    code: ReplyCode,
    lifetime: Lifetime,
    outside: Outside,
    udp_reply: Option<UdpTunnelReply>,
}

impl HomeAgent {
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &Datagram<'_>,
    ) {
        let Ok((request, extensions)) = RegistrationRequest::parse(datagram.payload) else {
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
            Err(refused) => self.refuse(now, &asked, refused),
        }
    }

    fn consider(&mut self, now: Instant, asked: &Asked<'_>) -> Result<Granted, Refused> {
        let request = &asked.request;
        let unauthenticated = |code| Refused {
            code,
            is_authenticated: false,
        };
        if self.association(asked).is_none() {
            return Err(unauthenticated(ReplyCode::HOME_MOBILE_AUTHENTICATION));
        }
        let refused = |code| Refused {
            code,
            is_authenticated: true,
        };
        if let Some(foreign) = self.config.foreign_agents.get(asked.datagram.source.ip())
            && !is_by_foreign_agent(foreign, asked)
        {
            return Err(refused(ReplyCode::HOME_FOREIGN_AUTHENTICATION));
        }
        let clock = self.config.clock.at(now);
        let latest = self.refusals.latest.get(&request.home_address);
        let is_new = latest.is_none_or(|latest| is_after(request.identification, *latest));
        if !is_new || !is_near(request.identification, clock, self.config.replay_tolerance) {
            return Err(refused(ReplyCode::HOME_IDENTIFICATION));
        }
        let flags = request.flags;
        if flags.has_any(RequestFlags::RESERVED) {
            return Err(refused(ReplyCode::HOME_POORLY_FORMED));
        }
        if request.home_agent != self.config.address {
            return Err(refused(ReplyCode::HOME_UNKNOWN_AGENT));
        }
        if flags.has_any(RequestFlags::MINIMAL_ENCAPSULATION | RequestFlags::GRE) {
            return Err(refused(ReplyCode::HOME_ENCAPSULATION));
        }
        let is_home = request.care_of_address == request.home_address;
        if is_home && !request.is_deregistration() || !is_unicast(request.care_of_address) {
            return Err(refused(ReplyCode::HOME_POORLY_FORMED));
        }
        match (
            self.config.reverse_tunnels,
            flags.has(RequestFlags::REVERSE_TUNNEL),
        ) {
            (ReverseTunnels::Refused, true) => {
                return Err(refused(ReplyCode::HOME_REVERSE_TUNNEL));
            }
            (ReverseTunnels::Demanded, false) if !request.is_deregistration() => {
                return Err(refused(ReplyCode::HOME_REVERSE_TUNNEL_MANDATORY));
            }
            _ => {}
        }
        let (outside, udp_reply) = self.outside(asked).map_err(refused)?;
        let keeps_one = self.bindings.most() == 1;
        let asks_for_more = flags.has(RequestFlags::SIMULTANEOUS_BINDINGS);
        Ok(Granted {
            code: match asks_for_more && keeps_one {
                true => ReplyCode::ACCEPTED_WITHOUT_SIMULTANEOUS_BINDINGS,
                false => ReplyCode::ACCEPTED,
            },
            lifetime: request.lifetime.min(self.config.longest_lifetime),
            outside,
            udp_reply,
        })
    }

    /// The association by which the request is the mobile node's own; `None` if none says so.
    fn association(&self, asked: &Asked<'_>) -> Option<&SecurityAssociation> {
        let extension = asked.extensions.authentication(SecuredPair::MobileHome)?;
        let named = self.named_association(asked)?;
        named.verify(&extension).then_some(named)
    }

    /// The association that the request names, whether or not it is authentic.
    fn named_association(&self, asked: &Asked<'_>) -> Option<&SecurityAssociation> {
        let associations = self.config.mobiles.get(&asked.request.home_address)?;
        let extension = asked.extensions.authentication(SecuredPair::MobileHome)?;
        associations.iter().find(|one| one.spi() == extension.spi)
    }

    /// What surrounds packets in the tunnel (RFC 3519, section 4.4): UDP where an address translator
    /// has changed the request's source.
    fn outside(&self, asked: &Asked<'_>) -> Result<(Outside, Option<UdpTunnelReply>), ReplyCode> {
        let request = &asked.request;
        let plain = Outside::Ip(request.care_of_address);
        let mut extensions = asked.extensions;
        let wish = extensions.find_map(|extension| match extension {
            Extension::UdpTunnelRequest(wish) => Some(wish),
            _ => None,
        });
        let Some(wish) = wish else {
            return Ok((plain, None));
        };
        let no = UdpTunnelReply {
            code: UdpTunnelReply::NO,
            is_forced: false,
            keep_alive_s: 0,
        };
        let is_translated = *asked.datagram.source.ip() != request.care_of_address;
        let is_co_located = request.flags.has(RequestFlags::DECAPSULATES);
        let UdpTunnelRequest {
            is_forced,
            encapsulation,
            ..
        } = wish;
        if !is_co_located || !(is_translated || is_forced) || request.is_deregistration() {
            return Ok((plain, Some(no)));
        }
        let offer = self.config.udp_tunnels;
        match offer.filter(|offer| is_translated || offer.accepts_forced) {
            Some(offer) if encapsulation == IPV4_IN_IP => {
                let yes = UdpTunnelReply {
                    code: UdpTunnelReply::YES,
                    is_forced: !is_translated,
                    keep_alive_s: offer.keep_alive_s,
                };
                Ok((Outside::Udp(asked.datagram.source), Some(yes)))
            }
            _ => Err(ReplyCode::HOME_UDP_ENCAPSULATION),
        }
    }

    fn accept(&mut self, now: Instant, asked: &Asked<'_>, granted: &Granted) {
        let request = asked.request;
        if !request.is_deregistration() && !self.bind(now, asked, granted) {
            let refused = Refused {
                code: ReplyCode::HOME_TOO_MANY_BINDINGS,
                is_authenticated: true,
            };
            return self.refuse(now, asked, refused);
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
        let mut reply = reply.emit();
        if let Some(udp_reply) = granted.udp_reply {
            reply = reply.udp_tunnel_reply(udp_reply);
        }
        self.answer(asked, reply, true);
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
        let tunnel = old.unwrap_or_else(|| Tunnel::new(source, granted.outside));
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

    fn refuse(&mut self, now: Instant, asked: &Asked<'_>, refused: Refused) {
        let request = asked.request;
        self.counters.refused += 1;
        match refused.code {
            ReplyCode::HOME_IDENTIFICATION => self.counters.refused_for_identification += 1,
            ReplyCode::HOME_MOBILE_AUTHENTICATION => self.counters.refused_for_authentication += 1,
            _ => {}
        }
        // A stranger who sends a flood gets few answers, and is told of few.
        if !refused.is_authenticated && !self.refusals.allow(now) {
            self.counters.unanswered += 1;
            return;
        }
        self.events.push_back(HomeEvent::Refused {
            home_address: request.home_address,
            code: refused.code,
        });
        let low = request.identification & 0xffff_ffff;
        let high = match refused.code {
            ReplyCode::HOME_IDENTIFICATION => self.config.clock.at(now) & !0xffff_ffff,
            _ => request.identification & !0xffff_ffff,
        };
        let reply = RegistrationReply {
            code: refused.code,
            lifetime: Lifetime(0),
            home_address: request.home_address,
            home_agent: self.config.address,
            identification: high | low,
        };
        self.answer(asked, reply.emit(), refused.is_authenticated);
    }

    /// Sends a reply to where the request came from.
    fn answer(&mut self, asked: &Asked<'_>, reply: MessageBuilder, is_authenticated: bool) {
        let reply = match self.named_association(asked) {
            Some(association) if is_authenticated => {
                association.sign(SecuredPair::MobileHome, reply)
            }
            _ => reply,
        };
        let source = asked.datagram.source;
        let foreign = self.config.foreign_agents.get(source.ip());
        let reply = match foreign.filter(|_| !asked.request.is_deregistration()) {
            Some(foreign) => foreign.sign(SecuredPair::ForeignHome, reply),
            None => reply,
        };
        let own = agent_socket(self.config.address);
        let packet = message(own, source, None, &reply.finish());
        // To a mobile node at home past its binding, even when that stays (section 3.8.3.1).
        let via = match *source.ip() == asked.request.home_address {
            true => Via::Neighbour(asked.arrival.link, asked.arrival.from),
            false => Via::Route,
        };
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}

/// Whether the foreign agent has authenticated what it relays. A deregistration carries nothing of the
/// kind (RFC 5944, section 3.5.4).
fn is_by_foreign_agent(foreign: &SecurityAssociation, asked: &Asked<'_>) -> bool {
    let extension = asked.extensions.authentication(SecuredPair::ForeignHome);
    asked.request.is_deregistration() || extension.is_some_and(|one| foreign.verify(&one))
}
