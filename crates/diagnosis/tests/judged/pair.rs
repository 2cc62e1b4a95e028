//! Two hosts of the TCP model with applications that pause and do not read, and a middlebox that
//! forgets.
//!
//! The mobile opens the connection. Whatever a host sends is noted with its reason, which is what
//! the driver called the host for.

use crate::case::Ends;
use crate::truth::{Course, Sent, Why};
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_diagnosis::{Diagnosis, Findings};
use outlast_link::{Frame, Link, LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_sim::Side;
use outlast_tcp::{Config, Endpoint, Reason};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::{Direction, Encoder, EnhancedPacket, Section};
use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, TcpFlags};

/// What happens; times in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Who sends the payload.
    pub(crate) sender: Side,
    /// When its application writes, and how many bytes.
    pub(crate) writes: Vec<(u64, u64)>,
    /// The receiver's application does not read from the first of these times to the second.
    pub(crate) deaf: Option<(u64, u64)>,
    /// Bytes of the receiver's buffer, if it does not tune itself.
    pub(crate) receive_buffer: Option<u32>,
    /// From the first on, a firewall beside the sender that replaces timestamps, and has restarted,
    /// sends timestamps that are set back by the second.
    pub(crate) set_back: Option<(u64, u32)>,
    /// When the link goes down, and for how long.
    pub(crate) outage: Option<(u64, u64)>,
    /// When all is over.
    pub(crate) until: u64,
}

/// What came of it.
pub(crate) struct Ran {
    packets: Vec<(Instant, Side, Direction, Bytes)>,
    pub(crate) course: Course,
    /// Bytes that the receiver has.
    pub(crate) received: u64,
    /// Segments of the receiver's that closed its window.
    pub(crate) zero_windows: u64,
}

/// A packet in the link.
#[derive(Clone)]
struct OnLink {
    packet: Packet,
    /// Its place in the course, if the sender sent it.
    number: Option<usize>,
}

impl Frame for OnLink {
    fn wire_len(&self) -> ByteCount {
        ByteCount(u64::from(self.packet.total_len()))
    }
}

struct Pair<'a> {
    plan: &'a Plan,
    now: Instant,
    /// By [`Side::index`].
    ends: [Endpoint; 2],
    unsent: u64,
    link: Link<OnLink>,
    ran: Ran,
    /// The newest timestamp that came to the receiver.
    newest: Option<u32>,
    /// Whether the receiver echoes timestamps that were set back.
    is_set_back_accepted: bool,
}

impl Plan {
    pub(crate) fn run(&self) -> Ran {
        let mobile = Config {
            nagle: false,
            ..Config::new(
                ([192, 0, 2, 2], 40_000).into(),
                ([192, 0, 2, 1], 5_001).into(),
            )
        };
        let mut ends = [mobile.mirrored(), mobile];
        ends[self.sender.peer().index()].receive_buffer = self.receive_buffer;
        let [fixed, mobile] = ends;
        let pipe = PipeConfig {
            rate: BitRate::from_bits_per_second(10_000_000),
            delay: Duration::from_millis(25),
            ..PipeConfig::default()
        };
        let outages = match self.outage {
            Some((start, length)) => OutageProcess::Single {
                start: Duration::from_millis(start),
                length: Duration::from_millis(length),
            },
            None => OutageProcess::AlwaysUp,
        };
        let mut link = Link::new(LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            outages,
            ..LinkConfig::default()
        });
        link.start(Instant::ZERO);
        let mut pair = Pair {
            plan: self,
            now: Instant::ZERO,
            ends: [
                Endpoint::listen(fixed),
                Endpoint::connect(Instant::ZERO, mobile),
            ],
            unsent: 0,
            link,
            ran: Ran {
                packets: Vec::new(),
                course: Course::default(),
                received: 0,
                zero_windows: 0,
            },
            newest: None,
            is_set_back_accepted: false,
        };
        pair.run();
        let receiver = &pair.ends[self.sender.peer().index()];
        pair.ran.received = receiver.received();
        pair.ran.zero_windows = receiver.counters().zero_windows;
        pair.ran
    }
}

