//! The Initiator: I1, the check of R1, the puzzle, I2 and the check of R2
//! (RFC 7401, sections 5.3, 6.6, 6.8 and 6.10).

use crate::addresses::{Path, PeerAddresses};
use crate::cipher::HipCipher;
use crate::context::{
    Context, push_echoes, required, unsigned_requests, verify_signature, write_host_id,
};
use crate::effort::Source;
use crate::event::{Failure, Refusal};
use crate::group::{Group, KeyPair};
use crate::identity::PublicIdentity;
use crate::keymat::Keymat;
use crate::puzzle::{Hosts, Solver};
use crate::rendezvous;
use crate::sa::{Inbound, Outbound};
use crate::session::{Agreement, Keying, Session};
use crate::suite::EspSuite;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Hit, HostId, Message, PacketType, Puzzle, RegInfo, RegItems,
    Signature, Solution, append_parameter, kind, u16_list,
};

/// Makes an I1.
pub(crate) fn i1(own: Hit, peer: Hit) -> Option<Vec<u8>> {
    let mut builder = Builder::new(PacketType::I1, own, peer);
    builder.push(kind::DH_GROUP_LIST, &Group::ALL.map(Group::number));
    builder.finish()
}

/// What an R1 offers, checked, while its puzzle is solved.
#[derive(Debug)]
pub(crate) struct Offer {
    peer: PublicIdentity,
    pub(crate) solver: Solver,
    difficulty: u8,
    opaque: [u8; 2],
    i: Vec<u8>,
    group: Group,
    value: Vec<u8>,
    cipher: HipCipher,
    suite: EspSuite,
    /// R1_COUNTER as it came.
    counter: Option<Vec<u8>>,
    /// ECHO_REQUEST_SIGNED, and those that are not signed.
    echo_signed: Option<Vec<u8>>,
    echo_unsigned: Vec<Vec<u8>>,
    is_rendezvous_server: bool,
    /// The path that the R1 came on.
    pub(crate) path: Path,
    /// When the puzzle is no longer worth solving.
    pub(crate) ends: Instant,
}

/// Why an R1 is of no use.
pub(crate) enum Unusable {
    /// It is dropped; another one may come.
    Refused(Refusal),
    /// The exchange is over.
    Failed(Failure),
}

impl From<Refusal> for Unusable {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Checks an R1 from `peer`.
pub(crate) fn read_r1(
    context: &mut Context<'_>,
    message: &Message<'_>,
    (path, source): (Path, Source),
) -> Result<Offer, Unusable> {
    let host = required(message, kind::HOST_ID)?.contents;
    let host = HostId::parse(host).map_err(|_| Refusal::Malformed)?;
    let peer = PublicIdentity::decode(host.algorithm, host.identity);
    let peer = peer.map_err(|_| Refusal::Identity)?;
    if peer.hit() != message.sender() {
        return Err(Refusal::Identity.into());
    }
    let contents = required(message, kind::PUZZLE)?.contents;
    let puzzle = Puzzle::parse(contents).map_err(|_| Refusal::Malformed)?;
    let rhash = peer.rhash();
    if puzzle.i.len() != rhash.len() {
        return Err(Refusal::Malformed.into());
    }
    let chosen = match choose(context, message, &puzzle) {
        // Whoever calls in this host's name is sent R1 packets that are signed, and of no use here.
        Err(Unusable::Refused(refusal)) => return Err(refusal.into()),
        chosen => chosen,
    };
    let check = || {
        verify_r1_signature(message, &peer)?;
        chosen
    };
    let ((group, value), (cipher, suite)) = context.checks.run(context.now, source, check)?;
    let hosts = Hosts {
        initiator: context.identity.hit(),
        responder: peer.hit(),
    };
    let start = context.bytes(rhash.len());
    let contents = |kind| message.find(kind).map(|found| found.contents.to_vec());
    let info = message.find(kind::REG_INFO);
    let info = info.and_then(|info| RegInfo::parse(info.contents).ok());
    Ok(Offer {
        solver: Solver::new(rhash, puzzle.difficulty, puzzle.i.to_vec(), hosts, start),
        difficulty: puzzle.difficulty,
        opaque: puzzle.opaque,
        i: puzzle.i.to_vec(),
        group,
        value: value.to_vec(),
        cipher,
        suite,
        counter: contents(kind::R1_COUNTER),
        echo_signed: contents(kind::ECHO_REQUEST_SIGNED),
        echo_unsigned: unsigned_requests(message).map(<[u8]>::to_vec).collect(),
        is_rendezvous_server: info.is_some_and(|info| info.types.contains(&RegItems::RENDEZVOUS)),
        path,
        ends: context.now + crate::puzzle::lifetime(puzzle.lifetime),
        peer,
    })
}

/// A group with the Responder's value, a cipher, and a suite.
type Chosen<'a> = ((Group, &'a [u8]), (HipCipher, EspSuite));

