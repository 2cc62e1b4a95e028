//! UPDATE: readdressing, verification of addresses, registration, and what carries new keys
//! (RFC 7401, sections 5.3.5, 6.11 and 6.12; RFC 8046, section 3.2).
//!
//! At most one UPDATE of each purpose waits for its acknowledgement. One that is sent again keeps
//! its number, but may go to another address of the peer, with a nonce for that address. It gets another number
//! only if a newer UPDATE went out meanwhile: a peer that has seen that one may refuse what is older.

use crate::addresses::Path;
use crate::backoff::Backoff;
use crate::context::{Context, echo_unsigned};
use crate::event::{Event, Reason, Refusal};
use crate::rekey::{Offer, PATIENCE, REST, Rekeying};
use crate::rendezvous;
use crate::session::Session;
use crate::volume::Readdressing;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{
    Builder, EspInfo, Locator, LocatorSet, Message, PacketType, Traffic, kind, u32_list,
    write_from_address,
};
use subtle::ConstantTimeEq;

/// Numbers of one UPDATE of which an acknowledgement counts.
const NUMBERS: usize = 8;

/// Numbers by which an overtaken UPDATE may be behind the newest one.
const WINDOW: u32 = 8;

/// An UPDATE of the peer that comes again is judged and answered no sooner: every peer waits longer, but not whoever has
/// recorded it. Several that come again share that.
pub(crate) const ANSWERED_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// UPDATEs of the peer that are acknowledged again: all that are not far behind. A host like this one has at most one of
/// each [`Purpose`] without an acknowledgement.
const REMEMBERED: usize = WINDOW as usize;

/// Shortest time between two renewals of a registration of which the first one was not granted.
const RENEWED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Bytes of a nonce that shows that the peer is at an address.
const NONCE: usize = 16;

/// What an UPDATE of ours is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// Tells the peer this host's addresses.
    Readdress,
    /// Tests whether the peer is at an address.
    Verify(IpAddr),
    /// Offers keys for data.
    Rekey(Offer),
    /// Renews a registration.
    Register,
    /// Asks for a sign of life.
    Ask,
}

impl Purpose {
    /// True if every peer acknowledges it that holds its end: one may refuse new keys, or not be where it is tested.
    const fn has_to_be_acknowledged(&self) -> bool {
        matches!(self, Self::Readdress | Self::Register | Self::Ask)
    }

    /// Whether one of them takes the place of the other.
    const fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Readdress, Self::Readdress)
                | (Self::Verify(_), Self::Verify(_))
                | (Self::Rekey(_), Self::Rekey(_))
                | (Self::Register, Self::Register)
                | (Self::Ask, Self::Ask)
        )
    }
}

/// An UPDATE that waits for its acknowledgement.
#[derive(Clone, Debug)]
struct Pending {
    id: u32,
    /// The numbers that it had before.
    former: Vec<u32>,
    purpose: Purpose,
    backoff: Backoff,
    begun: Instant,
    /// When it was last sent.
    sent_at: Instant,
    /// What nonces are made from.
    secret: Vec<u8>,
    /// Time since which the peer leaves it without an answer.
    unanswered_since: Instant,
    /// Whether the peer has not acknowledged it for too long, and is told again only later.
    is_resting: bool,
}

impl Pending {
    /// Whether it tells the peer this offer's SPI.
    fn offers(&self, spi: u32) -> bool {
        matches!(&self.purpose, Purpose::Rekey(offer) if offer.info.new_spi == spi)
    }

    /// Goes on after two minutes without an acknowledgement, or after the rest that follows; says whether the
    /// rest begins. Nothing is forgotten: a late acknowledgement counts.
    fn rest_or_wake(&mut self, context: &Context<'_>) -> bool {
        if self.is_resting {
            self.hurry(context);
        } else if self.unanswered_since + PATIENCE <= context.now {
            self.is_resting = true;
            self.backoff.due = context.now + REST;
        }
        self.is_resting
    }

    /// Makes it due at once, as if it had never been sent.
    fn hurry(&mut self, context: &Context<'_>) {
        self.is_resting = false;
        self.unanswered_since = context.now;
        let times = &context.config.retransmission;
        self.backoff.hurry(context.now, times);
    }

    /// Whether an acknowledgement of this number is one of this UPDATE.
    fn was_sent_as(&self, id: u32) -> bool {
        self.id == id || self.former.contains(&id)
    }

    /// True if these acknowledgements end it: a test needs its nonce, because any later UPDATE of the peer acknowledges it.
    fn is_ended_by(&self, acks: &[u32]) -> bool {
        let is_acknowledged = acks.iter().any(|&id| self.was_sent_as(id));
        is_acknowledged && !matches!(self.purpose, Purpose::Verify(_))
    }

    fn renumber(&mut self, id: u32) {
        self.former.push(core::mem::replace(&mut self.id, id));
        if self.former.len() > NUMBERS {
            self.former.remove(0);
        }
    }

