//! Whatever is lost, repeated, reordered or started anew: a mobile node is reachable again within the
//! time that the timers allow.
//!
//! After the last fault a mobile node may wait for the repetition of a request (at most its lifetime),
//! or for the renewal of a registration that a restarted home agent has forgotten (two thirds of the
//! lifetime). Movement detection adds the advertisement's lifetime and the next one's interval, a home
//! agent that was not heard the foreign agent's 7 s, a clock that is reset the second between requests.

use crate::network::{Faults, HOME, Network, Setup, ms};
use outlast_base::time::Duration;
use outlast_mobility::Detection;
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};

const LIFETIME: u16 = 20;
const ADVERTISEMENTS: Duration = Duration::from_secs(3 + 2);

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    Place(Vec<usize>),
    RestartHome,
    RestartForeign(usize),
    KillForeign(usize),
    RestartMobile,
    Faults(u8, u8, u16),
    CutHomeOff(bool),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let cell = || 1..=2_usize;
    prop_oneof![
        4 => proptest::collection::vec(0..=2_usize, 0..3).prop_map(Act::Place),
        1 => Just(Act::RestartHome),
        2 => cell().prop_map(Act::RestartForeign),
        1 => cell().prop_map(Act::KillForeign),
        1 => Just(Act::RestartMobile),
        3 => (0..100_u8, 0..50_u8, 0..2_000_u16).prop_map(|(l, r, j)| Act::Faults(l, r, j)),
        1 => any::<bool>().prop_map(Act::CutHomeOff),
        6 => prop_oneof![1_u64..200, 200_u64..3_000, 3_000_u64..30_000].prop_map(Act::Wait),
    ]
}

fn detection() -> impl Strategy<Value = Detection> {
    prop_oneof![
        Just(Detection::Eager),
        Just(Detection::Lazy),
        Just(Detection::Prefix),
        Just(Detection::Link),
    ]
}

fn carry_out(network: &mut Network, act: &Act) {
    match act {
        Act::Place(cells) => network.place(0, cells),
        Act::RestartHome => network.restart_home(),
        Act::RestartForeign(cell) => network.start_foreign(*cell),
        Act::KillForeign(cell) => network.kill_foreign(*cell),
        Act::RestartMobile => network.restart_mobile(0),
        Act::Faults(loss, repetition, jitter) => {
            network.faults = Faults {
                loss: f64::from(*loss) / 100.0,
                repetition: f64::from(*repetition) / 100.0,
                jitter: ms(u64::from(*jitter)),
            };
        }
        Act::CutHomeOff(is) => network.is_home_cut_off = *is,
        Act::Wait(time) => network.run(ms(*time)),
    }
}

fn config() -> ProptestConfig {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/proptest-regressions/faults.txt"
    );
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(path))),
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mobile_node_is_reachable_again(
        detection in detection(),
        acts in proptest::collection::vec(act(), 1..40),
        last in 0..=2_usize,
        seed in 1..1_000_u64,
        is_reverse: bool,
    ) {
        let mut network = Network::new(Setup {
            detection,
            lifetime: LIFETIME,
            seed,
            reverse_tunnel: is_reverse,
            ..Setup::default()
        });
        for act in &acts {
            carry_out(&mut network, act);
        }
        network.faults = Faults::default();
        network.is_home_cut_off = false;
        // What crosses the network late is over.
        network.run(ms(4_000));
        for cell in 1..=2 {
            network.start_foreign(cell);
        }
        network.place(0, &[last]);
        let lifetime = Duration::from_secs(LIFETIME.into());
        network.run(ADVERTISEMENTS + lifetime + ms(7_000 + 1_000 + 200));
        prop_assert!(
            network.reaches(0),
            "in cell {last}: {:?}, {:?}",
            network.mobiles[0].node,
            network.mobiles[0].events
        );
        prop_assert_eq!(network.home.away(), usize::from(last != HOME));
        network.from_mobiles = 0;
        network.send_outgoing(0);
        network.run(ms(500));
        let expected = if last == HOME { 0 } else { 1 };
        prop_assert!(network.from_mobiles >= expected, "what it sends arrives");
    }
}
