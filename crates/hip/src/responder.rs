//! The Responder: R1 packets made beforehand, puzzles without state, and the answer to I2
//! (RFC 7401, sections 4.1, 5.3.2, 6.7 and 6.9).
//!
//! The number I of a puzzle is a MAC over both hosts and their addresses, so that an I1 leaves no
//! trace. A generation of Diffie-Hellman keys and puzzles lasts two minutes; a solution counts
//! once, and until the generation after it ends. Under a flood of I1 or I2 packets the puzzles get
//! harder, and no more R1 packets leave in a second than the cap says.
//!
//! An I2 is checked in the order of costs: whether the policy admits the sender, whether the puzzle is one of this host
//! and is solved, whether the solution has come before or has failed before, whether it was hard enough for what
//! forged I2 packets have cost of late ([`Effort`]), and whether all choices were offered. Only then come the
//! Diffie-Hellman agreement, the MAC and the signature. A solution that is too easy by now is answered with a puzzle
//! that is not: the address is one at which the sender was seen. The R1 counter grows with each generation and with
//! the puzzle, so that an Initiator in I2-SENT takes that R1 (section 6.8).

use crate::addresses::{Path, PeerAddresses};
use crate::cipher::HipCipher;
use crate::context::{
    Context, parameter_len, push_echoes, push_host_id, required, unsigned_requests, verify_mac,
    verify_signature, write_host_id,
};
use crate::effort::Effort;
use crate::event::Refusal;
use crate::group::{Group, KeyPair};
use crate::identity::{Identity, PublicIdentity};
use crate::keymat::Keymat;
use crate::puzzle::{self, Hosts};
use crate::rate::{Answers, Load};
use crate::rendezvous;
use crate::rhash::Rhash;
use crate::sa::{Inbound, Outbound};
use crate::session::{Agreement, Answered, Keying, Session};
use crate::suite::EspSuite;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Hit, HostId, Message, PacketType, Parameters, Puzzle,
    Solution, kind, u16_list, write_from_address,
};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// How long one set of keys and puzzles is given out.
const GENERATION: Duration = Duration::from_secs(120);

/// The coded lifetime of a puzzle: 2^(38 - 32) seconds, less than a generation.
const PUZZLE_LIFETIME: u8 = 38;

/// Bits of the first puzzle under load.
const FIRST_HARD_PUZZLE: u8 = 10;

/// Solutions that are remembered for each generation.
const MOST_SOLUTIONS: usize = 65_536;

/// Failures after which a solution counts no more. One could be that of a host that has seen an honest I2 and
/// sends a copy ahead of it.
const MOST_FAILURES: u8 = 2;

/// Bytes of an address in VIA_RVS.
const ADDRESS: usize = 16;

/// Steps of the R1 counter that a start of the host is ahead of the former one.
const COUNTER_STEPS: u64 = 1 << 16;

/// An R1 that lacks its receiver, and the I and opaque of its puzzle.
#[derive(Debug)]
struct Template {
    packet: Vec<u8>,
    /// Where the contents of PUZZLE begin.
    puzzle_at: usize,
}

/// Keys and puzzles of one period.
#[derive(Debug)]
struct Generation {
    number: u16,
    begun: Instant,
    keys: BTreeMap<Group, Arc<KeyPair>>,
    templates: BTreeMap<(Group, u8), Template>,
    /// Solutions that have made an association.
    solved: BTreeSet<Vec<u8>>,
    /// Solutions of I2 packets that were not authentic, and how many were: no more than there were tokens.
    failed: BTreeMap<Vec<u8>, u8>,
    /// Generations before this one.
    age: u64,
}

impl Generation {
    const fn new(number: u16, begun: Instant, age: u64) -> Self {
        Self {
            number,
            begun,
            keys: BTreeMap::new(),
            templates: BTreeMap::new(),
            solved: BTreeSet::new(),
            failed: BTreeMap::new(),
            age,
        }
    }
}

