//! Whatever the path and the applications do, the byte stream arrives intact or the connection
//! ends with an error, and neither end spins or waits for ever.

use crate::common::{Meddler, Pair, config};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_host::control::{EndpointControl, Outstanding};
use outlast_link::{InFlight, LinkConfig, OutageProcess, PipeConfig, Way};
use outlast_tcp::profile::{Congestion, Profile};
use outlast_tcp::{Config, State, UserTimeoutOption};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

#[derive(Clone, Debug)]
struct Scenario {
    client: Config,
    server: Config,
    link: LinkConfig,
    upload: u64,
    download: u64,
    /// The server's application reads this much, this often.
    read: u64,
    pause: Duration,
    /// Each side shuts down when it has written all, and the client closes when it has read all.
    closes: bool,
    meddling: Option<Meddling>,
}

/// What someone on the path and mechanisms beside the stacks do; each is done to one packet in so
/// many, none if zero.
#[derive(Clone, Copy, Debug)]
struct Meddling {
    seed: u64,
    /// The window is made smaller, often zero.
    shrinks: u64,
    /// A copy comes again much later.
    replays: u64,
    /// A reset with any number comes besides.
    resets: u64,
    /// A destination unreachable comes to the sender.
    errors: u64,
    /// A segment with older numbers comes besides, without data. (One with a number ahead in the
    /// window would end all window updates from behind it, on any stack: RFC 9293 has no remedy.)
    forges: u64,
    /// A mechanism acts on one of the endpoints.
    acts: u64,
    /// For how long, in s.
    until: u64,
}

fn meddling() -> impl Strategy<Value = Meddling> {
    let often = || prop_oneof![1 => Just(0_u64), 2 => 1_u64..50];
    (
        any::<u64>(),
        (often(), often(), often(), often(), often(), often()),
        1_u64..100,
    )
        .prop_map(
            |(seed, (shrinks, replays, resets, errors, forges, acts), until)| Meddling {
                seed,
                shrinks,
                replays,
                // A blind reset hits a window now and then, and that is the end.
                resets: resets * 20,
                errors,
                forges,
                acts,
                until,
            },
        )
}

/// Numbers from a seed (xorshift).
#[derive(Clone, Debug)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in(&mut self, many: u64) -> bool {
        many > 0 && self.roll().is_multiple_of(many)
    }
}

/// `packet` with another header.
fn with(packet: &Packet, change: impl FnOnce(&mut TcpHeader)) -> Packet {
    let mut header = packet.tcp().expect("TCP only").clone();
    change(&mut header);
    let payload = packet.modelled().expect("modelled");
    Packet::modelled_tcp(
        packet.header().ip,
        header,
        payload,
        packet.header().payload_len,
    )
}

/// `packet` as an acknowledgement without data, its header changed by `change`.
fn bare(packet: &Packet, change: impl FnOnce(&mut TcpHeader)) -> Packet {
    let mut header = packet.tcp().expect("TCP only").clone();
    header.flags = TcpFlags::ACK;
    change(&mut header);
    let payload = packet.modelled().expect("modelled");
    Packet::modelled_tcp(packet.header().ip, header, payload, 0)
}

