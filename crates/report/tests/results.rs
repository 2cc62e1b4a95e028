//! Results of lab and simulator in tables.

use outlast_report::results::{
    Summary, comparison, connections, hops, resume_times, resumes_of, runs, traffic, worst_first,
};
use outlast_report::table::TextStyle;
use outlast_scenario::result::{OutageResult, RunResult};

/// A run of 30 s at a round trip of 50 ms, as `lab --json` prints it.
fn run(seed: u64, completed: bool, outages: Vec<OutageResult>) -> RunResult {
    let json = serde_json::json!({
        "completed": completed, "intact": completed.then_some(true), "elapsed_s": 30.0,
        "ideal_s": 24.0, "utilisation": if completed { 0.8 } else { 0.1 }, "outages": [],
        "timeouts": 3, "retransmitted_bytes": 14_480, "injected_packets": 12,
        "user_timeout_abort": false, "error": null, "bytes_received": 5_000_000, "updates": null,
        "ideal_updates": null, "dropped_packets": null, "world": "lab", "seed": seed,
        "workload": "bulk", "direction": "download", "bytes": 5_000_000,
        "downlink_bits_per_s": 10_000_000, "uplink_bits_per_s": 10_000_000,
        "round_trip_s": 0.05, "deadline_s": 300.0, "ip": "ipv4", "gateway": "hold",
        "mobile": "none", "fixed": "none", "user_timeout_s": null, "profile": null,
        "kernel": "6.18.0", "congestion": "cubic", "sack": true, "timestamps": true,
    });
    let mut run: RunResult = serde_json::from_value(json).expect("the form of a result");
    run.outages = outages;
    run
}

fn outage(start_s: f64, length_s: Option<f64>, resume_s: Option<f64>) -> OutageResult {
    OutageResult {
        start_s,
        length_s,
        resume_s,
        half_second_s: None,
        first_five_seconds_share: None,
    }
}

#[test]
fn only_returns_that_left_time_for_data_count() {
    let run = run(
        1,
        false,
        vec![
            outage(1.0, Some(4.0), Some(0.06)),
            outage(6.0, Some(4.0), None),
            // Up for 20 ms only, less than a round trip.
            outage(12.0, Some(2.0), None),
            outage(14.02, Some(1.0), Some(0.01)),
            // Up 10 ms before the end of the run.
            outage(29.0, Some(0.99), None),
            outage(29.995, None, None),
        ],
    );
    let times: Vec<Option<f64>> = resume_times(&run).collect();
    assert_eq!(times, [Some(0.06), None, Some(0.01)]);
}

#[test]
fn a_corrupt_run_has_not_completed() {
    let mut corrupt = run(1, true, vec![]);
    corrupt.intact = Some(false);
    let summary = Summary::of(&[corrupt, run(2, true, vec![]), run(3, false, vec![])]);
    assert_eq!(
        (summary.runs, summary.completed, summary.corrupt),
        (3, 1, 1)
    );
    assert_eq!(summary.elapsed_s.map(|sample| sample.count), Some(1));
    assert_eq!(summary.utilisation.map(|sample| sample.count), Some(3));
}

