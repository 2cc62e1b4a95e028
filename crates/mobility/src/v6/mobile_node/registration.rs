//! Binding updates to the home agent, their repetition, and acknowledgements (RFC 6275, sections 11.7.1,
//! 11.7.3 and 11.8).

use super::{Attachment, MobileNode, NodeEvent, NodeTimeout};
use crate::budget::Budget;
use crate::clock::{NtpClock, Stamps};
use crate::security::Between;
use crate::transmit::Via;
use crate::v6::message::from_home_address;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{
    BindingAcknowledgement, BindingUpdate, Message, MobilityOptions, Status, UpdateFlags,
    UpdateLifetime,
};

/// `INITIAL_BINDACK_TIMEOUT` (section 12).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// `MAX_BINDACK_TIMEOUT`.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(32);
/// `MAX_UPDATE_RATE`: three a second.
const BURST: u32 = 3;
const BETWEEN_UPDATES: Duration = Duration::from_millis(334);

/// What a mobile node has asked its home agent for, and got.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    stage: Stage,
    /// The mobile node's place when its last update was accepted.
    last_place: Attachment,
    /// When that binding comes to its end.
    until: Option<Instant>,
    stamps: Stamps,
    sequence: u16,
    budget: Budget,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// There is nowhere to register.
    Idle,
    /// An update is to be sent.
    Waiting {
        since: Instant,
        at: Instant,
        timeout: Duration,
    },
    /// An update is on its way.
    Requesting {
        since: Instant,
        sent_at: Instant,
        timestamp: u64,
        lifetime: UpdateLifetime,
        timeout: Duration,
    },
    /// The home agent has accepted.
    Complete { renew_at: Option<Instant> },
}

impl Registration {
    pub(super) const fn new(now: Instant, clock: NtpClock, secret: &[u8; 20]) -> Self {
        Self {
            stage: Stage::Idle,
            last_place: Attachment::Nowhere,
            until: None,
            stamps: Stamps::new(clock),
            sequence: u16::from_be_bytes([secret[0], secret[1]]),
            budget: Budget::new(now, BURST, BETWEEN_UPDATES),
        }
    }

    /// The mobile node has come to another place, and registers there.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.stage = Stage::Waiting {
            since: now,
            at: now,
            timeout: FIRST_TIMEOUT,
        };
    }

    /// Registers again at the place where the mobile node is.
    pub(super) const fn renew(&mut self, now: Instant) {
        self.begin(now);
    }

    /// There is nowhere to register; whatever comes next is another place.
    pub(super) const fn stop(&mut self) {
        self.stage = Stage::Idle;
        self.last_place = Attachment::Nowhere;
    }

    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Complete { .. })
    }

    /// Whether the binding has just come to its end.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            self.until = None;
            self.last_place = Attachment::Nowhere;
        }
        is_over
    }

    pub(super) fn renewal_due(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Complete { renew_at: Some(at) } if at <= now)
    }

    pub(super) fn request_due(&self, now: Instant) -> bool {
        self.request_at().is_some_and(|at| at <= now)
    }

    fn request_at(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting { at, .. } => Some(at),
            Stage::Requesting {
                sent_at, timeout, ..
            } => Some(sent_at + timeout),
            Stage::Idle | Stage::Complete { .. } => None,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<(Instant, NodeTimeout)> {
        let request = self.request_at().map(|at| (at, NodeTimeout::Request));
        let renewal = match self.stage {
            Stage::Complete { renew_at } => renew_at.map(|at| (at, NodeTimeout::Renewal)),
            _ => None,
        };
        let expiry = self.until.map(|at| (at, NodeTimeout::Expiry));
        [request, renewal, expiry].into_iter().flatten().min()
    }

    /// Asks again at once, or after `wait`.
    fn again(&mut self, now: Instant, wait: Duration) {
        if let Stage::Requesting { since, timeout, .. } = self.stage {
            self.stage = Stage::Waiting {
                since,
                at: now + wait,
                timeout,
            };
        }
    }
}

impl MobileNode {
    /// Sends the update that is due, or again. Each one has a sequence number and a time of its own.
    pub(super) fn request(&mut self, now: Instant) {
        let lifetime = match self.attachment {
            Attachment::Nowhere => return,
            Attachment::Home => UpdateLifetime::DEREGISTRATION,
            Attachment::Foreign(_) => self.config.lifetime,
        };
        let registration = &mut self.registration;
        let (since, timeout, is_repeated) = match registration.stage {
            Stage::Idle | Stage::Complete { .. } => return,
            Stage::Waiting { since, timeout, .. } => (since, timeout, false),
            Stage::Requesting { since, timeout, .. } => {
                (since, (timeout * 2).min(LONGEST_TIMEOUT), true)
            }
        };
        if let Err(at) = registration.budget.take(now) {
            self.counters.put_off += 1;
            registration.stage = Stage::Waiting { since, at, timeout };
            return;
        }
        let timestamp = self.send_update(now, lifetime);
        self.registration.stage = Stage::Requesting {
            since,
            sent_at: now,
            timestamp,
            lifetime,
            timeout,
        };
        self.counters.repeated += u64::from(is_repeated);
    }

