//! Return routability and bindings at correspondents (RFC 6275, sections 11.6 and 11.7.2).
//!
//! A correspondent that sends through the home agent is asked for two tokens, one by way of each address.
//! With both the node can sign an update, and once that is acknowledged packets go directly. A
//! correspondent that does not answer, or complains, is left alone for a while.

use super::NodeEvent;
use crate::security::Between;
use crate::v6::return_routability::{BindingKey, LONGEST_BINDING, TOKEN_LIFETIME, cookie};
use alloc::collections::{BTreeMap, VecDeque};
use core::net::Ipv6Addr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{
    BindingAcknowledgement, BindingErrorStatus, BindingUpdate, Message, MessageBuilder,
    MobilityOptions, Status, Test, UpdateFlags, UpdateLifetime,
};

/// As many correspondents as are remembered.
const MOST: usize = 64;
/// The first repetition of a message, doubled each time.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// So often a message is sent before the correspondent is left alone.
const MOST_TRIES: u32 = 4;
/// For how long it is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(300);
/// A correspondent's word that it knows no binding, or wants it renewed, is believed no sooner after the last one: nothing
/// in it is secret. Each costs messages, and the former has packets take the longer way for a round trip.
const BELIEVED_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// A binding that nothing uses is not renewed.
const IN_USE: Duration = Duration::from_secs(60);

/// What is to be done about a correspondent.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Send a message from the home address, through the home agent.
    ThroughHome(Ipv6Addr, MessageBuilder),
    /// Send a message from the care-of address.
    Directly(Ipv6Addr, MessageBuilder),
    /// Send an update, which bears the home address.
    Update(Ipv6Addr, MessageBuilder),
    /// Tell what has happened.
    Tell(NodeEvent),
}

/// A token that a correspondent has given.
#[derive(Clone, Copy, Debug)]
struct Token {
    index: u16,
    token: u64,
    /// When it was asked for.
    since: Instant,
    /// The address that it is for.
    address: Ipv6Addr,
}

/// What a correspondent knows of this node.
#[derive(Clone, Copy, Debug)]
struct Binding {
    care_of_address: Ipv6Addr,
    until: Instant,
    renew_at: Instant,
}

/// What is going on with a correspondent.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Nothing.
    Resting,
    /// Tokens were asked for.
    Testing {
        since: Instant,
        tries: u32,
        next_at: Instant,
        home_cookie: Option<u64>,
        care_of_cookie: Option<u64>,
    },
    /// An update was sent.
    Updating {
        since: Instant,
        sent_at: Instant,
        tries: u32,
        next_at: Instant,
        key: BindingKey,
        lifetime: UpdateLifetime,
    },
    /// It is left alone.
    Unable { until: Instant },
}

#[derive(Clone, Copy, Debug)]
struct Correspondent {
    home_token: Option<Token>,
    care_of_token: Option<Token>,
    binding: Option<Binding>,
    stage: Stage,
    sequence: u16,
    used_at: Instant,
    /// Times at which a request and an error were last believed of it, which anybody can send in its name.
    believed_at: [Option<Instant>; 2],
}

/// A message of a correspondent's that carries no secret.
#[derive(Clone, Copy, Debug)]
enum Rumour {
    /// The binding is to be refreshed.
    Request,
    /// The binding is not known.
    Error,
}

/// All correspondents.
#[derive(Debug)]
pub(super) struct Correspondents {
    secret: [u8; 20],
    cookies: u64,
    all: BTreeMap<Ipv6Addr, Correspondent>,
}

/// Home address and care-of address.
type Place = (Ipv6Addr, Ipv6Addr);

impl Correspondents {
    pub(super) const fn new(secret: [u8; 20]) -> Self {
        Self {
            secret,
            cookies: 0,
            all: BTreeMap::new(),
        }
    }