#[test]
fn a_comparison() {
    let stalls = vec![
        outage(1.0, Some(4.0), Some(7.1)),
        outage(15.0, Some(4.0), None),
    ];
    let resumes = vec![
        outage(1.0, Some(4.0), Some(0.051)),
        outage(15.0, Some(4.0), Some(0.06)),
    ];
    let plain = [run(1, false, stalls)];
    let mut broken = run(3, true, vec![]);
    broken.intact = Some(false);
    let held = [run(1, true, resumes.clone()), run(2, true, resumes), broken];
    let table = comparison([
        ("plain TCP", &plain[..]),
        ("with Outlast", &held[..]),
        ("none", &[]),
    ]);
    insta::assert_snapshot!(table.to_text(&TextStyle::default()), @r#"
    Run           Completed            Time   Ideal  Utilisation  Median resume  Worst resume  Never resumed
    ────────────  ─────────────────  ──────  ──────  ───────────  ─────────────  ────────────  ─────────────
    plain TCP     no                      –       –       10.0 %         7.10 s        7.10 s              1
    with Outlast  2 of 3, 1 corrupt  30.0 s  24.0 s       80.0 %        55.5 ms       60.0 ms              0
    none          no runs                 –       –            –              –             –              0
    "#);
    let narrow = TextStyle {
        width: Some(80),
        ..TextStyle::default()
    };
    for line in table.to_text(&narrow).lines() {
        assert!(
            line.chars().count() <= 80,
            "too wide for an ordinary terminal: {line:?}"
        );
    }
}

#[test]
fn a_row_per_run_and_a_note_per_error() {
    let mut failed = run(8, false, vec![outage(1.0, Some(2.0), None)]);
    failed.error = Some("the server ended with status 1".to_owned());
    failed.timeouts = None;
    let sound = run(7, true, vec![outage(1.0, Some(2.0), Some(0.05))]);
    let table = runs([("seed 7", &sound), ("seed 8", &failed)]);
    insta::assert_snapshot!(table.to_text(&TextStyle::default()), @r"
    Run     Completed  Intact    Time   Ideal  Utilisation  Outages  Worst resume  Timeouts  Retransmitted  Injected
    ──────  ─────────  ──────  ──────  ──────  ───────────  ───────  ────────────  ────────  ─────────────  ────────
    seed 7  yes        yes     30.0 s  24.0 s       80.0 %        1       50.0 ms         3        14.5 kB        12
    seed 8  no         –       30.0 s  24.0 s       10.0 %        1         never         –        14.5 kB        12
    Seed 8: the server ended with status 1
    ");
}

#[test]
fn what_shares_a_link_has_tables_of_its_own() {
    let alone = run(1, true, vec![]);
    assert!(
        connections(&alone, 9).is_none() && traffic(&alone).is_none() && hops(&alone).is_none()
    );
    let json = serde_json::json!({
        "flows": [
            { "completed": true, "intact": true, "begin_s": 0.0, "elapsed_s": 12.75,
              "resume_s": [0.125, null, 0.5], "timeouts": 3, "retransmitted_bytes": 28_960,
              "user_timeout_abort": false, "error": null, "bytes_received": 1_000_000,
              "updates": null, "workload": "bulk", "direction": "upload", "bytes": 1_000_000,
              "profile": null, "kernel": "6.18.0", "congestion": "reno", "sack": false,
              "timestamps": false },
            { "completed": false, "intact": null, "begin_s": 2.5, "elapsed_s": 4.0,
              "resume_s": [], "timeouts": null, "retransmitted_bytes": null,
              "user_timeout_abort": true, "error": "connection timed out", "bytes_received": 20_000,
              "updates": null, "workload": "request-response", "direction": null, "bytes": null,
              "profile": "linux-6", "kernel": null, "congestion": "cubic", "sack": true,
              "timestamps": true },
        ],
        "traffic": [{ "sent_packets": 2_500, "received_packets": 2_419 }],
        "hops": [{ "injected_packets": 4, "dropped_packets":
            { "queue_full": 81, "loss": 2, "link_down": 5, "flushed": 6, "in_flight": 7 } }],
    });
    let mut whole = serde_json::to_value(&alone).expect("serialisable");
    for (name, list) in json.as_object().expect("an object") {
        whole[name] = list.clone();
    }
    let shared: RunResult = serde_json::from_value(whole).expect("the form of a result");
    let text = |table: Option<outlast_report::table::Table>| {
        table
            .expect("there is something to tell")
            .to_text(&TextStyle::default())
    };
    insta::assert_snapshot!(text(connections(&shared, 9)), @r"
    Connection  Workload          TCP                           Opened  Completed    Time  Received  Worst resume  Timeouts  Retransmitted
    ──────────  ────────────────  ────────────────────────────  ──────  ─────────  ──────  ────────  ────────────  ────────  ─────────────
    2           request-response  cubic, linux-6                2.50 s  no         4.00 s   20.0 kB             –         –              –
    1           upload            reno, no SACK, no timestamps     0 s  yes        12.8 s   1.00 MB         never         3        29.0 kB
    Connection 2: connection timed out
    ");
    let last_words = |table| -> Vec<String> {
        let text = text(table);
        let last = text.trim_end().lines().last().expect("a row");
        last.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(last_words(traffic(&shared))[0], "1");
    assert_eq!(
        last_words(hops(&shared)),
        ["hop", "1", "4", "81", "2", "18"]
    );
    assert!(text(hops(&shared)).contains("the mobile's"));
}

/// A run of 30 s with connections that resumed so after its outages.
fn with_flows(outages: Vec<OutageResult>, resumes: &[&[Option<f64>]]) -> RunResult {
    let flow = |resume_s: &&[Option<f64>]| {
        serde_json::json!({
            "completed": true, "intact": true, "begin_s": 0.0, "elapsed_s": 30.0,
            "resume_s": resume_s, "timeouts": 2, "retransmitted_bytes": 1_000,
            "user_timeout_abort": false, "error": null, "bytes_received": 1_000_000,
            "updates": null, "workload": "bulk", "direction": "upload", "bytes": 1_000_000,
            "profile": null, "kernel": "6.18.0", "congestion": "cubic", "sack": true,
            "timestamps": true,
        })
    };
    let flows: Vec<_> = resumes.iter().map(flow).collect();
    let mut whole = serde_json::to_value(run(1, true, outages)).expect("serialisable");
    whole["flows"] = flows.into();
    serde_json::from_value(whole).expect("the form of a result")
}

#[test]
fn the_worst_connection_is_not_hidden_behind_the_first() {
    let outages = vec![outage(5.0, Some(0.08), Some(0.0949))];
    let hidden = with_flows(outages, &[&[Some(0.0949)], &[Some(0.05)], &[Some(6.34)]]);
    let text = |table: outlast_report::table::Table| table.to_text(&TextStyle::default());
    insta::assert_snapshot!(text(runs([("seed 1", &hidden)])), @r"
    Run     Completed  Intact    Time  Outages  Worst resume  Timeouts  Retransmitted  Injected
    ──────  ─────────  ──────  ──────  ───────  ────────────  ────────  ─────────────  ────────
    seed 1  yes        yes     30.0 s        1        6.34 s         6        3.00 kB        12
    Over all 3 connections.
    ");
    let summed = text(comparison([(
        "with Outlast",
        std::slice::from_ref(&hidden),
    )]));
    assert!(summed.contains("6.34 s"), "{summed}");
    assert_eq!(worst_first(&hidden), [2, 0, 1]);
    insta::assert_snapshot!(text(connections(&hidden, 2).expect("three")), @r"
    Connection  Workload  TCP    Opened  Completed    Time  Received  Worst resume  Timeouts  Retransmitted
    ──────────  ────────  ─────  ──────  ─────────  ──────  ────────  ────────────  ────────  ─────────────
    3           upload    cubic     0 s  yes        30.0 s   1.00 MB        6.34 s         2        1.00 kB
    1           upload    cubic     0 s  yes        30.0 s   1.00 MB       94.9 ms         2        1.00 kB
    One more, no worse than these, is in the JSON document.
    ");
}

#[test]
fn a_connection_that_stays_behind_counts_against_the_run() {
    let mut run = with_flows(Vec::new(), &[&[], &[]]);
    run.flows[1].completed = false;
    run.flows[1].elapsed_s = 40.0;
    let summary = Summary::of(std::slice::from_ref(&run));
    assert_eq!((summary.completed, summary.elapsed_s), (0, None));
    run.flows[1].completed = true;
    let summary = Summary::of(std::slice::from_ref(&run));
    assert_eq!(summary.completed, 1);
    assert_eq!(summary.elapsed_s.map(|sample| sample.mean), Some(40.0));
    run.flows[1].intact = Some(false);
    assert_eq!(Summary::of(&[run]).corrupt, 1);
}

#[test]
fn what_never_resumed_goes_before_any_time() {
    let outages = || {
        vec![
            outage(5.0, Some(1.0), Some(0.05)),
            outage(10.0, Some(1.0), Some(0.05)),
        ]
    };
    let run = with_flows(outages(), &[&[Some(9.0), Some(0.1)], &[None, Some(0.1)]]);
    assert_eq!(worst_first(&run), [1, 0]);
    assert_eq!(resumes_of(&run, &run.flows[1]), [None, Some(0.1)]);
    let text = runs([("seed 1", &run)]).to_text(&TextStyle::default());
    assert!(text.contains("never"), "{text}");
    // Nothing could come in less than a round trip before the end, and what came is told.
    let late = vec![
        outage(5.0, Some(1.0), Some(0.05)),
        outage(29.0, Some(0.99), None),
    ];
    let run = with_flows(late, &[&[Some(0.1), None]]);
    assert_eq!(resumes_of(&run, &run.flows[0]), [Some(0.1)]);
    // More returns than the run's own list knows: the first connection had ended before them.
    let run = with_flows(
        vec![outage(5.0, Some(1.0), Some(0.05))],
        &[&[Some(0.1), Some(7.0), None]],
    );
    assert_eq!(resumes_of(&run, &run.flows[0]), [Some(0.1), Some(7.0)]);
}