    /// Ends the binding at the present care-of address, if one may hold there.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if self.registration.until.is_some() || !matches!(self.registration.stage, Stage::Idle) {
            self.send_update(now, UpdateLifetime::DEREGISTRATION);
        }
        self.registration.until = None;
        self.registration.last_place = Attachment::Nowhere;
    }

    /// Sends an update; the time that it bears.
    fn send_update(&mut self, now: Instant, lifetime: UpdateLifetime) -> u64 {
        let registration = &mut self.registration;
        registration.sequence = registration.sequence.wrapping_add(1);
        let timestamp = registration.stamps.next(now);
        let update = Message::BindingUpdate(BindingUpdate {
            sequence: registration.sequence,
            flags: UpdateFlags::ACKNOWLEDGE | UpdateFlags::HOME_REGISTRATION,
            lifetime,
        });
        let (home_address, care_of_address) = self.place();
        let between = Between::new(care_of_address, home_address);
        let mut message = update.emit();
        if home_address != care_of_address {
            message = message.alternate_care_of_address(care_of_address);
        }
        let message = self
            .config
            .home
            .sign_v6(between, message.timestamp(timestamp));
        let place = (home_address, care_of_address);
        let packet = from_home_address(place, self.config.home_agent, message);
        self.counters.requests += 1;
        self.send(packet, Via::Route);
        timestamp
    }

    pub(super) fn handle_acknowledgement(
        &mut self,
        now: Instant,
        answer: &BindingAcknowledgement,
        options: MobilityOptions<'_>,
    ) {
        let Stage::Requesting {
            since,
            sent_at,
            timestamp,
            lifetime,
            ..
        } = self.registration.stage
        else {
            self.counters.ignored += 1;
            return;
        };
        let (home_address, care_of_address) = self.place();
        let between = Between::new(care_of_address, home_address);
        let is_authentic = options
            .authentication()
            .is_some_and(|one| self.config.home.verify_v6(between, &one));
        // The low halves: the high one is the home agent's clock after a wrong time.
        let is_answer = options
            .timestamp()
            .is_some_and(|one| one as u32 == timestamp as u32);
        let is_of_sequence =
            answer.sequence == self.registration.sequence || answer.status == Status::SEQUENCE;
        if !is_authentic || !is_answer || !is_of_sequence {
            self.counters.ignored += 1;
            return;
        }
        let is_granted = answer.lifetime > UpdateLifetime::DEREGISTRATION
            || lifetime == UpdateLifetime::DEREGISTRATION;
        if answer.status.is_accepted() && is_granted {
            let granted = answer.lifetime.min(lifetime);
            self.complete(now, since, sent_at, granted);
        } else {
            self.counters.refused += 1;
            let (at, status) = (self.attachment, answer.status);
            self.events.push_back(NodeEvent::Refused { at, status });
            self.handle_refusal(now, answer, options);
        }
    }

    fn complete(
        &mut self,
        now: Instant,
        since: Instant,
        sent_at: Instant,
        granted: UpdateLifetime,
    ) {
        self.counters.accepted += 1;
        let at = self.attachment;
        let registration = &mut self.registration;
        let has_moved = registration.last_place != at;
        registration.last_place = at;
        // The lifetime counts from when the update was sent (section 11.7.3).
        let lifetime = Some(granted.duration()).filter(|_| granted.0 > 0);
        registration.until = lifetime.map(|lifetime| sent_at + lifetime);
        registration.stage = Stage::Complete {
            renew_at: lifetime.map(|lifetime| sent_at + lifetime * 2 / 3),
        };
        let took = now.since(since);
        self.events.push_back(NodeEvent::Registered {
            at,
            has_moved,
            took,
        });
        if has_moved {
            let place = self.place();
            self.correspondents.move_to(now, place);
            let steps = self.correspondents.handle_timeout(now, place);
            self.take_steps(steps);
        }
    }

    fn handle_refusal(
        &mut self,
        now: Instant,
        answer: &BindingAcknowledgement,
        options: MobilityOptions<'_>,
    ) {
        match answer.status {
            Status::TIMESTAMP => {
                self.counters.resynchronised += 1;
                let seconds = options.timestamp().unwrap_or_default() >> 32;
                self.registration.stamps.resynchronise(now, seconds);
                self.registration.again(now, Duration::ZERO);
            }
            Status::SEQUENCE => {
                self.registration.sequence = answer.sequence;
                self.registration.again(now, Duration::ZERO);
            }
            // It may not last: the next update comes when an unanswered one would be repeated, and
            // the one after it later still.
            _ => {
                if let Stage::Requesting { timeout, .. } = &mut self.registration.stage {
                    let wait = *timeout;
                    *timeout = (wait * 2).min(LONGEST_TIMEOUT);
                    self.registration.again(now, wait);
                }
            }
        }
        if self.registration.request_due(now) {
            self.request(now);
        }
    }
}
