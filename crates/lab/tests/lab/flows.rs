//! Several connections over one link, beside the same in the simulator.

use crate::support::{example, in_sim, run, scenario};
use outlast_lab::{Lab, LabError};
use outlast_scenario::result::{FlowResult, RunResult};

const LINK: &str = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 50\n";
const DEADLINE: &str = "[run]\ndeadline = \"60 s\"\n";

fn assert_arrived(flow: &FlowResult, bytes: u64) {
    assert!(flow.completed, "{flow:?}");
    assert_eq!(flow.intact, Some(true), "{flow:?}");
    assert_eq!(flow.bytes_received, bytes);
    assert!(flow.error.is_none() && !flow.user_timeout_abort);
}

/// When the last connection had ended, counted from when the first was opened.
fn last_end(result: &RunResult) -> f64 {
    let ends = result
        .flows
        .iter()
        .map(|flow| flow.begin_s + flow.elapsed_s);
    ends.fold(0.0, f64::max)
}

#[test]
fn connections_share_the_link_as_in_the_simulator() {
    // Four connections for 2.4 MB: 2 s at the link's rate. One connection alone would need 0.8 s.
    let text = format!(
        "{LINK}[workload]\nkind = \"bulk\"\nbytes = \"900 kB\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"500 kB\"\ncount = 2\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"500 kB\"\nbegin = \"300 ms\"\n{DEADLINE}"
    );
    let Some(lab) = run(&text) else { return };
    let sim = in_sim(&text);
    let alone = format!("{LINK}[workload]\nkind = \"bulk\"\nbytes = \"900 kB\"\n{DEADLINE}");
    let Some(alone) = run(&alone) else { return };
    assert!(alone.result.flows.is_empty(), "nobody asked for it");
    for result in [&lab.result, &sim] {
        assert_eq!(result.flows.len(), 4);
        for (flow, bytes) in result.flows.iter().zip([900, 500, 500, 500]) {
            assert_arrived(flow, 1_000 * bytes);
        }
        assert_eq!(result.flows[3].begin_s, 0.3);
        // All go through the one link, which takes 1.92 s for the payload alone.
        let (main, last) = (&result.flows[0], last_end(result));
        assert!(last > 1.92, "{last} s");
        assert!(main.elapsed_s > 1.1, "{main:?}");
        // The connection's own time counts from its opening.
        let opening = main.elapsed_s - result.elapsed_s;
        assert!(opening >= 0.02, "{opening} s");
    }
    // The link is busy throughout, so that only its rate matters; how much a busy machine adds to it
    // in the lab is the machine's affair.
    let (lab, sim) = (last_end(&lab.result), last_end(&sim));
    assert!(lab > 0.9 * sim, "{lab} s and {sim} s");
    assert!(sim < 2.5, "{sim} s");
}

#[test]
fn each_connection_has_its_own_tcp_and_workload() {
    let text = format!(
        "{LINK}[workload]\nkind = \"bulk\"\nbytes = \"200 kB\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"300 kB\"\ndirection = \"upload\"\ncongestion = \"reno\"\n\
         sack = false\ntimestamps = false\n\
         [[flows]]\nkind = \"request-response\"\nrequests = 5\ncongestion = \"reno\"\nsack = false\n\
         [[flows]]\nkind = \"interactive\"\ninterval = \"100 ms\"\nduration = \"1 s\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"1 kB\"\nbegin = \"1 h\"\n{DEADLINE}"
    );
    // The one that begins in an hour would be waited for.
    let text = text.replace("60 s", "12 s");
    let Some(report) = run(&text) else { return };
    let lab = report.result;
    let sim = in_sim(&text);
    for result in [&lab, &sim] {
        let [main, upload, requests, desktop, never] = &result.flows[..] else {
            panic!("five connections, not {:?}", result.flows)
        };
        assert_arrived(main, 200_000);
        assert_arrived(upload, 300_000);
        assert_arrived(requests, 50_000);
        assert!(desktop.completed && desktop.intact == Some(true));
        let updates = desktop.updates.expect("interactive");
        // A busy machine may merge most.
        assert!((1..=10).contains(&updates), "{updates}");
        assert_eq!(Some(main.bytes_received), result.bytes_received);
        assert_eq!(
            (main.timeouts, main.retransmitted_bytes),
            (result.timeouts, result.retransmitted_bytes)
        );
        assert_eq!(main.tcp, result.settings.tcp);
        // What was in force on the wire, as the lab's kernel says of the socket.
        let terms = |flow: &FlowResult| {
            let tcp = &flow.tcp;
            (tcp.congestion.clone(), tcp.sack, tcp.timestamps)
        };
        assert_eq!(terms(main), ("cubic".to_owned(), true, true));
        assert_eq!(terms(upload), ("reno".to_owned(), false, false));
        assert_eq!(terms(requests), ("reno".to_owned(), false, true));
        assert!(!never.completed, "the run was over by then");
        assert_eq!((never.elapsed_s, never.bytes_received), (0.0, 0));
        assert!(never.resume_s.is_empty() && never.error.is_none());
    }
}

