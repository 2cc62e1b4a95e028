//! The correspondent (RFC 6275, section 9): answers tests, keeps bindings, and reaches mobile nodes where
//! they are.
//!
//! Tests are answered from a secret and the time: only a binding costs memory, and only who receives
//! packets at both addresses makes one.

use super::message::{
    addresses, is_after, is_reachable, is_unknown, mobility_header, plain, to_home_address, unwrap,
};
use super::return_routability::{BindingKey, LONGEST_BINDING, Nonces, TokenKind};
use crate::budget::{Answers, Asker};
use crate::security::Between;
use crate::transmit::{Transmit, Verdict, Via};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::Ipv6Addr;
use outlast_base::time::Instant;
use outlast_wire::Packet;
use outlast_wire::mobile_ipv6::{
    AcknowledgementFlags, BindingAcknowledgement, BindingErrorStatus, BindingUpdate, Message,
    MobilityOptions, Status, Test, UpdateFlags, UpdateLifetime, add_routing_header,
};

/// How a correspondent is set up.
#[derive(Clone, Debug)]
pub struct CorrespondentConfig {
    /// `Kcn`: what tokens are made from; nobody else may know it.
    pub secret: [u8; 20],
    /// Caps.
    pub limits: CorrespondentLimits,
}

/// Caps of a correspondent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CorrespondentLimits {
    /// Bindings; more are refused with status 130.
    pub bindings: usize,
    /// Answers a second to tests, and to what needs a binding and has none.
    pub answers_per_second: u32,
    /// Such answers a second to one address.
    pub answers_per_source: u32,
}

impl Default for CorrespondentLimits {
    fn default() -> Self {
        Self {
            bindings: 4096,
            answers_per_second: 1000,
            answers_per_source: 10,
        }
    }
}

/// What happens at a correspondent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CorrespondentEvent {
    /// A mobile node is reached at a care-of address from now on.
    Bound {
        /// The mobile node.
        home_address: Ipv6Addr,
        /// Where it is.
        care_of_address: Ipv6Addr,
        /// It was elsewhere, or unknown.
        has_moved: bool,
    },
    /// A mobile node is reached at its home address again.
    Unbound {
        /// The mobile node.
        home_address: Ipv6Addr,
    },
}

/// Why a correspondent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum CorrespondentTimeout {
    /// A binding expires.
    Expiry,
}

/// What a correspondent has counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CorrespondentCounters {
    /// Tests that were answered.
    pub tests: u64,
    /// Updates that were accepted.
    pub accepted: u64,
    /// Updates that were refused, answered or not.
    pub refused: u64,
    /// Among them those that were not authentic.
    pub refused_for_authentication: u64,
    /// Messages that were not answered, to answer no flood.
    pub unanswered: u64,
    /// Messages that cannot be read.
    pub malformed: u64,
    /// Packets that were sent to care-of addresses.
    pub optimized_out: u64,
    /// Packets that came from care-of addresses.
    pub optimized_in: u64,
    /// Packets that bore a home address without a binding.
    pub dropped_strangers: u64,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    care_of_address: Ipv6Addr,
    sequence: u16,
    expires_at: Instant,
}

/// A correspondent.
#[derive(Debug)]
pub struct Correspondent {
    limits: CorrespondentLimits,
    nonces: Nonces,
    bindings: BTreeMap<Ipv6Addr, Binding>,
    /// When, which mobile node's.
    expiries: BTreeSet<(Instant, Ipv6Addr)>,
    answers: Answers,
    outbox: VecDeque<Transmit>,
    events: VecDeque<CorrespondentEvent>,
    counters: CorrespondentCounters,
}

/// Who speaks to whom in an update.
#[derive(Clone, Copy, Debug)]
struct Parties {
    home_address: Ipv6Addr,
    care_of_address: Ipv6Addr,
    /// The correspondent's own address of the moment.
    own: Ipv6Addr,
}