    /// The nonce that only a host at `address` sees.
    fn nonce(&self, session: &Session, address: IpAddr) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_from_address(&mut bytes, address);
        let mut nonce = session.keying.rhash.mac(&self.secret, &[&bytes]);
        nonce.truncate(NONCE);
        nonce
    }
}

/// An UPDATE of the peer, and what it was answered with.
#[derive(Clone, Debug)]
struct Seen {
    id: u32,
    reply: Vec<u8>,
    /// True if it named addresses.
    has_locators: bool,
    /// Time of its last answer.
    answered: Instant,
    /// True if it has come again.
    is_repeated: bool,
    /// The last acknowledgement beside a test, and the nonce that it answers: it is signed once.
    beside: Option<(Option<Vec<u8>>, Vec<u8>)>,
}

/// An authentic UPDATE of the peer that was not taken.
#[derive(Clone, Copy, Debug)]
struct Refused {
    id: u32,
    /// Time at which it was judged last.
    judged: Instant,
    /// True if it has come again.
    is_repeated: bool,
}

/// The UPDATE packets of one association.
#[derive(Clone, Debug, Default)]
pub(crate) struct Updates {
    next_id: u32,
    pending: Vec<Pending>,
    /// The newest UPDATEs of the peer, the newest one last: each of them may come again, because its
    /// acknowledgement was lost (RFC 7401, section 6.12.1).
    seen: ArrayVec<Seen, REMEMBERED>,
    /// A newer one that is not acknowledged: it was acted on but for its offer of new keys, which came too soon. The
    /// peer repeats it.
    postponed: Option<Seen>,
    /// UPDATEs that were not taken: whoever has recorded one may repeat it.
    refused: ArrayVec<Refused, REMEMBERED>,
    /// This host's own offer of new keys.
    pub(crate) rekeying: Rekeying,
}

impl Updates {
    /// When something is sent again, or an offer has had no answer for too long.
    pub(crate) fn deadline(&self) -> Option<(Instant, Reason)> {
        let due = self.pending.iter().map(|pending| pending.backoff.due);
        let due = due.chain(self.rekeying.deadline()).min();
        due.map(|due| (due, Reason::Retransmission))
    }

