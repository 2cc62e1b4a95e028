//! Agents that crash while connections are frozen, and come back or do not.

use crate::network::{Crash, LOST_AFTER, Made, Network};
use outlast_agents::Event;
use outlast_base::time::Duration;

const MOMENT: Duration = Duration::from_secs(2);
const BRIEF: Duration = Duration::from_secs(10);

/// Frozen at 0, and taken over by 1, where the mobile host is no more.
fn lent() -> Network {
    let mut network = Network::frozen();
    network.come(1);
    network.run(Duration::from_millis(12));
    network.leave();
    assert!(network.is_frozen(0) && network.is_frozen(1));
    network
}

/// Frozen at 0, the first one of three.
fn frozen_among_three() -> Network {
    let mut network = Network::new(&Made {
        agents: 3,
        ..Made::default()
    });
    network.freeze(0);
    network
}

/// The connection goes on, and all neighbours of 0 have heard that what it had frozen is over.
#[track_caller]
fn assert_everybody_knows(network: &mut Network) {
    network.assert_goes_on();
    assert_eq!(resets(network), 0);
    assert!(network.stations[0].has_nothing_left());
}

fn resets(network: &Network) -> usize {
    let told = network.told.iter();
    told.filter(|(_, _, event)| matches!(event, Event::Reset { .. }))
        .count()
}

#[test]
fn an_old_agent_that_is_back_in_time_has_kept_its_segment() {
    let mut network = Network::frozen();
    network.crash(0);
    network.hand_over(1);
    network.run(BRIEF);
    assert!(!network.is_complete());
    network.start(0);
    network.assert_goes_on();
}

#[test]
fn an_old_agent_that_crashes_once_its_segment_was_taken_over_is_not_missed() {
    let mut network = lent();
    network.crash(0);
    network.run(LOST_AFTER + MOMENT);
    network.hand_over(1);
    network.assert_complete();
    assert_eq!(resets(&network), 0);
    // When it is back it hears what has become of it.
    network.start(0);
    assert!(network.is_frozen(0));
    network.assert_goes_on();
    assert!(network.stations[0].has_nothing_left());
}

#[test]
fn an_old_agent_that_comes_back_too_late_hears_that_the_connection_was_reset() {
    let mut network = Network::frozen();
    network.crash(0);
    network.hand_over(1);
    network.assert_both_are_reset(LOST_AFTER + MOMENT);
    network.start(0);
    network.run(MOMENT);
    assert!(!network.is_frozen(0));
    assert!(network.stations[0].has_nothing_left());
}

#[test]
fn an_old_agent_that_has_lost_its_journal_too_has_its_connections_reset_at_once() {
    let mut network = Network::frozen();
    network.crash(0);
    network.stations[0].journal.clear();
    network.hand_over(1);
    network.start(0);
    network.assert_both_are_reset(MOMENT);
}

#[test]
fn a_new_agent_that_crashes_and_is_lost_has_its_loan_reset() {
    let mut network = lent();
    network.crash(1);
    network.assert_far_end_is_unaware(LOST_AFTER - MOMENT);
    network.hand_over(1);
    network.assert_both_are_reset(2 * MOMENT);
}