impl Parties {
    const fn between(self) -> Between {
        Between::new(self.care_of_address, self.own)
    }
}

impl Correspondent {
    /// A correspondent without bindings.
    #[must_use]
    pub fn new(now: Instant, config: CorrespondentConfig) -> Self {
        let CorrespondentLimits {
            answers_per_second,
            answers_per_source,
            ..
        } = config.limits;
        let [a, b, c, d, e, f, g, h, ..] = config.secret;
        let seed = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Self {
            limits: config.limits,
            nonces: Nonces::new(now, config.secret),
            bindings: BTreeMap::new(),
            expiries: BTreeSet::new(),
            answers: Answers::new(now, answers_per_second, answers_per_source, seed),
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: CorrespondentCounters::default(),
        }
    }

    /// A packet comes to this host.
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) -> Verdict {
        let Some(unwrapped) = unwrap(packet).filter(|one| !one.is_routed) else {
            return Verdict::Pass;
        };
        let Some((source, own)) = addresses(&unwrapped.packet) else {
            return Verdict::Pass;
        };
        if let Some(bytes) = mobility_header(&unwrapped.packet) {
            let parties = Parties {
                home_address: source,
                care_of_address: unwrapped.source,
                own,
            };
            return self.handle_message(now, parties, bytes);
        }
        if !unwrapped.is_from_home_address {
            return Verdict::Pass;
        }
        // Only from where the binding says (section 9.3.1).
        let binding = self.bindings.get(&source);
        if binding.is_some_and(|one| one.care_of_address == unwrapped.source) {
            self.counters.optimized_in += 1;
            self.send(unwrapped.packet, Via::Local);
            return Verdict::Taken;
        }
        self.counters.dropped_strangers += 1;
        let error = Message::BindingError {
            status: BindingErrorStatus::NO_BINDING,
            home_address: source,
        };
        self.complain(now, (own, unwrapped.source), error);
        Verdict::Taken
    }

    /// A packet of this host's own. What is for a mobile node with a binding is taken.
    pub fn handle_outgoing(&mut self, packet: &Packet) -> Verdict {
        let Some((_, destination)) = addresses(packet) else {
            return Verdict::Pass;
        };
        let Some(binding) = self.bindings.get(&destination) else {
            return Verdict::Pass;
        };
        match add_routing_header(packet, binding.care_of_address) {
            Ok(packet) => {
                self.counters.optimized_out += 1;
                self.send(packet, Via::Route);
                Verdict::Taken
            }
            Err(_) => Verdict::Pass,
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, home_address)) = self.expiries.first()
            && at <= now
        {
            self.unbind(home_address);
        }
    }

    /// What is to be done next.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop_front()
    }

    /// What has happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<CorrespondentEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, CorrespondentTimeout)> {
        let first = self.expiries.first();
        first.map(|(at, _)| (*at, CorrespondentTimeout::Expiry))
    }

    /// The mobile nodes that are reached past their home agents, and where.
    pub fn bindings(&self) -> impl Iterator<Item = (Ipv6Addr, Ipv6Addr)> {
        let bindings = self.bindings.iter();
        bindings.map(|(home, binding)| (*home, binding.care_of_address))
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &CorrespondentCounters {
        &self.counters
    }

    fn handle_message(&mut self, now: Instant, parties: Parties, bytes: &[u8]) -> Verdict {
        let Parties {
            home_address: source,
            own,
            ..
        } = parties;
        match Message::parse(source, own, bytes) {
            Ok((Message::HomeTestInit { cookie }, _)) => {
                let test = |test| Message::HomeTest(test);
                self.answer_test(now, parties, (cookie, TokenKind::Home), test);
                Verdict::Taken
            }
            Ok((Message::CareOfTestInit { cookie }, _)) => {
                let test = |test| Message::CareOfTest(test);
                self.answer_test(now, parties, (cookie, TokenKind::CareOf), test);
                Verdict::Taken
            }
            Ok((Message::BindingUpdate(update), options))
                if !update.flags.has(UpdateFlags::HOME_REGISTRATION) =>
            {
                self.handle_update(now, parties, &update, options);
                Verdict::Taken
            }
            Ok(_) => Verdict::Pass,
            Err(error) if is_unknown(error) => {
                let error = Message::BindingError {
                    status: BindingErrorStatus::UNKNOWN_MESSAGE,
                    home_address: Ipv6Addr::UNSPECIFIED,
                };
                self.complain(now, (own, parties.care_of_address), error);
                Verdict::Taken
            }
            Err(_) => {
                self.counters.malformed += 1;
                Verdict::Taken
            }
        }
    }

    /// Gives a token to the address that asks. The answer is as long as the question and the token, eight
    /// bytes more, as RFC 6275, section 6.1.5, has it.
    fn answer_test(
        &mut self,
        now: Instant,
        parties: Parties,
        (cookie, kind): (u64, TokenKind),
        message: impl FnOnce(Test) -> Message,
    ) {
        // Neither bears a home address (section 9.4.1).
        let source = parties.home_address;
        if source != parties.care_of_address || !is_reachable(source) {
            self.counters.malformed += 1;
            return;
        }
        if !self.answers.take(now, Asker::v6(source)) {
            self.counters.unanswered += 1;
            return;
        }
        self.counters.tests += 1;
        let (nonce_index, keygen_token) = self.nonces.token(now, source, kind);
        let test = Test {
            nonce_index,
            cookie,
            keygen_token,
        };
        let packet = plain(parties.own, source, message(test).emit());
        self.send(packet, Via::Route);
    }

    fn handle_update(
        &mut self,
        now: Instant,
        parties: Parties,
        update: &BindingUpdate,
        options: MobilityOptions<'_>,
    ) {
        let alternate = options.alternate_care_of_address();
        let parties = Parties {
            care_of_address: alternate.unwrap_or(parties.care_of_address),
            ..parties
        };
        let key = match self.key(now, parties, update, options) {
            Ok(key) => key,
            Err(status) => return self.refuse(now, parties, update, (status, None)),
        };
        let option = options.authorization();
        if !option.is_some_and(|one| key.fits(parties.between(), &one)) {
            // Silently (section 9.5.1).
            self.counters.refused += 1;
            self.counters.refused_for_authentication += 1;
            return;
        }
        let known = self.bindings.get(&parties.home_address);
        let refusal = match known {
            Some(known) if !is_after(update.sequence, known.sequence) => Some(Status::SEQUENCE),
            None if self.bindings.len() >= self.limits.bindings => Some(Status::RESOURCES),
            _ if !is_reachable(parties.care_of_address) => Some(Status::CARE_OF_ADDRESS),
            _ => None,
        };
        if let Some(status) = refusal {
            return self.refuse(now, parties, update, (status, Some(key)));
        }
        self.counters.accepted += 1;
        let lifetime = self.bind(now, parties, update);
        if update.flags.has(UpdateFlags::ACKNOWLEDGE) {
            let answer = BindingAcknowledgement {
                status: Status::ACCEPTED,
                flags: AcknowledgementFlags::default(),
                sequence: update.sequence,
                lifetime,
            };
            self.acknowledge(parties, answer, Some(key));
        }
    }

    /// The key of the tokens that an update names, or which of them are too old.
    fn key(
        &self,
        now: Instant,
        parties: Parties,
        update: &BindingUpdate,
        options: MobilityOptions<'_>,
    ) -> Result<BindingKey, Status> {
        let (home_index, care_of_index) = options.nonce_indices().ok_or(Status::UNSPECIFIED)?;
        let home_address = parties.home_address;
        let home = self
            .nonces
            .given(now, home_address, TokenKind::Home, home_index);
        if is_deregistration(parties, update) {
            let home = home.ok_or(Status::HOME_NONCE)?;
            return Ok(BindingKey::new(home, None));
        }
        let address = parties.care_of_address;
        let care_of = self
            .nonces
            .given(now, address, TokenKind::CareOf, care_of_index);
        match (home, care_of) {
            (Some(home), Some(care_of)) => Ok(BindingKey::new(home, Some(care_of))),
            (None, Some(_)) => Err(Status::HOME_NONCE),
            (Some(_), None) => Err(Status::CARE_OF_NONCE),
            (None, None) => Err(Status::NONCES),
        }
    }

    /// Makes, renews or ends a binding; the lifetime that is granted.
    fn bind(&mut self, now: Instant, parties: Parties, update: &BindingUpdate) -> UpdateLifetime {
        let home_address = parties.home_address;
        if is_deregistration(parties, update) {
            self.unbind(home_address);
            return UpdateLifetime::DEREGISTRATION;
        }
        let lifetime = update
            .lifetime
            .min(UpdateLifetime::at_most(LONGEST_BINDING));
        let expires_at = now + lifetime.duration();
        let binding = Binding {
            care_of_address: parties.care_of_address,
            sequence: update.sequence,
            expires_at,
        };
        let former = self.bindings.insert(home_address, binding);
        if let Some(former) = former {
            self.expiries.remove(&(former.expires_at, home_address));
        }
        self.expiries.insert((expires_at, home_address));
        let former = former.map(|one| one.care_of_address);
        self.events.push_back(CorrespondentEvent::Bound {
            home_address,
            care_of_address: parties.care_of_address,
            has_moved: former != Some(parties.care_of_address),
        });
        lifetime
    }

    fn unbind(&mut self, home_address: Ipv6Addr) {
        if let Some(former) = self.bindings.remove(&home_address) {
            self.expiries.remove(&(former.expires_at, home_address));
            self.events
                .push_back(CorrespondentEvent::Unbound { home_address });
        }
    }

    fn refuse(
        &mut self,
        now: Instant,
        parties: Parties,
        update: &BindingUpdate,
        (status, key): (Status, Option<BindingKey>),
    ) {
        self.counters.refused += 1;
        if !self.answers.take(now, Asker::v6(parties.care_of_address)) {
            self.counters.unanswered += 1;
            return;
        }
        let known = self.bindings.get(&parties.home_address);
        let sequence = match (status, known) {
            (Status::SEQUENCE, Some(known)) => known.sequence,
            _ => update.sequence,
        };
        let answer = BindingAcknowledgement {
            status,
            flags: AcknowledgementFlags::default(),
            sequence,
            lifetime: UpdateLifetime::DEREGISTRATION,
        };
        self.acknowledge(parties, answer, key);
    }

    /// Sends an acknowledgement, signed if both sides have the key.
    fn acknowledge(
        &mut self,
        parties: Parties,
        answer: BindingAcknowledgement,
        key: Option<BindingKey>,
    ) {
        let mut message = Message::BindingAcknowledgement(answer).emit();
        if let Some(key) = key {
            message = message.authorize(|covered| key.authenticator(parties.between(), covered));
        }
        let to = (parties.home_address, parties.care_of_address);
        self.send(to_home_address(parties.own, to, message), Via::Route);
    }

    fn complain(&mut self, now: Instant, (own, to): (Ipv6Addr, Ipv6Addr), error: Message) {
        // An answer to a group would have many receivers.
        if !is_reachable(to) || !self.answers.take(now, Asker::v6(to)) {
            self.counters.unanswered += 1;
            return;
        }
        self.send(plain(own, to, error.emit()), Via::Route);
    }

    fn send(&mut self, packet: Packet, via: Via) {
        self.outbox.push_back(Transmit::Packet { packet, via });
    }
}

/// Whether an update ends the binding.
fn is_deregistration(parties: Parties, update: &BindingUpdate) -> bool {
    update.lifetime == UpdateLifetime::DEREGISTRATION
        || parties.care_of_address == parties.home_address
}