    /// Whether the peer may not have this host's offer of new keys.
    pub(crate) fn has_untold_offer(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| matches!(pending.purpose, Purpose::Rekey(_)))
    }

    /// Whether the peer may not have this offer of new keys, and is being told of it.
    pub(crate) fn is_telling(&self, offer: &Offer) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| matches!(&pending.purpose, Purpose::Rekey(told) if told == offer))
    }

    /// Stops telling the peer of new keys.
    pub(crate) fn stop_offering(&mut self) {
        self.pending
            .retain(|pending| !matches!(pending.purpose, Purpose::Rekey(_)));
    }

    /// Judges an UPDATE by its numbers, before its signature is: what was heard before costs whoever repeats it more.
    fn admit(
        &mut self,
        now: Instant,
        seq: Option<u32>,
        (acks, has_right_nonce): (&[u32], bool),
    ) -> Result<(), Refusal> {
        let Some(id) = seq else {
            // One that acknowledges nothing new is dropped (RFC 7401, section 6.12.2).
            let is_new = has_right_nonce || self.pending.iter().any(|it| it.is_ended_by(acks));
            return is_new.then_some(()).ok_or(Refusal::Replay);
        };
        let pause = self.pause(now, id);
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.id == id) {
            if now.since(seen.answered) < pause {
                return Err(Refusal::Limit);
            }
            seen.answered = now;
            seen.is_repeated = true;
            return Ok(());
        }
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.id == id) {
            if now.since(refused.judged) < pause {
                return Err(Refusal::Limit);
            }
            refused.judged = now;
            refused.is_repeated = true;
        }
        // An UPDATE that newer ones have overtaken is news as long as it is known not to have been here.
        let seen = &self.seen;
        let precedes = |other: &Seen| is_before(id, other.id);
        let is_far_behind = |newest: &Seen| is_before(id.wrapping_add(WINDOW), newest.id);
        if seen.is_full() && seen.first().is_some_and(precedes)
            || seen.last().is_some_and(is_far_behind)
            || self.postponed.as_ref().is_some_and(precedes)
        {
            return Err(Refusal::Replay);
        }
        Ok(())
    }

    /// Time between two judgements of the UPDATE `id`: all that come again and again share one judgement in
    /// [`ANSWERED_AGAIN_AFTER`], and each has its turn.
    fn pause(&self, now: Instant, id: u32) -> Duration {
        let seen = self.seen.iter();
        let seen = seen.map(|it| (it.id, it.answered, it.is_repeated));
        let refused = self.refused.iter();
        let refused = refused.map(|it| (it.id, it.judged, it.is_repeated));
        let longest = ANSWERED_AGAIN_AFTER * (2 * WINDOW);
        let mut sharing = 1;
        for (other, judged, is_repeated) in seen.chain(refused) {
            if other == id && !is_repeated {
                return ANSWERED_AGAIN_AFTER;
            }
            let is_sharing = other != id && is_repeated && now.since(judged) < longest;
            sharing += u32::from(is_sharing);
        }
        ANSWERED_AGAIN_AFTER * sharing
    }

    /// The numbers that an UPDATE acknowledges: the one that it answers, and those of the peer's newest UPDATEs, whose
    /// acknowledgements may have been lost.
    fn acknowledged(&self, answered: Option<u32>) -> ArrayVec<u32, { REMEMBERED + 1 }> {
        let seen = self.seen.iter().rev().map(|seen| seen.id);
        answered.into_iter().chain(seen).collect()
    }

    /// True if an UPDATE newer than this one has named the peer's addresses.
    fn has_newer_locators(&self, id: u32) -> bool {
        let mut newer = self.seen.iter().filter(|seen| is_before(id, seen.id));
        newer.any(|seen| seen.has_locators)
    }

    /// Notes an UPDATE of the peer that was not taken.
    fn note_refused(&mut self, id: u32, now: Instant) {
        let mut known = self.refused.iter();
        let is_repeated = known.any(|known| known.id == id);
        self.refused.retain(|known| known.id != id);
        if self.refused.is_full() {
            self.refused.remove(0);
        }
        self.refused.push(Refused {
            id,
            judged: now,
            is_repeated,
        });
    }

    /// Notes an UPDATE of the peer that was acted on.
    fn note_seen(&mut self, heard: Seen) {
        if self.seen.is_full() {
            self.seen.remove(0);
        }
        let earlier = self.seen.iter().filter(|seen| is_before(seen.id, heard.id));
        let at = earlier.count();
        self.seen.insert(at, heard);
    }

    /// The time since which the peer is told this host's addresses.
    pub(crate) fn readdressing_since(&self) -> Option<Instant> {
        let mut pending = self.pending.iter();
        let told = pending.find(|pending| pending.purpose == Purpose::Readdress);
        told.map(|pending| pending.begun)
    }

    /// Stops asking the peer for a sign of life.
    pub(crate) fn stop_asking(&mut self) {
        self.pending
            .retain(|pending| pending.purpose != Purpose::Ask);
    }

    /// The number of an UPDATE that any peer acknowledges that has it.
    fn question(&self) -> Option<u32> {
        let mut pending = self.pending.iter();
        let question = pending.find(|pending| pending.purpose.has_to_be_acknowledged());
        question.map(|pending| pending.id)
    }

    /// Makes everything that waits due at once.
    pub(crate) fn hurry(&mut self, context: &Context<'_>) {
        for pending in &mut self.pending {
            pending.hurry(context);
        }
    }

    /// Makes a test that rests due at once.
    pub(crate) fn wake_test(&mut self, context: &Context<'_>) {
        let is_test = |purpose: &Purpose| matches!(purpose, Purpose::Verify(_));
        let mut pending = self.pending.iter_mut();
        if let Some(test) = pending.find(|it| it.is_resting && is_test(&it.purpose)) {
            test.hurry(context);
        }
    }

    /// Makes the UPDATE that tells this host's addresses due at once, if it still waits.
    pub(crate) fn hurry_readdressing(&mut self, context: &Context<'_>) {
        let mut pending = self.pending.iter_mut();
        if let Some(pending) = pending.find(|pending| pending.purpose == Purpose::Readdress) {
            pending.hurry(context);
        }
    }

    /// The UPDATE that tells this host's addresses, if it still waits, to go to an address of the peer that
    /// needs a test: its nonce tests the address, too. Gives its number.
    fn join_readdressing(&mut self, context: &Context<'_>) -> Option<u32> {
        let id = self.renew(context, Purpose::Readdress)?;
        self.pending
            .retain(|pending| !matches!(pending.purpose, Purpose::Verify(_)));
        Some(id)
    }

    /// The UPDATE that tests `address`. A test that is under way goes on under another number: the answer to
    /// its earlier packet still counts.
    fn begin_test(&mut self, context: &mut Context<'_>, address: IpAddr) -> u32 {
        let purpose = Purpose::Verify(address);
        let joined = self.join_readdressing(context);
        joined
            .or_else(|| self.renew(context, purpose.clone()))
            .unwrap_or_else(|| self.begin(context, purpose))
    }

    /// Gives the UPDATE of this purpose, if it still waits, another number to be sent under now.
    fn renew(&mut self, context: &Context<'_>, purpose: Purpose) -> Option<u32> {
        let mut pending = self.pending.iter_mut();
        let pending = pending.find(|pending| pending.purpose == purpose)?;
        pending.renumber(self.next_id);
        pending.backoff = Backoff::new(context.now, &context.config.retransmission);
        pending.sent_at = context.now;
        pending.unanswered_since = context.now;
        pending.is_resting = false;
        self.next_id = self.next_id.wrapping_add(1);
        Some(pending.id)
    }

    /// True if the peer has not acknowledged a renewal of the registration.
    fn is_registering(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.purpose == Purpose::Register)
    }

    /// Whether the peer is being asked whether it is at an address.
    fn is_verifying(&self) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| matches!(pending.purpose, Purpose::Verify(_)))
    }

    /// Begins an UPDATE, in place of one that is like it.
    pub(crate) fn begin(&mut self, context: &mut Context<'_>, purpose: Purpose) -> u32 {
        self.pending
            .retain(|pending| !pending.purpose.is_like(&purpose));
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.pending.push(Pending {
            id,
            former: Vec::new(),
            purpose,
            backoff: Backoff::new(context.now, &context.config.retransmission),
            begun: context.now,
            sent_at: context.now,
            secret: context.bytes(32),
            unanswered_since: context.now,
            is_resting: false,
        });
        id
    }
}