fn meddler(meddling: Meddling, ends: [Config; 2]) -> Meddler {
    let mut dice = Dice(meddling.seed | 1);
    let mut kept: Vec<(Way, Packet)> = Vec::new();
    let mut last_seq = [SeqNumber(0); 2];
    let until = Instant::ZERO + Duration::from_secs(meddling.until);
    Box::new(move |now, way, packet| {
        if now > until {
            return vec![packet];
        }
        let Some(tcp) = packet.tcp() else {
            return vec![packet];
        };
        let receiver = usize::from(way == Way::ToMobile);
        last_seq[1 - receiver] = tcp.seq;
        let mut out = Vec::new();
        if dice.one_in(meddling.errors) {
            // About something that the one who gets it has sent.
            let code = (dice.roll() % 16) as u8;
            out.push(crate::common::unreachable(
                &ends[receiver],
                last_seq[receiver],
                code,
            ));
        }
        if dice.one_in(meddling.resets) {
            let number = SeqNumber(dice.roll() as u32);
            out.push(bare(&packet, |tcp| {
                tcp.flags = TcpFlags::RST;
                tcp.seq = number;
            }));
        }
        if dice.one_in(meddling.forges) && !tcp.has(TcpFlags::SYN) {
            let (older, ack) = (dice.roll() as u32 / 4_096, dice.roll() as u32);
            let is_wild = dice.one_in(2);
            out.push(bare(&packet, |tcp| {
                tcp.seq = SeqNumber(tcp.seq.0.wrapping_sub(older));
                if is_wild {
                    // Of what was acknowledged long ago, or never sent.
                    tcp.ack = SeqNumber(tcp.ack.0.wrapping_add(ack | 1 << 31));
                }
            }));
        }
        if dice.one_in(meddling.replays) {
            if kept.len() < 50 {
                kept.push((way, packet.clone()));
            } else {
                let at = dice.roll() as usize % kept.len();
                if kept[at].0 == way {
                    out.push(kept.swap_remove(at).1);
                }
            }
        }
        if dice.one_in(meddling.shrinks) && !tcp.has(TcpFlags::SYN) {
            let most = if dice.one_in(2) {
                0
            } else {
                dice.roll() as u16
            };
            out.push(with(&packet, |tcp| tcp.window = tcp.window.min(most)));
        } else {
            out.push(packet);
        }
        out
    })
}

/// A mechanism does something to one of the ends.
fn act(dice: &mut Dice, pair: &mut Pair, frozen: &mut [bool; 2]) {
    let side = (dice.roll() % 2) as usize;
    let now = pair.now;
    let end = if side == 0 {
        &mut pair.client
    } else {
        &mut pair.server
    };
    let mut found = Vec::new();
    end.connections(&mut found).expect("they are listed");
    let Some(connection) = found.first() else {
        return;
    };
    let id = connection.id;
    let _ = match dice.roll() % 5 {
        0 => EndpointControl::retransmit_now(end, now, id),
        1 => EndpointControl::fast_retransmit(end, now, id),
        2 => EndpointControl::send_duplicate_acks(end, now, id, (dice.roll() % 6) as u8),
        _ if frozen[side] => {
            frozen[side] = false;
            let outstanding = match dice.one_in(2) {
                true => Outstanding::Lost,
                false => Outstanding::OnItsWay,
            };
            EndpointControl::thaw(end, now, id, outstanding)
        }
        _ => {
            frozen[side] = true;
            EndpointControl::freeze(end, now, id)
        }
    };
}

fn pipe() -> impl Strategy<Value = PipeConfig> {
    (
        prop_oneof![Just(None), (50_000_u64..20_000_000).prop_map(Some)],
        0_u64..300,
        1_usize..100,
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
    )
        .prop_map(
            |(rate, delay, queue, loss, duplicate, reorder)| PipeConfig {
                rate: rate.and_then(BitRate::from_bits_per_second),
                delay: Duration::from_millis(delay),
                queue,
                loss,
                duplicate,
                reorder,
            },
        )
}

fn outages() -> impl Strategy<Value = OutageProcess> {
    let ms = Duration::from_millis;
    prop_oneof![
        2 => Just(OutageProcess::AlwaysUp),
        1 => (0_u64..10_000, 1_u64..100_000).prop_map(move |(start, length)| {
            OutageProcess::Single { start: ms(start), length: ms(length) }
        }),
        1 => (100_u64..10_000, 10_u64..10_000).prop_map(move |(up, down)| {
            OutageProcess::Uniform { up: ms(up), down: ms(down) }
        }),
    ]
}

