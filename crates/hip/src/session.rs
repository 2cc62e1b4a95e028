//! What both hosts hold once a base exchange is done: keys, security associations, addresses.

use crate::addresses::{Path, PeerAddresses};
use crate::association::Data;
use crate::beet;
use crate::cipher::HipCipher;
use crate::context::{Context, verify_mac, verify_signature};
use crate::event::{Event, Protocol, Refusal, Transmit};
use crate::first_flight::FirstFlight;
use crate::group::{Group, KeyPair};
use crate::identity::PublicIdentity;
use crate::keymat::{HipKeys, Keymat, Pair};
use crate::liveness::Liveness;
use crate::recent::{ERRORS, Ports, Recent, Sent, TCP, Wake, Working};
use crate::rhash::Rhash;
use crate::sa::{Inbound, Outbound};
use crate::suite::{EspCipher, EspSuite};
use crate::update::Updates;
use crate::volume::{Readdressing, Volume};
use alloc::sync::Arc;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{EspHeader, Hit, Message};

/// How long packets under replaced keys are still opened, from the first packet under the new ones.
const OLD_KEYS: Duration = Duration::from_secs(60);

/// How exactly it is known when an association was last used: its deadline need not move with each packet.
const USE_STEP: Duration = Duration::from_secs(1);

/// How long a peer is silent that may have been out of reach.
const SILENCE: Duration = Duration::from_millis(100);

/// Bytes that ESP adds at most to a payload, for the credit.
const ESP_OVERHEAD: usize = 64;

/// What a secret is agreed on with: this host's key pair, and the peer's public value.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) own: Arc<KeyPair>,
    pub(crate) peer: Vec<u8>,
}

/// What is left of an agreement once there is a secret.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) group: Group,
    /// This host's key pair, if it may make offers without a new one. Otherwise nothing of it is left: whoever
    /// gets hold of this host's memory later does not learn the secret from it.
    pub(crate) own: Option<Arc<KeyPair>>,
    pub(crate) peer: Vec<u8>,
}

impl Agreed {
    fn new(agreement: Agreement, keeps_pair: bool) -> Self {
        let Agreement { own, peer } = agreement;
        Self {
            group: own.group(),
            own: keeps_pair.then_some(own),
            peer,
        }
    }
}

/// Keys, and where more come from.
#[derive(Debug)]
pub(crate) struct Keying {
    keymat: Keymat,
    /// What the secret of `keymat` comes from. A later rekeying may replace one half of it only.
    pub(crate) agreed: Agreed,
    /// Whether a later rekeying may need this host's key pair.
    keeps_pair: bool,
    pub(crate) rhash: Rhash,
    pub(crate) cipher: HipCipher,
    pub(crate) suite: EspSuite,
    pub(crate) keys: Pair<HipKeys>,
    /// Where the keys of the newest security associations begin.
    pub(crate) esp_index: u16,
    own: Hit,
    peer: Hit,
}

impl Keying {
    /// Draws the keys for HIP packets of the first of `hosts`; keeps its key pair only if it is told to.
    pub(crate) fn new(
        (keymat, agreement, keeps_pair): (Keymat, Agreement, bool),
        rhash: Rhash,
        (cipher, suite): (HipCipher, EspSuite),
        [own, peer]: [Hit; 2],
    ) -> Option<Self> {
        Some(Self {
            keys: keymat.hip_keys(cipher, own, peer)?,
            esp_index: keymat.esp_index(cipher),
            keymat,
            agreed: Agreed::new(agreement, keeps_pair),
            keeps_pair,
            rhash,
            cipher,
            suite,
            own,
            peer,
        })
    }

    /// Ciphers for data with the keys at the present index.
    pub(crate) fn esp_ciphers(&self) -> Option<Pair<EspCipher>> {
        self.ciphers(&self.keymat, self.esp_index)
    }

    fn ciphers(&self, keymat: &Keymat, index: u16) -> Option<Pair<EspCipher>> {
        let keys = keymat.esp_keys(self.suite, index, self.own, self.peer)?;
        Some(Pair {
            own: EspCipher::new(self.suite, &keys.own)?,
            peer: EspCipher::new(self.suite, &keys.peer)?,
        })
    }