/// Chooses among the R1's offers.
fn choose<'a>(
    context: &Context<'_>,
    message: &Message<'a>,
    puzzle: &Puzzle<'_>,
) -> Result<Chosen<'a>, Unusable> {
    if puzzle.difficulty > context.config.limits.hardest_solved {
        return Err(Unusable::Failed(Failure::Puzzle));
    }
    Ok((read_group(message)?, read_choices(message, context)?))
}

/// HIP_SIGNATURE_2 covers R1 with receiver, opaque and I zero.
fn verify_r1_signature(message: &Message<'_>, peer: &PublicIdentity) -> Result<(), Refusal> {
    let parameter = required(message, kind::HIP_SIGNATURE_2)?;
    let signature = Signature::parse(parameter.contents).map_err(|_| Refusal::Malformed)?;
    let mut covered = message.covered_before(&parameter);
    let puzzle = required(message, kind::PUZZLE)?;
    if let Some(receiver) = covered.get_mut(24..40) {
        receiver.fill(0);
    }
    // Behind type and length: difficulty, lifetime, then opaque and I.
    let contents = puzzle.offset + 4;
    if let Some(zeroed) = covered.get_mut(contents + 2..contents + puzzle.contents.len()) {
        zeroed.fill(0);
    }
    let is_right =
        signature.algorithm == peer.algorithm() && peer.verify(&covered, signature.signature);
    is_right.then_some(()).ok_or(Refusal::Signature)
}

/// The group that the Responder has chosen, if it is the right one: the first of its own list that
/// this host listed, too (RFC 7401, section 5.2.6).
fn read_group<'a>(message: &Message<'a>) -> Result<(Group, &'a [u8]), Unusable> {
    let list = required(message, kind::DH_GROUP_LIST)?.contents;
    let right = list.iter().find_map(|&number| Group::from_number(number));
    let right = right.ok_or(Unusable::Failed(Failure::NoCommonChoice("group")))?;
    let value = required(message, kind::DIFFIE_HELLMAN)?.contents;
    let value = DiffieHellman::parse(value).map_err(|_| Refusal::Malformed)?;
    if value.group != right.number() {
        return Err(Refusal::Choice.into());
    }
    Ok((right, value.value))
}

/// The first cipher and suite of the Responder's lists that this host has.
fn read_choices(
    message: &Message<'_>,
    context: &Context<'_>,
) -> Result<(HipCipher, EspSuite), Unusable> {
    let own = context.identity.hit();
    let none = |what| Unusable::Failed(Failure::NoCommonChoice(what));
    let suites = required(message, kind::HIT_SUITE_LIST)?.contents;
    if !suites
        .iter()
        .any(|&listed| Some(listed >> 4) == own.suite())
    {
        return Err(none("HIT suite"));
    }
    let formats = u16_list(required(message, kind::TRANSPORT_FORMAT_LIST)?.contents);
    if formats.is_none_or(|formats| !formats.contains(&kind::ESP_TRANSFORM)) {
        return Err(none("transport format"));
    }
    let list = |contents: &[u8]| u16_list(contents).ok_or(Refusal::Malformed);
    let ciphers = list(required(message, kind::HIP_CIPHER)?.contents)?;
    let cipher = ciphers.into_iter().find_map(HipCipher::from_number);
    let suites = required(message, kind::ESP_TRANSFORM)?.contents;
    let suites = list(suites.get(2..).unwrap_or_default())?;
    let mut suites = suites.into_iter().filter_map(EspSuite::from_number);
    let suite = suites.find(|suite| context.config.suites.contains(suite));
    Ok((
        cipher.ok_or(none("cipher"))?,
        suite.ok_or(none("ESP suite"))?,
    ))
}

/// An association that lacks only the Responder's SPI.
#[derive(Debug)]
pub(crate) struct Draft {
    peer: PublicIdentity,
    keying: Keying,
    spi: u32,
    pub(crate) path: Path,
    /// The value of R1_COUNTER.
    pub(crate) counter: Option<Vec<u8>>,
}

/// Appends what answers the R1, up to the cipher.
fn push_answer(
    builder: &mut Builder,
    offer: &Offer,
    solution: &[u8],
    (keymat_index, new_spi): (u16, u32),
    public: &[u8],
) {
    let info = EspInfo {
        keymat_index,
        old_spi: 0,
        new_spi,
    };
    builder.push_with(kind::ESP_INFO, |out| info.write(out));
    if let Some(counter) = &offer.counter {
        builder.push(kind::R1_COUNTER, counter);
    }
    let solved = Solution {
        difficulty: offer.difficulty,
        opaque: offer.opaque,
        i: &offer.i,
        j: solution,
    };
    builder.push_with(kind::SOLUTION, |out| solved.write(out));
    let value = DiffieHellman {
        group: offer.group.number(),
        value: public,
    };
    builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
    builder.push(kind::HIP_CIPHER, &offer.cipher.number().to_be_bytes());
}