    /// A packet of `correspondent`'s has come through the home agent. Whether another correspondent had
    /// to be forgotten.
    pub(super) fn note_use(
        &mut self,
        now: Instant,
        (_, care_of_address): Place,
        correspondent: Ipv6Addr,
    ) -> bool {
        if let Some(known) = self.all.get_mut(&correspondent) {
            known.used_at = now;
            let is_bound = known
                .binding
                .is_some_and(|one| one.care_of_address == care_of_address && one.until > now);
            if matches!(known.stage, Stage::Resting) && !is_bound {
                known.begin(now);
            }
            return false;
        }
        let mut is_forgotten = false;
        if self.all.len() >= MOST {
            let idle = self.all.iter().min_by_key(|(_, one)| one.used_at);
            if let Some(idle) = idle.map(|(address, _)| *address) {
                self.all.remove(&idle);
                is_forgotten = true;
            }
        }
        let mut new = Correspondent {
            home_token: None,
            care_of_token: None,
            binding: None,
            stage: Stage::Resting,
            sequence: cookie(&self.secret, u64::MAX) as u16,
            used_at: now,
            believed_at: [None; 2],
        };
        new.begin(now);
        self.all.insert(correspondent, new);
        is_forgotten
    }

    /// Whether `correspondent` knows that this node is at its care-of address.
    pub(super) fn has_binding(
        &mut self,
        now: Instant,
        correspondent: Ipv6Addr,
        care_of_address: Ipv6Addr,
    ) -> bool {
        let Some(known) = self.all.get_mut(&correspondent) else {
            return false;
        };
        let has = known
            .binding
            .is_some_and(|one| one.care_of_address == care_of_address && one.until > now);
        if has {
            known.used_at = now;
        }
        has
    }

    /// The correspondents with bindings.
    pub(super) fn bound(
        &self,
        now: Instant,
        care_of_address: Ipv6Addr,
    ) -> impl Iterator<Item = Ipv6Addr> {
        let bound = self.all.iter().filter(move |(_, one)| {
            one.binding
                .is_some_and(|one| one.care_of_address == care_of_address && one.until > now)
        });
        bound.map(|(address, _)| *address)
    }

    /// The node is at another address: whoever knows the former one is told.
    pub(super) fn move_to(&mut self, now: Instant, (home, care_of_address): Place) {
        let is_home = home == care_of_address;
        self.all.retain(|_, one| {
            one.care_of_token = None;
            let knows = one.binding.is_some_and(|one| one.until > now);
            let is_unable = matches!(one.stage, Stage::Unable { .. });
            knows || is_unable || now.since(one.used_at) < IN_USE
        });
        for one in self.all.values_mut() {
            let is_right = match one.binding {
                Some(binding) => binding.care_of_address == care_of_address,
                // At home nothing is to be optimised.
                None => is_home,
            };
            if !is_right && !matches!(one.stage, Stage::Unable { .. }) {
                one.begin(now);
            }
        }
    }