    /// Moves on to the keys at `index` of the same material; nothing, and no change, if it has run out.
    pub(crate) fn advance(&mut self, index: u16) -> Option<Pair<EspCipher>> {
        let ciphers = self.ciphers(&self.keymat, index)?;
        self.esp_index = index;
        Some(ciphers)
    }

    /// Moves on to the first keys of the material of another secret; nothing, and no change, if the peer's value is
    /// none of the group.
    pub(crate) fn renew(&mut self, agreement: Agreement) -> Option<Pair<EspCipher>> {
        let secret = agreement.own.agree(&agreement.peer)?;
        let keymat = self.keymat.renewed(secret);
        let ciphers = self.ciphers(&keymat, 0)?;
        self.keymat = keymat;
        self.agreed = Agreed::new(agreement, self.keeps_pair);
        self.esp_index = 0;
        Some(ciphers)
    }

    /// Where the keys of the next security associations begin.
    pub(crate) const fn next_index(&self) -> u16 {
        self.esp_index.saturating_add(self.drawn())
    }

    /// Whether the material has keys for the next security associations.
    pub(crate) fn has_more(&self) -> bool {
        let end = usize::from(self.next_index()) + usize::from(self.drawn());
        self.keymat.bytes(end).is_some()
    }

    /// Bytes that the keys of both directions take.
    const fn drawn(&self) -> u16 {
        let (encryption, authentication) = self.suite.key_lens();
        2 * (encryption + authentication) as u16
    }
}

/// The answer to an I2, for repetitions.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The mark of its solution.
    pub(crate) mark: Vec<u8>,
    /// The R2.
    pub(crate) packet: Vec<u8>,
}

/// An association with keys.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: PublicIdentity,
    pub(crate) keying: Keying,
    pub(crate) inbound: Inbound,
    /// The replaced association, and its end once the peer sends under the new one.
    pub(crate) previous: Option<(Inbound, Option<Instant>)>,
    pub(crate) outbound: Outbound,
    /// The SPI that this host sent under before: the peer may name it until it knows that this host has the new one.
    former_outbound_spi: Option<u32>,
    /// The replacement, until the peer is known to have it.
    pub(crate) next_outbound: Option<Outbound>,
    pub(crate) addresses: PeerAddresses,
    pub(crate) updates: Updates,
    pub(crate) answered: Option<Answered>,
    /// When data was last sent or received, to [`USE_STEP`].
    pub(crate) last_used: Instant,
    /// When something was last received.
    last_heard: Instant,
    pub(crate) liveness: Liveness,
    /// The last segments of TCP connections.
    pub(crate) recent: Recent,
    /// What goes out first after a move of several connections.
    pub(crate) first_flight: Option<FirstFlight>,
    /// When this host's registration with the peer is to be renewed.
    pub(crate) renewal: Option<Instant>,
    /// When that registration ends unless it is renewed.
    pub(crate) registered_until: Option<Instant>,
    /// What went to the peer.
    pub(crate) sent: Volume,
    /// What came from the peer.
    pub(crate) received: Volume,
    /// How often a readdressing was complete.
    pub(crate) readdressings: u64,
    pub(crate) last_readdressing: Option<Readdressing>,
    /// When the keys for data were drawn.
    pub(crate) keys_since: Instant,
    /// How often keys for data were replaced.
    pub(crate) rekeyings: u64,
    /// How often the peer has not answered an offer of new keys, or not acknowledged an answer.
    pub(crate) failed_rekeyings: u64,
}

impl Session {
    pub(crate) fn new(
        now: Instant,
        peer: PublicIdentity,
        keying: Keying,
        (inbound, outbound): (Inbound, Outbound),
        addresses: PeerAddresses,
    ) -> Self {
        Self {
            peer,
            keying,
            inbound,
            previous: None,
            outbound,
            former_outbound_spi: None,
            next_outbound: None,
            addresses,
            updates: Updates::default(),
            answered: None,
            last_used: now,
            last_heard: now,
            liveness: Liveness::new(now),
            recent: Recent::default(),
            first_flight: None,
            renewal: None,
            registered_until: None,
            sent: Volume::default(),
            received: Volume::default(),
            readdressings: 0,
            last_readdressing: None,
            keys_since: now,
            rekeyings: 0,
            failed_rekeyings: 0,
        }
    }

