//! A mobile host that goes from gateway to gateway, beside the same in the simulator.

use crate::support::{assert_done, run, run_lab, scenario, was_late};
use outlast_lab::{Lab, RunReport};
use outlast_sim::RunReport as Simulated;

/// Both worlds' runs of `text`.
struct Twice {
    lab: RunReport,
    sim: Simulated,
}

/// Each of `texts` in the lab, all at once, and in the simulator. `None` where there is no lab.
fn run_at_once<const N: usize>(texts: [&str; N]) -> Option<[Twice; N]> {
    let runs = std::thread::scope(|scope| {
        let runs = texts.map(|text| scope.spawn(|| run(text)));
        runs.map(|run| run.join().expect("no panic"))
    });
    let mut twice = Vec::new();
    for (lab, text) in runs.into_iter().zip(texts) {
        let sim = outlast_sim::run(&scenario(text), 0).expect("the simulator has it");
        twice.push(Twice { lab: lab?, sim });
    }
    Some(twice.try_into().ok().expect("as many as there are texts"))
}

impl Twice {
    /// How long after its arrival the mobile had new bytes, in the lab and in the simulator.
    #[track_caller]
    fn resumes(&self) -> [Option<f64>; 2] {
        [&self.lab.result, &self.sim.result].map(|result| {
            let [outage] = result.outages[..] else {
                panic!("one hand-off, not {:?}", result.outages)
            };
            outage.resume_s
        })
    }

    /// The two worlds agree within so many seconds.
    #[track_caller]
    fn resumes_alike(&self, tolerance_s: f64) {
        assert_done(&self.lab.result);
        assert_done(&self.sim.result);
        let [lab, sim] = self.resumes().map(|resume| resume.expect("it went on"));
        let apart = (lab - sim).abs();
        assert!(
            apart < tolerance_s || was_late(&self.lab),
            "{lab} s, {sim} s"
        );
    }
}

/// A download whose receiver is nowhere for five and a half seconds, and then at another gateway.
///
/// Counted from its departure the sender tries for the fourth time before 4.2 s have passed, and for
/// the fifth not before 6.8 s: see `outage.rs`. Left to itself it cannot resume within a second of the
/// arrival.
fn download(outlast: &str, forward: bool) -> String {
    format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 8\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n[outlast]\n{outlast}\n\
         [[handoffs]]\nat = \"500 ms\"\ngap = \"5500 ms\"\nto = 2\nforward = {forward}\n\
         [run]\ndeadline = \"60 s\"\n"
    )
}

#[test]
fn what_found_the_mobile_away_is_sent_on_by_the_old_gateway_or_by_the_home_agent() {
    let unaided = download("", true);
    let untold = download("gateway = \"hold\"", false);
    let Some(stalling) = run_at_once([&unaided, &untold]) else {
        return;
    };
    for twice in &stalling {
        for resume in twice.resumes() {
            let stall = resume.expect("TCP does not give up so soon");
            assert!(stall > 1.0 || was_late(&twice.lab), "{stall} s");
        }
    }
    let held = download("gateway = \"hold\"", true);
    let at_foreign = download("gateway = \"retransmission-cache\"", true);
    let at_home = download("home_agent = \"retransmission-cache\"", false);
    let all = [&held, &at_foreign, &at_home].map(String::as_str);
    let runs = run_at_once(all).expect("there was a lab just now");
    for (twice, text) in runs.iter().zip(all) {
        let [lab, sim] = twice.resumes().map(|resume| resume.expect("it went on"));
        assert!(lab < 0.5 || was_late(&twice.lab), "{lab} s: {text}");
        assert!(sim < 0.5, "{sim} s: {text}");
        twice.resumes_alike(0.1);
        let done = |twice: &Twice| [&twice.lab.result, &twice.sim.result].map(|r| r.elapsed_s);
        let ([lab, sim], unaided) = (done(twice), done(&stalling[0]));
        assert!(lab < unaided[0] || was_late(&twice.lab), "{lab} s: {text}");
        assert!(sim < unaided[1], "{sim} s: {text}");
        assert!(twice.lab.result.injected_packets > 0);
        assert!(twice.lab.result.injected_bytes > Some(0));
        let is_at_home = |home: &Option<_>| home.is_some() == text.contains("home_agent");
        let [in_lab, in_sim] = [&twice.lab.roaming, &twice.sim.outcome.roaming]
            .map(|roaming| roaming.as_ref().expect("there are two gateways"));
        assert!(is_at_home(&in_lab.home_agent) && is_at_home(&in_sim.home_agent));
        assert_eq!(in_lab.cells.len(), 1);
    }
}

