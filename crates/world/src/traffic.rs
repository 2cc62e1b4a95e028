//! Cross traffic: datagrams of other hosts that share a link, its queue and its gateways, and care
//! for nothing. They cross one link and are counted behind it.

use crate::agenda::Agenda;
use crate::setup::Setup;
use crate::side::{IpVersion, Side};
use alloc::format;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::Way;
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};

/// Where the datagrams go: the discard service (RFC 863).
const DISCARD_PORT: u16 = 9;
/// Where those of the first source come from; those of others follow.
const FIRST_PORT: u16 = 20_000;
/// No datagram is shorter than its headers.
const IPV4_HEADERS: u16 = 20 + 8;
const IPV6_HEADERS: u16 = 40 + 8;

/// A source of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrafficSetup {
    /// The link that it crosses: zero is the mobile's, then [`Setup::hops`](crate::Setup::hops) in
    /// order. A source of a link that is not there sends nothing.
    pub link: usize,
    /// Which way.
    pub way: Way,
    /// When it sends.
    pub pattern: Pattern,
    /// Length of its IP packets in bytes; headers are the least.
    pub packet: u16,
    /// When it begins, counted from when the first connection is opened: in the simulator, from the
    /// beginning.
    pub begin: Duration,
    /// When it ends; `None` is never.
    pub end: Option<Duration>,
}

/// When a source sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// At equal intervals, from a random moment of the first on.
    Constant {
        /// How much, counted from the IP header on.
        rate: BitRate,
    },
    /// Independently of each other: intervals are exponentially distributed.
    Poisson {
        /// How much on average.
        rate: BitRate,
    },
    /// At equal intervals for a while, and then not for a while; both are exponentially distributed,
    /// and it begins with a pause.
    OnOff {
        /// How much while it sends.
        rate: BitRate,
        /// How long it sends on average.
        on: Duration,
        /// How long it pauses on average.
        off: Duration,
    },
}

/// What came of a source.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TrafficOutcome {
    /// Packets that it sent.
    pub sent: u64,
    /// Packets that came out of the link; copies that the link made count.
    pub received: u64,
}

/// All sources of a run, and what comes of their datagrams.
///
/// A pure machine: whoever drives it takes what is due with [`CrossTraffic::poll_transmit`], puts it
/// on its link, and says what came out there.
#[derive(Debug)]
pub struct CrossTraffic {
    sources: Vec<Source>,
    /// When which source sends.
    agenda: Agenda,
}

/// A datagram that is to be put on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    /// The link: zero is the mobile's.
    pub link: usize,
    /// The end at which it comes in.
    pub side: Side,
    /// The whole packet.
    pub packet: Packet,
}

impl CrossTraffic {
    /// The sources `traffic` of the run with `seed`, whose times count from `origin`. At most
    /// [`Setup::MAX_SOURCES`](crate::Setup::MAX_SOURCES), further ones are left out.
    #[must_use]
    pub fn new(origin: Instant, traffic: &[TrafficSetup], seed: u64, ip: IpVersion) -> Self {
        let traffic = traffic.iter().take(Setup::MAX_SOURCES).enumerate();
        let sources: Vec<_> = traffic
            .map(|(number, &setup)| Source::new(origin, number, setup, seed, ip))
            .collect();
        let mut agenda = Agenda::new(sources.len());
        for (number, source) in sources.iter().enumerate() {
            agenda.set(number, source.next);
        }
        Self { sources, agenda }
    }

    /// The next datagram that is due by `now`: one for each call, those of one instant in the order
    /// of their sources.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let number = self.agenda.first_due(now)?;
        let source = &mut self.sources[number];
        let packet = source.poll_transmit(now)?;
        self.agenda.set(number, source.next);
        Some(Datagram {
            link: source.setup.link,
            side: Side::reached_by(source.setup.way).peer(),
            packet,
        })
    }

    /// When [`Self::poll_transmit`] has something; [`Instant::FAR_FUTURE`] if it will never again.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.agenda.earliest()
    }

    /// `packet` came out of its link.
    pub fn note_arrival(&mut self, packet: &Packet) {
        let number = number_of(packet);
        if let Some(source) = number.and_then(|number| self.sources.get_mut(number)) {
            source.outcome.received += 1;
        }
    }

    /// What came of each source so far.
    #[must_use]
    pub fn outcomes(&self) -> Vec<TrafficOutcome> {
        self.sources.iter().map(|source| source.outcome).collect()
    }
}