    /// Checks the MAC of a message of the peer, which costs little.
    pub(crate) fn verify_mac(&self, message: &Message<'_>) -> Result<(), Refusal> {
        verify_mac(message, self.keying.rhash, &self.keying.keys.peer)
    }

    /// Checks the signature of a message of the peer.
    pub(crate) fn verify_signature(&self, message: &Message<'_>) -> Result<(), Refusal> {
        verify_signature(message, &self.peer)
    }

    /// The SPIs that this host receives under.
    pub(crate) fn spis(&self) -> impl Iterator<Item = u32> {
        let previous = self.previous.iter().map(|(inbound, _)| inbound.spi);
        core::iter::once(self.inbound.spi)
            .chain(previous)
            .chain(self.updates.rekeying.offered_spi())
    }

    /// True if this host sends under an SPI, is about to, or did before the last rekeying.
    pub(crate) fn has_outbound_spi(&self, spi: u32) -> bool {
        let next = self.next_outbound.as_ref().map(|next| next.spi);
        spi == self.outbound.spi || [next, self.former_outbound_spi].contains(&Some(spi))
    }

    /// The SPI of this host that the peer knows: the former one while the peer may not have the answer to its offer.
    pub(crate) fn told_spi(&self) -> u32 {
        let previous = self.previous.as_ref();
        let former = previous.filter(|_| self.updates.has_untold_offer());
        former.map_or(self.inbound.spi, |(former, _)| former.spi)
    }

    /// Opens an ESP packet of the peer.
    pub(crate) fn open(
        &mut self,
        context: &mut Context<'_>,
        packet: &[u8],
    ) -> Result<(u8, Vec<u8>), Refusal> {
        let (header, _) = EspHeader::parse(packet).map_err(|_| Refusal::Malformed)?;
        let opened = match &mut self.previous {
            Some((previous, _)) if previous.spi == header.spi => previous.open(packet)?,
            _ if self.inbound.spi == header.spi => {
                let opened = self.inbound.open(packet)?;
                // The peer sends under the new keys, so it has them.
                self.promote(context);
                if let Some((_, until @ None)) = &mut self.previous {
                    *until = Some(context.now + OLD_KEYS);
                }
                opened
            }
            _ => return Err(Refusal::UnknownSpi),
        };
        self.note_use(context.now);
        self.last_heard = context.now;
        self.note_sign_of_life(context);
        self.addresses.earn(context.now, packet.len());
        self.received.note(beet::HEADER_LEN + opened.1.len());
        if context.config.wakes_connections {
            let (next, segment) = &opened;
            let heard = self.recent.note_received(context.now, *next, segment);
            if let (Some(flight), Some(it)) = (&mut self.first_flight, &heard.acknowledged) {
                flight.note_acknowledged(context.now, it);
            }
            if let Some(missing) = heard.missing {
                self.repeat(context, missing);
            }
        }
        Ok(opened)
    }

    fn note_use(&mut self, now: Instant) {
        if now.since(self.last_used) >= USE_STEP {
            self.last_used = now;
        }
    }

    /// Notes that the peer holds its end of the association: nobody needs to ask it. Where it owed this for long, an
    /// address may work again, too.
    pub(crate) fn note_sign_of_life(&mut self, context: &Context<'_>) {
        if self.liveness.is_asked() {
            self.updates.wake_test(context);
        }
        self.liveness.note_heard(context.now);
        self.updates.stop_asking();
    }

    /// Goes on with the connections of the association that this one replaces. If either host has moved meanwhile, the
    /// exchange was a readdressing, too.
    pub(crate) fn inherit(&mut self, context: &mut Context<'_>, mut former: Self) {
        let (now, locals) = (context.now, context.locals);
        let was_at = former.addresses.path(now, locals);
        let begun = former.updates.readdressing_since();
        self.readdressings = former.readdressings;
        self.last_readdressing = former.last_readdressing;
        self.recent = former.recent;
        self.first_flight = former.first_flight;
        let Some(path) = self.addresses.path(now, locals) else {
            return;
        };
        let is_there = |was_at: Path| was_at.is_verified && was_at.remote == path.remote;
        if !was_at.is_some_and(is_there) || begun.is_some() {
            self.note_readdressing(context, path.remote, begun.unwrap_or(now));
        }
        if context.config.wakes_connections {
            self.wake_connections(context, now);
        }
    }

