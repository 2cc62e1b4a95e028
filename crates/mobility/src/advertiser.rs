//! When an agent advertises itself (RFC 5944, sections 2.1 and 2.3).

use core::net::Ipv4Addr;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::{
    AgentAdvertisement, AgentFlags, Lifetime, Preference, RouterAddress,
};

/// All systems on the link.
const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// Answers to solicitations are at least so far apart: one answer serves many mobile nodes.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(50);
/// Sequence numbers below it are for the first advertisements after a start.
const FIRST_AFTER_WRAP: u16 = 256;

/// How an agent advertises itself on a link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Advertising {
    /// Its address on the link.
    pub address: Ipv4Addr,
    /// The mean time between two advertisements; each lies between 0.9 and 1.1 of it.
    pub interval: Duration,
    /// How long an advertisement is true: at least three times `interval`, in whole seconds.
    pub lifetime_s: u16,
    /// The length of the link's prefix, if mobile nodes are told.
    pub prefix_length: Option<u8>,
}

impl Default for Advertising {
    /// Once a second, true for three seconds.
    fn default() -> Self {
        Self {
            address: Ipv4Addr::UNSPECIFIED,
            interval: Duration::from_secs(1),
            lifetime_s: 3,
            prefix_length: None,
        }
    }
}

/// What an agent says of itself in its next advertisement.
#[derive(Clone, Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) flags: AgentFlags,
    pub(crate) registration_lifetime: Lifetime,
    pub(crate) care_of_addresses: &'a [Ipv4Addr],
}

/// Advertises an agent at random times, and when it is solicited.
#[derive(Clone, Debug)]
pub(crate) struct Advertiser {
    config: Advertising,
    sequence: u16,
    next_at: Instant,
    answered_at: Option<Instant>,
    stream: Stream,
}

impl Advertiser {
    pub(crate) fn new(now: Instant, config: Advertising, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "agent advertisements");
        // Agents that are started together do not advertise together.
        let first = config.interval.mul_f64(stream.unit());
        Self {
            config,
            sequence: 0,
            next_at: now + first,
            answered_at: None,
            stream,
        }
    }

    pub(crate) const fn address(&self) -> Ipv4Addr {
        self.config.address
    }

    /// Somebody asks: the next advertisement comes now, or soon after the last answer.
    pub(crate) fn handle_solicitation(&mut self, now: Instant) {
        let earliest = self
            .answered_at
            .map_or(now, |last| (last + BETWEEN_ANSWERS).max(now));
        if earliest < self.next_at {
            self.next_at = earliest;
            self.answered_at = Some(earliest);
        }
    }

    pub(crate) const fn due(&self) -> Instant {
        self.next_at
    }

    /// The advertisement that is due.
    pub(crate) fn advertise(&mut self, now: Instant, offer: &Offer<'_>) -> Option<Packet> {
        if now < self.next_at {
            return None;
        }
        let spread = 0.9 + 0.2 * self.stream.unit();
        self.next_at = now + self.config.interval.mul_f64(spread);
        let prefix_lengths = self.config.prefix_length.into_iter().collect();
        let advertisement = AgentAdvertisement {
            is_for_mobiles_only: false,
            lifetime_s: self.config.lifetime_s,
            routers: alloc::vec![RouterAddress {
                address: self.config.address,
                preference: Preference(0),
            }],
            sequence: self.sequence,
            registration_lifetime: offer.registration_lifetime,
            flags: offer.flags,
            care_of_addresses: offer.care_of_addresses.to_vec(),
            prefix_lengths,
        };
        self.sequence = self.sequence.checked_add(1).unwrap_or(FIRST_AFTER_WRAP);
        let message = advertisement.emit();
        Some(Packet::agent_discovery(
            self.config.address,
            ALL_SYSTEMS,
            &message,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(packet: &Packet) -> u16 {
        let message = packet.payload().expect("a message");
        let advertisement = AgentAdvertisement::parse(message);
        advertisement.expect("an advertisement").sequence
    }

    fn offer() -> Offer<'static> {
        Offer {
            flags: AgentFlags::HOME_AGENT,
            registration_lifetime: Lifetime(300),
            care_of_addresses: &[],
        }
    }

    #[test]
    fn numbers_go_on_at_256_after_65535() {
        let mut advertiser = Advertiser::new(Instant::ZERO, Advertising::default(), 1);
        let mut seen = alloc::vec::Vec::new();
        for _ in 0..0x1_0002 {
            let at = advertiser.due();
            let packet = advertiser.advertise(at, &offer()).expect("it is due");
            seen.push(sequence(&packet));
        }
        assert_eq!(seen[..2], [0, 1]);
        assert_eq!(seen[0xffff..], [0xffff, 256, 257]);
    }

    #[test]
    fn times_are_random_and_at_most_a_third_of_the_lifetime_and_a_tenth_of_that() {
        let mut advertiser = Advertiser::new(Instant::ZERO, Advertising::default(), 2);
        let mut gaps = alloc::vec::Vec::new();
        for _ in 0..100 {
            let at = advertiser.due();
            let _ = advertiser.advertise(at, &offer());
            gaps.push(advertiser.due().since(at));
        }
        let (least, most) = (gaps.iter().min(), gaps.iter().max());
        assert!(least >= Some(&Duration::from_millis(900)), "{least:?}");
        assert!(most <= Some(&Duration::from_millis(1_100)), "{most:?}");
        gaps.sort_unstable();
        gaps.dedup();
        assert!(gaps.len() > 50, "all alike");
    }

    #[test]
    fn a_thousand_solicitations_are_answered_with_few_advertisements() {
        let mut advertiser = Advertiser::new(Instant::ZERO, Advertising::default(), 3);
        let mut count = 0;
        for ms in 0..1_000 {
            let now = Instant::from_millis(ms);
            advertiser.handle_solicitation(now);
            count += usize::from(advertiser.advertise(now, &offer()).is_some());
        }
        assert!((19..=22).contains(&count), "{count}");
    }
}