#[test]
fn a_new_agent_that_is_back_in_time_delivers_what_it_had_taken_over() {
    let mut network = lent();
    network.crash(1);
    network.run(BRIEF);
    network.start(1);
    assert!(network.is_frozen(1));
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn a_mobile_host_that_comes_back_saves_what_a_lost_agent_had_taken_over() {
    let mut network = lent();
    network.crash(1);
    network.run(BRIEF);
    network.hand_over(0);
    network.assert_goes_on();
}

#[test]
fn both_may_crash_and_come_back() {
    for order in [[0, 1], [1, 0]] {
        let mut network = lent();
        network.crash(0);
        network.crash(1);
        network.run(BRIEF);
        for agent in order {
            network.start(agent);
            network.run(MOMENT);
        }
        network.hand_over(1);
        network.assert_goes_on();
    }
}

#[test]
fn what_was_written_down_and_never_sent_does_no_harm() {
    let mut network = Network::new(&Made::default());
    network.stations[0].crash = Some(Crash::BeforeSending);
    network.leave();
    network.write(20_000);
    assert!(network.run_until(BRIEF, |n| n.stations[0].agent.is_none()));
    assert_eq!(network.fixed.acknowledged(), 0, "nobody was told");
    network.start(0);
    assert!(network.is_frozen(0));
    network.run(MOMENT);
    network.hand_over(1);
    network.assert_goes_on();
}

#[test]
fn what_was_over_and_not_yet_written_down_does_no_harm() {
    for dies in [0, 1] {
        let mut network = lent();
        network.stations[dies].crash = Some(Crash::BeforeRemoval);
        network.hand_over(1);
        assert!(network.run_until(BRIEF, |n| n.stations[dies].agent.is_none()));
        network.run(MOMENT);
        network.start(dies);
        network.run(MOMENT);
        network.write(50_000);
        network.assert_goes_on();
        assert!(network.stations[dies].has_nothing_left());
    }
}

#[test]
fn what_was_over_long_ago_and_not_written_down_does_no_harm_either() {
    for is_closed in [false, true] {
        let mut network = lent();
        network.stations[0].crash = Some(Crash::BeforeRemoval);
        network.hand_over(1);
        assert!(network.run_until(BRIEF, |n| n.stations[0].agent.is_none()));
        network.write(50_000);
        network.assert_complete();
        if is_closed {
            network.end();
        }
        network.run(2 * LOST_AFTER);
        network.start(0);
        assert!(network.is_frozen(0), "it cannot know");
        for _ in 0..6 {
            network.run(BRIEF);
            network.be_heard();
        }
        network.assert_nothing_is_left();
        assert!(network.stations[0].has_nothing_left());
        assert_eq!(network.errors, [None, None]);
        assert_eq!(resets(&network), 0);
        if !is_closed {
            network.write(50_000);
            network.assert_goes_on();
        }
    }
}

#[test]
fn who_crashes_before_all_have_heard_that_a_freeze_is_over_says_so_when_it_is_back() {
    // It was said, and has not arrived; or there was no session to say it in.
    for is_cut in [false, true] {
        let mut network = frozen_among_three();
        if is_cut {
            network.cut(0, 2);
        }
        network.hand_over(0);
        assert!(network.run_until(BRIEF, |n| !n.is_frozen(0)));
        network.crash(0);
        network.run(MOMENT);
        network.mend(0, 2);
        network.start(0);
        assert!(!network.is_frozen(0), "what is over is not taken up again");
        network.run(MOMENT);
        network.write(50_000);
        assert_everybody_knows(&mut network);
    }
}

#[test]
fn who_has_crashed_twice_before_all_have_heard_that_a_freeze_is_over_says_so_still() {
    let mut network = frozen_among_three();
    network.cut(0, 2);
    network.hand_over(0);
    assert!(network.run_until(BRIEF, |n| !n.is_frozen(0)));
    for _ in 0..2 {
        network.crash(0);
        network.start(0);
        network.run(MOMENT);
    }
    network.mend(0, 2);
    network.write(50_000);
    assert_everybody_knows(&mut network);
}

#[test]
fn who_has_refrozen_a_connection_and_crashes_is_believed_that_the_earlier_freeze_is_over() {
    let mut network = frozen_among_three();
    network.cut(0, 2);
    network.hand_over(0);
    network.assert_complete();
    network.freeze(0);
    network.crash(0);
    network.mend(0, 2);
    network.start(0);
    assert!(network.is_frozen(0));
    network.run(MOMENT);
    network.hand_over(0);
    assert_everybody_knows(&mut network);
}

#[test]
fn a_neighbour_that_is_lost_for_good_is_not_waited_for_to_hear_that_a_freeze_is_over() {
    let mut network = Network::frozen();
    network.crash(1);
    network.hand_over(0);
    network.assert_complete();
    assert!(!network.stations[0].has_nothing_left());
    network.run(LOST_AFTER + MOMENT);
    assert!(network.stations[0].has_nothing_left());
    // Nor is one that was not there since the agent itself was started.
    network.freeze(0);
    network.crash(0);
    network.start(0);
    network.hand_over(0);
    network.assert_complete();
    network.run(LOST_AFTER + MOMENT);
    assert!(network.stations[0].has_nothing_left());
}

#[test]
fn an_old_agent_that_dies_for_good_is_not_missed_by_a_third_one_either() {
    let mut network = frozen_among_three();
    network.come(1);
    assert!(network.run_until(BRIEF, |n| n.is_frozen(1)));
    network.leave();
    network.crash(0);
    network.hand_over(1);
    network.assert_complete();
    network.run(LOST_AFTER + MOMENT);
    network.write(50_000);
    network.assert_complete();
    assert_eq!(resets(&network), 0);
    network.start(0);
    network.assert_goes_on();
}

#[test]
fn a_channel_that_is_gone_for_a_while_costs_nothing() {
    let mut network = Network::frozen();
    network.cut(0, 1);
    network.hand_over(1);
    network.run(LOST_AFTER - MOMENT);
    network.mend(0, 1);
    network.assert_goes_on();
}

#[test]
fn a_channel_that_swallows_everything_is_found_out() {
    let mut network = Network::frozen();
    network.mute(0, 1);
    network.hand_over(1);
    network.run(2 * BRIEF);
    assert!(!network.is_open(0, 1));
    assert!(
        network
            .told
            .iter()
            .any(|(_, _, event)| matches!(event, Event::Silent { .. }))
    );
    network.mend(0, 1);
    network.assert_goes_on();
}

#[test]
fn a_neighbour_that_is_lost_for_good_does_not_touch_what_it_has_no_part_in() {
    let mut network = Network::frozen();
    network.crash(1);
    network.run(2 * LOST_AFTER);
    network.hand_over(0);
    network.assert_goes_on();
    assert_eq!(resets(&network), 0);
}