    /// The peer has registered this host.
    pub(crate) fn note_registration(&mut self, now: Instant, lifetime: Duration) {
        self.renewal = Some(now + lifetime / 2);
        self.registered_until = Some(now + lifetime);
    }

    /// Sends under the replacement from now on, if there is one.
    pub(crate) fn promote(&mut self, context: &mut Context<'_>) {
        if let Some(next) = self.next_outbound.take() {
            let former = core::mem::replace(&mut self.outbound, next);
            self.former_outbound_spi = Some(former.spi);
            self.rekeyings += 1;
            let peer = self.peer.hit();
            context.outbox.events.push_back(Event::Rekeyed { peer });
        }
    }

    /// Installs new security associations under new keys.
    pub(crate) fn replace(&mut self, now: Instant, inbound: Inbound, outbound: Outbound) {
        let old = core::mem::replace(&mut self.inbound, inbound);
        // The peer may go on under the old keys for as long as the answer to its offer is lost.
        self.previous = Some((old, None));
        self.next_outbound = Some(outbound);
        self.keys_since = now;
    }

    /// The path that data may take now; nothing if it has to wait.
    fn path(&mut self, context: &Context<'_>, bytes: usize) -> Option<Path> {
        let path = self.addresses.path(context.now, context.locals)?;
        let may_go = path.is_verified
            || context.config.has_credit && self.addresses.spend(context.now, bytes + ESP_OVERHEAD);
        may_go.then_some(path)
    }

    /// Seals and sends data; gives it back if it has to wait.
    pub(crate) fn send_data(
        &mut self,
        context: &mut Context<'_>,
        mut data: Data,
    ) -> Result<(), Data> {
        let Some(path) = self.path(context, data.payload.len()) else {
            return Err(data);
        };
        let acts_on_tcp = context.config.wakes_connections && data.next == TCP;
        if acts_on_tcp {
            data = self.recent.refresh(context.now, data, self.hits(context));
            if let Some(flight) = &mut self.first_flight {
                flight.note_sent(&data);
            }
        }
        self.liveness.note_data(context.now);
        // Data that goes nowhere is no use (RFC 7401, section 6.11).
        if !self.liveness.is_asked() {
            self.note_use(context.now);
        }
        match self.outbound.seal(data.next, &data.payload, context.random) {
            Some(packet) => {
                context.outbox.counters.sealed += 1;
                self.sent.note(beet::HEADER_LEN + data.payload.len());
                context.outbox.transmits.push_back(Transmit {
                    source: path.local,
                    destination: path.remote,
                    protocol: Protocol::Esp,
                    payload: packet,
                });
            }
            None => context.outbox.refuse(Refusal::Limit),
        }
        if acts_on_tcp {
            let path = [path.local, path.remote];
            self.recent.note_sent(context.now, data, path);
        }
        Ok(())
    }

    /// Gives data back that may go now; what is to wait for other connections is kept.
    pub(crate) fn admit(&mut self, data: Data) -> Option<Data> {
        match &mut self.first_flight {
            Some(flight) => flight.admit(data),
            None => Some(data),
        }
    }

    /// Sends what has waited for other connections, as far as it may go now.
    pub(crate) fn release(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        while let Some(data) = self.first_flight.as_mut().and_then(|it| it.next(now)) {
            if let Err(data) = self.send_data(context, data) {
                if let Some(flight) = &mut self.first_flight {
                    flight.put_back(now, data);
                }
                return;
            }
        }
        self.first_flight.take_if(|flight| flight.is_over(now));
    }

    /// Has connections take turns that will go on at once, if the peer has been silent: what waits for a path may reach
    /// it before it is known to.
    pub(crate) fn prepare_flight(&mut self, context: &Context<'_>) {
        if context.now.since(self.last_heard) >= SILENCE {
            let senders = self.recent.senders();
            self.begin_flight(context, &senders, None);
        }
    }

