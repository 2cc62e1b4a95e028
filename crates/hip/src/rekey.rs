//! New keys for data (RFC 7402, sections 6.8 to 6.10).
//!
//! Each host offers the SPI that it wants to receive under, and with a new Diffie-Hellman value, if keys are to
//! come from a new secret; one new value of either host is enough for that. The keys for HIP packets stay. A host
//! that has both offers has the new keys, and sends under them once it knows that the peer has its offer.
//!
//! An offer never changes until it is used: the peer may have answered it, and the answer may be lost. It rests after
//! two minutes without an answer, and is made again later; an answer that comes meanwhile still counts. So does an
//! answer that the peer does not acknowledge. The host
//! computes with a value of the peer only once MAC, signature and number of the UPDATE are right, and at
//! most once for each pair of offers. A value that is none of the group, or of another group, is refused: the
//! UPDATE is not acknowledged, and the old keys stay.

use crate::context::Context;
use crate::event::{Event, Refusal};
use crate::group::KeyPair;
use crate::sa::{Inbound, Outbound};
use crate::session::{Agreement, Session};
use crate::update::Purpose;
use alloc::sync::Arc;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{Builder, DiffieHellman, EspInfo, Message, kind};

/// How long an offer waits for its answer, and an answer for its acknowledgement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long an offer without an answer rests, and an answer without an acknowledgement.
pub(crate) const REST: Duration = Duration::from_secs(600);

/// By how much a peer's index may be ahead: it cannot use up the material at one stroke.
const LARGEST_STEP: u16 = 1024;

/// How old keys of a rekeying are at least when the peer has them replaced, unless this host's own limits are
/// reached: each time costs this host two computations in the group, and the peer perhaps none.
const LEAST_AGE: Duration = Duration::from_secs(10);

/// What this host offers for new keys.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) info: EspInfo,
    /// The new key pair, if there is one.
    pair: Option<Arc<KeyPair>>,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        // No SPI is offered twice.
        self.info == other.info
    }
}

impl Eq for Offer {}

impl Offer {
    /// Appends the new Diffie-Hellman value, if there is one.
    pub(crate) fn push_value(&self, builder: &mut Builder) {
        if let Some(pair) = &self.pair {
            let value = DiffieHellman {
                group: pair.group().number(),
                value: pair.public(),
            };
            builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
        }
    }
}

/// How an offer fares whose answer is not there.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It waits, until then.
    Waiting(Instant),
    /// It has waited in vain, and rests until then.
    Resting(Instant),
}

/// An offer whose answer is not there.
#[derive(Clone, Debug)]
struct Unanswered {
    offer: Offer,
    phase: Phase,
    /// Whether the peer has acknowledged it: the acknowledgement may arrive before the answer.
    is_told: bool,
}

/// This host's own offer of new keys, until the peer's is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rekeying(Option<Unanswered>);

impl Rekeying {
    /// The SPI that is offered.
    pub(crate) fn offered_spi(&self) -> Option<u32> {
        self.0.as_ref().map(|own| own.offer.info.new_spi)
    }

    /// When the offer has waited for too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.0.as_ref()?.phase {
            Phase::Waiting(until) => Some(until),
            Phase::Resting(_) => None,
        }
    }

    /// The peer has this offer.
    pub(crate) fn note_told(&mut self, offer: &Offer) {
        if let Some(own) = self.0.as_mut().filter(|own| own.offer == *offer) {
            own.is_told = true;
        }
    }
}

/// What a peer's offer makes the keys of.
enum Source {
    /// The material at hand, from this index on.
    Same(u16),
    /// The material of a new secret.
    New(Agreement),
}

impl Session {
    /// Offers the peer new keys for data, unless an offer waits, or rests.
    pub(crate) fn rekey(&mut self, context: &mut Context<'_>) {
        if self.updates.has_untold_offer() {
            return;
        }
        let offer = match &self.updates.rekeying.0 {
            Some(own) => match own.phase {
                Phase::Resting(until) if until <= context.now => own.offer.clone(),
                Phase::Waiting(_) | Phase::Resting(_) => return,
            },
            None => self.new_offer(context),
        };
        self.updates.rekeying.0 = Some(Unanswered {
            offer: offer.clone(),
            phase: Phase::Waiting(context.now + PATIENCE),
            is_told: false,
        });
        self.start(context, Purpose::Rekey(offer), &[]);
    }

    fn new_offer(&self, context: &mut Context<'_>) -> Offer {
        let needs_secret = context.config.rekeying.has_new_secret || !self.keying.has_more();
        let index = self.keying.next_index();
        self.offer(context, needs_secret, index)
    }

    /// An offer in the group of the base exchange, with a new secret or at `index`.
    fn offer(&self, context: &mut Context<'_>, has_new_secret: bool, index: u16) -> Offer {
        let group = self.keying.agreed.group;
        let pair = has_new_secret.then(|| Arc::new(KeyPair::new(group, context.random)));
        let info = EspInfo {
            keymat_index: if has_new_secret { 0 } else { index },
            old_spi: self.inbound.spi,
            new_spi: context.new_spi(),
        };
        Offer { info, pair }
    }

    /// Has an offer rest that has waited for too long.
    pub(crate) fn withdraw_unanswered_offer(&mut self, context: &mut Context<'_>) {
        let is_over = |until: Instant| until <= context.now;
        if !self.updates.rekeying.deadline().is_some_and(is_over) {
            return;
        }
        if let Some(own) = &mut self.updates.rekeying.0 {
            own.phase = Phase::Resting(context.now + REST);
        }
        self.updates.stop_offering();
        self.note_failed_rekeying(context);
    }