    /// Leaves a correspondent alone that knows nothing of Mobile IPv6 (RFC 6275, section 11.3.5). Returns whether it does:
    /// an error that says so quotes the test that waits for an answer. Nobody off the path knows its cookie.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        correspondent: Ipv6Addr,
        quoted: &Message,
    ) -> bool {
        let Some(known) = self.all.get_mut(&correspondent) else {
            return false;
        };
        let Stage::Testing {
            home_cookie,
            care_of_cookie,
            ..
        } = known.stage
        else {
            return false;
        };
        let is_asked = match quoted {
            Message::HomeTestInit { cookie } => home_cookie == Some(*cookie),
            Message::CareOfTestInit { cookie } => care_of_cookie == Some(*cookie),
            _ => false,
        };
        if is_asked {
            known.leave_alone(now);
        }
        is_asked
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().filter_map(Correspondent::due).min()
    }

    /// Repeats, renews and ends what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant, place: Place) -> VecDeque<Step> {
        let mut steps = VecDeque::new();
        for (address, one) in &mut self.all {
            if let Stage::Unable { until } = one.stage
                && until <= now
            {
                one.stage = Stage::Resting;
            }
            if let Some(binding) = one.binding
                && binding.until <= now
            {
                one.binding = None;
            }
            if let (Some(binding), Stage::Resting) = (&mut one.binding, one.stage)
                && binding.renew_at <= now
            {
                binding.renew_at = binding.until;
                if now.since(one.used_at) < IN_USE {
                    one.begin(now);
                }
            }
            let mut next_cookie = || {
                self.cookies += 1;
                cookie(&self.secret, self.cookies)
            };
            one.proceed(now, place, *address, &mut next_cookie, &mut steps);
        }
        steps
    }

    /// A message of a correspondent's; `None` if nobody waits for it, or it is not authentic.
    pub(super) fn handle_message(
        &mut self,
        now: Instant,
        place: Place,
        source: Ipv6Addr,
        message: &Message,
        options: MobilityOptions<'_>,
    ) -> Option<VecDeque<Step>> {
        let known = self.all.get_mut(&source)?;
        let mut steps = VecDeque::new();
        match message {
            Message::HomeTest(test) => {
                known.take_home_token(test, place.0)?;
            }
            Message::CareOfTest(test) => {
                known.take_care_of_token(test, place.1)?;
            }
            Message::BindingAcknowledgement(answer) => {
                let event = known.take_answer(now, place, source, answer, options)?;
                steps.extend(event.map(Step::Tell));
            }
            Message::BindingRefreshRequest => {
                known.binding?;
                known.believe(now, Rumour::Request)?;
                known.begin_if_resting(now);
            }
            Message::BindingError {
                status: BindingErrorStatus::NO_BINDING,
                home_address,
            } if *home_address == place.0 => {
                // It has forgotten, or somebody says so: the tests will tell.
                known.binding?;
                known.believe(now, Rumour::Error)?;
                known.binding = None;
                known.forget_tokens();
                known.begin_if_resting(now);
            }
            _ => return None,
        }
        steps.extend(self.handle_timeout(now, place));
        Some(steps)
    }
}

impl Correspondent {
    /// Tests are due at once.
    const fn begin(&mut self, now: Instant) {
        self.stage = Stage::Testing {
            since: now,
            tries: 0,
            next_at: now,
            home_cookie: None,
            care_of_cookie: None,
        };
    }

    /// Takes what carries no secret for true, unless one of its kind was a moment ago.
    fn believe(&mut self, now: Instant, rumour: Rumour) -> Option<()> {
        let believed_at = &mut self.believed_at[rumour as usize];
        let is_soon = |at| now.since(at) < BELIEVED_AGAIN_AFTER;
        if believed_at.is_some_and(is_soon) {
            return None;
        }
        *believed_at = Some(now);
        Some(())
    }

    const fn begin_if_resting(&mut self, now: Instant) {
        if matches!(self.stage, Stage::Resting) {
            self.begin(now);
        }
    }

    /// What the correspondent gave may be worth nothing: a correspondent that starts anew has another
    /// secret.
    const fn forget_tokens(&mut self) {
        self.home_token = None;
        self.care_of_token = None;
    }

    fn leave_alone(&mut self, now: Instant) {
        self.binding = None;
        self.stage = Stage::Unable {
            until: now + LEFT_ALONE,
        };
    }

    fn due(&self) -> Option<Instant> {
        let stage = match self.stage {
            Stage::Resting => self.binding.map(|one| one.renew_at),
            Stage::Testing { next_at, .. } | Stage::Updating { next_at, .. } => Some(next_at),
            Stage::Unable { until } => Some(until),
        };
        let expiry = self.binding.map(|one| one.until);
        stage.into_iter().chain(expiry).min()
    }