/// True if the number `a` comes before `b`: numbers go on at zero after the last one.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// An UPDATE of ours that the peer has answered.
#[derive(Clone, Copy)]
struct Answered {
    /// When it was first sent.
    begun: Instant,
    /// When it was last sent.
    sent_at: Instant,
}

impl From<&Pending> for Answered {
    fn from(pending: &Pending) -> Self {
        Self {
            begun: pending.begun,
            sent_at: pending.sent_at,
        }
    }
}

/// What comes of an UPDATE of the peer.
#[derive(Default)]
struct Outcome {
    /// The peer has acknowledged our addresses.
    told: Option<Answered>,
    /// The peer has shown that it is at an address.
    verified: Option<Answered>,
    /// The peer has named its addresses anew.
    is_renamed: bool,
    /// It is elsewhere, or has come back to where it was. Otherwise it prefers other ones of its addresses, and what
    /// this host sends still goes to the same one.
    has_moved: bool,
    /// The address that needs a test.
    to_verify: Option<IpAddr>,
    /// The peer wants to register.
    registers: bool,
    /// The peer has said something that it has not said before.
    is_sign_of_life: bool,
}

/// What a host has to do after an UPDATE of a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aftermath {
    /// The peer wants to register.
    pub(crate) registers: bool,
    /// The peer knows where this host is.
    pub(crate) is_told: bool,
}

impl Session {
    /// Tells the peer where this host is.
    pub(crate) fn readdress(&mut self, context: &mut Context<'_>, relays: &[IpAddr]) {
        self.prepare_flight(context);
        self.start(context, Purpose::Readdress, relays);
    }

    /// Renews the registration with the peer. Only the peer's grant ends that: an acknowledgement alone has it asked
    /// again, after half of what is left (RFC 2131, section 4.4.5, has a lease renewed so).
    pub(crate) fn renew_registration(&mut self, context: &mut Context<'_>) {
        let left = self.registered_until.map(|until| until.since(context.now));
        let pause = left.map_or(RENEWED_AGAIN_AFTER, |left| left / 2);
        self.renewal = Some(context.now + pause.max(RENEWED_AGAIN_AFTER));
        let is_lost = self
            .liveness
            .is_lost(context.now, context.config.unused_after);
        if !is_lost && !self.updates.is_registering() {
            self.start(context, Purpose::Register, &[]);
        }
    }

    pub(crate) fn start(&mut self, context: &mut Context<'_>, purpose: Purpose, relays: &[IpAddr]) {
        let id = self.updates.begin(context, purpose);
        self.transmit(context, id, relays);
    }

    /// Asks a peer that has left data unanswered for a sign of life, if that is due.
    pub(crate) fn ask_if_due(&mut self, context: &mut Context<'_>) {
        // Any UPDATE that waits does as well.
        if self.liveness.ask(context.now) && self.updates.question().is_none() {
            self.start(context, Purpose::Ask, &[]);
        }
    }

    /// Asks the peer once more, where an R1 has come from: the peer's other addresses may be out of date.
    pub(crate) fn ask_at(&mut self, context: &mut Context<'_>, path: Path) {
        let id = match self.updates.question() {
            Some(id) => id,
            None => self.updates.begin(context, Purpose::Readdress),
        };
        let mut pending = self.updates.pending.iter();
        let pending = pending.find(|pending| pending.id == id).cloned();
        if let Some(pending) = pending
            && let Some(packet) = self.build(context, None, &[], Some(&pending), path.remote)
        {
            context.send(&path, &packet);
        }
    }

