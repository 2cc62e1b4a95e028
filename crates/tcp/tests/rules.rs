//! Each rule of each RFC that the model follows stands in `docs/tcp-model.md`, with the code that
//! follows it and the tests that hold it to that.
//!
//! Code and tests cite a rule in a line of its own, `//= RFC 6298, section 5.4`, a test within its
//! body; what follows a colon or an opening parenthesis is a remark. The table is made of the list
//! below and of what is found; it cannot name a test that is not there. `UPDATE_RULES=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// RFC, section, and what it says.
type Rule = (u16, &'static str, &'static str);

/// Every rule.
const RULES: &[Rule] = &[
    (1337, "3", "TIME-WAIT ignores resets"),
    (2018, "2", "SACK is used if both SYNs permit it"),
    (
        2018,
        "3",
        "as many blocks as forty bytes of options hold: three with timestamps, else four",
    ),
    (
        2018,
        "4",
        "the first block is the one that changed last; the others repeat the latest before it",
    ),
    (
        2018,
        "5",
        "what was selectively acknowledged is not sent again",
    ),
    (
        2018,
        "8",
        "a receiver may discard what it told of; the sender keeps it until it is acknowledged",
    ),
    (
        2861,
        "3",
        "the window decays while nothing is sent, and where it is not used",
    ),
    (2883, "4", "a duplicate is told once, in the first block"),
    (2883, "4.1.1", "duplicates below the acknowledgement"),
    (2883, "4.1.2", "duplicates above it"),
    (2883, "5", "what the sender may conclude from one"),
    (
        2988,
        "2.1",
        "three seconds before the first sample, as it was before RFC 6298",
    ),
    (
        3042,
        "2",
        "each of the first two duplicates lets a new segment out, congestion window untouched",
    ),
    (
        3522,
        "3.2",
        "an echo of before the retransmission shows that it was needless",
    ),
    (
        3708,
        "2",
        "DSACKs count retransmissions down that were needless",
    ),
    (
        3708,
        "3",
        "when all were, the reduction is undone; more than all means the network duplicates",
    ),
    (
        4015,
        "3.2",
        "congestion window and threshold go back to what they were",
    ),
    (
        5482,
        "3",
        "the option is in the SYN and in the first segment after the handshake that has room",
    ),
    (
        5482,
        "3.1",
        "USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)), unless the application has set it",
    ),
    (
        5482,
        "3.3",
        "seconds or minutes in fifteen bits; zero is reserved",
    ),
    (5482, "4.2", "keepalive waits longer than the user timeout"),
    (5681, "2", "what is a duplicate acknowledgement"),
    (5681, "3.1", "after a timeout the window is one segment"),
    (
        5681,
        "3.1, equation 2",
        "slow start: a segment for each that is acknowledged",
    ),
    (
        5681,
        "3.1, equation 3",
        "congestion avoidance: a segment for each window",
    ),
    (
        5681,
        "3.1, equation 4",
        "the threshold is half of what is in flight, at least two segments",
    ),
    (5681, "3.2", "three duplicates mean a loss"),
    (
        5681,
        "3.2, step 2",
        "the threshold comes down at the third duplicate",
    ),
    (
        5681,
        "3.2, step 3",
        "the lost segment is sent and the window set to the threshold and three",
    ),
    (5681, "3.2, step 4", "each further duplicate adds a segment"),
    (
        5681,
        "3.2, step 6",
        "new data acknowledged deflates the window",
    ),
    (5681, "4.1", "after idle time the window is the initial one"),
    (
        5681,
        "4.2",
        "every second segment at least, and what is out of order at once",
    ),
    (
        5682,
        "3.1, step 1",
        "a timeout may be spurious if it is the first for its data",
    ),
    (
        5682,
        "3.1, step 2a",
        "with nothing new to send it is handled the usual way",
    ),
    (
        5682,
        "3.1, step 2b",
        "after the first new acknowledgement new data is sent instead of old",
    ),
    (
        5682,
        "3.1, step 3a",
        "a duplicate then means that the timeout was right",
    ),
    (
        5682,
        "3.1, step 3b",
        "another acknowledgement of what was never sent again means that it was spurious",
    ),
    (
        5927,
        "4.1",
        "an ICMP error counts only if it quotes a number in flight",
    ),
    (
        5961,
        "3.2",
        "a reset counts only with the very number that is expected; others in the window are challenged",
    ),
    (5961, "4.2", "a SYN on an open connection is challenged"),
    (
        5961,
        "5.2",
        "acknowledgements beyond what was sent, or older than the largest window, are challenged",
    ),
    (5961, "7", "challenges are limited in rate"),
    (
        6069,
        "4.2",
        "an unreachable about SND.UNA during timeout recovery reverts a back-off",
    ),
    (6069, "4.2, step 2", "none before a timeout"),
    (6069, "4.2, step 3", "none about any other segment"),
    (6069, "4.2, step 5", "one back-off for each"),
    (
        6069,
        "4.2, step 7",
        "what is left of the shorter timeout is waited for",
    ),
    (
        6069,
        "4.2, step 8",
        "if none is, the segment is sent at once",
    ),
    (6298, "2.1", "a second before the first sample"),
    (
        6298,
        "2.2",
        "the first sample R gives SRTT = R, RTTVAR = R/2",
    ),
    (6298, "2.3", "later ones count an eighth and a quarter"),
    (6298, "2.4", "no timeout below the minimum"),
    (
        6298,
        "2.5",
        "no timeout above the maximum, which is a minute at least",
    ),
    (6298, "3", "Karn: what was retransmitted is not sampled"),
    (6298, "4", "the clock's granularity"),
    (6298, "5.1", "the timer starts with data if it does not run"),
    (6298, "5.2", "it stops when all is acknowledged"),
    (6298, "5.3", "new data acknowledged restarts it"),
    (6298, "5.4", "on expiry the earliest segment is sent again"),
    (6298, "5.5", "and the timeout doubled"),
    (6298, "5.6", "and the timer started"),
    (6298, "5.7", "three seconds after a SYN that was sent again"),
    (
        6582,
        "3.2, step 2",
        "no second fast retransmission for the same window",
    ),
    (
        6582,
        "3.2, step 3",
        "a partial acknowledgement sends the next hole and stays in recovery",
    ),
    (
        6582,
        "3.2, step 4",
        "a timeout ends recovery, and what it sends again starts none",
    ),
    (
        6582,
        "6",
        "duplicates that the retransmissions themselves draw start no second recovery",
    ),
    (6675, "2", "a duplicate must bring new SACK information"),
    (
        6675,
        "4",
        "IsLost, SetPipe and NextSeg: what is lost, what is in flight, what is sent next",
    ),
    (
        6675,
        "5",
        "recovery begins with the first lost segment; blocks beyond what was sent are not believed",
    ),
    (
        6675,
        "5.1",
        "after a timeout everything counts as lost but what was selectively acknowledged",
    ),
    (
        6928,
        "2",
        "ten segments at first, one after a SYN was sent again",
    ),
    (
        6937,
        "3",
        "in recovery as much leaves as arrives, in proportion of the threshold",
    ),
    (
        6937,
        "3.1",
        "and below the threshold as much again (slow start reduction bound)",
    ),
    (
        7323,
        "2.2",
        "window scaling if both SYNs offer it, and never in a SYN",
    ),
    (7323, "2.3", "fourteen bits at most"),
    (
        7323,
        "3.2",
        "timestamps on every segment if both SYNs have them",
    ),
    (
        7323,
        "4.1",
        "echoes of what advances the window are samples",
    ),
    (
        7323,
        "4.3",
        "the timestamp of the earliest unacknowledged segment is echoed",
    ),
    (
        7323,
        "5.3, R1",
        "PAWS: segments older than the latest are dropped and answered, resets are not",
    ),
    (7323, "5.5", "after 24 days of silence they are taken"),
    (
        7661,
        "4.1",
        "a window that the application does not fill may not grow",
    ),
    (
        7661,
        "4.3",
        "and whether it was filled is judged once a round trip",
    ),
    (
        8985,
        "6.2, step 2",
        "the segment sent last of those that have arrived; an answer sooner than any is of the first transmission",
    ),
    (
        8985,
        "6.2, step 3",
        "reordering: never-retransmitted data arrives behind later data",
    ),
    (
        8985,
        "6.2, step 4",
        "the reordering window: none after three, a quarter of the least round trip, wider after DSACKs",
    ),
    (
        8985,
        "6.2, step 5",
        "a segment is lost when one sent later arrived a reordering window ago, retransmissions too",
    ),
    (
        8985,
        "6.3",
        "a timer finds the rest, and a timeout spares what was sent just now",
    ),
    (8985, "7.2", "a probe after two round trips"),
    (
        8985,
        "7.3",
        "of new data if there is any, else of the last segment; once",
    ),
    (
        8985,
        "7.4.2",
        "a loss that the probe repaired reduces the window",
    ),
    (9293, "3.5, figure 6", "three-way handshake"),
    (9293, "3.5, figure 7", "both ends open at once"),
    (9293, "3.5, figure 8", "an old duplicate SYN"),
    (
        9293,
        "3.5.1",
        "half-open connections are found out and reset",
    ),
    (9293, "3.6", "one direction may be closed before the other"),
    (9293, "3.6, figure 12", "close"),
    (9293, "3.6, figure 13", "both ends close at once"),
    (
        9293,
        "3.6.1",
        "TIME-WAIT lasts twice the maximum segment lifetime, and anew for each FIN",
    ),
    (
        9293,
        "3.7.1",
        "536 bytes if the peer announces nothing, and options take from it",
    ),
    (9293, "3.7.4", "Nagle, which may be switched off"),
    (
        9293,
        "3.8.3",
        "R2: how many retransmissions end a connection, or a SYN",
    ),
    (
        9293,
        "3.8.4",
        "keepalive: off unless asked for, two hours at least, no single probe ends anything",
    ),
    (
        9293,
        "3.8.6",
        "the right edge does not move back; a sender survives a peer whose edge does",
    ),
    (
        9293,
        "3.8.6.1",
        "zero-window probes: after a timeout, ever more slowly, for as long as they are answered",
    ),
    (9293, "3.8.6.2.1", "sender's silly window avoidance"),
    (9293, "3.8.6.2.2", "receiver's silly window avoidance"),
    (
        9293,
        "3.8.6.3",
        "acknowledgements are delayed by half a second at most, and not of a second full segment",
    ),
    (
        9293,
        "3.9.1.2",
        "the user timeout may be changed at any time",
    ),
    (9293, "3.9.2.2", "ICMP unreachables do not end a connection"),
    (9293, "3.10.4", "CLOSE: everything written is sent first"),
    (9293, "3.10.5", "ABORT resets"),
    (9293, "3.10.7.1", "CLOSED answers with a reset"),
    (9293, "3.10.7.2", "LISTEN"),
    (
        9293,
        "3.10.7.3, first check",
        "SYN-SENT: an acknowledgement of anything but the SYN is reset",
    ),
    (9293, "3.10.7.3, second check", "SYN-SENT: a reset refuses"),
    (
        9293,
        "3.10.7.4, first check",
        "what lies outside the window is answered and dropped",
    ),
    (
        9293,
        "3.10.7.4, second check",
        "resets: back to LISTEN, refused, or the end",
    ),
    (
        9293,
        "3.10.7.4, fourth check",
        "a SYN in the window ends stacks older than RFC 5961; one of the handshake's is answered again",
    ),
    (
        9293,
        "3.10.7.4, fifth check",
        "acknowledgements; only newer segments change the window",
    ),
    (
        9293,
        "3.10.7.4, seventh check",
        "data: what is new of it, and none behind a FIN",
    ),
    (
        9293,
        "3.10.7.4, eighth check",
        "a FIN counts when everything before it has come",
    ),
    (
        9293,
        "3.10.8",
        "the user timeout ends a connection in any state",
    ),
    (
        9438,
        "4.2",
        "the window follows the cubic curve: concave to the last maximum, convex beyond it",
    ),
    (9438, "4.3", "and is never behind what Reno would have"),
    (9438, "4.6", "a loss takes three tenths"),
    (
        9438,
        "4.7",
        "a loss below the last maximum lowers the aim (fast convergence)",
    ),
    (
        9438,
        "4.8",
        "after a timeout: slow start to the lowered threshold",
    ),
    (9438, "5", "C is 0.4"),
    (9438, "5.8", "time without data does not count"),
];

