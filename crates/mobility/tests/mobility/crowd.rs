//! Ten thousand mobile nodes of one home agent, all of which move at once.

use crate::network::{Network, Setup, ms};
use outlast_base::time::Duration;
use outlast_mobility::Detection;

const CROWD: usize = 10_000;

#[test]
fn ten_thousand_move_at_once_and_all_are_registered() {
    let mut network = Network::new(Setup {
        mobiles: CROWD,
        detection: Detection::Link,
        lifetime: 1_800,
        ..Setup::default()
    });
    for number in 0..CROWD {
        network.place(number, &[1]);
    }
    network.run(ms(300));
    assert_eq!(network.home.away(), CROWD);
    assert_eq!(network.foreign(1).visitors(), CROWD);
    let before = network.home.counters().accepted;
    let left = network.now;
    for number in 0..CROWD {
        network.place(number, &[2]);
    }
    let mut took = Duration::ZERO;
    while network.foreign(2).visitors() < CROWD {
        network.run(ms(10));
        took = network.now.since(left);
        assert!(
            took < Duration::from_secs(5),
            "{}",
            network.foreign(2).visitors()
        );
    }
    // No rate, no queue: a solicitation, an advertisement, a request, and both ways to home.
    assert!(took < ms(200), "{took:?}");
    assert_eq!(network.home.counters().accepted - before, CROWD as u64);
    for number in [0, CROWD / 2, CROWD - 1] {
        assert!(network.reaches(number));
    }
}