    /// The peer does not say that it takes new keys.
    pub(crate) fn note_failed_rekeying(&mut self, context: &mut Context<'_>) {
        self.failed_rekeyings += 1;
        let peer = self.peer.hit();
        let event = Event::RekeyingFailed { peer };
        context.outbox.events.push_back(event);
    }

    /// The peer offers, or answers with, new keys; gives the number of our own offer if it goes
    /// with the answer.
    pub(crate) fn hear_esp_info(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        info: EspInfo,
    ) -> Result<Option<u32>, Refusal> {
        let is_rekeying = info.old_spi != info.new_spi && info.old_spi != 0 && info.new_spi != 0;
        if !is_rekeying {
            // An association besides is not supported, nor an end of the only one (RFC 8046, section 5.3).
            let is_same = info.old_spi == info.new_spi && self.has_outbound_spi(info.old_spi);
            return is_same.then_some(None).ok_or(Refusal::Choice);
        }
        let next = self.next_outbound.as_ref();
        if info.new_spi == self.outbound.spi || next.is_some_and(|next| next.spi == info.new_spi) {
            // These keys are known: the offer has come once more, under another number.
            return Ok(None);
        }
        if info.old_spi != self.outbound.spi || self.next_outbound.is_some() || info.new_spi <= 255
        {
            return Err(Refusal::Choice);
        }
        let own = self.updates.rekeying.0.clone();
        if own.is_none() && self.has_fresh_keys(context) {
            // The peer repeats its offer.
            return Err(Refusal::Limit);
        }
        let value = self.offered_value(message)?;
        let has_own_value = own.as_ref().is_some_and(|own| own.offer.pair.is_some());
        self.check_index(info.keymat_index, value.is_some(), has_own_value)?;
        let is_told = own.as_ref().is_some_and(|own| own.is_told);
        let offer = match own {
            Some(own) => own.offer,
            None => {
                // The peer's index is the recommended one for the answer.
                let index = self.keying.next_index().max(info.keymat_index);
                self.offer(context, value.is_some(), index)
            }
        };
        let ciphers = match self.source(&offer, info, value).ok_or(Refusal::Choice)? {
            Source::Same(index) => self.keying.advance(index).ok_or(Refusal::Limit)?,
            Source::New(agreement) => self.keying.renew(agreement).ok_or(Refusal::Choice)?,
        };
        self.updates.rekeying.0 = None;
        let inbound = Inbound::new(offer.info.new_spi, ciphers.peer);
        let outbound = Outbound::new(info.new_spi, ciphers.own);
        self.replace(context.now, inbound, outbound);
        // An older answer may still wait for its acknowledgement; this one takes its place.
        let needs_telling = !is_told && !self.updates.is_telling(&offer);
        let purpose = Purpose::Rekey(offer);
        Ok(needs_telling.then(|| self.updates.begin(context, purpose)))
    }

    /// The new Diffie-Hellman value of the peer, if there is one: of the group of the base exchange (RFC 7402,
    /// section 6.9).
    fn offered_value<'a>(&self, message: &Message<'a>) -> Result<Option<&'a [u8]>, Refusal> {
        let Some(found) = message.find(kind::DIFFIE_HELLMAN) else {
            return Ok(None);
        };
        let value = DiffieHellman::parse(found.contents).map_err(|_| Refusal::Malformed)?;
        let group = self.keying.agreed.group;
        let is_right = value.group == group.number() && group.has(value.value);
        is_right.then_some(Some(value.value)).ok_or(Refusal::Choice)
    }

    /// Whether a rekeying was a moment ago. The keys of the base exchange do not count: it has its puzzle.
    fn has_fresh_keys(&self, context: &Context<'_>) -> bool {
        let age = context.now.since(self.keys_since);
        self.rekeyings > 0 && age < LEAST_AGE && !self.has_used_up_keys(context)
    }

    /// Checks the index of the peer's offer (RFC 7402, sections 6.9 and 6.9.1).
    fn check_index(&self, index: u16, has_value: bool, has_own_value: bool) -> Result<(), Refusal> {
        let least = self.keying.next_index();
        let most = least.saturating_add(LARGEST_STEP);
        let is_right = match (has_value, has_own_value) {
            (true, _) => index == 0,
            // The peer answers this host's new value, or has made its offer without knowing of the value.
            (false, true) => index == 0 || (least..=most).contains(&index),
            (false, false) => (least..=most).contains(&index),
        };
        is_right.then_some(()).ok_or(Refusal::Choice)
    }

    /// From where both offers have the keys come (RFC 7402, section 6.10); nothing if both values would be those of
    /// the present secret, whose first keys have been in use.
    fn source(&self, own: &Offer, info: EspInfo, value: Option<&[u8]>) -> Option<Source> {
        if own.pair.is_none() && value.is_none() {
            let index = info.keymat_index.max(own.info.keymat_index);
            return Some(Source::Same(index));
        }
        // Where only one value is new, the other one stays.
        let agreed = &self.keying.agreed;
        // In a MODP group leading zeros may be left out.
        let is_other = |value| digits(value).ne(digits(&agreed.peer));
        let is_new = own.pair.is_some() || value.is_some_and(is_other);
        let pair = own.pair.as_ref().or(agreed.own.as_ref());
        let pair = pair.filter(|_| is_new)?;
        Some(Source::New(Agreement {
            own: Arc::clone(pair),
            peer: value.unwrap_or(&agreed.peer).to_vec(),
        }))
    }
}

/// What is left of a value without its leading zeros.
fn digits(value: &[u8]) -> impl Iterator<Item = &u8> {
    value.iter().skip_while(|&&byte| byte == 0)
}