/// Makes the I2 of a solved puzzle.
pub(crate) fn i2(
    context: &mut Context<'_>,
    offer: Offer,
    solution: &[u8],
    registers: bool,
) -> Result<(Draft, Vec<u8>), Failure> {
    let own = context.identity.hit();
    let keys = Arc::new(KeyPair::new(offer.group, context.random));
    let no_group = Failure::NoCommonChoice("group");
    let secret = keys.agree(&offer.value).ok_or(no_group)?;
    let (rhash, hosts) = (offer.peer.rhash(), [own, offer.peer.hit()]);
    let keymat = Keymat::new(rhash, secret, &offer.i, solution, hosts);
    let agreement = Agreement {
        own: Arc::clone(&keys),
        peer: offer.value.clone(),
    };
    let choices = (offer.cipher, offer.suite);
    let source = (keymat, agreement, !context.config.rekeying.has_new_secret);
    let keying = Keying::new(source, rhash, choices, hosts).ok_or(no_group)?;
    let spi = context.new_spi();
    let mut builder = Builder::new(PacketType::I2, own, offer.peer.hit());
    push_answer(
        &mut builder,
        &offer,
        solution,
        (keying.esp_index, spi),
        keys.public(),
    );
    let mut inside = Vec::new();
    append_parameter(&mut inside, kind::HOST_ID, |out| {
        write_host_id(out, context.identity.public());
    });
    let sealed = offer
        .cipher
        .seal(&keying.keys.own.encryption, &inside, context.random);
    builder.push(kind::ENCRYPTED, &sealed.ok_or(no_group)?);
    if registers && offer.is_rendezvous_server {
        rendezvous::push_request(&mut builder);
    }
    if let Some(echo) = &offer.echo_signed {
        builder.push(kind::ECHO_RESPONSE_SIGNED, echo);
    }
    builder.push(
        kind::TRANSPORT_FORMAT_LIST,
        &kind::ESP_TRANSFORM.to_be_bytes(),
    );
    let [high, low] = offer.suite.number().to_be_bytes();
    builder.push(kind::ESP_TRANSFORM, &[0, 0, high, low]);
    let mac = rhash.mac(&keying.keys.own.integrity, &[&builder.covered()]);
    builder.push(kind::HIP_MAC, &mac);
    context
        .sign(&mut builder, kind::HIP_SIGNATURE)
        .ok_or(no_group)?;
    push_echoes(
        &mut builder,
        offer.echo_unsigned.iter().map(Vec::as_slice),
        0,
    );
    let packet = builder.finish().ok_or(no_group)?;
    let draft = Draft {
        peer: offer.peer,
        keying,
        spi,
        path: offer.path,
        counter: offer.counter,
    };
    Ok((draft, packet))
}

impl Draft {
    /// The SPI that the peer will send under.
    pub(crate) const fn spi(&self) -> u32 {
        self.spi
    }

    /// Checks that a notification bears the peer's signature.
    pub(crate) fn check_notify(
        &self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        source: Source,
    ) -> Result<(), Refusal> {
        let check = || verify_signature(message, &self.peer);
        context.checks.run(context.now, source, check)
    }

    /// Checks an R2.
    pub(crate) fn check_r2(&self, message: &Message<'_>) -> Result<EspInfo, Refusal> {
        let mac = required(message, kind::HIP_MAC_2)?;
        let mut covered = Builder::continuing(&message.covered_before(&mac), 0);
        covered.push_with(kind::HOST_ID, |out| write_host_id(out, &self.peer));
        let keys = &self.keying.keys.peer;
        let covered = covered.covered();
        if !self
            .keying
            .rhash
            .mac_is_right(&keys.integrity, &[&covered], mac.contents)
        {
            return Err(Refusal::Mac);
        }
        verify_signature(message, &self.peer)?;
        let info = required(message, kind::ESP_INFO)?.contents;
        let info = EspInfo::parse(info).map_err(|_| Refusal::Malformed)?;
        let is_right =
            info.keymat_index == self.keying.esp_index && info.old_spi == 0 && info.new_spi > 255;
        is_right.then_some(info).ok_or(Refusal::Choice)
    }

    /// The association, once the R2 is checked.
    pub(crate) fn complete(
        self,
        context: &Context<'_>,
        info: EspInfo,
        configured: &[IpAddr],
    ) -> Option<Session> {
        let ciphers = self.keying.esp_ciphers()?;
        let inbound = Inbound::new(self.spi, ciphers.peer);
        let outbound = Outbound::new(info.new_spi, ciphers.own);
        let cap = context.config.limits.addresses;
        let addresses = PeerAddresses::new(context.now, self.path.remote, configured, cap);
        let associations = (inbound, outbound);
        Some(Session::new(
            context.now,
            self.peer,
            self.keying,
            associations,
            addresses,
        ))
    }
}
