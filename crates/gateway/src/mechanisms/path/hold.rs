//! `hold`: what modern stacks need beyond the smart link layer's one packet.
//!
//! Keeps every distinct segment that the link dropped or would have dropped, and at
//! reconnection delivers it: the newest acknowledgement first, then the data in order and at the
//! link's pace. It never acknowledges, invents or alters data; it renews timestamps, drops one segment for
//! senders without SACK, and sends a segment in parts where the path has come to take only smaller packets.
//!
//! What is new against Scott and Mapp, and why (measured on Linux; `docs/hold.md`):
//!
//! - *All segments, not one.* A sender whose window was lost recovers one round trip and one
//!   doubling at a time; BBR waits for whole inflated timeouts. If all of the window arrives, the
//!   sender finds its timeout spurious (RFC 3522, RFC 5682) and goes on as if nothing had been.
//! - *Acknowledgement first.* Where acknowledgements were lost, data re-sent draws duplicate
//!   acknowledgements, the sender undoes its retransmission and waits once more.
//! - *What certainly was lost, first.* A segment that was on the link when it went down may have
//!   arrived. At reconnection only the oldest of these is re-sent at once; the others wait until
//!   the far host has said what it lacks, or a round-trip time is over.
//! - *A kick that does not work is repeated*, with back-off, until new data flows (the future
//!   work of the paper's section 8). The repeated kick is the freshest copy: an old timestamp
//!   would make the sender think that its timeout was spurious, and send on instead of filling
//!   the hole.
//! - *No round trip is as long as the outage.* Answers to what an outage has held up are gathered, and nothing that
//!   crosses echoes a timestamp from before it: a sender's timeout is no longer than it was.
//! - *What it re-sent and a full queue dropped, it re-sends* once later segments have arrived.
//! - A fresh segment waits behind what is kept of its flow; a retransmission of what was re-sent less
//!   than a round trip ago is not forwarded a second time.
//!
//! # Words
//!
//! - *kept*: every segment towards the link is, until it is acknowledged. Its [`Fate`] says whether it was
//!   *transmitted* (and may have arrived, or is left to its sender for now), is *lost* (and goes out in its turn), or was
//!   *re-sent*.
//! - *stale*: the far host would reject the segment for its timestamp (PAWS). All others are *acceptable*. Of a
//!   segment's copies the *freshest* is the one that its sender sent last.
//! - *episode*: the time from the link's return, or from a drop of which the link tells after it, until all that was kept
//!   then is acknowledged and nothing waits behind it, or kicks are given up. During its *doubt*, what was merely
//!   transmitted may have arrived. A *kick* is what goes out to make the connection move.
//! - *hole*: what the far host lacks of what it was sent. *Gap*: what passed the gateway unseen, so that only its
//!   sender has a copy. What would disturb their filling is *set aside*.
//! - *in line*: what waits for its turn outside of an episode.
//!
//! Needs to see both directions. Past a flow's cap, or when the memory of all flows is used up,
//! it falls back to the one packet of the smart link layer until that has been recovered from.

mod aftermath;
mod clock;
mod composed;
mod episode;
mod gathered;
mod kept;
mod lately_told;
mod latest;
mod newest_ack;
mod nudge;
mod order;
mod path_mtu;
mod retention;
mod rules;
mod segment;
mod signal;
mod sleepers;
mod stage;
mod stale_echo;
mod stamp;
mod stand_in;
mod window;

use super::unreachable::too_big;
use super::{
    Account, Context, Info, Outgoing, PathMechanism, SendReason, TakeReason, Verdict, Waiting,
};
use crate::limits::Budget;
use crate::links::{Direction, Indicator, LinkState};
use crate::mechanisms::resume_timer::ResumeTimer;
use crate::release::INITIAL_BURST;
use crate::tracking::{Observation, Phase, TcpFlow};
use aftermath::Aftermath;
use episode::{Episode, Kick};
use gathered::Gathered;
use kept::Kept;
pub(super) use kept::Scope;
use lately_told::Doubt;
use newest_ack::NewestAck;
use nudge::Nudge;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};
use path_mtu::{News, PathMtu};
pub(crate) use retention::Retention;
pub use rules::{HoldRule, HoldRules};
use segment::{CopyChoice, Fate, Segment};
use signal::Signal;
use sleepers::Sleepers;
use stage::Stage;
use stale_echo::StaleEcho;
use stand_in::{StandIn, Watch};
use window::Full;

pub(super) const INFO: Info = Info {
    name: "hold",
    source: "after Scott and Mapp 2003, section 8",
    summary: "keeps all that the link drops and delivers it in order at reconnection",
    acknowledges_ahead: false,
};

/// Copies of the newest acknowledgement in a repeated kick: one, and the three duplicates that
/// make a sender retransmit (RFC 5681, section 3.2).
const REPEATED_ACKS: u8 = 4;

/// One connection's part at one end of the link.
#[derive(Debug, Default)]
pub(super) struct Hold {
    stage: Stage,
    kept: Kept,
    newest_ack: NewestAck,
    resume_timer: ResumeTimer,
    nudge: Nudge,
    gathered: Gathered,
    aftermath: Aftermath,
    scope: Scope,
    sleepers: Sleepers,
    stand_in: StandIn,
    stale_echo: StaleEcho,
    signal: Signal,
    path_mtu: PathMtu,
    /// Spare the near host the [nudges](nudge) while the link is down.
    is_quiet: bool,
}

