//! The `command` workload: this test program is server and client.

use crate::support::run_lab;
use outlast_lab::RunReport;
use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

const PORT: u16 = 4711;

/// The command line that runs the ignored test `role` of this program.
fn role(role: &str) -> String {
    let program = std::env::current_exe().expect("this program");
    format!(
        "exec '{}' --ignored --exact commands::{role}",
        program.display()
    )
}

fn address() -> String {
    let fixed = std::env::var("OUTLAST_FIXED").expect("set by the lab");
    let fixed = if fixed.contains(':') {
        format!("[{fixed}]")
    } else {
        fixed
    };
    format!("{fixed}:{PORT}")
}

#[test]
#[ignore = "not a test: the server on the fixed host"]
fn serve() {
    let listener = TcpListener::bind(address()).expect("bind");
    let (mut mobile, _) = listener.accept().expect("accept");
    mobile
        .write_all(&fs::read("sent").expect("the file"))
        .expect("write");
}

#[test]
#[ignore = "not a test: the client on the mobile"]
fn fetch() {
    let mut server = TcpStream::connect(address()).expect("connect");
    let mut file = fs::File::create("received").expect("create");
    io::copy(&mut server, &mut file).expect("copy");
}

/// Runs `server` and `client` in `directory`.
fn run_commands(directory: &Path, server: &str, client: &str, more: &str) -> Option<RunReport> {
    let text = format!(
        "[link]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 50\n{more}\n\
         [workload]\nkind = \"command\"\nserver = {server:?}\nclient = {client:?}\n\
         ready = {PORT}\nsent = \"sent\"\nreceived = \"received\"\n[run]\ndeadline = \"2 min\"\n"
    );
    let scenario = outlast_scenario::Scenario::parse(&text, "test.toml", directory);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
    run_lab(&outlast_lab::Lab::new(&scenario, 0).expect("the lab has it"))
}

/// A directory with something to send.
fn workplace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("directory");
    let content: Vec<u8> = (0..500_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(directory.path().join("sent"), content).expect("write");
    directory
}

#[test]
fn programs_talk_over_the_link_and_what_they_say_is_measured() {
    for ip in ["ipv4", "ipv6"] {
        let place = workplace();
        let more = format!(
            "[link.outages]\nprocess = \"single\"\nstart = \"200 ms\"\nlength = \"500 ms\"\n\
             [stack]\nip = \"{ip}\"\n[outlast]\ngateway = \"hold\"\nmobile = \"hold\""
        );
        let report = run_commands(place.path(), &role("serve"), &role("fetch"), &more);
        let Some(report) = report else { return };
        let result = report.result;
        assert!(result.completed, "{:?}", result.error);
        assert_eq!(result.intact, Some(true));
        assert_eq!(result.bytes_received, Some(500_000));
        let [outage] = result.outages[..] else {
            panic!("{:?}", result.outages)
        };
        assert!(outage.resume_s.is_some_and(|resume| resume >= 0.0));
        assert!(result.timeouts.is_some() && result.retransmitted_bytes.is_some());
    }
}

#[test]
fn a_server_that_ends_too_early_is_reported_with_its_last_words() {
    let place = workplace();
    let report = run_commands(place.path(), "echo no disk >&2; exit 3", "true", "");
    let Some(report) = report else { return };
    assert!(!report.result.completed);
    assert_eq!(
        report.result.error.as_deref(),
        Some(
            "the command on the fixed host ended before it listened on TCP port 4711 \
             (exit status: 3); its last words: no disk"
        )
    );
}

#[test]
fn a_client_that_fails_is_reported_with_its_last_words() {
    let place = workplace();
    let report = run_commands(
        place.path(),
        &role("serve"),
        "echo one; echo two; exit 4",
        "",
    );
    let Some(report) = report else { return };
    assert!(!report.result.completed);
    let error = report.result.error.expect("said why");
    assert_eq!(
        error,
        "the command on the mobile host ended (exit status: 4); its last words: one | two"
    );
}

#[test]
fn what_is_not_what_was_sent_is_not_intact() {
    let place = workplace();
    let client = format!(
        "{} && echo more >> received",
        role("fetch").trim_start_matches("exec ")
    );
    let Some(report) = run_commands(place.path(), &role("serve"), &client, "") else {
        return;
    };
    assert!(report.result.completed, "{:?}", report.result.error);
    assert_eq!(report.result.intact, Some(false));
}