/// Puzzles that were replaced in this second because they were too easy by then, by their numbers: each once, so that
/// an attacker with many solutions of one puzzle takes no answer from others.
#[derive(Debug, Default)]
struct Outgrown {
    second: u64,
    numbers: BTreeSet<Vec<u8>>,
}

impl Outgrown {
    /// Notes a puzzle; true if it is the first time in this second, and one of the first `limit` puzzles.
    fn is_first(&mut self, now: Instant, number: &[u8], limit: u32) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.numbers.clear();
        }
        let has_room = self.numbers.len() < limit as usize;
        has_room && !self.numbers.contains(number) && self.numbers.insert(number.to_vec())
    }
}

/// The Responder's part of a host.
pub(crate) struct Responder {
    secret: Zeroizing<[u8; 32]>,
    current: Generation,
    previous: Option<Generation>,
    i1: Answers,
    /// I2 packets, whatever comes of them: each costs at least a MAC and a hash.
    i2_load: Load,
    outgrown: Outgrown,
    effort: Effort,
}

impl core::fmt::Debug for Responder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Responder")
            .field("i1", &self.i1)
            .field("i2_load", &self.i2_load)
            .finish_non_exhaustive()
    }
}

/// A base exchange that has succeeded here.
pub(crate) struct Accepted {
    pub(crate) session: Session,
    /// Whether the peer wants to register.
    pub(crate) registers: bool,
}

/// Why an I2 made no association.
pub(crate) enum Rejection {
    /// It is dropped.
    Refused(Refusal),
    /// It solves a puzzle that was solved before, with this mark.
    Solved(Vec<u8>),
    /// There is no room for another association.
    Busy,
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Where an I1 came from.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// Between which addresses the R1 goes.
    pub(crate) path: Path,
    /// The rendezvous server that has forwarded it.
    pub(crate) via: Option<IpAddr>,
}