type Key = (u16, String);

/// What cites a rule: files of the model, and tests.
#[derive(Default)]
struct Citations {
    code: BTreeSet<String>,
    tests: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of this crate");
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The rule that a line cites.
fn cited(line: &str) -> Option<Key> {
    let text = line.trim().strip_prefix("//= RFC ")?;
    let (number, section) = text.split_once(", section ")?;
    let end = section.find([':', '(']).unwrap_or(section.len());
    Some((number.parse().ok()?, section[..end].trim().to_owned()))
}

fn scan() -> BTreeMap<Key, Citations> {
    let mut all: BTreeMap<Key, Citations> = BTreeMap::new();
    let mut paths = Vec::new();
    for folder in ["src", "tests"] {
        files(&root().join(folder), &mut paths);
    }
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| !path.ends_with("tests/rules.rs"))
    {
        let text = fs::read_to_string(path).expect("a source file");
        let name = path.strip_prefix(root()).expect("of this crate");
        let name = name.to_str().expect("ASCII").replace('\\', "/");
        let mut is_test = false;
        let mut test = None;
        for line in text.lines() {
            if line.trim() == "#[test]" {
                is_test = true;
            } else if let Some(function) = line.trim().strip_prefix("fn ") {
                let function = function.split(['(', '<']).next().unwrap_or(function);
                test = is_test.then(|| function.to_owned());
                is_test = false;
            } else if line == "}" {
                test = None;
            }
            let Some(key) = cited(line) else {
                assert!(
                    !line.trim().starts_with("//= "),
                    "{name}: cannot read {line}"
                );
                continue;
            };
            let citations = all.entry(key).or_default();
            match &test {
                Some(test) => citations.tests.insert(format!("`{name}` `{test}`")),
                None => citations.code.insert(name.clone()),
            };
        }
    }
    all
}

