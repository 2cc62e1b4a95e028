//! How a foreign agent relays requests and replies (RFC 5944, sections 3.7.2 and 3.7.3).

use super::tables::{Admission, Visitor, Waiting};
use super::{ForeignAgent, ForeignEvent};
use crate::ReverseTunnels;
use crate::budget::Asker;
use crate::datagram::{Datagram, FROM_THIS_LINK, agent_socket, is_unicast, message};
use crate::security::SecurityAssociation;
use crate::transmit::{Arrival, LinkAddress, Verdict, Via};
use crate::tunnel::{Outside, Tunnel};
use core::net::{Ipv4Addr, SocketAddrV4};
use outlast_base::time::Instant;
use outlast_wire::mobile_ip::{
    Extension, Extensions, Lifetime, MessageBuilder, PORT, QuotedContent, RegistrationReply,
    RegistrationRequest, ReplyCode, RequestFlags, SecuredPair, TunnelQuote,
};

impl ForeignAgent {
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
        let mut waiting = Waiting {
            request,
            node: arrival.from,
            socket: datagram.source,
            since: now,
            length_and_checksum: [0; 4],
        };
        if let Err((code, lifetime)) = self.consider(&request, extensions, datagram) {
            return self.refuse(now, &waiting, code, lifetime);
        }
        let Some(for_home) = extensions.up_to_home_authentication() else {
            let code = ReplyCode::FOREIGN_POORLY_FORMED_REQUEST;
            return self.refuse(now, &waiting, code, Lifetime(0));
        };
        let is_visitors = self.visitors.is_at(request.home_address, arrival.from);
        let due = now + self.config.request_timeout;
        let is_full = self.visitors.is_full() && !is_visitors && !request.is_deregistration();
        let mut relayed = MessageBuilder::resume(for_home);
        if let Some(home) = self.config.home_agents.get(&request.home_agent)
            && !request.is_deregistration()
        {
            relayed = home.sign(SecuredPair::ForeignHome, relayed);
        }
        let own = agent_socket(self.config.care_of_address);
        let to = agent_socket(request.home_agent);
        let packet = message(own, to, None, &relayed.finish());
        let udp = packet.bytes().and_then(|bytes| bytes.get(24..28));
        if let Some(found) = udp.and_then(|udp| udp.first_chunk()) {
            waiting.length_and_checksum = *found;
        }
        let admission = match is_full {
            true => Admission::NoRoom,
            false => self.pending.add(due, waiting.clone(), is_visitors),
        };
        match admission {
            Admission::Relay => {
                self.counters.relayed += 1;
                self.send(packet, Via::Route);
            }
            Admission::Ignore => self.counters.repeated += 1,
            Admission::NoRoom => {
                self.refuse(now, &waiting, ReplyCode::FOREIGN_RESOURCES, Lifetime(0));
            }
        }
    }

    /// Whether the request is one that may be relayed; else the code, and the longest lifetime.
    fn consider(
        &self,
        request: &RegistrationRequest,
        extensions: Extensions<'_>,
        datagram: &Datagram<'_>,
    ) -> Result<(), (ReplyCode, Lifetime)> {
        let refused = |code| Err((code, Lifetime(0)));
        if let Some(mobile) = self.config.mobiles.get(&request.home_address) {
            let pair = SecuredPair::MobileForeign;
            let behind = extensions.behind_home_authentication();
            // Exactly one, and behind the home agent's (sections 3.6.1.3 and 3.7.2.1).
            let extension = extensions.only_authentication(pair);
            let extension = extension.and_then(|_| behind.only_authentication(pair));
            if !extension.is_some_and(|one| mobile.verify(&one)) {
                return refused(ReplyCode::FOREIGN_MOBILE_AUTHENTICATION);
            }
        }
        let flags = request.flags;
        if flags.has_any(RequestFlags::RESERVED) {
            return refused(ReplyCode::FOREIGN_POORLY_FORMED_REQUEST);
        }
        if !is_unicast(request.home_agent) || self.is_own(request.home_agent) {
            return refused(ReplyCode::FOREIGN_INVALID_HOME_AGENT);
        }
        let longest = self.config.longest_lifetime;
        if request.lifetime > longest {
            return Err((ReplyCode::FOREIGN_LIFETIME, longest));
        }
        if flags.has_any(RequestFlags::MINIMAL_ENCAPSULATION | RequestFlags::GRE) {
            return refused(ReplyCode::FOREIGN_ENCAPSULATION);
        }
        let is_co_located = flags.has(RequestFlags::DECAPSULATES);
        let is_own = request.care_of_address == self.config.care_of_address;
        if !is_own && !is_co_located && !request.is_deregistration() {
            return refused(ReplyCode::FOREIGN_CARE_OF_ADDRESS);
        }
        let is_reverse = flags.has(RequestFlags::REVERSE_TUNNEL);
        match self.config.reverse_tunnels {
            ReverseTunnels::Refused if is_reverse => {
                return refused(ReplyCode::FOREIGN_REVERSE_TUNNEL);
            }
            ReverseTunnels::Demanded if !is_reverse && !request.is_deregistration() => {
                return refused(ReplyCode::FOREIGN_REVERSE_TUNNEL_MANDATORY);
            }
            _ => {}
        }
        if is_reverse && datagram.ttl != FROM_THIS_LINK {
            return refused(ReplyCode::FOREIGN_TOO_DISTANT);
        }
        let mut extensions = extensions;
        if extensions.any(|extension| extension == Extension::EncapsulatingDelivery) {
            return refused(ReplyCode::FOREIGN_DELIVERY_STYLE);
        }
        Ok(())
    }

    /// True for an address of the agent's own host (section 3.7.2).
    fn is_own(&self, address: Ipv4Addr) -> bool {
        let known = [self.config.care_of_address, self.advertiser.address()];
        known.contains(&address) || address.is_loopback() || self.own_addresses.contains(&address)
    }

    pub(super) fn handle_reply(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let parsed = RegistrationReply::parse(datagram.payload);
        let Ok((reply, extensions)) = parsed else {
            self.counters.malformed += 1;
            return;
        };
        let of = (reply.home_address, reply.identification as u32);
        // A stranger's reply takes nothing: the home agent's may still come.
        let Some(waiting) = self.pending.take(now, of, *datagram.source.ip()) else {
            self.counters.malformed += 1;
            return;
        };
        let home = self.config.home_agents.get(datagram.source.ip());
        if let Some(home) = home.filter(|_| !waiting.request.is_deregistration())
            && !is_by(home, extensions)
        {
            let code = ReplyCode::FOREIGN_HOME_AUTHENTICATION;
            return self.refuse(now, &waiting, code, Lifetime(0));
        }
        // A refusal of somebody whom the home agent does not know carries no authentication.
        let for_mobile = match extensions.up_to_home_authentication() {
            Some(message) => message,
            None if !reply.code.is_accepted() => {
                &datagram.payload[..RegistrationReply::LEN.min(datagram.payload.len())]
            }
            None => {
                let code = ReplyCode::FOREIGN_POORLY_FORMED_REPLY;
                return self.refuse(now, &waiting, code, Lifetime(0));
            }
        };
        if reply.code.is_accepted() {
            if !self.admit(now, &waiting, &reply) {
                return self.refuse(now, &waiting, ReplyCode::FOREIGN_RESOURCES, Lifetime(0));
            }
        } else {
            self.report_refusal(now, reply.home_address, reply.code);
        }
        let reply = MessageBuilder::resume(for_mobile);
        self.answer(&waiting, reply);
    }

    /// The home agent has accepted. Returns false if there is no room for one more visitor.
    fn admit(&mut self, now: Instant, waiting: &Waiting, reply: &RegistrationReply) -> bool {
        let Waiting { request, node, .. } = waiting;
        let home_address = request.home_address;
        if request.is_deregistration() || reply.lifetime == Lifetime(0) {
            self.counters.accepted += 1;
            if self.visitors.remove(home_address) {
                self.events.push_back(ForeignEvent::Left { home_address });
            }
            return true;
        }
        let is_new = !self.visitors.is_at(home_address, *node);
        let is_reverse = request.flags.has(RequestFlags::REVERSE_TUNNEL);
        let end = Outside::Ip(request.home_agent);
        let old = self.visitors.tunnel(home_address);
        let old = old.filter(|tunnel| tunnel.outside() == end).cloned();
        let (own, secret) = (self.config.care_of_address, self.secrets.next_u64());
        // A renewal goes on with what is known of the tunnel.
        let tunnel = old.unwrap_or_else(|| Tunnel::ip(now, own, request.home_agent, secret));
        let lifetime = reply.lifetime.min(request.lifetime);
        let visitor = Visitor {
            node: *node,
            home_agent: request.home_agent,
            tunnel: is_reverse.then_some(tunnel),
            expires_at: lifetime.duration().map(|lifetime| waiting.since + lifetime),
        };
        let is_admitted = self.visitors.add(home_address, visitor);
        if is_admitted {
            self.counters.accepted += 1;
            self.events.push_back(ForeignEvent::Registered {
                home_address,
                is_new,
            });
        }
        is_admitted
    }

    /// Requests that have waited too long are answered here.
    pub(super) fn answer_late_requests(&mut self, now: Instant) {
        while let Some(waiting) = self.pending.expire(now) {
            self.counters.timed_out += 1;
            self.refuse(now, &waiting, ReplyCode::FOREIGN_TIMEOUT, Lifetime(0));
        }
    }

    /// An ICMP error says that the home agent of a request cannot be reached. It counts if it quotes the
    /// request that was relayed.
    pub(super) fn handle_unreachable(
        &mut self,
        now: Instant,
        quote: &TunnelQuote,
        kind_and_code: (u8, u8),
    ) -> Verdict {
        let QuotedContent::Datagram {
            ports: (PORT, PORT),
            length_and_checksum,
        } = quote.content
        else {
            return Verdict::Pass;
        };
        if quote.source != self.config.care_of_address || self.searches.take(now).is_err() {
            return Verdict::Pass;
        }
        let code = match kind_and_code {
            (3, 0) => ReplyCode::FOREIGN_HOME_NETWORK_UNREACHABLE,
            (3, 1) => ReplyCode::FOREIGN_HOME_AGENT_UNREACHABLE,
            (3, 3) => ReplyCode::FOREIGN_PORT_UNREACHABLE,
            _ => ReplyCode::FOREIGN_UNREACHABLE,
        };
        let key = self.pending.find(quote.destination, length_and_checksum);
        match key.and_then(|key| self.pending.take(now, key, quote.destination)) {
            Some(waiting) => {
                self.refuse(now, &waiting, code, Lifetime(0));
                Verdict::Taken
            }
            None => Verdict::Pass,
        }
    }

    fn refuse(&mut self, now: Instant, waiting: &Waiting, code: ReplyCode, lifetime: Lifetime) {
        self.counters.refused += 1;
        let request = waiting.request;
        self.report_refusal(now, request.home_address, code);
        if !self.refusals.take(now, Asker::node(waiting.node.0)) {
            self.counters.unanswered += 1;
            return;
        }
        let reply = RegistrationReply {
            code,
            lifetime,
            home_address: request.home_address,
            home_agent: request.home_agent,
            identification: request.identification,
        };
        self.answer(waiting, reply.emit());
    }

    /// Sends a reply to the mobile node, in a frame to where its request came from.
    fn answer(&mut self, waiting: &Waiting, reply: MessageBuilder) {
        let mobile = self.config.mobiles.get(&waiting.request.home_address);
        let reply = match mobile {
            Some(mobile) => mobile.sign(SecuredPair::MobileForeign, reply),
            None => reply,
        };
        let own = agent_socket(self.advertiser.address());
        let to = reply_socket(waiting.socket, waiting.request.home_address);
        let packet = message(own, to, None, &reply.finish());
        self.send(packet, self.via(waiting.node));
    }

    const fn via(&self, node: LinkAddress) -> Via {
        Via::Neighbour(self.config.link, node)
    }
}

/// A mobile node that has no address yet is answered at its home address.
fn reply_socket(from: SocketAddrV4, home_address: Ipv4Addr) -> SocketAddrV4 {
    match from.ip().is_unspecified() {
        true => SocketAddrV4::new(home_address, from.port()),
        false => from,
    }
}

/// Whether the home agent has authenticated a reply to the foreign agent.
fn is_by(home: &SecurityAssociation, extensions: Extensions<'_>) -> bool {
    let extension = extensions.only_authentication(SecuredPair::ForeignHome);
    extension.is_some_and(|one| home.verify(&one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_an_address_is_answered_at_its_home_address() {
        let home = Ipv4Addr::new(10, 1, 0, 5);
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 5);
        assert_eq!(reply_socket(nowhere, home), SocketAddrV4::new(home, 5));
        let somewhere = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5);
        assert_eq!(reply_socket(somewhere, home), somewhere);
    }
}