    /// Sends again what is due.
    pub(crate) fn retransmit_updates(&mut self, context: &mut Context<'_>, relays: &[IpAddr]) {
        self.withdraw_unanswered_offer(context);
        if self
            .liveness
            .is_lost(context.now, context.config.unused_after)
        {
            // An UPDATE is not repeated for ever (RFC 7401, section 6.11).
            return self.updates.pending.clear();
        }
        self.rest_untold_answer(context);
        self.rest_vain_test(context);
        let is_due = |pending: &&mut Pending| pending.backoff.due <= context.now;
        let mut due = Vec::new();
        let Updates {
            pending, next_id, ..
        } = &mut self.updates;
        for pending in pending.iter_mut().filter(is_due) {
            pending
                .backoff
                .again(context.now, &context.config.retransmission);
            if pending.id.wrapping_add(1) != *next_id {
                pending.renumber(*next_id);
                *next_id = next_id.wrapping_add(1);
            }
            due.push(pending.id);
        }
        for id in due {
            self.transmit(context, id, relays);
        }
    }

    /// Has an answer rest that the peer has not acknowledged for too long, and go out again later: new keys are
    /// there, but this host sends under them only once the peer is known to have the answer.
    fn rest_untold_answer(&mut self, context: &mut Context<'_>) {
        let (spi, is_untold) = (self.inbound.spi, self.next_outbound.is_some());
        let mut pending = self.updates.pending.iter_mut();
        let due = pending
            .find(|pending| is_untold && pending.offers(spi) && pending.backoff.due <= context.now);
        if due.is_some_and(|answer| answer.rest_or_wake(context)) {
            self.note_failed_rekeying(context);
        }
    }

    /// Has a test rest that an address has left without an answer for too long: the peer is heard, and is not there.
    fn rest_vain_test(&mut self, context: &Context<'_>) {
        let silence = self.liveness.silence(context.now);
        let is_silent = silence >= PATIENCE && silence < context.config.unused_after;
        let mut pending = self.updates.pending.iter_mut();
        let due = pending.find(|pending| {
            matches!(pending.purpose, Purpose::Verify(_)) && pending.backoff.due <= context.now
        });
        match due {
            // Total silence says nothing of the address.
            Some(test) if is_silent && !test.is_resting => test.unanswered_since = context.now,
            Some(test) => {
                test.rest_or_wake(context);
            }
            None => {}
        }
    }

    /// Sends the UPDATE `id` on the next path; one that tells addresses also goes by the peer's
    /// rendezvous servers, because the peer may be moving, too.
    fn transmit(&mut self, context: &mut Context<'_>, id: u32, relays: &[IpAddr]) {
        let mut pending = self.updates.pending.iter_mut();
        let Some(pending) = pending.find(|pending| pending.id == id) else {
            return;
        };
        pending.sent_at = context.now;
        let pending = pending.clone();
        let candidates = match pending.purpose {
            Purpose::Verify(address) => path_to(context.locals, address).into_iter().collect(),
            _ => self.addresses.candidates(context.now, context.locals),
        };
        let turn = pending.backoff.attempts.saturating_sub(1) as usize;
        let path = candidates.get(turn % candidates.len().max(1)).copied();
        if let Some(path) = path
            && let Some(packet) = self.build(context, None, &[], Some(&pending), path.remote)
        {
            context.send(&path, &packet);
            if pending.purpose.has_to_be_acknowledged() {
                self.liveness.note_request(context.now);
            }
        }
        if pending.purpose == Purpose::Readdress {
            for path in relays
                .iter()
                .filter_map(|&relay| path_to(context.locals, relay))
            {
                // The nonce is for nobody: the server stands between.
                if let Some(packet) = self.build(context, None, &[], Some(&pending), path.remote) {
                    context.send(&path, &packet);
                }
            }
        }
    }

    /// Makes an UPDATE that acknowledges `ack`, echoes `echo`, and carries what is pending.
    fn build(
        &self,
        context: &mut Context<'_>,
        ack: Option<u32>,
        echo: &[&[u8]],
        pending: Option<&Pending>,
        to: IpAddr,
    ) -> Option<Vec<u8>> {
        let (own, peer) = (context.identity.hit(), self.peer.hit());
        let mut builder = Builder::new(PacketType::Update, own, peer);
        if let Some(pending) = pending {
            let spi = self.told_spi();
            let unchanged = EspInfo {
                keymat_index: 0,
                old_spi: spi,
                new_spi: spi,
            };
            match &pending.purpose {
                Purpose::Readdress => {
                    builder.push_with(kind::ESP_INFO, |out| unchanged.write(out));
                    let set = locator_set(context.locals, spi);
                    builder.push_with(kind::LOCATOR_SET, |out| set.write(out));
                }
                Purpose::Verify(_) => {
                    builder.push_with(kind::ESP_INFO, |out| unchanged.write(out));
                }
                Purpose::Rekey(offer) => {
                    builder.push_with(kind::ESP_INFO, |out| offer.info.write(out));
                }
                Purpose::Register | Purpose::Ask => {}
            }
            builder.push(kind::SEQ, &pending.id.to_be_bytes());
        }
        let acknowledged = self.updates.acknowledged(ack);
        if !acknowledged.is_empty() {
            builder.push_with(kind::ACK, |out| {
                out.extend(acknowledged.iter().flat_map(|id| id.to_be_bytes()));
            });
        }
        if let Some(pending) = pending {
            match &pending.purpose {
                Purpose::Readdress | Purpose::Verify(_) => {
                    builder.push(kind::ECHO_REQUEST_SIGNED, &pending.nonce(self, to));
                }
                Purpose::Register => rendezvous::push_request(&mut builder),
                Purpose::Rekey(offer) => offer.push_value(&mut builder),
                Purpose::Ask => {}
            }
        }
        for nonce in echo {
            builder.push(kind::ECHO_RESPONSE_SIGNED, nonce);
        }
        let keying = &self.keying;
        context.authenticate(builder, keying.rhash, &keying.keys.own)
    }