#[test]
fn held_connections_all_resume_and_unaided_ones_stall() {
    // Room for all: a connection that has lost packets to a full queue as well is another story.
    let link = LINK.replace("50", "500");
    let text = |outlast: &str| {
        format!(
            "{link}[link.outages]\nprocess = \"single\"\nstart = \"500 ms\"\nlength = \"5 s\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n\
             [[flows]]\nkind = \"bulk\"\nbytes = \"500 kB\"\ncount = 3\n\
             [[flows]]\nkind = \"bulk\"\nbytes = \"300 kB\"\ndirection = \"upload\"\nbegin = \"200 ms\"\n\
             [outlast]\n{outlast}{DEADLINE}"
        )
    };
    let (held, control) = (text("gateway = \"hold\"\nmobile = \"hold\"\n"), text(""));
    // When the timers of the unaided ones fall due is luck.
    for tries in 1.. {
        let Some((worst, stall)) = worst_and_stall(&held, &control) else {
            return;
        };
        let holds = stall > 0.5 && worst < 0.5 * stall.max(1.0);
        assert!(holds || tries < 5, "{worst} s held, {stall} s unaided");
        if holds {
            return;
        }
    }
}

/// How long the last of the held connections took to resume, and the median of the unaided ones.
fn worst_and_stall(held: &str, control: &str) -> Option<(f64, f64)> {
    let (held, control) = std::thread::scope(|scope| {
        let held = scope.spawn(|| run(held));
        let control = scope.spawn(|| run(control));
        let held = held.join().expect("no panic");
        (held, control.join().expect("no panic"))
    });
    let (held, control) = (held?.result, control?.result);
    assert_eq!(held.flows[0].resume_s, [held.outages[0].resume_s]);
    let resumes = |result: &RunResult| -> Vec<f64> {
        assert!(result.flows.iter().all(|flow| flow.completed), "{result:?}");
        let each = result.flows.iter().map(|flow| match flow.resume_s[..] {
            [Some(resume_s)] => resume_s,
            _ => panic!("one return of the link, not {flow:?}"),
        });
        let mut each: Vec<f64> = each.collect();
        each.sort_by(f64::total_cmp);
        each
    };
    let (held, control) = (resumes(&held), resumes(&control));
    Some((*held.last()?, control[control.len() / 2]))
}

#[test]
fn the_example_runs() {
    let text = example("neighbours.toml");
    let Some(report) = run(&text) else { return };
    let sim = in_sim(&text);
    for result in [&report.result, &sim] {
        assert!(result.flows.iter().all(|flow| flow.completed), "{result:?}");
        assert!(result.outages[0].resume_s.is_some(), "{result:?}");
    }
    assert!(sim.outages[0].resume_s < Some(1.0), "{sim:?}");
}

#[test]
fn what_one_kernel_cannot_have_is_refused() {
    let refused = |flow: &str, workload: &str| {
        let text =
            format!("{LINK}{workload}[[flows]]\nkind = \"bulk\"\nbytes = \"1 kB\"\n{flow}\n");
        match Lab::new(&scenario(&text), 0) {
            Err(error @ LabError::Topology { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let bulk = "[workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n";
    assert!(
        refused("retries = 4", bulk).contains("here 4 for one and the kernel's for the workload")
    );
    assert!(refused("count = 1000", bulk).contains("1001 connections"));
    let command = "[workload]\nkind = \"command\"\nserver = \"a\"\nclient = \"b\"\nready = 80\n";
    assert!(refused("", command).contains("could not be told"));
}
