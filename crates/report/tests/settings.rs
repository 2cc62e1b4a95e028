//! What a scenario sets, in words.

use outlast_report::settings;
use outlast_report::table::TextStyle;
use outlast_scenario::Scenario;
use std::path::Path;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "a.toml", Path::new(".")).expect("sound")
}

const CHAIN: &str = r#"
[link]
delay = "25 ms"
loss = 0.01
[link.downlink]
rate = "10 Mbit/s"
[link.uplink]
rate = "2 Mbit/s"
[link.outages]
process = "uniform"
up = "5 s"
down = "80 ms"
[[hops]]
rate = "1 Gbit/s"
delay = "15 ms"
fixed_end = "hold"
[[traffic]]
pattern = "on-off"
rate = "64 kbit/s"
packet = "200 B"
on = "1 s"
off = "1.35 s"
[workload]
kind = "request-response"
requests = 50
think = "200 ms"
[[flows]]
kind = "bulk"
bytes = "1 MB"
direction = "upload"
count = 2
begin = "1 s"
[stack]
congestion = "bbr"
sack = false
ip = "ipv6"
[outlast]
gateway = "auto"
mobile = "hold"
indicators = "silence"
user_timeout = "5 min"
"#;

#[test]
fn rate_delay_and_mechanism_are_in_the_line() {
    let scenario = scenario(CHAIN);
    insta::assert_snapshot!(settings::line(&scenario), @"10 Mbit/s to the mobile, 2 Mbit/s to the fixed host, 25 ms each way, up for 5 s and down for 80 ms, each give or take up to a half. 50 requests of 200 B for 10 kB each, 200 ms between them; 2 more connections. Outlast: auto at the gateway, hold at the mobile and at the fixed end of hop 1, a user timeout of 5 min.");
    insta::assert_snapshot!(settings::line(&scenario.without_outlast()), @"10 Mbit/s to the mobile, 2 Mbit/s to the fixed host, 25 ms each way, up for 5 s and down for 80 ms, each give or take up to a half. 50 requests of 200 B for 10 kB each, 200 ms between them; 2 more connections. Outlast: nothing.");
}

#[test]
fn every_setting_has_its_row() {
    let table = settings::table(&scenario(CHAIN)).to_text(&TextStyle::default());
    insta::assert_snapshot!(table, @r"
    Setting               Value
    ────────────────────  ───────────────────────────────────────────────────────────────────────────────────────────────────────
    Rate                  10 Mbit/s to the mobile, 2 Mbit/s to the fixed host
    Delay                 25 ms each way
    Queue                 42 packets to the mobile, 20 packets to the fixed host
    Damage                1 % lost
    MTU                   1500 B
    Outages               up for 5 s and down for 80 ms, each give or take up to a half
    Packets on their way  delivered when the link goes down
    Hop 1                 1 Gbit/s, 15 ms each way, 2500 packets of queue, always up
    Workload              50 requests of 200 B for 10 kB each, 200 ms between them
    Further connections   2 × upload of 1 MB, from 1 s on
    Cross traffic         64 kbit/s to the mobile on the mobile's link, on for 1 s, off for 1.35 s, packets of 200 B, from 0 s on
    Outlast               auto at the gateway, hold at the mobile and at the fixed end of hop 1, a user timeout of 5 min
    Outages are known by  nobody tells: silence, and the first packet after it
    TCP                   IPv6, bbr, SACK off
    Given up after        5 min
    ");
}

#[test]
fn each_process_of_outages_has_its_words() {
    let processes = [
        "process = \"always-up\"",
        "process = \"single\"\nstart = \"10 s\"\nlength = \"26 s\"",
        "process = \"periodic\"\nup = \"6 s\"\ndown = \"4 s\"",
        "process = \"periodic\"\nup = \"6 s\"\ndown = \"4 s\"\nstart = \"1 s\"",
        "process = \"normal\"\nup = \"6 s\"\ndown = \"4 s\"",
        "process = \"exponential\"\nup = \"6 s\"\ndown = \"4 s\"",
    ];
    let line = |process: &str| {
        let text = format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n[link.outages]\n{process}\n[workload]\nkind = \"bulk\"\nbytes = \"1 MB\""
        );
        settings::line(&scenario(&text))
    };
    insta::assert_snapshot!(processes.map(line).join("\n"), @r"
    10 Mbit/s, 5 ms each way, always up. Download of 1 MB. Outlast: nothing.
    10 Mbit/s, 5 ms each way, down once, for 26 s after 10 s. Download of 1 MB. Outlast: nothing.
    10 Mbit/s, 5 ms each way, up for 6 s and down for 4 s in turn. Download of 1 MB. Outlast: nothing.
    10 Mbit/s, 5 ms each way, up for 6 s and down for 4 s in turn, first down after 1 s. Download of 1 MB. Outlast: nothing.
    10 Mbit/s, 5 ms each way, up for 6 s and down for 4 s on average, normally distributed. Download of 1 MB. Outlast: nothing.
    10 Mbit/s, 5 ms each way, up for 6 s and down for 4 s on average, exponentially distributed. Download of 1 MB. Outlast: nothing.
    ");
}
