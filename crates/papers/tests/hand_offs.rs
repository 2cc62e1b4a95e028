//! The hand-offs of Cáceres and Iftode, carried out: they are in virtual time, and short.

use outlast_experiments::carry_out::carry_out;
use outlast_experiments::experiment::{Extent, Figure};
use outlast_experiments::record::{Record, Runs};
use outlast_lab::Cancel;
use outlast_papers::caceres_iftode::figure_04::Figure04;
use outlast_papers::caceres_iftode::figure_05::Figure05;
use outlast_papers::caceres_iftode::figure_06::Figure06;
use outlast_papers::caceres_iftode::testbed::{A_SECOND, AT_ONCE, Motion};
use outlast_papers::caceres_iftode::{figure_02::Figure02, single, transfer};
use outlast_report::judgement::{Judged, Judgement};
use outlast_scenario::Direction;

/// The quick runs of `figure`, carried out.
fn runs(figure: &dyn Figure) -> Runs {
    let cancel = Cancel::new().expect("a pipe can be had");
    let run = |job| {
        let ran = carry_out(&job, &cancel).expect("the simulator has all of it");
        Record::new(&job, "1.2.3", 1, ran)
    };
    Runs::new(figure.jobs(Extent::Quick).into_iter().map(run))
}

/// What is said of `what` in a figure's claims.
#[track_caller]
fn judged(claims: &[Judged], what: &str) -> Judgement {
    let claim = claims
        .iter()
        .find(|judged| judged.claim().statement.contains(what));
    claim
        .unwrap_or_else(|| panic!("nothing is said of {what:?}"))
        .judgement()
}

#[test]
fn a_hand_off_that_ends_before_the_timer_takes_one_timeout_and_a_longer_one_two() {
    let (short, long) = (runs(&Figure05), runs(&Figure06));
    for (figure, runs, rendezvous, times) in [
        (&Figure05 as &dyn Figure, &short, AT_ONCE, "fires once"),
        (&Figure06, &long, A_SECOND, "fires twice"),
    ] {
        let claims = figure.present(Extent::Quick, runs).claims;
        assert_eq!(judged(&claims, times), Judgement::Reproduced);
        let hand_offs = single::of(runs, rendezvous, Direction::Upload);
        let lost = single::lost(hand_offs).expect("packets were kept").value;
        assert!(lost <= single::WINDOW, "{lost}");
        assert_eq!(
            judged(&claims, "communication halts"),
            Judgement::Reproduced
        );
    }
    let pause = |runs, rendezvous| {
        let records = single::of(runs, rendezvous, Direction::Upload);
        single::pause(records).expect("every transfer goes on")
    };
    let (short, long) = (pause(&short, AT_ONCE), pause(&long, A_SECOND));
    // No timer fires sooner than half a second after the last acknowledgement.
    assert!(short.least > 0.5, "{short:?}");
    // A second more of interruption costs about the two seconds of the second timeout.
    assert!(
        (1.5..2.5).contains(&(long.mean - short.mean)),
        "{short:?} {long:?}"
    );
}

#[test]
fn motion_between_cells_apart_costs_throughput_and_more_so_the_longer_it_takes() {
    let runs = runs(&Figure02);
    let part = Figure02.present(Extent::Quick, &runs);
    // What the rate of the link is chosen for.
    let base = transfer::throughput(&runs, Motion::None).expect("it completes");
    assert!((base.mean / 1.6e6 - 1.0).abs() <= 0.02, "{base:?}");
    // Overlapping cells lose nothing here; the paper's 6 % are Mobile IP's.
    assert_eq!(judged(&part.claims, "overlapping"), Judgement::Differs);
    let loss = |what| {
        let claim = part
            .claims
            .iter()
            .find(|judged| judged.claim().statement.contains(what));
        let measured = claim.and_then(Judged::measured).expect("it was measured");
        measured.value
    };
    let (short, long) = (loss("0 s rendezvous delay, 12 %"), loss("delay 31 %"));
    assert!(short > 0.05 && long > 2.0 * short, "{short} {long}");
}

#[test]
fn the_window_collapses_and_slow_start_throttles_what_follows() {
    let part = Figure04.present(Extent::Quick, &runs(&Figure04));
    for what in ["shrinks", "throttles", "timeout is at its least"] {
        assert_eq!(judged(&part.claims, what), Judgement::Reproduced, "{what}");
    }
    assert!(!part.tables.is_empty());
}
