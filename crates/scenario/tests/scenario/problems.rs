//! What users read when a scenario file is faulty: place, value, what is allowed, remedy.

use crate::fixture::{PLAIN, problems};
use insta::assert_snapshot;
use outlast_scenario::Scenario;
use std::path::Path;

/// The plain scenario with a line put in after `after`.
#[track_caller]
fn with(after: &str, line: &str) -> String {
    assert!(PLAIN.contains(after));
    PLAIN.replace(after, &format!("{after}\n{line}"))
}

/// The plain scenario with one line replaced.
#[track_caller]
fn instead(of: &str, line: &str) -> String {
    assert!(PLAIN.contains(of));
    PLAIN.replace(of, line)
}

fn with_outages(lines: &str) -> String {
    format!("{PLAIN}\n[link.outages]\n{lines}\n")
}

#[test]
fn unknown_key_near_a_known_one() {
    assert_snapshot!(problems(&instead("delay", "dealy")));
}

#[test]
fn unknown_key_near_none() {
    assert_snapshot!(problems(&with("[link]", "colour = \"blue\"")));
}

#[test]
fn unknown_table() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[lnk.outages]\nprocess = \"always-up\"\n"
    )));
}

#[test]
fn no_unit() {
    assert_snapshot!(problems(&instead("\"10 ms\"", "10")));
}

#[test]
fn no_unit_in_a_text() {
    assert_snapshot!(problems(&instead("\"1 MB\"", "\"5.5\"")));
}

/// Advice that is followed meets no other error.
#[test]
fn the_advice_for_a_number_without_its_unit_is_sound() {
    let fields = [
        ("bytes = ", "\"1 MB\""),
        ("delay = ", "\"10 ms\""),
        ("rate = ", "\"12 Mbit/s\""),
    ];
    for (key, right) in fields {
        for plain in [
            "0.5",
            "2",
            "700",
            "2000000",
            "90000000000",
            "4e9",
            "\"3 mbyte\"",
            "\"9000000 m\"",
        ] {
            let text = instead(right, plain);
            let error = Scenario::parse(&text, "test.toml", Path::new(".")).expect_err("no unit");
            let remedy = error.problems()[0].remedy();
            let advice = remedy.split('`').nth(1).expect("what to write");
            let value = advice.strip_prefix(key).expect("the key");
            let followed = instead(right, value);
            let read = Scenario::parse(&followed, "test.toml", Path::new("."));
            assert!(read.is_ok(), "{key}{plain}: {remedy}");
        }
    }
}

/// A file may hold what would move a terminal's cursor or change its colours.
#[test]
fn no_control_character_of_a_file_reaches_the_terminal() {
    for harm in [
        "\u{1b}[31m",
        "\u{7}",
        "\u{9b}2J",
        "\u{202e}",
        "\r",
        "\r \r\n",
    ] {
        let faults = [
            instead("delay", &format!("d{harm}elay")),
            instead("\"1 MB\"", &format!("\"1 M{harm}B\"")),
            with("[link]", &format!("colour = 1 # {harm}")),
            with("[link]", "\"\\rall is well\" = 1"),
        ];
        for text in faults {
            let said = problems(&text);
            let said = said.replace("\r\n", "\n");
            let is_harmful = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!said.contains(is_harmful), "{said:?}");
        }
    }
}

#[test]
fn wrong_unit() {
    assert_snapshot!(problems(&instead("12 Mbit/s", "12 Mbps")));
}

#[test]
fn unit_of_another_kind() {
    assert_snapshot!(problems(&instead("12 Mbit/s", "12 ms")));
}

#[test]
fn negative_rate() {
    assert_snapshot!(problems(&instead("12 Mbit/s", "-12 Mbit/s")));
}

#[test]
fn zero_rate() {
    assert_snapshot!(problems(&instead("12 Mbit/s", "0 Mbit/s")));
}

#[test]
fn zero_size() {
    assert_snapshot!(problems(&instead("1 MB", "0 MB")));
}

