//! The transfers of Scott and Mapp at the ends of their figure 5, carried out in virtual time.

use outlast_experiments::carry_out::carry_out;
use outlast_experiments::experiment::Extent;
use outlast_experiments::record::Record;
use outlast_lab::Cancel;
use outlast_papers::scott_mapp::sweep;
use outlast_papers::scott_mapp::testbed::Testbed;
use outlast_scenario::Mechanism;

/// The first trial at an availability of `percent`.
fn trial(mechanism: Mechanism, percent: u32) -> Record {
    let cancel = Cancel::new().expect("a pipe can be had");
    let jobs = sweep::jobs(Testbed::OF_THE_PAPER, Extent::Quick, &[mechanism]);
    let ending = format!(" {percent} %, linux-2.2");
    let job = jobs.into_iter().find(|job| job.cell.ends_with(&ending));
    let job = job.expect("the availability is one of the quick ones");
    let ran = carry_out(&job, &cancel).expect("the simulator has all of it");
    Record::new(&job, "1.2.3", 1, ran)
}

#[test]
fn at_a_tenth_of_the_time_unaided_tcp_gives_up_and_one_packet_saves_it() {
    let unaided = trial(Mechanism::None, 10);
    assert!(!unaided.succeeded());
    let result = &unaided.result;
    assert!(
        result.elapsed_s < result.settings.deadline_s,
        "it gave up by itself, after {} s",
        result.elapsed_s
    );
    let aided = trial(Mechanism::SmartLink3, 10);
    let factor = aided.times_ideal().expect("it succeeds");
    assert!(factor < 1.1, "{factor}");
}

#[test]
fn short_outages_cost_unaided_tcp_a_timeout_each() {
    let factor = trial(Mechanism::None, 90)
        .times_ideal()
        .expect("it succeeds");
    assert!(factor > 1.2, "{factor}");
    let whole = trial(Mechanism::None, 100)
        .times_ideal()
        .expect("it succeeds");
    assert!(whole < 1.01, "{whole}");
}
