//! Other worlds than the simulator.

use crate::fixture::{PLAIN, plan};
use outlast_scenario::result::{RunResult, World};
use outlast_sweep::{Next, Plan, Refusal, Run, RunError, RunFault, Runner, Workers};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SWEEP: &str = "[sweep]\nrepeat = 2\n\
    [sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n\"link.queue\" = [20, 40]\n";

/// Simulates, says that it was another world, and breaks down at one run.
#[derive(Debug)]
struct Pretender {
    broken: Option<Run>,
}

impl Runner for Pretender {
    fn carry_out(&self, plan: &Plan, run: Run) -> Result<RunResult, RunError> {
        if self.broken == Some(run) {
            return Err(plan.failed(run, RunFault::World("it broke down".into())));
        }
        let mut result = plan.carry_out(run)?;
        result.settings.world = World::Kernel;
        Ok(result)
    }
}

fn workers(plan: &Arc<Plan>, broken: Option<Run>) -> Workers {
    let runs = usize::try_from(plan.runs()).expect("few");
    let threads = NonZero::<usize>::MIN;
    let workers = Workers::start_with(
        Arc::new(Pretender { broken }),
        plan,
        vec![false; runs],
        threads,
    );
    workers.expect("a thread")
}

#[test]
fn runs_are_those_that_the_runner_makes() {
    let plan = Arc::new(plan(SWEEP));
    let mut workers = workers(&plan, None);
    let mut runs = 0;
    loop {
        match workers.next(Duration::MAX) {
            Next::Finished(finished) => {
                assert!(finished.line().contains(r#""world":"kernel""#));
                runs += 1;
            }
            Next::Over => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(runs, plan.runs());
}

#[test]
fn a_run_that_breaks_down_is_named() {
    let plan = Arc::new(plan(SWEEP));
    let broken = plan.turn(1);
    let mut workers = workers(&plan, Some(broken));
    assert!(matches!(workers.next(Duration::MAX), Next::Finished(_)));
    let Next::Failed(error) = workers.next(Duration::MAX) else {
        panic!("the second run broke down");
    };
    assert_eq!(error.run, broken);
    assert_eq!(error.source.to_string(), "it broke down");
    workers.end();
}

#[test]
fn what_a_world_lacks_is_shown_where_it_is_written() {
    let text = PLAIN.to_owned() + SWEEP;
    let mut seen = 0;
    let mut check = |scenario: &outlast_scenario::Scenario| {
        seen += 1;
        if scenario.has_outlast() {
            return Err(Refusal {
                message: "this world cannot hold".to_owned(),
                keys: vec!["outlast.gateway"],
                label: "not here",
                remedy: "leave it out".to_owned(),
            });
        }
        Ok(())
    };
    let refused = Plan::parse_for(&text, "test.toml", Path::new("."), &mut check);
    let error = refused.expect_err("two cells are refused");
    assert_eq!(seen, 4);
    let [problem] = error.problems() else {
        panic!("{error:?}");
    };
    let at = text.find("\"hold\"").expect("it is there");
    let line = text[..at].lines().count();
    assert!(
        problem.location().contains(&format!(":{line}:")),
        "{problem:?}"
    );
    let told = error.render(100);
    assert!(
        told.contains("in 2 of 4 cells") && told.contains("leave it out"),
        "{told}"
    );
}