    /// The tokens that are good for an update now; no care-of token is needed to end a binding at home.
    fn tokens(&self, now: Instant, (home, care_of): Place) -> Option<(Token, Option<Token>)> {
        let is_good = |token: &Token, address| {
            token.address == address && now.since(token.since) < TOKEN_LIFETIME
        };
        let home_token = self.home_token.filter(|one| is_good(one, home))?;
        if home == care_of {
            return Some((home_token, None));
        }
        let care_of_token = self.care_of_token.filter(|one| is_good(one, care_of))?;
        Some((home_token, Some(care_of_token)))
    }

    /// Does what the stage asks for now.
    fn proceed(
        &mut self,
        now: Instant,
        place: Place,
        address: Ipv6Addr,
        next_cookie: &mut impl FnMut() -> u64,
        steps: &mut VecDeque<Step>,
    ) {
        if let Stage::Testing { since, tries, .. } = self.stage
            && let Some(tokens) = self.tokens(now, place)
        {
            // The first round of tests does not count as a try.
            let tries = tries.saturating_sub(1);
            self.update(now, place, address, (since, tries), tokens, steps);
            return;
        }
        match self.stage {
            Stage::Testing { next_at, tries, .. } | Stage::Updating { next_at, tries, .. }
                if next_at <= now && tries >= MOST_TRIES =>
            {
                self.leave_alone(now);
                let correspondent = address;
                steps.push_back(Step::Tell(NodeEvent::NotOptimized { correspondent }));
            }
            Stage::Testing {
                since,
                next_at,
                tries,
                ..
            } if next_at <= now => {
                self.test(now, place, address, (since, tries), next_cookie, steps);
            }
            Stage::Updating {
                since,
                next_at,
                tries,
                ..
            } if next_at <= now => {
                if tries > 1 {
                    self.forget_tokens();
                }
                match self.tokens(now, place) {
                    Some(tokens) => self.update(now, place, address, (since, tries), tokens, steps),
                    None => self.test(now, place, address, (since, tries), next_cookie, steps),
                }
            }
            _ => {}
        }
    }

    /// Asks for the tokens that are not good, each with a new cookie (section 11.8).
    fn test(
        &mut self,
        now: Instant,
        (home, care_of): Place,
        address: Ipv6Addr,
        (since, tries): (Instant, u32),
        next_cookie: &mut impl FnMut() -> u64,
        steps: &mut VecDeque<Step>,
    ) {
        let is_good = |token: Option<Token>, address| {
            token.is_some_and(|one| one.address == address && now.since(one.since) < TOKEN_LIFETIME)
        };
        let (mut home_cookie, mut care_of_cookie) = (None, None);
        if !is_good(self.home_token, home) {
            let cookie = next_cookie();
            home_cookie = Some(cookie);
            let message = Message::HomeTestInit { cookie }.emit();
            steps.push_back(Step::ThroughHome(address, message));
        }
        if home != care_of && !is_good(self.care_of_token, care_of) {
            let cookie = next_cookie();
            care_of_cookie = Some(cookie);
            let message = Message::CareOfTestInit { cookie }.emit();
            steps.push_back(Step::Directly(address, message));
        }
        self.stage = Stage::Testing {
            since,
            tries: tries + 1,
            next_at: now + FIRST_TIMEOUT * (1 << tries.min(5)),
            home_cookie,
            care_of_cookie,
        };
    }