impl Pair<'_> {
    fn run(&mut self) {
        let mut moments: Vec<Instant> = self.plan.writes.iter().map(|write| ms(write.0)).collect();
        moments.extend(self.plan.deaf.map(|(_, until)| ms(until)));
        moments.sort_unstable();
        let mut moments = moments.into_iter().peekable();
        let mut writes = self.plan.writes.iter().peekable();
        self.drain(Side::Mobile, Why::Application);
        loop {
            let timeouts = self
                .ends
                .iter()
                .map(|end| end.poll_timeout().map(|(at, _)| at));
            let next = timeouts
                .chain([self.link.poll_timeout().map(|(at, _)| at)])
                .flatten();
            let next = next.chain(moments.peek().copied()).min();
            let Some(next) = next.filter(|next| *next <= ms(self.plan.until)) else {
                break;
            };
            self.now = self.now.max(next);
            self.link.handle_timeout(self.now);
            self.deliver();
            for side in Side::BOTH {
                let end = &mut self.ends[side.index()];
                if let Some((at, reason)) = end.poll_timeout()
                    && at <= self.now
                {
                    end.handle_timeout(self.now);
                    let why = match reason {
                        // What a packet allowed, spread over time.
                        Reason::Pacing => Why::Arrival,
                        reason => Why::Timer(reason),
                    };
                    self.drain(side, why);
                }
            }
            while moments.next_if(|at| *at <= self.now).is_some() {
                while let Some((_, bytes)) = writes.next_if(|write| ms(write.0) <= self.now) {
                    self.unsent += bytes;
                }
                self.write(Why::Application);
                self.read();
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((way, frame)) = self.link.poll_transmit() {
            let side = Side::reached_by(way);
            self.capture(side, Direction::Inbound, &frame.packet);
            let sender = self.plan.sender.index();
            let (undone, discarded) = (self.undone(), self.discarded());
            let mut packet = frame.packet.clone();
            if let Some((_, by)) = self.plan.set_back
                && side == self.plan.sender
                && self.is_set_back_accepted
            {
                packet = restamped(packet, |stamps| stamps.echo = stamps.echo.wrapping_add(by));
            }
            self.ends[side.index()].handle_packet(self.now, &packet);
            let rejects = self.discarded() > discarded;
            let course = &mut self.ran.course;
            if self.ends[sender].counters().undone > undone {
                course.undone.push(self.now);
            }
            if let Some(number) = frame.number {
                course.sent[number].arrived = Some(self.now);
                if course.sent[number].is_syn {
                    course.delivered.push(self.now);
                }
                let stamp = frame.packet.tcp().and_then(|tcp| tcp.options.timestamps);
                let stamp = stamp.map(|stamps| stamps.value);
                let is_old = |stamp: u32, newest: u32| stamp.wrapping_sub(newest).cast_signed() < 0;
                if let (Some(stamp), Some(newest)) = (stamp, self.newest)
                    && is_old(stamp, newest)
                {
                    if rejects {
                        course.rejected.push(self.now);
                    }
                } else {
                    self.newest = stamp.or(self.newest);
                    let set_back = self.plan.set_back;
                    self.is_set_back_accepted =
                        set_back.is_some_and(|(from, _)| course.sent[number].at >= ms(from));
                }
            }
            self.write(Why::Arrival);
            self.read();
            self.drain(side, Why::Arrival);
        }
        while self.link.poll_event().is_some() {}
    }

    fn undone(&self) -> u64 {
        self.ends[self.plan.sender.index()].counters().undone
    }

    fn discarded(&self) -> u64 {
        self.ends[self.plan.sender.peer().index()]
            .counters()
            .discarded
    }

    /// The sender's application writes what its socket has room for.
    fn write(&mut self, why: Why) {
        let sender = self.plan.sender;
        if self.unsent > 0 {
            self.unsent -= self.ends[sender.index()].send(self.now, self.unsent);
            self.drain(sender, why);
        }
    }

    /// The receiver's application reads, if it does at present.
    fn read(&mut self) {
        let receiver = self.plan.sender.peer();
        let is_deaf = |(from, until)| (ms(from)..ms(until)).contains(&self.now);
        if self.plan.deaf.is_some_and(is_deaf) {
            return;
        }
        if self.ends[receiver.index()].recv(self.now, u64::MAX) > 0 {
            self.drain(receiver, Why::Application);
        }
    }

    fn drain(&mut self, side: Side, why: Why) {
        while self.ends[side.index()].poll_event().is_some() {}
        let received = self.ends[self.plan.sender.peer().index()].received();
        if received > self.ran.received {
            self.ran.received = received;
            self.ran.course.delivered.push(self.now);
        }
        while let Some(mut packet) = self.ends[side.index()].poll_transmit(self.now) {
            let mut number = None;
            if side == self.plan.sender {
                number = Some(self.ran.course.sent.len());
                let is_syn = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
                let is_probe = why == Why::Timer(Reason::WindowProbe);
                self.ran.course.sent.push(Sent {
                    at: self.now,
                    why,
                    is_syn,
                    wants_answer: packet.header().payload_len > 0 || is_syn || is_probe,
                    arrived: None,
                });
            }
            if let Some((from, by)) = self.plan.set_back
                && side == self.plan.sender
                && self.now >= ms(from)
            {
                packet = restamped(packet, |stamps| {
                    stamps.value = stamps.value.wrapping_sub(by);
                });
            }
            self.capture(side, Direction::Outbound, &packet);
            let way = Way::BOTH
                .into_iter()
                .find(|way| Side::reached_by(*way) != side);
            let way = way.expect("there are two");
            self.link
                .handle_packet(self.now, way, OnLink { packet, number });
        }
    }

    fn capture(&mut self, side: Side, direction: Direction, packet: &Packet) {
        let bytes = packet.to_bytes();
        self.ran.packets.push((self.now, side, direction, bytes));
    }
}

impl Ran {
    /// What is found in the captures of `ends`.
    pub(crate) fn findings(&self, ends: Ends) -> Findings {
        let mut diagnosis = Diagnosis::default();
        for (at, side, direction, bytes) in &self.packets {
            let outline = Outline::of(bytes, bytes.len()).expect("a packet");
            let is_there = match ends {
                Ends::Both => true,
                Ends::Mobile => *side == Side::Mobile,
                Ends::Fixed => *side == Side::Fixed,
            };
            if is_there {
                diagnosis.handle_packet(*at, side.index() as u32, *direction, &outline);
            }
        }
        diagnosis.finish()
    }

    /// A pcapng file of what `end` saw.
    pub(crate) fn capture(&self, end: Side) -> Vec<u8> {
        let mut encoder = Encoder::new(&Section::of_application("outlast"));
        let interface = encoder.interface("link");
        for (at, side, direction, bytes) in &self.packets {
            if *side == end {
                encoder.packet(&EnhancedPacket {
                    direction: *direction,
                    ..EnhancedPacket::new(interface, Duration::from_nanos(at.as_nanos()), bytes)
                });
            }
        }
        encoder.take()
    }
}

/// `packet` with other timestamps.
fn restamped(packet: Packet, change: impl FnOnce(&mut Timestamps)) -> Packet {
    let Some(tcp) = packet.tcp() else {
        return packet;
    };
    let mut tcp = tcp.clone();
    if let Some(stamps) = &mut tcp.options.timestamps {
        change(stamps);
    }
    let len = packet.header().payload_len;
    let payload = packet.modelled().unwrap_or_default();
    Packet::modelled_tcp(packet.header().ip, tcp, payload, len)
}

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}