#[test]
fn half_a_byte() {
    assert_snapshot!(problems(&instead("1 MB", "0.5 B")));
}

#[test]
fn no_number() {
    assert_snapshot!(problems(&instead("10 ms", "ten ms")));
}

#[test]
fn too_large_for_any_unit() {
    assert_snapshot!(problems(&instead("1 MB", "99999999999999999999 GB")));
}

#[test]
fn probability_out_of_range() {
    assert_snapshot!(problems(&with("[link]", "loss = 1.5")));
}

#[test]
fn probability_in_per_cent() {
    assert_snapshot!(problems(&with("[link]", "loss = \"1 %\"")));
}

#[test]
fn number_out_of_range() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[run]\nrepeat = 0\nseed = -1\n"
    )));
}

#[test]
fn text_in_place_of_a_number() {
    assert_snapshot!(problems(&with("[link]", "queue = \"75\"")));
}

#[test]
fn number_in_place_of_a_switch() {
    assert_snapshot!(problems(&format!("{PLAIN}\n[stack]\nsack = 1\n")));
}

#[test]
fn value_in_place_of_a_table() {
    assert_snapshot!(problems(&format!("stack = \"linux-6\"\n{PLAIN}")));
}

#[test]
fn misspelt_name() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[outlast]\ngateway = \"smart-link-5\"\n"
    )));
}

#[test]
fn mechanism_in_a_place_where_it_cannot_be() {
    assert_snapshot!(problems(&format!("{PLAIN}\n[outlast]\nfixed = \"hold\"\n")));
}

#[test]
fn empty_file() {
    assert_snapshot!(problems(""));
}

#[test]
fn missing_keys() {
    assert_snapshot!(problems("[link]\n\n[workload]\n"));
}

#[test]
fn rate_of_one_direction_only() {
    let text = instead("rate = \"12 Mbit/s\"\n", "downlink.rate = \"12 Mbit/s\"\n");
    assert_snapshot!(problems(&text));
}

#[test]
fn single_without_its_times() {
    assert_snapshot!(problems(&with_outages("process = \"single\"")));
}

#[test]
fn single_with_the_times_of_periodic() {
    assert_snapshot!(problems(&with_outages(
        "process = \"single\"\nup = \"5 s\"\ndown = \"5 s\"\nstart = \"1 s\"\nlength = \"2 s\""
    )));
}

#[test]
fn outages_without_a_process() {
    assert_snapshot!(problems(&with_outages("up = \"5 s\"\ndown = 4")));
}

#[test]
fn keys_of_another_workload() {
    assert_snapshot!(problems(&with("[workload]", "requests = 5")));
}

#[test]
fn bulk_without_size() {
    assert_snapshot!(problems(&instead("bytes = \"1 MB\"", "")));
}

#[test]
fn interactive_beyond_the_deadline() {
    let text = instead(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        "kind = \"interactive\"",
    );
    assert_snapshot!(problems(&format!("{text}\n[run]\ndeadline = \"60 s\"\n")));
}

#[test]
fn interval_longer_than_the_whole() {
    assert_snapshot!(problems(&instead(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        "kind = \"interactive\"\ninterval = \"2 min\""
    )));
}

#[test]
fn small_packets_over_ipv6() {
    assert_snapshot!(problems(&format!(
        "{}\n[stack]\nip = \"ipv6\"\n",
        with("[link]", "mtu = 1000")
    )));
}

#[test]
fn user_timeout_that_the_option_cannot_carry() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[outlast]\nuser_timeout = \"90.5 s\"\n"
    )));
}

#[test]
fn user_timeout_in_odd_seconds_beyond_nine_hours() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[outlast]\nuser_timeout = \"40001 s\"\n"
    )));
}

#[test]
fn command_without_its_parts() {
    assert_snapshot!(problems(&instead(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        "kind = \"command\"\nserver = []\nclient = \"\"\nsent = \"same\""
    )));
}

