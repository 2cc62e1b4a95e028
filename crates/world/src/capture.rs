//! Captures of both ends of the link, with comments for what a capture cannot show by itself: what
//! the link dropped, what Outlast kept and put on the path, and outages.
//!
//! Each capture has what its end of the link sees, in the order of time; times count from the
//! beginning of the simulation. A packet gets its bytes when it is seen, and is encoded when its
//! fate is known.

use crate::side::Side;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use outlast_core::mechanisms::path::{SendReason, TakeReason};
use outlast_core::time::{Duration, Instant};
use outlast_link::DropReason;
use outlast_wire::Packet;
use outlast_wire::pcapng::{Direction, Encoder, EnhancedPacket, InterfaceId, Section};

/// Both captures.
#[derive(Debug)]
pub(crate) struct Capture {
    /// By [`Side::index`].
    ends: [End; 2],
    /// When the first packet was seen.
    began: Option<Instant>,
}

/// One end of the link.
#[derive(Debug)]
struct End {
    encoder: Encoder,
    interface: InterfaceId,
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
pub(crate) enum Mark {
    /// It came to the other end.
    Crossed,
    /// The link dropped it.
    Dropped(DropReason),
    /// The gateway at this end took it.
    Taken(TakeReason),
    /// The gateway at this end put it there.
    Injected(SendReason),
}

impl Capture {
    /// Captures of the two ends of the link that is called `link`.
    pub(crate) fn new(link: &str) -> Self {
        let ends = Side::BOTH.map(|side| {
            let mut encoder = Encoder::new(&Section::of_application("outlast"));
            let interface = encoder.interface(&format!("{link}, {side} end"));
            End {
                encoder,
                interface,
                pending: VecDeque::new(),
                news: None,
            }
        });
        Self { ends, began: None }
    }

    /// A packet came to the link's end at `side`, from its host or from its gateway.
    pub(crate) fn sent(
        &mut self,
        at: Instant,
        side: Side,
        serial: u64,
        packet: &Packet,
        injected: Option<SendReason>,
    ) {
        let comments = injected.map(|reason| Mark::Injected(reason).text());
        let record = Record {
            at,
            direction: Direction::Outbound,
            bytes: packet.to_bytes(),
            comments: comments.into_iter().collect(),
            undecided: Some(serial),
        };
        self.push(side, record);
    }

    /// A packet comes to `side`, out of the link or from its gateway.
    pub(crate) fn arrived(&mut self, at: Instant, side: Side, packet: &Packet, mark: Option<Mark>) {
        let record = Record {
            at,
            direction: Direction::Inbound,
            bytes: packet.to_bytes(),
            comments: mark.map(Mark::text).into_iter().collect(),
            undecided: None,
        };
        self.push(side, record);
    }

    /// The fate of what was sent at `side` is known.
    pub(crate) fn settle(&mut self, side: Side, serial: u64, mark: Mark) {
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
        self.ends[side.index()].encode_decided();
    }

    /// The link went up or down: the next packet of each end says so.
    pub(crate) fn carrier(&mut self, at: Instant, up: bool) {
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

    /// The files, by [`Side::index`].
    pub(crate) fn finish(self) -> [Vec<u8>; 2] {
        self.ends.map(|mut end| {
            for record in &mut end.pending {
                if record.undecided.take().is_some() {
                    let comment = "on its way when the capture ended".to_string();
                    record.comments.push(comment);
                }
            }
            end.encode_decided();
            end.encoder.take()
        })
    }

    fn push(&mut self, side: Side, mut record: Record) {
        self.began.get_or_insert(record.at);
        let end = &mut self.ends[side.index()];
        record.comments.splice(0..0, end.news.take());
        end.pending.push_back(record);
        end.encode_decided();
    }
}

impl End {
    fn encode_decided(&mut self) {
        while let Some(record) = self.pending.front()
            && record.undecided.is_none()
        {
            let time = Duration::from_nanos(record.at.as_nanos());
            let comment = (!record.comments.is_empty()).then(|| record.comments.join("; ").into());
            self.encoder.packet(&EnhancedPacket {
                direction: record.direction,
                comment,
                ..EnhancedPacket::new(self.interface, time, &record.bytes)
            });
            self.pending.pop_front();
        }
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
        TakeReason::JustResent => "the same segment has just been re-sent",
    }
}

fn injected(reason: SendReason) -> &'static str {
    match reason {
        SendReason::NewestAck => "newest acknowledgement, which the link had dropped",
        SendReason::Kept => "kept while the link was down",
        SendReason::Unacknowledged => "on the link when it went down, and not acknowledged",
        SendReason::RepeatedKick => "the flow does not move yet",
        SendReason::CachedRetransmission => "retransmission that found the mobile away",
        SendReason::WindowClosed => "acknowledges for the far host, and closes its window",
        SendReason::WindowOpened => "the far host is back: the window that it had offered is open",
        SendReason::Reset => "the far host never acknowledged what was acknowledged for it",
        SendReason::SmartLink => "the kept packet of the smart link layer",
        SendReason::Nudge => "lets the sender measure its round trip while the link is down",
    }
}