impl Responder {
    pub(crate) fn new(now: Instant, random: &mut dyn rand_core::CryptoRng) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill_bytes(secret.as_mut());
        Self {
            secret,
            current: Generation::new(random.next_u32() as u16, now, 0),
            previous: None,
            i1: Answers::default(),
            i2_load: Load::default(),
            outgrown: Outgrown::default(),
            effort: Effort::new(now),
        }
    }

    fn rotate(&mut self, now: Instant) {
        let age = now.since(self.current.begun);
        if age >= GENERATION {
            let (number, count) = (self.current.number, self.current.age);
            let next = Generation::new(number.wrapping_add(1), now, count + 1);
            let last = core::mem::replace(&mut self.current, next);
            self.previous = (age < GENERATION * 2).then_some(last);
        }
        if let Some(previous) = &self.previous
            && now.since(previous.begun) >= GENERATION * 2
        {
            self.previous = None;
        }
    }

    /// The number I of a puzzle: a MAC, so that it needs no memory.
    fn number(
        &self,
        rhash: Rhash,
        opaque: [u8; 2],
        difficulty: u8,
        hosts: Hosts,
        path: &Path,
    ) -> Vec<u8> {
        let mut addresses = Vec::new();
        write_from_address(&mut addresses, path.remote);
        write_from_address(&mut addresses, path.local);
        let parts: [&[u8]; 5] = [
            &opaque,
            &[difficulty],
            &hosts.initiator.0,
            &hosts.responder.0,
            &addresses,
        ];
        rhash.mac(self.secret.as_ref(), &parts)
    }

    /// Counts an I1 that is to be answered: by an R1, or by an I1 where two exchanges cross. Anybody can write where
    /// it comes from.
    pub(crate) fn admit_i1(
        &mut self,
        context: &Context<'_>,
        origin: Origin,
    ) -> Result<(), Refusal> {
        let limit = context.config.limits.r1_per_second;
        self.i1.admit(context.now, origin.path.remote, limit)
    }

    /// Answers an I1 with an R1.
    pub(crate) fn answer_i1(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        origin: Origin,
    ) -> Result<(), Refusal> {
        let offered = required(message, kind::DH_GROUP_LIST)?.contents;
        // The first of our own that the Initiator has; if there is none, any (section 5.2.6).
        let common = Group::ALL
            .into_iter()
            .find(|group| offered.contains(&group.number()));
        let group = common.unwrap_or(Group::Modp1536);
        self.rotate(context.now);
        self.admit_i1(context, origin)?;
        self.send_r1(context, message, group, origin)
    }

    /// Bits of the puzzle that a newcomer gets.
    fn difficulty(&mut self, context: &Context<'_>) -> u8 {
        let (now, limits) = (context.now, &context.config.limits);
        let rate = self.i1.rate(now).max(self.i2_load.rate(now));
        let by_load = match rate / limits.easy_exchanges_per_second.max(1) {
            0 => 0,
            excess => (FIRST_HARD_PUZZLE + excess.ilog2() as u8).min(limits.hardest_posed),
        };
        by_load.max(self.effort.posed(now, limits.hardest_posed))
    }

    fn send_r1(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        group: Group,
        origin: Origin,
    ) -> Result<(), Refusal> {
        let difficulty = self.difficulty(context);
        let hosts = Hosts {
            initiator: message.sender(),
            responder: context.identity.hit(),
        };
        let rhash = context.identity.public().rhash();
        let opaque = self.current.number.to_be_bytes();
        let number = self.number(rhash, opaque, difficulty, hosts, &origin.path);
        let generation = &mut self.current;
        let start = context.config.r1_counter.saturating_mul(COUNTER_STEPS);
        let counter = start.saturating_add(generation.age * 32 + u64::from(difficulty));
        let keys = generation.keys.entry(group);
        let keys = keys.or_insert_with(|| Arc::new(KeyPair::new(group, context.random)));
        let template = match generation.templates.entry((group, difficulty)) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(place) => {
                let made = template(context, keys, difficulty, counter).ok_or(Refusal::Limit)?;
                place.insert(made)
            }
        };
        let mut packet = template.packet.clone();
        let puzzle = Puzzle {
            difficulty,
            lifetime: PUZZLE_LIFETIME,
            opaque,
            i: &number,
        };
        let mut contents = Vec::new();
        puzzle.write(&mut contents);
        overwrite(&mut packet, template.puzzle_at, &contents);
        overwrite(&mut packet, 24, &hosts.initiator.0);
        let mut builder = Builder::continuing(&packet, kind::HIP_SIGNATURE);
        let reserved = origin.via.map_or(0, |_| parameter_len(ADDRESS));
        push_echoes(&mut builder, unsigned_requests(message), reserved);
        if let Some(server) = origin.via {
            builder.push_with(kind::VIA_RVS, |out| write_from_address(out, server));
        }
        let packet = builder.finish().ok_or(Refusal::Limit)?;
        context.outbox.counters.r1_sent += 1;
        context.send(&origin.path, &packet);
        Ok(())
    }

    /// Checks an I2 and makes an association of it; the R2 is left to send.
    pub(crate) fn accept_i2(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        (path, configured): (&Path, &[IpAddr]),
        is_full: bool,
    ) -> Result<Accepted, Rejection> {
        self.i2_load.note(context.now);
        self.rotate(context.now);
        let contents = required(message, kind::SOLUTION)?.contents;
        let solution = Solution::parse(contents).map_err(|_| Refusal::Malformed)?;
        let mark = self.check_solution(context.identity, message, path, &solution)?;
        let generation = self.generation(solution.opaque).ok_or(Refusal::Puzzle)?;
        if generation.solved.contains(&mark) {
            return Err(Rejection::Solved(mark));
        }
        if generation.failed.get(&mark) >= Some(&MOST_FAILURES) {
            return Err(Refusal::Replay.into());
        }
        if generation.solved.len() >= MOST_SOLUTIONS {
            return Err(Refusal::Limit.into());
        }
        let choices = Choices::read(context, message, &generation.keys)?;
        let hardest = context.config.limits.hardest_posed;
        if solution.difficulty < self.effort.required(context.now, hardest) {
            let puzzle = (solution.i, choices.pair.group());
            return Err(self.pose_again(context, message, puzzle, path));
        }
        if !self.effort.take() {
            return Err(Refusal::Limit.into());
        }
        let accepted = match is_full {
            true => Err(Rejection::Busy),
            false => accept(context, message, (&choices, &solution), (path, configured)),
        };
        let generation = self.generation(solution.opaque).ok_or(Refusal::Puzzle)?;
        match accepted {
            Ok(mut accepted) => {
                generation.solved.insert(mark.clone());
                self.effort.give_back();
                let session = &mut accepted.session;
                let packet = r2(context, session, accepted.registers).ok_or(Refusal::Limit)?;
                session.answered = Some(Answered { mark, packet });
                Ok(accepted)
            }
            Err(rejection) => {
                *generation.failed.entry(mark).or_default() += 1;
                Err(rejection)
            }
        }
    }

    /// Answers an I2 whose puzzle is too easy by now with a harder one.
    fn pose_again(
        &mut self,
        context: &mut Context<'_>,
        message: &Message<'_>,
        (number, group): (&[u8], Group),
        path: &Path,
    ) -> Rejection {
        let limit = context.config.limits.easy_exchanges_per_second;
        if self.outgrown.is_first(context.now, number, limit) {
            let origin = Origin {
                path: *path,
                via: None,
            };
            // What cannot be made is not sent: the Initiator asks again.
            let _ = self.send_r1(context, message, group, origin);
        }
        Rejection::Refused(Refusal::Puzzle)
    }

    fn generation(&mut self, opaque: [u8; 2]) -> Option<&mut Generation> {
        let number = u16::from_be_bytes(opaque);
        let all = core::iter::once(&mut self.current).chain(self.previous.as_mut());
        let mut all = all.filter(|generation| generation.number == number);
        all.next()
    }

    /// Checks that the puzzle is ours and solved, and gives the mark of the solution.
    fn check_solution(
        &self,
        identity: &Identity,
        message: &Message<'_>,
        path: &Path,
        solution: &Solution<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let rhash = identity.public().rhash();
        let hosts = Hosts {
            initiator: message.sender(),
            responder: identity.hit(),
        };
        let number = self.number(rhash, solution.opaque, solution.difficulty, hosts, path);
        let is_ours = bool::from(number.ct_eq(solution.i));
        let is_solved =
            puzzle::is_solved(rhash, solution.difficulty, solution.i, hosts, solution.j);
        if is_ours && is_solved {
            Ok(rhash.hash(&[solution.i, solution.j]))
        } else {
            Err(Refusal::Puzzle)
        }
    }
}