/// Whether `packet` comes from one of the strangers who send cross traffic. It crosses one link.
#[must_use]
pub fn is_cross_traffic(packet: &Packet) -> bool {
    let is_stranger = |address| (1..=2).any(|host| [ipv4(host), ipv6(host)].contains(&address));
    number_of(packet).is_some() && is_stranger(packet.header().ip.source)
}

/// The source that sent `packet`, if it is a datagram of cross traffic.
fn number_of(packet: &Packet) -> Option<usize> {
    match packet.header().transport {
        Transport::Udp(udp) if udp.destination_port == DISCARD_PORT => {
            Some(usize::from(udp.source_port.wrapping_sub(FIRST_PORT)))
        }
        _ => None,
    }
}

/// A source that is running.
#[derive(Debug)]
struct Source {
    setup: TrafficSetup,
    end: Option<Instant>,
    /// What it sends, again and again.
    packet: Packet,
    /// Between two packets at its rate.
    interval: Duration,
    random: Stream,
    /// When it sends next; `None` once it has ended.
    next: Option<Instant>,
    /// When it pauses next.
    on_until: Instant,
    outcome: TrafficOutcome,
}

impl Source {
    /// Source `number` of the run with `seed`.
    fn new(origin: Instant, number: usize, setup: TrafficSetup, seed: u64, ip: IpVersion) -> Self {
        let packet = datagram(number, setup.way, setup.packet, ip);
        let rate = match setup.pattern {
            Pattern::Constant { rate }
            | Pattern::Poisson { rate }
            | Pattern::OnOff { rate, .. } => rate,
        };
        let interval = rate.time_for(ByteCount(packet.total_len().into()));
        let mut source = Self {
            setup,
            end: setup.end.map(|end| origin + end),
            packet,
            interval,
            random: Stream::new(seed, &format!("traffic.{number}")),
            next: None,
            on_until: Instant::FAR_FUTURE,
            outcome: TrafficOutcome::default(),
        };
        let begin = origin + setup.begin;
        source.next = Some(match setup.pattern {
            Pattern::Constant { .. } => begin + source.phase(),
            Pattern::Poisson { .. } => begin + source.random.exponential(interval),
            Pattern::OnOff { on, off, .. } => source.pause(begin, on, off),
        });
        source.end_in_time();
        source
    }

    /// A packet that is due by `now`.
    fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let at = self.next.filter(|&at| at <= now)?;
        let regular = at + self.interval;
        self.next = Some(match self.setup.pattern {
            Pattern::Poisson { .. } => at + self.random.exponential(self.interval),
            Pattern::OnOff { on, off, .. } if regular > self.on_until => {
                // However short the pause, it never sends faster than at its rate.
                self.pause(self.on_until, on, off).max(regular)
            }
            Pattern::Constant { .. } | Pattern::OnOff { .. } => regular,
        });
        self.end_in_time();
        self.outcome.sent += 1;
        Some(self.packet.clone())
    }

    /// A random part of the interval.
    fn phase(&mut self) -> Duration {
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.random.next_u64() % interval.max(1))
    }

    /// Pauses from `at` on: when it goes on.
    fn pause(&mut self, at: Instant, on: Duration, off: Duration) -> Instant {
        let back = at + self.random.exponential(off);
        self.on_until = back + self.random.exponential(on);
        back
    }

    fn end_in_time(&mut self) {
        let end = self.end;
        self.next = self.next.filter(|&at| end.is_none_or(|end| at < end));
    }
}

/// A datagram of `length` bytes from source `number`.
fn datagram(number: usize, way: Way, length: u16, ip: IpVersion) -> Packet {
    let (headers, hosts) = match ip {
        IpVersion::V4 => (IPV4_HEADERS, [1, 2].map(ipv4)),
        IpVersion::V6 => (IPV6_HEADERS, [1, 2].map(ipv6)),
    };
    let [fixed, mobile] = hosts;
    let (source, destination) = match way {
        Way::ToMobile => (fixed, mobile),
        Way::ToFixed => (mobile, fixed),
    };
    let ip = IpHeader::new(source, destination);
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    let udp = UdpHeader {
        source_port: FIRST_PORT.wrapping_add(number),
        destination_port: DISCARD_PORT,
    };
    let payload = alloc::vec![0; usize::from(length.saturating_sub(headers))];
    Packet::udp_datagram(ip, udp, &payload)
}