/// Updates every 400 ms to a mobile that leaves amid two of them, when the last one has long been
/// acknowledged, and is away for two seconds: the next one is acknowledged for it, and it has it not.
fn updates(more: &str) -> String {
    format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [workload]\nkind = \"interactive\"\ninterval = \"400 ms\"\nupdate = \"500 B\"\n\
         duration = \"8 s\"\n[outlast]\ngateway = \"zero-window-ack\"\n\
         [[handoffs]]\nat = \"1400 ms\"\ngap = \"2 s\"\nto = 2\n{more}\
         [run]\ndeadline = \"15 s\"\n"
    )
}

#[test]
fn agents_hand_a_frozen_connection_over_that_is_stuck_without_them() {
    let agents = updates("[agents]\n");
    let Some([handed, stuck]) = run_at_once([&agents, &updates("")]) else {
        return;
    };
    handed.resumes_alike(0.05);
    let [lab, sim] = handed.resumes();
    // A round trip of the agents and one way of the link.
    assert!(sim < Some(0.05), "{sim:?}");
    assert!(lab < Some(0.1) || was_late(&handed.lab), "{lab:?}");
    let updates = [&handed.lab.result, &stuck.lab.result].map(|result| result.updates);
    assert!(updates[0] > updates[1], "{updates:?}");
    assert_eq!(stuck.resumes(), [None, None]);
    for roaming in [&handed.lab.roaming, &handed.sim.outcome.roaming] {
        let roaming = roaming.as_ref().expect("there are two gateways");
        let [old, new] = roaming.agents[..] else {
            panic!("two agents, not {:?}", roaming.agents)
        };
        let [old, new] = [old, new].map(|agent| agent.expect("it runs"));
        assert_eq!((old.lent, old.settled), (1, 1), "{old:?}");
        assert_eq!((new.taken_over, new.reset), (1, 0), "{new:?}");
    }
    let roaming = stuck.lab.roaming.expect("there are two gateways");
    assert_eq!(roaming.agents, [None, None]);
}

#[test]
fn a_gateway_that_dies_with_the_only_copy_has_it_when_it_is_back_or_both_ends_are_reset() {
    let crash = "[agents]\nlost_after = \"5 s\"\n[[crashes]]\nat = \"2 s\"\ngateway = 1\n";
    let back = updates(&format!("{crash}back_after = \"2 s\"\n"));
    let Some([gone, back]) = run_at_once([&updates(crash), &back]) else {
        return;
    };
    for result in [&gone.lab.result, &gone.sim.result] {
        let error = result.error.as_ref().expect("it was reset");
        assert!(error.contains("reset"), "{error}");
        assert!(
            !result.completed && !result.user_timeout_abort,
            "{result:?}"
        );
        // Lost after five seconds.
        assert!(result.elapsed_s > 6.9, "{} s", result.elapsed_s);
    }
    let [lab, sim] = [&gone.lab.result, &gone.sim.result].map(|result| result.elapsed_s);
    assert!(lab - sim < 0.3 || was_late(&gone.lab), "{lab} s, {sim} s");
    // The segment is there 0.6 s after the mobile.
    back.resumes_alike(0.05);
    let resumes = back.resumes().map(|resume| resume.expect("it went on"));
    assert!(resumes.iter().all(|resume| *resume > 0.55), "{resumes:?}");
}