#[test]
fn received_file_is_the_sent_one() {
    assert_snapshot!(problems(&instead(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        "kind = \"command\"\nserver = \"nc -l 80\"\nclient = [\"nc\", \"host\"]\nready = 80\n\
         sent = \"same\"\nreceived = \"same\""
    )));
}

#[test]
fn missing_quotes() {
    assert_snapshot!(problems(&instead("\"12 Mbit/s\"", "12 Mbit/s")));
}

#[test]
fn missing_closing_quote() {
    assert_snapshot!(problems(&instead("\"bulk\"", "\"bulk")));
}

#[test]
fn duplicate_key() {
    assert_snapshot!(problems(&with("[link]", "rate = \"1 Mbit/s\"")));
}

#[test]
fn duplicate_table() {
    assert_snapshot!(problems(&format!("{PLAIN}\n[link]\nmtu = 1500\n")));
}

#[test]
fn line_that_is_no_toml() {
    assert_snapshot!(problems(&with("[link]", "queue: 75")));
}

#[test]
fn columns_count_characters() {
    assert_snapshot!(problems(&format!(
        "run = {{ repeat = 1, \"größe\" = 2 }}\n{PLAIN}"
    )));
}

#[test]
fn everything_at_once() {
    assert_snapshot!(problems(
        r#"nmae = "chaos"

[link]
rate = 10 Mbit/s
dealy = "25 ms"
queue = 0
loss = 2

[link.outages]
process = "single"
up = "5 s"
length = 3

[workload]
kind = "bulk"
bytes = "5 Mb"

[outlast]
gatway = "hold"
"#
    ));
}

#[test]
fn single_table_in_place_of_a_list() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[hops]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n"
    )));
}

#[test]
fn faulty_tables_of_a_list() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[[flows]]\nkind = \"bulk\"\n\n[[flows]]\nkind = \"command\"\n\
         \n[[flows]]\nkind = \"interactive\"\nbytes = \"1 MB\"\nip = \"ipv6\"\n\
         \n[[flows]]\nkind = \"bulk\"\nbytes = \"1 MB\"\ncount = 0\n"
    )));
}

#[test]
fn faulty_rate_changes() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[[rate_changes]]\nat = \"1 s\"\n\n[[rate_changes]]\nuplink = \"0 bit/s\"\n\
         \n[[rate_changes]]\nat = \"1 s\"\nuplink = \"1 Mbit/s\"\nhop = 2\n"
    )));
}

#[test]
fn more_connections_than_ports() {
    let flow = "[[flows]]\nkind = \"bulk\"\nbytes = \"1 MB\"\ncount = 10000\n";
    assert_snapshot!(problems(&format!("{PLAIN}\n{flow}\n{flow}\n{flow}")));
}

#[test]
fn interactive_flow_beyond_the_deadline() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[run]\ndeadline = \"30 s\"\n[[flows]]\nkind = \"interactive\"\n"
    )));
}

#[test]
fn faulty_cross_traffic() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[[traffic]]\npattern = \"constant\"\nrate = \"1 Mbit/s\"\non = \"1 s\"\n\
         \n[[traffic]]\npattern = \"on-off\"\nrate = \"0 Mbit/s\"\noff = \"1 s\"\n\
         \n[[traffic]]\nrate = \"1 Mbit/s\"\npacket = \"2 kB\"\nhop = 1\n\
         begin = \"3 s\"\nend = \"2 s\"\n"
    )));
}

#[test]
fn faulty_hops() {
    assert_snapshot!(problems(&format!(
        "{PLAIN}\n[[hops]]\nrate = \"1 Mbit/s\"\n\n[[hops]]\ndelay = \"1 ms\"\n\
         fixed_end = \"retransmission-trigger\"\nmtu = 1500\n\
         [hops.downlink]\nrate = \"1 Mbit/s\"\n[hops.outages]\nprocess = \"single\"\n"
    )));
}

#[test]
fn more_hops_than_there_may_be() {
    let hops = "[[hops]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n".repeat(33);
    let text = problems(&format!("{PLAIN}\n{hops}"));
    assert!(text.contains("more than 32 `[[hops]]`"), "{text}");
}
