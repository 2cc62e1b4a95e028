//! What all experiments of a crate have to keep, as tests.

/// The tests of what all experiments of a crate have to keep.
macro_rules! checks_of_all {
    ($all:expr) => {
        #[test]
        fn without_runs_nothing_is_claimed_to_be_measured() {
            $crate::support::checks::claims_nothing_without_runs($all);
        }

        #[test]
        fn a_page_says_when_its_measurement_was_interrupted() {
            $crate::support::checks::says_when_interrupted($all);
        }

        #[test]
        fn a_page_begins_with_its_results() {
            $crate::support::checks::begins_with_results($all);
        }

        #[test]
        fn no_two_runs_of_an_experiment_are_taken_for_each_other() {
            $crate::support::checks::tells_runs_apart($all);
        }

        #[test]
        fn every_run_can_end_before_its_deadline() {
            $crate::support::checks::leaves_time_for_every_run($all);
        }
    };
}