/// Writes `bytes` over a part of `packet`.
fn overwrite(packet: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = packet.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Makes and signs an R1.
fn template(
    context: &mut Context<'_>,
    keys: &KeyPair,
    difficulty: u8,
    counter: u64,
) -> Option<Template> {
    let public = context.identity.public();
    let zeros = alloc::vec![0; public.rhash().len()];
    let mut builder = Builder::new(PacketType::R1, public.hit(), Hit::NULL);
    builder.push_with(kind::R1_COUNTER, |out| {
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&counter.to_be_bytes());
    });
    let puzzle_at = builder.covered().len() + 4;
    let puzzle = Puzzle {
        difficulty,
        lifetime: PUZZLE_LIFETIME,
        opaque: [0; 2],
        i: &zeros,
    };
    builder.push_with(kind::PUZZLE, |out| puzzle.write(out));
    builder.push(kind::DH_GROUP_LIST, &Group::ALL.map(Group::number));
    let value = DiffieHellman {
        group: keys.group().number(),
        value: keys.public(),
    };
    builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
    let ciphers = HipCipher::ALL.map(|cipher| cipher.number().to_be_bytes());
    builder.push(kind::HIP_CIPHER, ciphers.as_flattened());
    push_host_id(&mut builder, public);
    builder.push(kind::HIT_SUITE_LIST, &[0x10, 0x20]);
    if context.config.is_rendezvous_server {
        builder.push_with(kind::REG_INFO, |out| rendezvous::offer().write(out));
    }
    builder.push(
        kind::TRANSPORT_FORMAT_LIST,
        &kind::ESP_TRANSFORM.to_be_bytes(),
    );
    builder.push_with(kind::ESP_TRANSFORM, |out| {
        out.extend_from_slice(&[0, 0]);
        for suite in &context.config.suites {
            out.extend_from_slice(&suite.number().to_be_bytes());
        }
    });
    context.sign(&mut builder, kind::HIP_SIGNATURE_2)?;
    let packet = builder.finish()?;
    Some(Template { packet, puzzle_at })
}

