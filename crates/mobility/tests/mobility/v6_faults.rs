//! Mobile IPv6: whatever is lost, repeated, reordered or started anew, a mobile node is reachable again
//! within the time that the timers allow.
//!
//! After the last fault a mobile node may wait for the repetition of an update (at most 32 s), or for the
//! renewal of a binding that a restarted home agent has forgotten (two thirds of the lifetime).
//! A correspondent's binding at a former place ends when its update is acknowledged, or with its lifetime.

use crate::network_v6::{Faults, Network, Setup, ms};
use outlast_base::time::Duration;
use outlast_wire::mobile_ipv6::UpdateLifetime;
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};

const LIFETIME: UpdateLifetime = UpdateLifetime(5);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(32);
/// Bindings at correspondents.
const LONGEST_BINDING: Duration = Duration::from_secs(420);

/// Something that happens.
#[derive(Clone, Debug)]
enum Act {
    Place(Option<u16>),
    RestartHome,
    RestartMobile,
    RestartCorrespondent,
    Faults(u8, u8, u16),
    CutHomeOff(bool),
    Talk,
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => prop_oneof![Just(None), (0..=3_u16).prop_map(Some)].prop_map(Act::Place),
        1 => Just(Act::RestartHome),
        1 => Just(Act::RestartMobile),
        1 => Just(Act::RestartCorrespondent),
        3 => (0..100_u8, 0..50_u8, 0..2_000_u16).prop_map(|(l, r, j)| Act::Faults(l, r, j)),
        1 => any::<bool>().prop_map(Act::CutHomeOff),
        4 => Just(Act::Talk),
        6 => prop_oneof![1_u64..200, 200_u64..3_000, 3_000_u64..60_000].prop_map(Act::Wait),
    ]
}

fn carry_out(network: &mut Network, act: &Act) {
    match act {
        Act::Place(cell) => network.place(0, *cell),
        Act::RestartHome => network.restart_home(),
        Act::RestartMobile => network.restart_mobile(0),
        Act::RestartCorrespondent => network.start_correspondent(0),
        Act::Faults(loss, repetition, jitter) => {
            network.faults = Faults {
                loss: f64::from(*loss) / 100.0,
                repetition: f64::from(*repetition) / 100.0,
                jitter: ms(u64::from(*jitter)),
            };
        }
        Act::CutHomeOff(is) => network.is_home_cut_off = *is,
        Act::Talk => {
            let _ = (network.reaches(0), network.is_heard(0, 0));
        }
        Act::Wait(time) => network.run(ms(*time)),
    }
}

fn config() -> ProptestConfig {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/proptest-regressions/v6_faults.txt"
    );
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(path))),
        ..Default::default()
    }
}

/// The network after all that, without faults, with the mobile node in `last`.
fn calm(acts: &[Act], last: u16, setup: Setup) -> Network {
    let mut network = Network::new(Setup {
        lifetime: LIFETIME,
        ..setup
    });
    for act in acts {
        carry_out(&mut network, act);
    }
    network.faults = Faults::default();
    network.is_home_cut_off = false;
    // What crosses the network late is over.
    network.run(ms(4_000));
    network.place(0, Some(last));
    network
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mobile_node_is_reachable_again(
        acts in proptest::collection::vec(act(), 1..40),
        last in 0..=3_u16,
        seed in 1..1_000_u64,
    ) {
        let mut network = calm(&acts, last, Setup { seed, ..Setup::default() });
        network.run(LONGEST_TIMEOUT + LIFETIME.duration() + ms(1_000));
        prop_assert_eq!(network.home.away(), usize::from(last != 0));
        prop_assert!(network.reaches(0), "{:?}", network.mobiles[0].node);
        prop_assert!(network.is_heard(0, 0), "{:?}", network.mobiles[0].node);
    }

    #[test]
    fn a_mobile_node_with_correspondents_is_reachable_again(
        acts in proptest::collection::vec(act(), 1..40),
        last in 0..=3_u16,
        seed in 1..1_000_u64,
    ) {
        let setup = Setup { seed, route_optimization: true, ..Setup::default() };
        let mut network = calm(&acts, last, setup);
        network.run(LONGEST_BINDING + LONGEST_TIMEOUT);
        // What one of them has forgotten costs a packet, and a round of tests.
        let _ = (network.reaches(0), network.is_heard(0, 0));
        network.run(ms(2_000));
        prop_assert!(network.reaches(0), "{:?}", network.mobiles[0].node);
        prop_assert!(network.is_heard(0, 0), "{:?}", network.mobiles[0].node);
    }
}