/// What goes out next.
enum Next {
    /// The far host's last acknowledgement, for the near host: a [nudge](nudge) while the link is down, a duplicate after
    /// its return.
    Nudge,
    /// The size that the path takes, for the near host.
    PathMtu,
    /// The newest acknowledgement, once more.
    NewestAck,
    /// What wakes a sender that waits for its timeout.
    Sleeper,
    /// More of a segment that goes out in parts.
    Part,
    /// A segment that is kept and lost.
    Kept,
}

impl PathMechanism for Hold {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict {
        let Some(tcp) = packet.tcp() else {
            return Verdict::Pass;
        };
        if direction == Direction::ToLink {
            self.aftermath.hear_near(cx.now, tcp);
            self.stale_echo.hear_near(tcp);
        }
        let verdict = self.judge(cx, direction, packet, tcp, observation);
        let is_on_link = direction == Direction::ToLink && verdict == Verdict::Pass;
        let verdict = match is_on_link && cx.link.state == LinkState::Up {
            true => {
                let verdict = self.freshen_for_far(cx, packet);
                self.stale_echo.note_passed(cx.now, tcp);
                verdict
            }
            false => verdict,
        };
        if cx.link.state == LinkState::Up {
            self.watch_traffic(cx);
        }
        verdict
    }