/// An Initiator's choices among the R1's offers.
struct Choices<'a> {
    pair: Arc<KeyPair>,
    /// Its public value.
    value: &'a [u8],
    cipher: HipCipher,
    suite: EspSuite,
}

impl<'a> Choices<'a> {
    /// Reads the choices, and checks that each was offered.
    fn read(
        context: &Context<'_>,
        message: &Message<'a>,
        keys: &BTreeMap<Group, Arc<KeyPair>>,
    ) -> Result<Self, Refusal> {
        let value = required(message, kind::DIFFIE_HELLMAN)?.contents;
        let value = DiffieHellman::parse(value).map_err(|_| Refusal::Malformed)?;
        let group = Group::from_number(value.group).ok_or(Refusal::Choice)?;
        let pair = keys.get(&group).ok_or(Refusal::Choice)?;
        let ciphers = u16_list(required(message, kind::HIP_CIPHER)?.contents);
        let Some(&[cipher]) = ciphers.as_deref() else {
            return Err(Refusal::Choice);
        };
        let formats = u16_list(required(message, kind::TRANSPORT_FORMAT_LIST)?.contents);
        if formats.is_none_or(|formats| !formats.contains(&kind::ESP_TRANSFORM)) {
            return Err(Refusal::Choice);
        }
        let suites = required(message, kind::ESP_TRANSFORM)?.contents;
        let &[_, _, high, low] = suites else {
            return Err(Refusal::Choice);
        };
        let cipher = HipCipher::from_number(cipher).ok_or(Refusal::Choice)?;
        let suite = EspSuite::from_number(u16::from_be_bytes([high, low]));
        let suite = suite.filter(|suite| context.config.suites.contains(suite));
        // What is missing altogether needs no agreement.
        for kind in [kind::HIP_MAC, kind::HIP_SIGNATURE, kind::ESP_INFO] {
            required(message, kind)?;
        }
        Ok(Self {
            pair: Arc::clone(pair),
            value: value.value,
            cipher,
            suite: suite.ok_or(Refusal::Choice)?,
        })
    }

    /// Agrees on keys with the Initiator.
    fn agree(
        &self,
        context: &mut Context<'_>,
        initiator: Hit,
        solution: &Solution<'_>,
    ) -> Result<Keying, Refusal> {
        context.outbox.counters.agreements += 1;
        let secret = self.pair.agree(self.value).ok_or(Refusal::Choice)?;
        let agreement = Agreement {
            own: Arc::clone(&self.pair),
            peer: self.value.to_vec(),
        };
        let rhash = context.identity.public().rhash();
        let hosts = [context.identity.hit(), initiator];
        let keymat = Keymat::new(rhash, secret, solution.i, solution.j, hosts);
        let keeps_pair = !context.config.rekeying.has_new_secret;
        let source = (keymat, agreement, keeps_pair);
        let choices = (self.cipher, self.suite);
        Keying::new(source, rhash, choices, hosts).ok_or(Refusal::Choice)
    }
}