    /// Sends an update that both tokens sign.
    fn update(
        &mut self,
        now: Instant,
        (home, care_of): Place,
        address: Ipv6Addr,
        (since, tries): (Instant, u32),
        (home_token, care_of_token): (Token, Option<Token>),
        steps: &mut VecDeque<Step>,
    ) {
        self.sequence = self.sequence.wrapping_add(1);
        let key = BindingKey::new(home_token.token, care_of_token.map(|one| one.token));
        let lifetime = match care_of_token {
            Some(_) => UpdateLifetime::at_most(LONGEST_BINDING),
            None => UpdateLifetime::DEREGISTRATION,
        };
        let message = Message::BindingUpdate(BindingUpdate {
            sequence: self.sequence,
            flags: UpdateFlags::ACKNOWLEDGE,
            lifetime,
        });
        let care_of_index = care_of_token.map_or(0, |one| one.index);
        let between = Between::new(care_of, address);
        let message = message
            .emit()
            .nonce_indices(home_token.index, care_of_index)
            .authorize(|covered| key.authenticator(between, covered));
        steps.push_back(match home == care_of {
            true => Step::Directly(address, message),
            false => Step::Update(address, message),
        });
        self.stage = Stage::Updating {
            since,
            sent_at: now,
            tries: tries + 1,
            next_at: now + FIRST_TIMEOUT * (1 << tries.min(5)),
            key,
            lifetime,
        };
    }

    fn take_home_token(&mut self, test: &Test, address: Ipv6Addr) -> Option<()> {
        let Stage::Testing {
            since, home_cookie, ..
        } = &mut self.stage
        else {
            return None;
        };
        home_cookie.take_if(|cookie| *cookie == test.cookie)?;
        self.home_token = Some(token(test, *since, address));
        Some(())
    }

    fn take_care_of_token(&mut self, test: &Test, address: Ipv6Addr) -> Option<()> {
        let Stage::Testing {
            since,
            care_of_cookie,
            ..
        } = &mut self.stage
        else {
            return None;
        };
        care_of_cookie.take_if(|cookie| *cookie == test.cookie)?;
        self.care_of_token = Some(token(test, *since, address));
        Some(())
    }

    /// An acknowledgement; what is to be told of it.
    fn take_answer(
        &mut self,
        now: Instant,
        (home, care_of): Place,
        address: Ipv6Addr,
        answer: &BindingAcknowledgement,
        options: MobilityOptions<'_>,
    ) -> Option<Option<NodeEvent>> {
        let Stage::Updating {
            since,
            sent_at,
            key,
            lifetime,
            ..
        } = self.stage
        else {
            return None;
        };
        // Without the nonce the correspondent has no key to sign with (section 9.5.4).
        let is_about_nonces = matches!(
            answer.status,
            Status::HOME_NONCE | Status::CARE_OF_NONCE | Status::NONCES
        );
        let between = Between::new(care_of, address);
        let is_authentic = options
            .authorization()
            .is_some_and(|one| key.fits(between, &one));
        let is_answer = answer.sequence == self.sequence || answer.status == Status::SEQUENCE;
        if !is_answer || !is_authentic && !is_about_nonces {
            return None;
        }
        if is_about_nonces {
            if answer.status != Status::CARE_OF_NONCE {
                self.home_token = None;
            }
            if answer.status != Status::HOME_NONCE {
                self.care_of_token = None;
            }
            // No sooner than an unanswered update would be repeated: whoever forges this gains nothing.
            return Some(None);
        }
        if answer.status == Status::SEQUENCE {
            self.sequence = answer.sequence;
            self.begin(now);
            return Some(None);
        }
        if !answer.status.is_accepted() {
            self.leave_alone(now);
            let correspondent = address;
            return Some(Some(NodeEvent::NotOptimized { correspondent }));
        }
        self.stage = Stage::Resting;
        let granted = answer.lifetime.min(lifetime).duration();
        let former = self.binding.take();
        if home == care_of || granted.is_zero() {
            return Some(None);
        }
        self.binding = Some(Binding {
            care_of_address: care_of,
            until: sent_at + granted,
            renew_at: sent_at + granted * 2 / 3,
        });
        let is_new = former.is_none_or(|one| one.care_of_address != care_of);
        Some(is_new.then(|| NodeEvent::Optimized {
            correspondent: address,
            took: now.since(since),
        }))
    }
}

const fn token(test: &Test, since: Instant, address: Ipv6Addr) -> Token {
    Token {
        index: test.nonce_index,
        token: test.keygen_token,
        since,
        address,
    }
}