#[test]
fn a_mobile_may_go_on_and_come_back_and_each_link_is_captured() {
    let text = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [[hops]]\nrate = \"50 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"4 MB\"\ndirection = \"upload\"\n\
         [stack]\nip = \"ipv6\"\n[outlast]\ngateway = \"hold\"\nindicators = \"silence\"\n\
         [[handoffs]]\nat = \"500 ms\"\nto = 2\nforward = true\n\
         [[handoffs]]\nat = \"1500 ms\"\nto = 3\nupdate = \"50 ms\"\n\
         [[handoffs]]\nat = \"2500 ms\"\nto = 1\n[run]\ndeadline = \"60 s\"\n";
    let directory = tempfile::tempdir().expect("a directory");
    let lab = Lab::new(&scenario(text), 0).expect("the lab has it");
    let lab = lab.with_capture(directory.path(), "roaming");
    let Some(report) = run_lab(&lab) else { return };
    let sim = outlast_sim::run(&scenario(text), 0).expect("the simulator has it");
    for result in [&report.result, &sim.result] {
        assert_done(result);
        let starts: Vec<_> = result.outages.iter().map(|o| o.start_s).collect();
        assert_eq!(starts, [0.5, 1.5, 2.5]);
        assert!(
            result
                .outages
                .iter()
                .all(|outage| outage.resume_s.is_some())
        );
    }
    let names = ["", ".hop1", ".gateway2", ".gateway3"];
    let files: Vec<_> = report.captures.iter().collect();
    assert_eq!(files.len(), 2 * names.len());
    for (name, [fixed, mobile]) in names.iter().zip(files.as_chunks().0) {
        for (file, side) in [(fixed, "fixed"), (mobile, "mobile")] {
            assert!(file.ends_with(format!("roaming{name}.{side}.pcapng")));
            let size = std::fs::metadata(file).expect("it was written").len();
            assert!(size > 10_000, "{}: {size} bytes", file.display());
        }
    }
}

/// The agents' messages cross the emulated links, and the home agent releases what it holds when the
/// registration is complete.
#[test]
fn mobile_ip_finds_the_mobile_and_the_home_agent_resumes_it() {
    let text = |home_agent: &str| {
        format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = 8\n\
             [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n[outlast]\n{home_agent}\n\
             [mobile_ip]\ndetection = \"link\"\ndelay = \"10 ms\"\n\
             [[handoffs]]\nat = \"500 ms\"\ngap = \"5500 ms\"\nto = 2\n[run]\ndeadline = \"60 s\"\n"
        )
    };
    let (plain, held) = (text(""), text("home_agent = \"hold\""));
    let Some([plain, held]) = run_at_once([&plain, &held]) else {
        return;
    };
    for twice in [&plain, &held] {
        assert_done(&twice.lab.result);
        assert_done(&twice.sim.result);
        for roaming in [&twice.lab.roaming, &twice.sim.outcome.roaming] {
            let roaming = roaming.as_ref().expect("there are two gateways");
            let mobile_ip = roaming.mobile_ip.as_ref().expect("it runs");
            let [handoff] = mobile_ip.handoffs[..] else {
                panic!("one hand-off, not {mobile_ip:?}");
            };
            // A solicitation and its answer, and a request that crosses both links.
            let took = handoff.as_secs_f64() - 5.5;
            assert!(
                (0.02..0.2).contains(&took) || was_late(&twice.lab),
                "{took} s"
            );
        }
    }
    for resume in plain.resumes() {
        let stall = resume.expect("TCP does not give up so soon");
        assert!(stall > 1.0 || was_late(&plain.lab), "{stall} s");
    }
    for resume in held.resumes() {
        let resume = resume.expect("it went on");
        assert!(resume < 0.2 || was_late(&held.lab), "{resume} s");
    }
}