/// A host of a network that is reserved for documentation (RFC 5737), and is not the two hosts'.
const fn ipv4(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, number))
}

/// A host of an IPv6 network that is reserved for documentation (RFC 3849).
const fn ipv6(number: u8) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, number as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rate(bits: u64) -> BitRate {
        BitRate::from_bits_per_second(bits).expect("not zero")
    }

    fn source(number: usize, pattern: Pattern) -> Source {
        let setup = TrafficSetup {
            link: 0,
            way: Way::ToMobile,
            pattern,
            packet: 1_000,
            begin: SECOND,
            end: Some(101 * SECOND),
        };
        Source::new(Instant::ZERO, number, setup, 7, IpVersion::V4)
    }

    /// When a source sends.
    fn times(mut source: Source) -> Vec<Instant> {
        let mut times = Vec::new();
        while let Some(at) = source.next {
            let packet = source.poll_transmit(at).expect("it is due");
            assert_eq!(packet.total_len(), 1_000);
            times.push(at);
        }
        times
    }

    #[test]
    fn each_pattern_keeps_its_rate_and_its_time() {
        // 100 s of 800 kbit/s in packets of 1000 bytes: 10,000 packets.
        let on_off = |on, off| Pattern::OnOff {
            rate: rate(1_600_000),
            on,
            off,
        };
        for (pattern, slack) in [
            (
                Pattern::Constant {
                    rate: rate(800_000),
                },
                1,
            ),
            (
                Pattern::Poisson {
                    rate: rate(800_000),
                },
                400,
            ),
            (on_off(SECOND / 10, SECOND / 10), 1_500),
        ] {
            let times = times(source(0, pattern));
            let count = times.len() as u64;
            assert!(count.abs_diff(10_000) <= slack, "{pattern:?}: {count}");
            assert!(times.is_sorted());
            let first = times.first().expect("it sent");
            assert!(*first >= Instant::ZERO + SECOND, "{pattern:?}: {first:?}");
            let last = times.last().expect("it sent");
            assert!(
                *last < Instant::ZERO + 101 * SECOND,
                "{pattern:?}: {last:?}"
            );
        }
    }

    #[test]
    fn two_sources_have_chances_of_their_own() {
        let pattern = Pattern::Poisson { rate: rate(80_000) };
        assert_ne!(times(source(0, pattern)), times(source(1, pattern)));
        assert_eq!(times(source(1, pattern)), times(source(1, pattern)));
    }

    #[test]
    fn times_count_from_the_origin_and_are_the_same_otherwise() {
        let setup = source(0, Pattern::Poisson { rate: rate(80_000) }).setup;
        let times = |origin| {
            let mut traffic = CrossTraffic::new(origin, &[setup; 2], 7, IpVersion::V4);
            let mut times = Vec::new();
            while traffic.poll_timeout() < Instant::FAR_FUTURE {
                let at = traffic.poll_timeout();
                let datagram = traffic.poll_transmit(at).expect("it is due");
                assert_eq!((datagram.link, datagram.side), (0, Side::Fixed));
                traffic.note_arrival(&datagram.packet);
                times.push(at.since(origin));
            }
            let outcomes = traffic.outcomes();
            let sent: u64 = outcomes.iter().map(|outcome| outcome.sent).sum();
            assert_eq!(sent, times.len() as u64);
            assert!(
                outcomes
                    .iter()
                    .all(|outcome| outcome.received == outcome.sent)
            );
            times
        };
        assert_eq!(times(Instant::ZERO), times(Instant::from_millis(77_777)));
    }

    #[test]
    fn a_datagram_tells_its_source() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            let packet = datagram(3, Way::ToFixed, 20, ip);
            assert_eq!(number_of(&packet), Some(3));
            assert!(is_cross_traffic(&packet));
            assert!(packet.total_len() >= 28, "headers are the least");
            assert!(packet.checksums_ok());
        }
    }
}