    /// Has these connections take turns, if there are several.
    fn begin_flight(
        &mut self,
        context: &Context<'_>,
        senders: &[Ports],
        round_trip: Option<Duration>,
    ) {
        let config = context.config;
        if config.takes_turns && config.wakes_connections && senders.len() > 1 {
            let former = self.first_flight.take();
            let since = (context.now, round_trip);
            self.first_flight = Some(FirstFlight::begin(since, senders, former));
        }
    }

    /// This host's tag and the peer's.
    fn hits(&self, context: &Context<'_>) -> [Hit; 2] {
        [context.identity.hit(), self.peer.hit()]
    }

    /// Has each TCP sender go on whose last data took another path than the present one, which is not verified
    /// yet, if the credit has room for all of them. Acknowledgements wait for the verification: they release
    /// whole windows, which then fill the path's queue before the answer to a single line is in it.
    pub(crate) fn redirect_senders(&mut self, context: &mut Context<'_>) {
        let Some((working, _)) = self.working(context, Instant::ZERO) else {
            return;
        };
        let missing = self.recent.missing(working);
        let bytes = missing.map(|data| data.payload.len() + ESP_OVERHEAD).sum();
        if context.config.has_credit && self.addresses.affords(context.now, bytes) {
            let hosts = self.hits(context);
            let wakes = self.recent.wake_senders(context.now, hosts, working);
            self.act(context, wakes);
        }
    }

    /// Has each TCP connection move again, now that a path works since then. One that is not verified yet may not
    /// take what is sent again; its verification ends in another call.
    pub(crate) fn wake_connections(&mut self, context: &mut Context<'_>, since: Instant) {
        if let Some((working, true)) = self.working(context, since) {
            let hosts = self.hits(context);
            let senders = self.recent.senders();
            let wakes = self.recent.wake(context.now, hosts, working);
            if !wakes.is_empty() {
                self.begin_flight(context, &senders, Some(context.now.since(since)));
            }
            self.act(context, wakes);
        }
    }

    /// The present path, and whether it is verified.
    fn working(&mut self, context: &Context<'_>, since: Instant) -> Option<(Working, bool)> {
        let path = self.addresses.path(context.now, context.locals)?;
        let working = Working {
            path: [path.local, path.remote],
            since,
        };
        Some((working, path.is_verified))
    }

    /// Has those TCP connections move again that were told to, and have not.
    pub(crate) fn wake_silent(&mut self, context: &mut Context<'_>) {
        let hosts = self.hits(context);
        let wakes = self.recent.wake_silent(context.now, hosts);
        self.act(context, wakes);
    }

    fn act(&mut self, context: &mut Context<'_>, wakes: Vec<Wake>) {
        for wake in wakes {
            match wake {
                Wake::Tell(error) => {
                    let errors = core::iter::repeat_n(error, ERRORS);
                    context.outbox.deliveries.extend(errors);
                }
                Wake::Shorten(error) => context.outbox.deliveries.push_back(error),
                Wake::Repeat(sent) => self.repeat(context, sent),
            }
        }
    }

    /// Sends a segment again, if it may go now.
    fn repeat(&mut self, context: &mut Context<'_>, sent: Sent) {
        if let Err(data) = self.send_data(context, sent.data) {
            self.recent.put_back(Sent { data, ..sent });
        }
    }

    /// Whether the keys for data have served their time.
    pub(crate) fn needs_new_keys(&self, context: &Context<'_>) -> bool {
        let limits = &context.config.rekeying;
        let sent = &self.outbound;
        let is_old = sent.sequence > 0 && context.now.since(self.keys_since) >= limits.lifetime;
        self.next_outbound.is_none() && (is_old || self.has_used_up_keys(context))
    }

    /// Whether as much was sent under the keys as may be.
    pub(crate) fn has_used_up_keys(&self, context: &Context<'_>) -> bool {
        let (sent, limits) = (&self.outbound, &context.config.rekeying);
        sent.sequence >= limits.packets || sent.bytes >= limits.bytes
    }
}
