//! What the two ends of a link see, with comments for what a capture cannot show by itself: what the
//! link dropped, what Outlast kept and put on the path, and outages.
//!
//! Each end has what it sees in the order of time. A packet gets its bytes when it is seen, and is
//! given out when its fate is known.

use super::load::Load;
use crate::side::Side;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use outlast_base::time::Instant;
use outlast_gateway::mechanisms::path::{SendReason, TakeReason};
use outlast_link::DropReason;
use outlast_wire::pcapng::Direction;

/// A packet that one end of a link saw, for a capture file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// `Outbound` is into the link.
    pub direction: Direction,
    /// The packet.
    pub bytes: Bytes,
    /// What the bytes do not tell.
    pub comment: Option<String>,
}

/// Both ends.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By [`Side::index`].
    ends: [End; 2],
    /// When the first packet was seen.
    began: Option<Instant>,
}

/// One end of the link.
#[derive(Debug, Default)]
struct End {
    /// Packets since the first one whose fate is unknown.
    pending: VecDeque<Record>,
    /// What happened to the link since the last packet that was seen here.
    news: Option<String>,
}

/// A packet that was seen at one end.
#[derive(Debug)]
struct Record {
    at: Instant,
    direction: Direction,
    bytes: Bytes,
    comments: Vec<String>,
    /// The packet's number as long as its fate is unknown.
    undecided: Option<u64>,
}

/// What there is to say of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mark {
    /// It came to the other end.
    Crossed,
    /// The link dropped it.
    Dropped(DropReason),
    /// The gateway at this end took it.
    Taken(TakeReason),
    /// The gateway at this end put it there.
    Injected(SendReason),
}

impl Ledger {
    /// A packet came to the link's end at `side`, from its host or from its gateway.
    pub(super) fn sent(
        &mut self,
        at: Instant,
        side: Side,
        serial: u64,
        load: &impl Load,
        injected: Option<SendReason>,
    ) {
        let comments = injected.map(|reason| Mark::Injected(reason).text());
        let record = Record {
            at,
            direction: Direction::Outbound,
            bytes: load.to_bytes(),
            comments: comments.into_iter().collect(),
            undecided: Some(serial),
        };
        self.push(side, record);
    }

    /// A packet comes to `side`, out of the link or from its gateway.
    pub(super) fn arrived(
        &mut self,
        at: Instant,
        side: Side,
        load: &impl Load,
        mark: Option<Mark>,
    ) {
        let record = Record {
            at,
            direction: Direction::Inbound,
            bytes: load.to_bytes(),
            comments: mark.map(Mark::text).into_iter().collect(),
            undecided: None,
        };
        self.push(side, record);
    }

    /// The fate of what was sent at `side` is known.
    pub(super) fn settle(&mut self, side: Side, serial: u64, mark: Mark) {
        let pending = &mut self.ends[side.index()].pending;
        // A copy that the link made finds the original settled.
        let found = pending
            .iter_mut()
            .find(|record| record.undecided == Some(serial));
        let Some(record) = found else { return };
        record.undecided = None;
        if mark != Mark::Crossed {
            record.comments.push(mark.text());
        }
    }

    /// The link went up or down: the next packet of each end says so.
    pub(super) fn carrier(&mut self, at: Instant, up: bool) {
        let since = at.since(self.began.unwrap_or(at)).as_secs_f64();
        let way = if up { "up" } else { "down" };
        for end in &mut self.ends {
            let news = format!("the link went {way} {since:.6} s after the first packet");
            match &mut end.news {
                Some(earlier) => *earlier = format!("{earlier}; {news}"),
                None => end.news = Some(news),
            }
        }
    }

    /// Nothing more is to come: nobody will know the fate of what is on its way.
    pub(super) fn close(&mut self) {
        for record in self.ends.iter_mut().flat_map(|end| &mut end.pending) {
            if record.undecided.take().is_some() {
                let comment = "on its way when the capture ended";
                record.comments.push(comment.into());
            }
        }
    }

    /// The next packet of `side`, once its fate is known.
    pub(super) fn poll(&mut self, side: Side) -> Option<Seen> {
        let pending = &mut self.ends[side.index()].pending;
        if pending.front()?.undecided.is_some() {
            return None;
        }
        let record = pending.pop_front()?;
        Some(Seen {
            at: record.at,
            direction: record.direction,
            bytes: record.bytes,
            comment: (!record.comments.is_empty()).then(|| record.comments.join("; ")),
        })
    }

    fn push(&mut self, side: Side, mut record: Record) {
        self.began.get_or_insert(record.at);
        let end = &mut self.ends[side.index()];
        record.comments.splice(0..0, end.news.take());
        end.pending.push_back(record);
    }
}

impl Mark {
    fn text(self) -> String {
        match self {
            Self::Crossed => "crossed the link".into(),
            Self::Dropped(reason) => format!("dropped by the link: {reason}"),
            Self::Taken(reason) => format!("taken by Outlast: {}", taken(reason)),
            Self::Injected(reason) => format!("sent by Outlast: {}", injected(reason)),
        }
    }
}

fn taken(reason: TakeReason) -> &'static str {
    match reason {
        TakeReason::LinkDown => "the link is down",
        TakeReason::BehindKept => "it waits behind what is kept",
        TakeReason::AwaitsShare => "it waits for its share of the link's rate",
        TakeReason::JustResent => "the same segment has just been re-sent",
        TakeReason::FullQueue => "the link's queue is full, and its sender is to hear of it",
        TakeReason::AnswersProbe => "it only answers the gateway's probe",
        TakeReason::Gathered => "an answer to what was kept, which waits for more of these",
        TakeReason::StaleEcho => {
            "it echoes a timestamp from before the outage, and follows what says the same without"
        }
        TakeReason::Freshened => "it goes on without an echo from before the outage",
        TakeReason::Supervised => "the supervisor host answers it, or passes it on changed",
    }
}

fn injected(reason: SendReason) -> &'static str {
    match reason {
        SendReason::NewestAck => "newest acknowledgement, which the link had dropped",
        SendReason::Untimed => "what the near host has, without a timestamp from before the outage",
        SendReason::Kept => "kept while the link was down",
        SendReason::Share => "has waited for its share of the link's rate",
        SendReason::Unacknowledged => "on the link when it went down, and not acknowledged",
        SendReason::RepeatedKick => "the flow does not move yet",
        SendReason::CachedRetransmission => "retransmission that found the mobile away",
        SendReason::WindowClosed => "acknowledges for the far host, and closes its window",
        SendReason::WindowOpened => "the far host is back: the window that it had offered is open",
        SendReason::Reset => "the far host never acknowledged what was acknowledged for it",
        SendReason::SmartLink => "the kept packet of the smart link layer",
        SendReason::Probe => "asks a silent link whether it is back",
        SendReason::Question => "asks the far host whether it has sent what is lost",
        SendReason::Overdue => "asks a far host that is late with its answer",
        SendReason::Unreachable => "takes back a back-off of a sender that waits for its timeout",
        SendReason::TooBig => "tells a sender that its path takes smaller packets only",
        SendReason::Gathered => "newest of the answers to what was kept",
        SendReason::Fresh => {
            "answer with a fresh timestamp instead of an echo from before the outage"
        }
        SendReason::Duplicate => "only the sender can fill the hole before which it stands",
        SendReason::Supervised => {
            "the mobile's acknowledgement, as the supervisor host passes it on"
        }
        SendReason::Compression => "asks whether the other end restores, or answers",
        SendReason::Nudge => "lets the sender measure its round trip while the link is down",
    }
}