fn table(found: &BTreeMap<Key, Citations>) -> String {
    let mut table =
        String::from("| RFC | section | rule | code | tests |\n|---|---|---|---|---|\n");
    for (number, section, rule) in RULES {
        let citations = &found[&(*number, (*section).to_owned())];
        let code: Vec<_> = citations
            .code
            .iter()
            .map(|file| {
                let short = file.trim_start_matches("src/");
                format!("[`{short}`](../crates/tcp/{file})")
            })
            .collect();
        let tests: Vec<_> = citations
            .tests
            .iter()
            .map(|test| test.replace("tests/", "").replace("src/", ""))
            .collect();
        table += &format!(
            "| [{number}](https://www.rfc-editor.org/rfc/rfc{number}) | {section} | {rule} | {} | {} |\n",
            code.join(", "),
            tests.join(", ")
        );
    }
    table
}

#[test]
fn every_rule_has_code_and_a_test_and_every_citation_is_of_a_rule() {
    let found = scan();
    let mut missing = Vec::new();
    for (number, section, _) in RULES {
        let key = (*number, (*section).to_owned());
        match found.get(&key) {
            None => missing.push(format!("RFC {number}, section {section}: nothing cites it")),
            Some(citations) => {
                if citations.code.is_empty() {
                    missing.push(format!("RFC {number}, section {section}: no code"));
                }
                if citations.tests.is_empty() {
                    missing.push(format!("RFC {number}, section {section}: no test"));
                }
            }
        }
    }
    for ((number, section), citations) in &found {
        if !RULES
            .iter()
            .any(|rule| rule.0 == *number && rule.1 == section)
        {
            missing.push(format!(
                "RFC {number}, section {section}: not in the list, cited by {:?} {:?}",
                citations.code, citations.tests
            ));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_table_in_the_documentation_is_up_to_date() {
    const BEGIN: &str = "<!-- rules: begin -->\n";
    const END: &str = "<!-- rules: end -->";
    let path = root().join("../../docs/tcp-model.md");
    let page = fs::read_to_string(&path).expect("docs/tcp-model.md");
    let (head, rest) = page.split_once(BEGIN).expect("a beginning mark");
    let (old, tail) = rest.split_once(END).expect("an end mark");
    let new = table(&scan());
    if std::env::var_os("UPDATE_RULES").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{new}{END}{tail}")).expect("it is written");
        return;
    }
    assert_eq!(
        old, new,
        "UPDATE_RULES=1 cargo test -p outlast-tcp --test rules writes it"
    );
}