    /// Acts on an UPDATE of the peer.
    pub(crate) fn handle_update(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
    ) -> Result<Aftermath, Refusal> {
        self.verify_mac(message)?;
        let numbers = |kind| match message.find(kind) {
            Some(found) => u32_list(found.contents).ok_or(Refusal::Malformed),
            None => Ok(Vec::new()),
        };
        let (seq, acks) = (numbers(kind::SEQ)?, numbers(kind::ACK)?);
        if seq.len() > 1 || seq.is_empty() && acks.is_empty() {
            return Err(Refusal::Parameter);
        }
        let echoed = self.echoed(message);
        let news = (acks.as_slice(), echoed.is_some());
        self.updates
            .admit(context.now, seq.first().copied(), news)?;
        self.verify_signature(message)?;
        let mut outcome = Outcome::default();
        if let Some((address, verified)) = echoed {
            self.addresses.verify(address);
            outcome.verified = verified;
        }
        self.hear_acks(&acks, &mut outcome);
        // Before the news: they may be of the next keys.
        if !self.updates.has_untold_offer() {
            self.promote(context);
        }
        if let Some(&id) = seq.first() {
            self.hear_number(context, message, id, &mut outcome)?;
        }
        if outcome.is_sign_of_life {
            self.note_sign_of_life(context);
        }
        if !self.updates.has_untold_offer() {
            self.promote(context);
        }
        if outcome.is_renamed && outcome.to_verify.is_none() {
            // The UPDATE that went to the peer's old address may be lost.
            self.updates.hurry_readdressing(context);
        }
        if outcome.to_verify.is_some() && context.config.wakes_connections {
            self.prepare_flight(context);
            self.redirect_senders(context);
        }
        self.tell(context, message, &outcome);
        // The acknowledgement may have come by a rendezvous server, which shows nothing of an address.
        if outcome.told.is_some()
            && !self.updates.is_verifying()
            && let Some(path) = self.addresses.path(context.now, context.locals)
            && !path.is_verified
        {
            self.start(context, Purpose::Verify(path.remote), &[]);
        }
        Ok(Aftermath {
            registers: outcome.registers,
            is_told: outcome.told.is_some(),
        })
    }

    /// The address whose nonce has come back, and its test, if it had one of its own: the peer is there.
    fn echoed(&self, message: &Message<'_>) -> Option<(IpAddr, Option<Answered>)> {
        let echo = message.find(kind::ECHO_RESPONSE_SIGNED)?;
        self.updates.pending.iter().find_map(|pending| {
            let (asked, test): (Vec<IpAddr>, _) = match pending.purpose {
                Purpose::Verify(address) => (alloc::vec![address], Some(pending.into())),
                Purpose::Readdress => {
                    let known = self.addresses.known.iter();
                    (known.map(|known| known.address).collect(), None)
                }
                _ => return None,
            };
            let mut asked = asked.into_iter();
            let found =
                asked.find(|&address| pending.nonce(self, address).ct_eq(echo.contents).into());
            found.map(|address| (address, test))
        })
    }

    fn hear_acks(&mut self, acks: &[u32], outcome: &mut Outcome) {
        self.updates.pending.retain(|pending| {
            let is_acknowledged = acks.iter().any(|&id| pending.was_sent_as(id));
            outcome.is_sign_of_life |= is_acknowledged;
            match &pending.purpose {
                Purpose::Readdress if is_acknowledged => outcome.told = Some(pending.into()),
                Purpose::Rekey(offer) if is_acknowledged => self.updates.rekeying.note_told(offer),
                _ => {}
            }
            match pending.purpose {
                // Any later UPDATE of the peer acknowledges the test, but only the nonce shows where the peer is.
                Purpose::Verify(_) => outcome.verified.is_none(),
                _ => !is_acknowledged,
            }
        });
    }