/// Makes an association of an I2, if it is authentic.
fn accept(
    context: &mut Context<'_>,
    message: &Message<'_>,
    (choices, solution): (&Choices<'_>, &Solution<'_>),
    (path, configured): (&Path, &[IpAddr]),
) -> Result<Accepted, Rejection> {
    let keying = choices.agree(context, message.sender(), solution)?;
    verify_mac(message, keying.rhash, &keying.keys.peer)?;
    let peer = initiator_identity(message, &keying)?;
    verify_signature(message, &peer)?;
    let info = required(message, kind::ESP_INFO)?.contents;
    let info = EspInfo::parse(info).map_err(|_| Refusal::Malformed)?;
    if info.keymat_index != keying.esp_index || info.old_spi != 0 || info.new_spi <= 255 {
        return Err(Refusal::Choice.into());
    }
    let spi = context.new_spi();
    let ciphers = keying.esp_ciphers().ok_or(Refusal::Choice)?;
    let cap = context.config.limits.addresses;
    let addresses = PeerAddresses::new(context.now, path.remote, configured, cap);
    let inbound = Inbound::new(spi, ciphers.peer);
    let outbound = Outbound::new(info.new_spi, ciphers.own);
    let registers = rendezvous::wants_registration(message);
    let session = Session::new(context.now, peer, keying, (inbound, outbound), addresses);
    Ok(Accepted { session, registers })
}

/// Reads the Initiator's identity, which may be encrypted.
fn initiator_identity(message: &Message<'_>, keying: &Keying) -> Result<PublicIdentity, Refusal> {
    let decode = |contents: &[u8]| {
        let host = HostId::parse(contents).map_err(|_| Refusal::Malformed)?;
        PublicIdentity::decode(host.algorithm, host.identity).map_err(|_| Refusal::Identity)
    };
    let peer = if let Some(encrypted) = message.find(kind::ENCRYPTED) {
        let plain = keying
            .cipher
            .open(&keying.keys.peer.encryption, encrypted.contents);
        let plain = plain.ok_or(Refusal::Mac)?;
        let mut inside = Parameters::new(&plain, 0).map_while(Result::ok);
        let host = inside.find(|parameter| parameter.kind == kind::HOST_ID);
        decode(host.ok_or(Refusal::Parameter)?.contents)?
    } else {
        decode(required(message, kind::HOST_ID)?.contents)?
    };
    (peer.hit() == message.sender())
        .then_some(peer)
        .ok_or(Refusal::Identity)
}

/// Makes the R2 of an association.
fn r2(context: &mut Context<'_>, session: &Session, registers: bool) -> Option<Vec<u8>> {
    let public = context.identity.public();
    let mut builder = Builder::new(PacketType::R2, public.hit(), session.peer.hit());
    let info = EspInfo {
        keymat_index: session.keying.esp_index,
        old_spi: 0,
        new_spi: session.inbound.spi,
    };
    builder.push_with(kind::ESP_INFO, |out| info.write(out));
    if registers {
        rendezvous::push_response(&mut builder, context.config.is_rendezvous_server);
    }
    // HIP_MAC_2 covers the host identity as R1 has it, behind all that is here.
    let mut covered = Builder::continuing(&builder.covered(), 0);
    covered.push_with(kind::HOST_ID, |out| write_host_id(out, public));
    let mac = session
        .keying
        .rhash
        .mac(&session.keying.keys.own.integrity, &[&covered.covered()]);
    builder.push(kind::HIP_MAC_2, &mac);
    context.sign(&mut builder, kind::HIP_SIGNATURE)?;
    builder.finish()
}
