use super::*;
use outlast_sim::{Recording, RunReport, Simulation};

/// Three connections over a link with an outage of 80 ms; the third is the one that it hurts.
const THREE: &str = r#"
name = "three"
[link]
rate = "20 Mbit/s"
delay = "20 ms"
queue = 100
[link.outages]
process = "single"
start = "3 s"
length = "80 ms"
[workload]
kind = "bulk"
bytes = "8 MB"
[[flows]]
kind = "bulk"
bytes = "4 MB"
begin = "1 s"
[[flows]]
kind = "bulk"
bytes = "4 MB"
direction = "upload"
begin = "2 s"
[outlast]
gateway = "hold"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "three.toml", Path::new(".")).expect("sound")
}

fn report(scenario: &Scenario) -> RunReport {
    let recording = Recording {
        traced_packets: Some(100_000),
        ..Recording::default()
    };
    let simulation = Simulation::new(scenario, 0).expect("the simulator has it all");
    simulation.with_recording(recording).run()
}

fn html(scenario: &Scenario, runs: &[Run<'_>]) -> String {
    let about = About {
        title: "Three",
        command: "outlast sim three.toml",
        scenario,
        source: Some(THREE),
    };
    page(&about, runs).to_html()
}

/// The text of each caption, in order.
fn captions(html: &str) -> Vec<&str> {
    let all = html.split("<figcaption>").skip(1);
    all.filter_map(|rest| rest.split("</figcaption>").next())
        .collect()
}

#[test]
fn every_connection_is_drawn_the_worst_first_and_each_outage_from_near() {
    let scenario = scenario(THREE);
    let with = report(&scenario);
    let html = html(&scenario, &[Run::in_sim("three", &with)]);
    let worst = results::worst_first(&with.result);
    assert_eq!(worst.len(), 3);
    let mut last = 0;
    for place in worst {
        let heading = format!("<h3>Connection {}, ", place + 1);
        let at = html.find(&heading).unwrap_or_else(|| panic!("{heading}"));
        assert!(at > last, "{heading} is out of order");
        last = at;
    }
    let captions = captions(&html);
    for number in 1..=3 {
        let near = captions.iter().find(|caption| {
            caption.contains(&format!("Connection {number},")) && caption.contains("the outage at")
        });
        let near = near.unwrap_or_else(|| panic!("no outage of {number} in {captions:#?}"));
        assert!(near.contains("of 80.0\u{a0}ms"), "{near}");
    }
}

#[test]
fn rate_delay_and_mechanism_are_on_the_page() {
    let scenario = scenario(THREE);
    let html = html(&scenario, &[Run::in_sim("three", &report(&scenario))]);
    let text = html.replace('\u{a0}', " ");
    for words in [
        "20 Mbit/s, 20 ms each way, down once, for 80 ms after 3 s. Download of 8 MB; 2 more \
         connections. Outlast: hold at the gateway.",
        "<td>hold at the gateway</td>",
        "<td>100 packets</td>",
        "gateway = &quot;hold&quot;",
    ] {
        assert!(text.contains(words), "the page does not say {words:?}");
    }
}

#[test]
fn a_control_stands_beside_the_run() {
    let scenario = scenario(THREE);
    let (with, without) = (report(&scenario), report(&scenario.without_outlast()));
    assert_eq!(without.result.injected_packets, 0);
    let runs = [
        Run::in_sim("with Outlast", &with),
        Run::in_sim("control", &without).into_control(),
    ];
    let both = html(&scenario, &runs);
    assert!(both.contains("<h2>With Outlast</h2>") && both.contains("<h2>Control</h2>"));
    assert_eq!(both.matches("<h3>Connection ").count(), 6);
    let alone = html(&scenario, &runs[..1]);
    assert!(!alone.contains("ontrol is the same"), "nobody asked for it");
    assert!(captions(&both).len() > captions(&alone).len());
}

#[test]
fn a_page_of_many_outages_and_connections_stays_small() {
    let text = THREE
        .replace("process = \"single\"", "process = \"periodic\"")
        .replace(
            "start = \"3 s\"\nlength = \"80 ms\"",
            "up = \"100 ms\"\ndown = \"20 ms\"",
        )
        .replace("bytes = \"4 MB\"", "bytes = \"300 kB\"")
        .replace("begin = \"1 s\"", "begin = \"1 s\"\ncount = 30");
    let scenario = scenario(&text);
    let run = report(&scenario);
    assert!(
        run.result.outages.len() > 50,
        "{}",
        run.result.outages.len()
    );
    let html = html(&scenario, &[Run::in_sim("many", &run)]);
    let figures = captions(&html).len();
    assert!((20..=100).contains(&figures), "{figures}");
    assert!(html.contains("worst connections are drawn; 20 are not"));
    assert!(html.contains("such views are left out"));
    assert!(html.len() < 8_000_000, "{}", html.len());
}

#[test]
fn without_an_outage_there_is_the_whole_and_nothing_from_near() {
    let text = THREE.replace(
        "process = \"single\"\nstart = \"3 s\"\nlength = \"80 ms\"",
        "process = \"always-up\"",
    );
    let scenario = scenario(&text);
    let html = html(&scenario, &[Run::in_sim("calm", &report(&scenario))]);
    assert!(
        !captions(&html)
            .iter()
            .any(|caption| caption.contains("the outage at"))
    );
    // One for all of them, and one for each.
    assert_eq!(captions(&html).len(), 4);
}