    /// An UPDATE with a number: a new one, or a repetition.
    fn hear_number(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        id: u32,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        if let Some(seen) = self.updates.seen.iter().find(|seen| seen.id == id) {
            let reply = seen.reply.clone();
            self.repeat_reply(context, message, reply);
            self.acknowledge_beside_test(context, message, id);
            return Ok(());
        }
        let heard = self.hear_news(context, message, id, outcome);
        if self.updates.seen.iter().all(|seen| seen.id != id) {
            self.updates.note_refused(id, context.now);
        }
        heard
    }

    /// A repetition is answered as before, and no more is done.
    fn repeat_reply(&mut self, context: &mut Context<'_>, message: &Message<'_>, reply: Vec<u8>) {
        let verified = self
            .updates
            .pending
            .iter()
            .find_map(|pending| match pending.purpose {
                Purpose::Verify(address) => path_to(context.locals, address),
                _ => None,
            });
        let path = verified.or_else(|| self.first_candidate(context));
        if let Some(path) = path {
            context.send(&path, &echo_unsigned(reply, message));
        }
    }

    /// Acknowledges a repetition where the peer is known to be, too, while the answer goes to an address that is tested:
    /// the peer may not be there, and would repeat its UPDATE for ever. The nonce of the test is for that address alone.
    /// The answer to a request for registration has none, and is sent as it is: an acknowledgement alone grants nothing.
    fn acknowledge_beside_test(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        id: u32,
    ) {
        let path = self.addresses.path(context.now, context.locals);
        let Some(path) = path.filter(|path| path.is_verified && self.updates.is_verifying()) else {
            return;
        };
        let echo = message.find(kind::ECHO_REQUEST_SIGNED);
        let echo = echo.map(|echo| echo.contents);
        let seen = self.updates.seen.iter().find(|seen| seen.id == id);
        let known = seen.and_then(|seen| match &seen.beside {
            _ if rendezvous::wants_registration(message) => Some(&seen.reply),
            Some((answered, reply)) if answered.as_deref() == echo => Some(reply),
            _ => None,
        });
        let reply = match known.cloned() {
            Some(reply) => reply,
            None => {
                let echoes: Vec<&[u8]> = echo.into_iter().collect();
                let Some(reply) = self.build(context, Some(id), &echoes, None, path.remote) else {
                    return;
                };
                let mut seen = self.updates.seen.iter_mut();
                if let Some(seen) = seen.find(|seen| seen.id == id) {
                    seen.beside = Some((echo.map(<[u8]>::to_vec), reply.clone()));
                }
                reply
            }
        };
        context.send(&path, &echo_unsigned(reply, message));
    }

    /// The path that an UPDATE takes first.
    fn first_candidate(&mut self, context: &Context<'_>) -> Option<Path> {
        let candidates = self.addresses.candidates(context.now, context.locals);
        candidates.first().copied()
    }

    /// A new UPDATE: acts on its parameters in the order that the RFCs give, and answers.
    fn hear_news(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        id: u32,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        let locators = match message.find(kind::LOCATOR_SET) {
            Some(set) => Some(LocatorSet::parse(set.contents).map_err(|_| Refusal::Malformed)?),
            None => None,
        };
        let info = match message.find(kind::ESP_INFO) {
            Some(info) => Some(EspInfo::parse(info.contents).map_err(|_| Refusal::Malformed)?),
            None => None,
        };
        // Locators may be those of the SPI that comes with them.
        let offered = info.map(|info| info.new_spi);
        let is_known = |spi| offered == Some(spi) || self.has_outbound_spi(spi);
        let mut spis = locators.iter().flat_map(|set| &set.0);
        if spis.any(|locator| locator.spi.is_some_and(|spi| !is_known(spi))) {
            return Err(Refusal::Choice);
        }
        outcome.is_sign_of_life = true;
        let postponed = self.updates.postponed.take_if(|it| it.id == id);
        let (mut rekey_id, mut is_too_soon) = (None, false);
        if let Some(info) = info {
            match self.hear_esp_info(context, message, info) {
                // Where the peer is must not wait until it may have new keys.
                Err(Refusal::Limit) if locators.is_some() => is_too_soon = true,
                heard => rekey_id = heard?,
            }
        }
        if is_too_soon {
            context.outbox.refuse(Refusal::Limit);
        }
        let has_locators = locators.is_some();
        match (postponed, locators) {
            (Some(known), _) if is_too_soon => {
                self.repeat_reply(context, message, known.reply.clone());
                self.updates.postponed = Some(known);
                return Ok(());
            }
            // What the peer has said since counts.
            (None, Some(set)) if !self.updates.has_newer_locators(id) => {
                self.hear_locators(context, &set, outcome);
            }
            _ => {}
        }
        outcome.registers = rendezvous::wants_registration(message);
        let reply = self.answer(context, message, (id, is_too_soon, rekey_id), outcome)?;
        let heard = Seen {
            id,
            reply,
            has_locators,
            answered: context.now,
            is_repeated: false,
            beside: None,
        };
        if is_too_soon {
            self.updates.postponed = Some(heard);
        } else {
            self.updates.note_seen(heard);
            self.updates.postponed = None;
        }
        Ok(())
    }