    fn handle_drop(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        if packet.sequence_len() == 0 {
            self.newest_ack.owed = true;
        } else if let Kept::Window(window) = &mut self.kept {
            window.lose_dropped(packet);
        }
        // A late drop: the link tells of it only after its return, so nothing else would re-send the segment.
        if cx.link.state == LinkState::Up && self.stage.episode().is_none() {
            self.handle_return(cx);
        }
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        match cx.link.state {
            LinkState::Down => self.suspend(cx),
            LinkState::Up => {
                self.nudge.stop();
                self.stale_echo.begin(self.sleepers.away(cx.now));
                let near = &cx.flow.near;
                self.aftermath.begin(cx.now, near.acked, near.next);
                self.handle_return(cx);
                self.sleepers.begin(cx, !self.kept.has_nothing_acceptable());
            }
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.nudge.handle_timeout(cx.now, cx.link);
        self.sleepers.handle_timeout(cx.now);
        self.path_mtu.handle_timeout(cx.now);
        if let Some(watch) = self.stand_in.takes_over(cx.now, self.kept.end()) {
            cx.counters.kicks_repeated += 1;
            match watch {
                Watch::NoTraffic => self.fill_oldest_hole(),
                Watch::ShownHole => self.fill_shown_holes(),
            }
        }
        self.end_doubts(cx.now);
        if self.gathered.is_due(cx.now) {
            let doubts = self.stage.episode().is_some_and(Episode::doubts);
            match doubts || self.kept.has_lost() {
                // The rest has not had its turn.
                true => self.gathered.postpone(cx.now, cx.flow.rtt.patience()),
                false => self.hand_over(cx),
            }
        }
        let episode = self.stage.episode_mut();
        if episode.is_some_and(|episode| episode.kick_is_due(cx.now)) {
            self.repeat_kick(cx);
        }
    }

    fn waiting(&self) -> Option<Waiting> {
        Some(match self.next()? {
            Next::Nudge | Next::PathMtu | Next::NewestAck => Waiting::Urgent,
            Next::Sleeper => Waiting::Data,
            Next::Part | Next::Kept if self.awaits_delivery() => Waiting::Data,
            Next::Part | Next::Kept => Waiting::InLine,
        })
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        let next = self.next()?;
        let least = match next {
            Next::Part | Next::Kept => Some(Doubt::Large),
            Next::NewestAck => Some(Doubt::Small),
            Next::Sleeper if self.sleepers.is_far_next() => Some(Doubt::Small),
            Next::Sleeper | Next::Nudge | Next::PathMtu => None,
        };
        if let Some(least) = least
            && cx.rules.has(HoldRule::UntimedFirst)
            && let Some((packet, reason)) = self.stale_echo.next(cx, least)
        {
            return Some(Outgoing {
                direction: Direction::ToLink,
                packet,
                reason,
            });
        }
        let (packet, reason) = match next {
            Next::Nudge => return self.nudge.poll_transmit(),
            Next::PathMtu => return self.tell_path_mtu(cx),
            Next::Sleeper => return self.sleepers.poll_transmit(cx),
            Next::NewestAck => (self.next_ack(cx)?, SendReason::NewestAck),
            Next::Part => match self.path_mtu.next_part(cx.flow.near.acked) {
                Some(part) => (part, self.reason_of_kept()),
                // The rest has arrived meanwhile.
                None => return self.poll_transmit(cx),
            },
            Next::Kept => self.next_kept(cx)?,
        };
        if let Some(episode) = self.stage.episode_mut() {
            episode.sent(cx.now, cx.flow.rtt.patience());
        }
        let fresh = self.fresh_for_far(cx, &packet);
        Some(Outgoing {
            direction: Direction::ToLink,
            packet: fresh.unwrap_or(packet),
            reason,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let kick = self.stage.episode().and_then(Episode::deadline);
        let all = [
            kick,
            self.nudge.deadline(),
            self.gathered.deadline(),
            self.sleepers.deadline(),
            self.stand_in.deadline(),
            self.path_mtu.deadline(),
        ];
        all.into_iter().flatten().min()
    }

    fn account(&self) -> Account {
        let why = match &self.kept {
            _ if self.sleepers.are_being_woken() => {
                "a sender waits for its timeout: ICMP takes its back-offs back"
            }
            Kept::Window(_) => "",
            Kept::One { .. } => "a cap was reached: one packet is kept until it is acknowledged",
        };
        Account {
            why,
            ..Account::default()
        }
    }

    fn may_rest(&self, now: Instant, flow: &TcpFlow) -> bool {
        let may_be_lost = now.since(self.newest_ack.passed_at) < flow.rtt.patience();
        self.kept.has_nothing_acceptable()
            && self.stage.episode().is_none()
            && !self.sleepers.are_watched()
            && !self.newest_ack.owed
            && !may_be_lost
            && self.nudge.deadline().is_none()
            && !self.nudge.is_due()
            && self.gathered.is_empty()
    }

    fn release(&mut self, budget: &mut Budget) {
        self.kept.clear(budget);
        self.newest_ack.packet.clear(budget);
        self.newest_ack = NewestAck::default();
        if self.stage.is_at_work() {
            self.stage = Stage::Passing;
        }
        self.sleepers = Sleepers::default();
        self.stand_in.stop();
        self.stale_echo = StaleEcho::default();
        self.aftermath = Aftermath::default();
        self.path_mtu = PathMtu::default();
        self.resume_timer.forget();
        self.nudge.clear(budget);
        self.gathered.clear(budget);
    }
}

impl Hold {
    /// What becomes of a segment.
    fn judge(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> Verdict {
        match direction {
            Direction::FromLink => {
                self.nudge.note(cx, packet);
                if cx.link.state == LinkState::Up {
                    self.stale_echo.hear_far(cx.now, tcp);
                }
                self.hear(cx, packet, tcp, observation);
                let verdict = self.hand_on(cx, packet, tcp, observation);
                self.freshen(cx, packet, verdict)
            }
            Direction::ToLink if tcp.has(TcpFlags::RST) => {
                self.release(cx.budget);
                Verdict::Pass
            }
            Direction::ToLink if packet.sequence_len() == 0 => {
                self.judge_acknowledgement(cx, packet)
            }
            Direction::ToLink => {
                let is_nudged = cx.rules.has(HoldRule::Nudge) && !self.is_quiet;
                if observation.repeated {
                    self.aftermath.note_repetition(cx.link.state);
                }
                if observation.repeated && cx.link.state == LinkState::Down && is_nudged {
                    self.nudge.sender_timed_out(cx.now);
                }
                self.judge_data(cx, packet, observation)
            }
        }
    }

    /// An answer passes, or waits for others where the near host need not hear it at once.
    fn hand_on(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> Verdict {
        let acked = cx.flow.near.acked;
        let is_bare = packet.sequence_len() == 0 && tcp.flags == TcpFlags::ACK;
        let may_wait = is_bare && cx.rules.has(HoldRule::GatherAnswers);
        // A sender with neither SACK nor timestamps counts acknowledgements, and fills a hole with each; so does one
        // that is to repeat the rest.
        let lacks_both = cx.sack == Some(false) && self.aftermath.newest_stamp().is_none();
        let counts = lacks_both || self.scope == Scope::Few;
        let is_filled_here = !counts && !self.kept.has_no_copy_of(acked);
        let is_news = observation.newly_acked > 0;
        if may_wait && is_filled_here && self.aftermath.is_one_answer(acked) {
            let patience = is_news.then(|| cx.flow.rtt.patience());
            if self.gathered.add(cx.now, patience, packet, cx.budget) {
                return Verdict::Taken(TakeReason::Gathered);
            }
        }
        self.gathered.let_go(cx.now, cx.flow.rtt.patience());
        self.gathered.clear(cx.budget);
        Verdict::Pass
    }

    /// Counts what was merely transmitted as lost, and lets go what was set aside, once their time is over.
    fn end_doubts(&mut self, now: Instant) {
        let Some(episode) = self.stage.episode_mut() else {
            return;
        };
        let aside_is_over = episode.end_aside_if_due(now);
        if aside_is_over {
            self.kept.forget_gap();
        }
        if episode.end_doubt_if_due(now) | aside_is_over {
            self.kept.lose_transmitted(episode.target(), self.scope);
        }
    }

    /// Gives the near host the answer that waits, if one does.
    fn hand_over(&mut self, cx: &mut Context<'_>) {
        self.gathered.let_go(cx.now, cx.flow.rtt.patience());
        // It waits only where the rule is obeyed.
        if let Some((packet, came_at)) = self.gathered.take(cx.budget) {
            let waited = cx.now.since(came_at);
            let newest = self.aftermath.freshen(&packet, waited).unwrap_or(packet);
            *cx.instead = Some((Direction::FromLink, newest, SendReason::Gathered));
            self.aftermath.tell(cx.flow.near.acked);
        }
    }

    /// `packet` without an echo from before the return, if it has such.
    fn fresh_for_far(&self, cx: &Context<'_>, packet: &Packet) -> Option<Packet> {
        let is_obeyed = cx.rules.has(HoldRule::UntimedFirst);
        is_obeyed.then(|| self.stale_echo.freshen(packet)).flatten()
    }

    /// Takes from a packet that passes to the far host an echo from before the return.
    fn freshen_for_far(&self, cx: &mut Context<'_>, packet: &Packet) -> Verdict {
        match self.fresh_for_far(cx, packet) {
            Some(fresh) => {
                *cx.instead = Some((Direction::ToLink, fresh, SendReason::Fresh));
                Verdict::Taken(TakeReason::Freshened)
            }
            None => Verdict::Pass,
        }
    }

    /// Takes from a packet that passes to the near host an echo from before the return.
    fn freshen(&mut self, cx: &mut Context<'_>, packet: &Packet, verdict: Verdict) -> Verdict {
        let is_obeyed = cx.rules.has(HoldRule::GatherAnswers);
        if verdict != Verdict::Pass || cx.link.state == LinkState::Down || !is_obeyed {
            return verdict;
        }
        let fresh = self.aftermath.freshen(packet, Duration::ZERO);
        self.aftermath.tell(cx.flow.near.acked);
        match fresh {
            Some(fresh) => {
                *cx.instead = Some((Direction::FromLink, fresh, SendReason::Fresh));
                Verdict::Taken(TakeReason::Freshened)
            }
            None => Verdict::Pass,
        }
    }

    /// Marks the oldest segment as lost, even if it is stale: it goes out again in its turn.
    fn fill_oldest_hole(&mut self) {
        self.kept.lose_oldest_even_stale();
        self.stage.wait_in_line();
    }

    /// Marks what the far host shows to lack as lost: it goes out in its turn.
    fn fill_shown_holes(&mut self) {
        self.kept.lose_holes();
        self.stage.wait_in_line();
    }

    /// A segment from the far host: what it acknowledges need not be kept, and whether it
    /// moves says whether the kick worked.
    fn hear(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        tcp: &TcpHeader,
        observation: Observation,
    ) {
        let end = tcp.seq + packet.sequence_len();
        let acked = cx.flow.near.acked;
        let delivers = self.kept.hear(cx, tcp, self.aftermath.newest_stamp());
        if tcp.has(TcpFlags::RST) {
            self.release(cx.budget);
            return;
        }
        // Where nothing is kept, whatever the far host sends shows that it is awake.
        let is_awake = observation.new_data || observation.repeated;
        let moved = observation.newly_acked > 0 || (is_awake && self.kept.has_nothing_acceptable());
        let is_up = cx.link.state == LinkState::Up;
        if is_up {
            self.note_progress(cx, tcp, end, observation);
            self.note_holes(cx, tcp, observation);
            let is_pure = !observation.new_data && !observation.repeated;
            let repeats = is_pure && observation.newly_acked == 0;
            if observation.newly_acked > 0 {
                self.path_mtu.note_progress();
            }
            let arrived = self.kept.longest_arrived();
            let news = self
                .path_mtu
                .hear(cx.now, acked, &tcp.options.sack, (repeats, arrived));
            if let Some(news) = news {
                self.lose_too_long(cx, news);
            }
        }
        if self.stage.episode().is_none() {
            if self.kept.has_nothing_acceptable() && !self.kept.has_lost() {
                self.stage.leave_line();
            }
        } else if is_up {
            self.hear_amid_episode(cx, tcp, observation, delivers);
            if let Some(episode) = self.stage.episode_mut().filter(|_| moved) {
                episode.moved(cx.now, cx.flow.rtt.patience());
            }
            self.end_episode_if_over(acked);
        }
    }

    /// Hears a segment from the far host after the return: what it lacks goes out, and what it has does not.
    ///
    /// `delivers` says whether the link has delivered something that the gateway has not re-sent.
    fn hear_amid_episode(
        &mut self,
        cx: &mut Context<'_>,
        tcp: &TcpHeader,
        observation: Observation,
        delivers: bool,
    ) {
        let Some(episode) = self.stage.episode_mut() else {
            return;
        };
        let acked = cx.flow.near.acked;
        if cx.rules.has(HoldRule::ResendOvertaken) {
            self.kept.lose_overtaken(episode.target(), cx);
        }
        let is_pure = !observation.new_data && !observation.repeated;
        let repeats = is_pure && observation.newly_acked == 0;
        if cx.rules.has(HoldRule::GiveUpStale) {
            let is_answer = repeats && episode.has_sent_data();
            let clock = self.aftermath.newest_stamp().filter(|_| is_answer);
            self.kept.hear_rejection(cx, tcp, clock);
            self.kept.lose_rejected(acked);
        }
        let patience = cx.flow.rtt.patience();
        let answer = Answer {
            is_first: tcp.has(TcpFlags::ACK)
                && episode.hear_acknowledgement(cx.now, patience, repeats, tcp),
            fills_hole: observation.newly_acked > 0 && episode.take_aside(),
            delivers,
            shows_delivery: repeats && episode.hear_duplicate(self.kept.sent_since_return()),
        };
        if delivers && episode.awaits_more() {
            self.signal.note_full_queue();
        }
        end_doubt(cx, episode, &mut self.kept, self.scope, answer);
        if answer.is_first | answer.fills_hole {
            let gives_way = cx.rules.has(HoldRule::FewBeforeWanted);
            if gives_way && self.kept.give_way(episode.sent_before(), cx) {
                episode.set_aside(cx.now, patience);
            }
        }
        if answer.fills_hole && self.kept.has_gap() {
            episode.set_aside(cx.now, patience);
        }
        let is_advance =
            answer.is_first && observation.newly_acked > 0 && !episode.draws_duplicates();
        let is_told = cx.rules.has(HoldRule::DuplicateForHole);
        if is_advance && is_told && self.kept.has_no_copy_of(acked) {
            self.nudge.duplicate(acked);
        }
    }

    /// Notes what the far host lacks, and sends it if its sender does not.
    fn note_holes(&mut self, cx: &Context<'_>, tcp: &TcpHeader, observation: Observation) {
        let acked = cx.flow.near.acked;
        let is_shown = !tcp.options.sack.is_empty();
        let hole = is_shown.then(|| self.kept.shown_hole(acked)).flatten();
        let round_trip = cx.flow.rtt.patience();
        self.stand_in.note_hole(cx.now, round_trip, hole);
        if observation.newly_acked > 0 && self.stand_in.hear_news(acked) {
            self.fill_oldest_hole();
        }
    }

    /// All that was kept at the return may be acknowledged.
    fn end_episode_if_over(&mut self, acked: SeqNumber) {
        let Some(episode) = self.stage.episode_mut() else {
            return;
        };
        if self.newest_ack.copies_left == 0
            && episode.is_over(acked, self.kept.has_nothing_acceptable())
        {
            self.kept.forget_gap();
            self.signal.note_delivered();
            // What is still lost came later, and only waits in line.
            match self.kept.has_lost() {
                true => episode.note_delivered(),
                false => self.stage.end_episode(),
            }
        }
    }

    /// What the far host sends while the link is up, up to `end`, may say that the connection has
    /// resumed: that it has new bytes of the near host, or sends the near host the next that it lacks.
    fn note_progress(
        &mut self,
        cx: &mut Context<'_>,
        tcp: &TcpHeader,
        end: SeqNumber,
        observation: Observation,
    ) {
        let lacks = cx.flow.far.acked;
        let is_next = tcp.seq.at_or_before(lacks) && end.after(lacks);
        let is_acknowledged = observation.newly_acked > 0;
        let has_data = observation.new_data || observation.repeated;
        if let Some((at, by)) = self.sleepers.hear_far(cx, has_data, is_acknowledged) {
            // The near host waits for the far host's data still.
            self.resume_timer.begin_certain(at, by);
        } else if is_acknowledged || (is_next && self.kept.has_nothing_acceptable()) {
            self.resume_timer.end(cx);
        }
    }

    fn judge_acknowledgement(&mut self, cx: &mut Context<'_>, packet: &Packet) -> Verdict {
        let superseded = self.newest_ack.owed;
        let is_kept = self.newest_ack.packet.replace(packet, cx.budget);
        cx.counters.not_kept += u64::from(!is_kept);
        self.newest_ack.passed_at = cx.now;
        let may_follow = is_kept && cx.rules.has(HoldRule::UntimedFirst);
        match cx.link.state {
            LinkState::Up if may_follow && self.stale_echo.untold(cx, Doubt::Large).is_some() => {
                self.newest_ack.copies_left = 0;
                self.newest_ack.follows = true;
                Verdict::Taken(TakeReason::StaleEcho)
            }
            LinkState::Up => {
                self.newest_ack.note_passed(cx.now, packet);
                self.newest_ack.copies_left = 0;
                self.newest_ack.follows = false;
                Verdict::Pass
            }
            LinkState::Down => {
                cx.counters.superseded += u64::from(superseded);
                self.newest_ack.owed = true;
                Verdict::Taken(TakeReason::LinkDown)
            }
        }
    }

    fn judge_data(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict {
        let end = packet.tcp().map(|tcp| tcp.seq + packet.sequence_len());
        if end.is_some_and(|end| end.at_or_before(cx.flow.near.acked)) {
            // The far host has it; the sender has only not heard so yet.
            if self.gathered.is_empty() {
                return Verdict::Pass;
            }
            cx.counters.suppressed += 1;
            self.hand_over(cx);
            return Verdict::Taken(TakeReason::JustResent);
        }
        let is_new = observation.new_data && cx.link.state == LinkState::Up;
        if is_new && !self.gathered.is_empty() {
            // Its sender does not wait for its timer.
            self.hand_over(cx);
        }
        if observation.repeated
            && let Some(kept) = self.kept.longer(packet)
        {
            self.path_mtu.note_smaller(packet, kept.total_len());
        }
        if is_new && self.drops_as_signal(cx) {
            cx.counters.losses_signalled += 1;
            return Verdict::Taken(TakeReason::FullQueue);
        }
        let (verdict, fate) = match self.waits_behind_gap(cx, packet, observation) {
            true => (Verdict::Taken(TakeReason::BehindKept), Fate::Transmitted),
            false => self.fate_of_data(cx, packet, observation),
        };
        if cx.link.state == LinkState::Up {
            self.sleepers.hear_near();
            if observation.repeated {
                self.stand_in.yield_to_sender();
            }
        }
        match self.kept.keep(cx, packet, (verdict == Verdict::Pass, fate)) {
            Ok(()) => {
                if verdict == Verdict::Taken(TakeReason::BehindKept) {
                    self.give_way(cx);
                }
                verdict
            }
            // Nothing was kept, so the packet takes its own chance.
            Err(Full) => Verdict::Pass,
        }
    }

    /// Whether new data waits, as something before it was never seen here, and what is before that is not acknowledged:
    /// its sender hears of that hole when it lacks nothing else.
    fn waits_behind_gap(
        &mut self,
        cx: &Context<'_>,
        packet: &Packet,
        observation: Observation,
    ) -> bool {
        let may_wait = observation.new_data && cx.link.state == LinkState::Up;
        if !(may_wait && self.keeps_gaps_in_order(cx) && self.awaits_delivery()) {
            return false;
        }
        let (waits, is_new) = self.kept.waits_behind_gap(packet, cx.flow.near.acked);
        if let Some(episode) = self.stage.episode_mut().filter(|_| is_new) {
            episode.set_aside(cx.now, cx.flow.rtt.patience());
        }
        waits
    }

    /// Whether this segment is dropped, by which the sender hears that the link's queue is full.
    fn drops_as_signal(&mut self, cx: &Context<'_>) -> bool {
        let near = &cx.flow.near;
        let outstanding = near.next.distance_from(near.acked).unsigned_abs();
        let is_bulk = u64::from(outstanding) > INITIAL_BURST;
        is_bulk && cx.rules.has(HoldRule::SignalOnce) && self.signal.take()
    }

    /// Little of what is older goes before what the far host lacks next.
    fn give_way(&mut self, cx: &Context<'_>) {
        if cx.rules.has(HoldRule::FewBeforeWanted)
            && let Some(episode) = self.stage.episode_mut()
            && self.kept.give_way(episode.sent_before(), cx)
        {
            episode.set_aside(cx.now, cx.flow.rtt.patience());
        }
    }

    fn fate_of_data(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        observation: Observation,
    ) -> (Verdict, Fate) {
        if cx.link.state == LinkState::Down {
            return (Verdict::Taken(TakeReason::LinkDown), Fate::Lost);
        }
        let repeats = observation.repeated;
        if self.path_mtu.is_too_long(cx.now, packet, repeats) {
            self.stage.wait_in_line();
            return (Verdict::Taken(TakeReason::BehindKept), Fate::Lost);
        }
        let rules = cx.rules;
        let may_be_window = cx.is_paced || self.gathered.has_opened(cx.now);
        let is_paced = may_be_window && observation.new_data && rules.has(HoldRule::PaceNewData);
        let is_at_work = self.stage.is_at_work() || is_paced;
        let Kept::Window(window) = &self.kept else {
            return (Verdict::Pass, Fate::Transmitted);
        };
        if !is_at_work {
            return (Verdict::Pass, Fate::Transmitted);
        }
        if let Some(segment) = window.find(packet)
            && let Fate::Resent(at, _) = segment.fate
            // Where nobody knows the round trip, this may be the only repetition for long.
            && cx.flow.rtt.measured().is_some()
            && cx.now.since(at) < cx.flow.rtt.smoothed()
            && rules.has(HoldRule::SuppressRepetition)
        {
            cx.counters.suppressed += 1;
            return (Verdict::Taken(TakeReason::JustResent), segment.fate);
        }
        let is_listening = self.stage.episode().is_some_and(Episode::is_listening);
        if window.has_lost() && rules.has(HoldRule::WaitBehindOwn) || is_paced || is_listening {
            self.stage.wait_in_line();
            return (Verdict::Taken(TakeReason::BehindKept), Fate::Lost);
        }
        (Verdict::Pass, Fate::Transmitted)
    }

    /// What goes out next, if anything waits.
    ///
    /// After the last kick in vain what is lost stays where it is, until its sender or the far host shows up.
    fn next(&self) -> Option<Next> {
        let has_lost = match (&self.stage, &self.kept) {
            (Stage::Recovering { episode, .. }, Kept::Window(window)) if episode.is_listening() => {
                window.acceptable_front().is_some_and(Segment::is_lost)
            }
            (Stage::Recovering { .. }, kept) => kept.has_lost(),
            (Stage::InLine, Kept::Window(window)) => window.has_lost(),
            _ => false,
        };
        if self.nudge.is_due() {
            Some(Next::Nudge)
        } else if self.path_mtu.untold().is_some() {
            Some(Next::PathMtu)
        } else if self.newest_ack.follows
            || self.stage.episode().is_some() && self.newest_ack.copies_left > 0
        {
            Some(Next::NewestAck)
        } else if self.sleepers.is_due() && (self.sleepers.goes_first() || !has_lost) {
            Some(Next::Sleeper)
        } else if self.path_mtu.has_parts() {
            Some(Next::Part)
        } else {
            has_lost.then_some(Next::Kept)
        }
    }

    /// Whether something that was kept at the return is not acknowledged yet.
    fn awaits_delivery(&self) -> bool {
        let episode = self.stage.episode();
        episode.is_some_and(|episode| !episode.is_delivered())
    }

    /// The newest acknowledgement, once more.
    fn next_ack(&mut self, cx: &Context<'_>) -> Option<Packet> {
        if !core::mem::take(&mut self.newest_ack.follows) {
            self.newest_ack.copies_left -= 1;
        }
        let packet = self.newest_ack.packet.packet()?.clone();
        self.newest_ack.note_passed(cx.now, &packet);
        Some(packet)
    }

    /// Tells the near host what the path takes.
    fn tell_path_mtu(&mut self, cx: &Context<'_>) -> Option<Outgoing> {
        let mtu = self.path_mtu.untold()?;
        self.path_mtu.note_told(cx.now);
        Some(Outgoing {
            direction: Direction::FromLink,
            packet: too_big(cx.key, cx.flow, mtu)?,
            reason: SendReason::TooBig,
        })
    }

    /// Marks as lost what was too long for the path: it goes out again in its turn.
    fn lose_too_long(&mut self, cx: &Context<'_>, news: News) {
        // Without SACK the far host cannot say what has arrived.
        let most = match cx.sack {
            Some(false) => 2,
            Some(true) | None => usize::MAX,
        };
        match news {
            News::PartArrived(at) => self.kept.lose_resent_until(at, most),
            News::Lost(seq) => self.kept.lose_at(seq),
            News::TooLong(seq, until) => {
                self.kept.lose_at(seq);
                self.kept.lose_resent_until(until, usize::MAX);
            }
        }
        self.stage.wait_in_line();
    }

    /// The reason for which kept data goes out now.
    fn reason_of_kept(&self) -> SendReason {
        let episode = self.stage.episode();
        episode.map_or(SendReason::Kept, Episode::reason)
    }

    /// The next segment that is kept and lost.
    fn next_kept(&mut self, cx: &Context<'_>) -> Option<(Packet, SendReason)> {
        let reason = self.reason_of_kept();
        let episode = self.stage.episode_mut();
        let (packet, went_before) = match &mut self.kept {
            Kept::Window(window) => {
                let copy = episode
                    .as_ref()
                    .map_or(CopyChoice::Freshest, |episode| episode.copy(cx.rules));
                let (packet, went_before) = window.next_lost(cx, copy)?;
                if let Some(episode) = episode {
                    episode.sent_data(cx.now, &packet);
                }
                (packet, went_before)
            }
            Kept::One {
                packet, pending, ..
            } => {
                *pending = false;
                (packet.packet()?.clone(), false)
            }
        };
        let packet = self
            .path_mtu
            .cut(cx.now, packet, (went_before, cx.flow.near.acked));
        Some((packet, reason))
    }

    fn suspend(&mut self, cx: &mut Context<'_>) {
        self.stage = Stage::Down {
            is_certain: cx.link.by != Indicator::Silence,
        };
        self.resume_timer.suspend(cx.link.by);
        self.sleepers
            .suspend(cx.link.since, self.stale_echo.has_answered(cx.flow));
        self.stand_in.suspend(cx.link.since);
        self.stale_echo
            .suspend(cx.link.since, cx.flow.rtt.patience());
        self.kept.keep_stale(false, cx);
        self.newest_ack.copies_left = 0;
        self.newest_ack.owed |= core::mem::take(&mut self.newest_ack.follows);
        self.aftermath.suspend(cx.link.by == Indicator::Silence);
        if self.stage.episode().is_some_and(Episode::is_in_vain) {
            self.note_vain_attempt(cx);
        }
        self.path_mtu.suspend();
        self.newest_ack.go_away();
        // Silence is noticed after its beginning.
        if cx.link.since.since(self.newest_ack.passed_at) < cx.flow.rtt.patience() {
            self.newest_ack.owed |= self.newest_ack.packet.packet().is_some();
        }
        if let Kept::Window(window) = &mut self.kept {
            window.mark_resent_as_transmitted();
        }
    }

    /// Begins to watch for what the sender cannot know by itself after the link's return.
    fn watch_sender(&mut self, cx: &mut Context<'_>) {
        self.signal = match cx.sack == Some(false) && self.scope == Scope::All {
            true => Signal::after(self.sleepers.away(cx.now)),
            false => Signal::None,
        };
        let has_timestamps = self.aftermath.newest_stamp().is_some();
        if cx.sack != Some(false) && cx.rules.has(HoldRule::FillShownHoles) {
            self.stand_in
                .begin(cx.now, Watch::ShownHole, has_timestamps);
        } else if cx.sack == Some(false) && cx.rules.has(HoldRule::FillForSender) {
            let is_watched = self
                .stand_in
                .begin(cx.now, Watch::NoTraffic, has_timestamps);
            self.kept.keep_stale(is_watched, cx);
        }
    }

    /// From now on it counts whether something crosses. As long as the connection is to move again, kicks go on.
    fn watch_traffic(&mut self, cx: &Context<'_>) {
        let is_outstanding = self.stage.episode().is_none() && self.kept.end().is_some();
        self.stand_in
            .note_crossing(cx.now, cx.flow.rtt.patience(), is_outstanding);
    }

    /// The link is back, or tells of a drop after its return: an episode begins if anything is kept or owed.
    fn handle_return(&mut self, cx: &mut Context<'_>) {
        let was_certain = self.stage.come_back();
        self.watch_sender(cx);
        let has_waited = self.has_kept();
        // The packet that shows that the link is back may say so.
        match &mut self.kept {
            Kept::Window(window) => {
                window.note_return();
                window.acknowledge(cx.flow.near.acked, cx.budget);
            }
            Kept::One { packet, .. } => packet.forget_acknowledged(cx),
        }
        let is_withheld = cx.rules.has(HoldRule::WithholdMisleading);
        if is_withheld && self.newest_ack.misleads(cx.now, &cx.flow.rtt) {
            self.newest_ack.withhold();
        }
        let owes_ack = self.owes_acknowledgement() && cx.rules.has(HoldRule::NewestAck);
        if !owes_ack && self.kept.has_nothing_acceptable() {
            return self.resume_timer.forget_unless(has_waited);
        }
        self.resume_timer.begin(cx.now, cx.link.by);
        if owes_ack {
            self.newest_ack.copies_left = 1;
        }
        let was_silent = !was_certain && cx.link.by == Indicator::FirstPacket;
        let target = match &mut self.kept {
            Kept::Window(window) => {
                match self.scope {
                    Scope::All if cx.rules.has(HoldRule::OldestAtOnce) => window.lose_front(),
                    Scope::All => {}
                    Scope::Few if was_silent => {
                        cx.counters.superseded += window.lose_only_front();
                    }
                    Scope::Few => cx.counters.superseded += window.lose_only_two(),
                }
                window.end()
            }
            Kept::One {
                until,
                pending,
                packet,
            } => {
                *pending = packet.packet().is_some();
                Some(*until)
            }
        };
        self.stage.recover(Episode::new(
            cx.now,
            cx.flow.rtt.patience(),
            target,
            self.aftermath.newest_stamp(),
            !was_silent || !cx.rules.has(HoldRule::DoubtAfterSilence),
        ));
        if !cx.rules.has(HoldRule::DoubtTransmitted) {
            self.kept.lose_transmitted(target, self.scope);
        }
        self.give_way(cx);
        self.keep_gap_in_order(cx);
    }

    /// Whether the sender finds its holes by itself, if it hears of them in order.
    fn keeps_gaps_in_order(&self, cx: &Context<'_>) -> bool {
        let knows_holes = cx.sack != Some(false) && self.scope == Scope::All;
        knows_holes && cx.rules.has(HoldRule::GapInOrder) && cx.retention.is_empty()
    }

    /// What is behind a segment that passed unseen waits until that one is the next.
    fn keep_gap_in_order(&mut self, cx: &Context<'_>) {
        if self.keeps_gaps_in_order(cx)
            && self.kept.set_aside_behind_gap()
            && let Some(episode) = self.stage.episode_mut()
        {
            episode.set_aside(cx.now, cx.flow.rtt.patience());
        }
    }

    /// The flow does not move: the newest acknowledgement and the freshest copy of the oldest
    /// segment go out again, unless enough has been tried.
    fn repeat_kick(&mut self, cx: &mut Context<'_>) {
        let Some(episode) = self.stage.episode_mut() else {
            return;
        };
        let has_data = !self.kept.has_nothing_acceptable();
        if !has_data && self.newest_ack.copies_left > 0 {
            // It has not gone out yet: others go before it.
            episode.postpone_kick();
            return;
        }
        let is_over = cx.flow.phase == Phase::Closed;
        if !cx.rules.has(HoldRule::RepeatKick) {
            self.stage.end_episode();
            return;
        }
        match episode.kick(cx.now, has_data, is_over) {
            Kick::GiveUp => {
                self.stage.end_episode();
                self.watch_traffic(cx);
                self.resume_timer.forget_unless(false);
            }
            Kick::Again => {
                cx.counters.kicks_repeated += 1;
                if self.newest_ack.packet.packet().is_some() && !has_data {
                    self.newest_ack.copies_left = REPEATED_ACKS;
                }
                self.kept.lose_front();
                self.note_vain_attempt(cx);
            }
        }
    }

    /// The oldest segment has gone out, and nothing of it has arrived in time.
    fn note_vain_attempt(&mut self, cx: &Context<'_>) {
        let arrived = self.kept.longest_arrived();
        if let Some(oldest) = self.kept.oldest()
            && oldest.total_len() > arrived
            && let Some(news) = self.path_mtu.note_vain_attempt(oldest)
        {
            self.lose_too_long(cx, news);
        }
    }
}

/// What a segment from the far host says after the return.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// It is the first answer to what went out.
    is_first: bool,
    /// It fills the hole for which something was set aside.
    fills_hole: bool,
    /// The link has delivered something that it had before its return.
    delivers: bool,
    /// It repeats the last acknowledgement, more often than what was sent since the return can have drawn.
    shows_delivery: bool,
}

/// Ends the doubt of what was merely transmitted, or without SACK of the oldest such segment only: what comes
/// twice, a sender without SACK takes for losses and for reordering.
fn end_doubt(
    cx: &Context<'_>,
    episode: &mut Episode,
    kept: &mut Kept,
    scope: Scope,
    answer: Answer,
) {
    let lacks_sack = cx.sack == Some(false) && scope == Scope::All;
    if answer.is_first && lacks_sack && cx.rules.has(HoldRule::DoubtWithoutSack) {
        episode.listen(cx.now, cx.flow.rtt.smoothed());
        kept.lose_front_if_transmitted();
    } else if answer.is_first || answer.fills_hole && !episode.awaits_more() {
        episode.end_doubt();
        kept.lose_transmitted(episode.target(), scope);
    } else if episode.awaits_more() && (answer.delivers || answer.shows_delivery) {
        episode.await_more(cx.now + cx.flow.rtt.patience() / 2);
    }
}
