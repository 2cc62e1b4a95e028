//! The ways of movement detection side by side: how long a hand-off takes, and what it costs.
//!
//! A hand-off begins when the mobile node leaves a cell and ends when the home agent sends its reply,
//! as in table 4.1 of the thesis on TCP over Mobile IP. L is the switch, T the way from the mobile node
//! to the home agent, C nothing here.

use crate::network::{AIR, Faults, Network, Setup, ms};
use outlast_base::time::Duration;
use outlast_mobility::Detection;

const SWITCH: Duration = Duration::from_millis(10);
const TO_HOME: Duration = Duration::from_millis(30);
const WAYS: [Detection; 4] = [
    Detection::Eager,
    Detection::Lazy,
    Detection::Prefix,
    Detection::Link,
];

/// Hand-off times, sorted.
fn handoffs(detection: Detection, count: usize, faults: Faults) -> Vec<Duration> {
    let mut network = Network::new(Setup {
        detection,
        lifetime: 1_800,
        backbone: TO_HOME,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(ms(5_000));
    network.faults = faults;
    let mut times = Vec::new();
    for turn in 0..count {
        // At any phase of the advertisements.
        network.run(ms(8_000 + (turn as u64 * 137) % 1_000));
        let left = network.now;
        network.home_events.clear();
        network.place(0, &[]);
        network.run(SWITCH);
        network.place(0, &[2 - turn % 2]);
        network.run(ms(12_000));
        times.extend(network.bound_after(left));
    }
    times.sort_unstable();
    times
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).expect("few").max(1)
}

/// Table 4.1: eager L + T to 1000 ms + L + T, lazy 2000 ms + T to 3000 ms + T; times that are
/// random by a tenth make the extremes a tenth of a second wider.
#[test]
fn handoff_times_are_those_of_the_table_and_the_link_layer_is_faster() {
    let transit = TO_HOME + AIR;
    let spread = ms(110);
    let [eager, lazy, prefix, link] = WAYS.map(|way| handoffs(way, 100, Faults::default()));
    for (times, least, most, average) in [
        (
            &eager,
            SWITCH + transit,
            ms(1_000) + SWITCH + transit,
            ms(550),
        ),
        (&lazy, ms(2_000) + transit, ms(3_000) + transit, ms(2_550)),
        (&prefix, ms(2_000) + transit, ms(3_000) + transit, ms(2_550)),
    ] {
        assert_eq!(times.len(), 100);
        println!("{:?}, {:?}, {:?}", times[0], mean(times), times[99]);
        assert!(times[0] + spread >= least, "{:?}", times[0]);
        assert!(times[99] <= most + spread, "{:?}", times[99]);
        let mean = mean(times);
        assert!(mean.abs_diff(average) < ms(100), "{mean:?}");
    }
    assert!(lazy[0] > eager[0] && mean(&lazy) > mean(&eager) + ms(1_500));
    println!("{:?}, {:?}, {:?}", link[0], mean(&link), link[99]);
    // A solicitation and its answer cross the air.
    assert_eq!(link[0], SWITCH + transit + AIR * 2);
    assert!(link[99] < ms(100), "{:?}", link[99]);
}

#[test]
fn lost_and_late_advertisements_cost_every_way_but_end() {
    let faults = Faults {
        loss: 0.2,
        jitter: ms(200),
        repetition: 0.1,
    };
    for way in WAYS {
        let clean = handoffs(way, 40, Faults::default());
        let faulty = handoffs(way, 40, faults);
        // Four requests fit in 12 s. What is lost of them depends on when they are sent.
        assert!(
            faulty.len() >= 36,
            "{way:?}: {} of 40 in 12 s",
            faulty.len()
        );
        let (clean, faulty) = (mean(&clean), mean(&faulty));
        println!("{way:?}: {clean:?}, with faults {faulty:?}");
        assert!(faulty > clean, "{way:?}: {clean:?}, {faulty:?}");
    }
}

/// Where two cells overlap, an eager node goes over when it first hears the other agent, and stays.
#[test]
fn two_agents_at_once_are_no_reason_to_go_to_and_fro() {
    for (way, moves) in [
        (Detection::Eager, 1),
        (Detection::Lazy, 0),
        (Detection::Prefix, 0),
        (Detection::Link, 0),
    ] {
        let mut network = Network::new(Setup {
            detection: way,
            lifetime: 1_800,
            ..Setup::default()
        });
        network.place(0, &[1]);
        network.run(ms(5_000));
        let before = network.home.counters().accepted;
        network.place(0, &[1, 2]);
        network.run(ms(60_000));
        assert_eq!(network.home.counters().accepted - before, moves, "{way:?}");
        assert!(network.reaches(0));
    }
}

/// A node that is a while in one cell and a while in the other, never in both.
fn ping_pong(way: Detection, stay: Duration) -> (u64, u64) {
    let mut network = Network::new(Setup {
        detection: way,
        lifetime: 1_800,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(ms(10_000));
    let requests = network.mobiles[0].node.counters().requests;
    let (mut reached, from) = (0, network.now);
    for turn in 0..40 {
        network.place(0, &[2 - turn % 2]);
        let until = network.now + stay;
        while network.now < until {
            reached += u64::from(network.reaches(0));
        }
    }
    let requests = network.mobiles[0].node.counters().requests - requests;
    let seconds = network.now.since(from).as_secs();
    assert!(
        requests <= seconds + 3,
        "{way:?}: {requests} in {seconds} s"
    );
    (requests, reached)
}

#[test]
fn a_ping_pong_serves_the_lazy_worst_and_nobody_asks_more_than_once_a_second() {
    let [eager, lazy, _, link] = WAYS.map(|way| ping_pong(way, ms(4_000)));
    println!("requests, packets that arrived: {eager:?}, {lazy:?}, {link:?}");
    assert!(eager.0 > 20 && link.0 > 20, "{eager:?} {link:?}");
    assert!(eager.1 > lazy.1, "reached more often: {eager:?}, {lazy:?}");
    assert!(link.1 > eager.1, "reached more often: {link:?}, {eager:?}");
    // Back within the lifetime of the last advertisement: the next one counts, as some were missed.
    let soon = ping_pong(Detection::Eager, ms(2_000));
    assert!(soon.0 >= 38, "a request for each move: {soon:?}");
    // Faster than a second the limit of the RFC holds every way back.
    let fast = ping_pong(Detection::Link, ms(400));
    assert!(fast.1 < link.1, "{fast:?}");
}

#[test]
fn an_agent_that_was_silent_for_three_seconds_counts_as_new() {
    let mut network = Network::new(Setup {
        detection: Detection::Eager,
        ..Setup::default()
    });
    network.place(0, &[1]);
    network.run(ms(5_000));
    network.place(0, &[1, 2]);
    network.run(ms(3_000));
    network.place(0, &[2]);
    network.run(ms(500));
    let left = network.now;
    network.home_events.clear();
    // The first cell is back before its agent's last advertisement has run out: nothing new.
    network.place(0, &[1, 2]);
    network.run(ms(3_000));
    assert_eq!(network.bound_after(left), None);
    network.place(0, &[2]);
    network.run(ms(4_000));
    let left = network.now;
    network.place(0, &[1, 2]);
    network.run(ms(2_000));
    assert!(network.bound_after(left).is_some());
}