fn endpoint() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(Profile::ALL.to_vec()),
        prop::option::of(prop::sample::select(vec![
            Congestion::Reno,
            Congestion::Cubic,
            Congestion::Bbr,
        ])),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
        prop::option::of(1_000_u32..200_000),
        any::<u32>(),
        0_u64..10_000,
        any::<bool>(),
        prop::option::weighted(0.2, 1_u64..200),
    )
        .prop_map(
            |(profile, congestion, sack, timestamps, buffer, iss, phase, nagle, timeout)| {
                let mut config = config(profile);
                config.congestion = congestion;
                config.sack = sack;
                config.timestamps = timestamps;
                config.receive_buffer = buffer;
                config.iss.0 = iss;
                config.clock_phase = Duration::from_millis(phase);
                config.nagle = nagle;
                config.user_timeout = timeout.map(Duration::from_secs);
                config.keepalive = phase % 3 == 0;
                config.user_timeout_option = (phase % 5 == 0).then(UserTimeoutOption::default);
                config
            },
        )
}

fn scenario() -> impl Strategy<Value = Scenario> {
    (
        endpoint(),
        endpoint(),
        (pipe(), pipe(), outages(), any::<bool>(), any::<u64>()),
        (1_u64..300_000, 0_u64..100_000),
        (
            prop_oneof![3 => Just(u64::MAX), 1 => 5_000_u64..100_000],
            0_u64..3_000,
            any::<bool>(),
        ),
    )
        .prop_map(|(client, server, link, (upload, download), reading)| {
            let (to_mobile, to_fixed, outages, lost, seed) = link;
            let mirrored = client.mirrored();
            Scenario {
                server: Config {
                    local: mirrored.local,
                    remote: mirrored.remote,
                    stream_in: mirrored.stream_in,
                    stream_out: mirrored.stream_out,
                    ..server
                },
                client,
                link: LinkConfig {
                    to_mobile,
                    to_fixed,
                    outages,
                    in_flight: if lost {
                        InFlight::Lost
                    } else {
                        InFlight::Delivered
                    },
                    seed,
                    ..LinkConfig::default()
                },
                upload,
                download,
                read: reading.0,
                pause: Duration::from_millis(reading.1),
                closes: reading.2,
                meddling: None,
            }
        })
}

/// Longest time that any timer may be away: keepalive after two hours, an eighth late.
const LONGEST_TIMER: Duration = Duration::from_secs(8_200);

/// Longest time without progress before a stack must give up: fifteen retransmissions that
/// double from 3 s to 120 s, and as much again for a FIN and TIME-WAIT.
const LONGEST_STALL: Duration = Duration::from_secs(3_500);

/// What mechanisms do before the next step.
fn interfere(meddling: Meddling, dice: &mut Dice, pair: &mut Pair, frozen: &mut [bool; 2]) {
    let end = Instant::ZERO + Duration::from_secs(meddling.until);
    if pair.now <= end && dice.one_in(meddling.acts) {
        act(dice, pair, frozen);
    }
    // What is frozen may leave nothing to happen until it thaws.
    let is_idle = pair.next_at().is_none_or(|at| at > end);
    if *frozen != [false; 2] && (pair.now > end || is_idle) {
        pair.now = pair.now.max(end);
        pair.client.thaw(pair.now, Outstanding::Lost);
        pair.server.thaw(pair.now, Outstanding::Lost);
        *frozen = [false; 2];
    }
}