    /// Answers a new UPDATE: acknowledges it unless its keys have come too soon, and sends what this host asks or offers.
    fn answer(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        (id, is_too_soon, rekey_id): (u32, bool, Option<u32>),
        outcome: &Outcome,
    ) -> Result<Vec<u8>, Refusal> {
        let to_verify = outcome.to_verify;
        let verify_id = to_verify.map(|address| self.updates.begin_test(context, address));
        let pending = self.updates.pending.iter();
        let mut pending = pending.filter(|pending| Some(pending.id) == verify_id.or(rekey_id));
        let pending = pending.next().cloned();
        let echo = message
            .find(kind::ECHO_REQUEST_SIGNED)
            .map(|echo| echo.contents);
        let path = match outcome.to_verify {
            Some(address) => path_to(context.locals, address),
            None => self.first_candidate(context),
        };
        let to = path.map_or_else(|| self.peer.hit().address().into(), |path| path.remote);
        let echo: Vec<&[u8]> = echo.into_iter().collect();
        let reply = if outcome.registers {
            self.registration_reply(context, id)
        } else {
            let acknowledged = (!is_too_soon).then_some(id);
            self.build(context, acknowledged, &echo, pending.as_ref(), to)
        };
        let reply = reply.ok_or(Refusal::Limit)?;
        if let Some(path) = path {
            context.send(&path, &echo_unsigned(reply.clone(), message));
        }
        Ok(reply)
    }

    /// The peer names its addresses anew.
    fn hear_locators(&mut self, context: &Context<'_>, set: &LocatorSet, outcome: &mut Outcome) {
        outcome.is_renamed = true;
        let cap = context.config.limits.addresses;
        let (now, locals) = (context.now, context.locals);
        let before = self.addresses.whereabouts(now, locals);
        outcome.to_verify = self.addresses.replace(now, set, locals, cap);
        let after = self.addresses.whereabouts(now, locals);
        outcome.has_moved = before.0 != after.0 || before.1 == after.1;
    }

    /// Acknowledges a request for registration, and grants or refuses it.
    fn registration_reply(&self, context: &mut Context<'_>, id: u32) -> Option<Vec<u8>> {
        let (own, peer) = (context.identity.hit(), self.peer.hit());
        let mut builder = Builder::new(PacketType::Update, own, peer);
        builder.push(kind::ACK, &id.to_be_bytes());
        rendezvous::push_response(&mut builder, context.config.is_rendezvous_server);
        context.authenticate(builder, self.keying.rhash, &self.keying.keys.own)
    }

    /// Tells the driver what has come of an UPDATE.
    fn tell(&mut self, context: &mut Context<'_>, message: &Message<'_>, outcome: &Outcome) {
        let peer = self.peer.hit();
        if let Some(lifetime) = rendezvous::granted(message) {
            self.note_registration(context.now, lifetime);
            context
                .outbox
                .events
                .push_back(Event::Registered { server: peer });
        }
        let answered = outcome.told.or(outcome.verified);
        let needs_no_test = outcome.is_renamed && outcome.to_verify.is_none();
        if answered.is_none() && !needs_no_test {
            return;
        }
        let Some(path) = self.addresses.path(context.now, context.locals) else {
            return;
        };
        let Answered { begun, sent_at } = answered.unwrap_or(Answered {
            begun: context.now,
            sent_at: context.now,
        });
        if answered.is_some() || outcome.has_moved {
            self.note_readdressing(context, path.remote, begun);
        }
        if context.config.wakes_connections {
            self.wake_connections(context, sent_at);
        }
    }

    /// A readdressing that has begun then is complete: data goes to this address.
    pub(crate) fn note_readdressing(
        &mut self,
        context: &mut Context<'_>,
        address: IpAddr,
        begun: Instant,
    ) {
        let (ended, peer) = (context.now, self.peer.hit());
        let took = ended.since(begun);
        self.readdressings += 1;
        self.last_readdressing = Some(Readdressing {
            address,
            ended,
            took,
        });
        context.outbox.events.push_back(Event::Readdressed {
            peer,
            address,
            took,
        });
    }
}

/// The path to one address.
fn path_to(locals: &[IpAddr], remote: IpAddr) -> Option<Path> {
    let local = crate::addresses::local_for(locals, remote)?;
    Some(Path {
        local,
        remote,
        is_verified: false,
    })
}

/// This host's addresses, the first one preferred.
fn locator_set(locals: &[IpAddr], spi: u32) -> LocatorSet {
    let locators = locals.iter().enumerate().map(|(at, &address)| Locator {
        traffic: Traffic::Both,
        is_preferred: at == 0,
        lifetime: u32::MAX,
        spi: Some(spi),
        address,
    });
    LocatorSet(locators.collect())
}