fn check(scenario: &Scenario) {
    let mut pair = Pair::new(
        scenario.client.clone(),
        scenario.server.clone(),
        scenario.link.clone(),
    );
    pair.reads = scenario.read == u64::MAX;
    let mut dice = Dice(1);
    let mut frozen = [false; 2];
    if let Some(meddling) = scenario.meddling {
        let ends = [scenario.client.clone(), scenario.server.clone()];
        pair.meddler = Some(meddler(meddling, ends));
        dice = Dice(meddling.seed.rotate_left(32) | 1);
    }
    let mut second = (pair.now, 0_u64);
    let mut next_read = pair.now + scenario.pause;
    let mut progress = (pair.now, 0);
    let limit = Instant::ZERO + Duration::from_secs(500_000);
    loop {
        let (up, down) = (pair.client.written(), pair.server.written());
        let _ = pair.client.send(pair.now, scenario.upload - up);
        if pair.server.state().is_synchronized() {
            let _ = pair.server.send(pair.now, scenario.download - down);
        }
        if scenario.closes {
            if pair.client.written() == scenario.upload {
                pair.client.shutdown(pair.now);
                // It reads at once.
                if pair.client.received() == scenario.download {
                    pair.client.close(pair.now);
                }
            }
            if pair.server.written() == scenario.download
                && pair.server.received() == scenario.upload
            {
                pair.server.shutdown(pair.now);
            }
        }
        if let Some(meddling) = scenario.meddling {
            interfere(meddling, &mut dice, &mut pair, &mut frozen);
        }
        pair.drain();
        let done = pair.server.received() == scenario.upload
            && pair.client.received() == scenario.download
            && (!scenario.closes || is_over(&pair));
        if done || pair.error().is_some() {
            break;
        }
        for at in [&pair.client, &pair.server]
            .into_iter()
            .filter_map(outlast_tcp::Endpoint::poll_timeout)
        {
            assert!(
                at.0 <= pair.now + LONGEST_TIMER,
                "bounded: {at:?} at {}",
                pair.now
            );
        }
        if !pair.reads {
            let step = pair.next_at().map_or(next_read, |at| at.min(next_read));
            if step == next_read && pair.now < next_read {
                pair.run_until(next_read);
            }
            if pair.now >= next_read {
                let _ = pair.server.recv(pair.now, scenario.read);
                next_read = pair.now + scenario.pause.max(Duration::from_millis(1));
                pair.drain();
                continue;
            }
        }
        let moved = pair.server.received() + pair.client.received();
        if moved != progress.1 {
            progress = (pair.now, moved);
        }
        let is_stuck = pair.now.since(progress.0) > LONGEST_STALL;
        if !pair.step(if pair.reads { limit } else { next_read }) && pair.now >= limit || is_stuck {
            panic!(
                "stuck: {:#?} {:?} {:#?} {:?} {:?} {:?} {:?} {:?}",
                pair.client.summary(),
                pair.client.trace(),
                pair.server.summary(),
                pair.server.trace(),
                pair.client.poll_timeout(),
                pair.server.poll_timeout(),
                pair.client_events,
                pair.server_events
            );
        }
        // No live-lock: even at 20 Mbit/s there are not more than so many things to do.
        if pair.now.since(second.0) >= Duration::from_secs(1) {
            second = (pair.now, pair.steps);
        }
        assert!(pair.steps - second.1 < 100_000, "spins at {}", pair.now);
    }
    assert!(
        !matches!(pair.error(), Some(outlast_tcp::Error::WrongData { .. })),
        "{:?}",
        pair.error()
    );
    let loses = |pipe: &PipeConfig| pipe.loss > 0.0;
    let is_sound = scenario.meddling.is_none()
        && scenario.link.outages == OutageProcess::AlwaysUp
        && !loses(&scenario.link.to_mobile)
        && !loses(&scenario.link.to_fixed)
        && scenario.client.user_timeout.is_none()
        && scenario.server.user_timeout.is_none();
    if is_sound {
        assert_eq!(pair.error(), None, "nothing was in the way");
    }
    assert!(pair.server.received() <= scenario.upload);
    assert!(pair.client.received() <= scenario.download);
}

fn is_over(pair: &Pair) -> bool {
    let over = |state| matches!(state, State::Closed | State::TimeWait);
    over(pair.client.state()) && over(pair.server.state())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(300),
        max_shrink_time: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn intact_or_an_error(scenario in scenario()) {
        check(&scenario);
    }

    #[test]
    fn intact_or_an_error_whatever_is_done_on_the_way(
        scenario in scenario(),
        meddling in meddling(),
    ) {
        check(&Scenario { meddling: Some(meddling), ..scenario });
    }
}
