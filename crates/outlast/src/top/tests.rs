use super::draw::draw;
use super::history::{History, Spot};
use super::snapshot::Snapshot;
use super::view::{Next, Sort, View};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

/// A status document of a gateway, as the daemon's own tests have it.
fn gateway() -> Value {
    let sample = include_str!("../../../daemon/src/status/sample.json");
    serde_json::from_str(sample).expect("JSON")
}

fn host() -> Value {
    let sample = include_str!("../../../daemon/src/host/sample.json");
    serde_json::from_str(sample).expect("JSON")
}

/// A history of these documents, a second apart.
fn history(documents: impl IntoIterator<Item = Value>) -> History {
    let mut history = History::default();
    for (second, document) in documents.into_iter().enumerate() {
        history.push(second as f64, Snapshot::of(&document));
    }
    history
}

/// A gateway whose link was away a minute ago for twelve seconds, and that works.
fn working() -> History {
    let mut later = gateway();
    later["running_s"] = (gateway()["running_s"].as_f64().expect("a time") + 1.0).into();
    later["kernel"]["tracked"] = 8_731_311.into();
    later["counters"]["resent"] = 574.into();
    let outage = &mut later["outages"][0];
    outage["ago_s"] = 72.0.into();
    outage["length_s"] = 12.0.into();
    history([gateway(), later])
}

fn drawn(history: &History, view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    let frame = terminal.draw(|frame| draw(frame, history, view));
    frame.expect("memory");
    match width {
        // An empty screen cannot be shown.
        0 => String::new(),
        _ => terminal.backend().to_string(),
    }
}

#[test]
fn a_gateway_fits_80_columns() {
    insta::assert_snapshot!(drawn(&working(), &View::default(), 80, 24));
}

#[test]
fn a_gateway_fills_200_columns() {
    insta::assert_snapshot!(drawn(&working(), &View::default(), 200, 30));
}

#[test]
fn a_host_fits_80_columns() {
    insta::assert_snapshot!(drawn(&history([host()]), &View::default(), 80, 24));
}

#[test]
fn every_role_is_drawn_in_every_size() {
    let hip = include_str!("../../../daemon/src/hip/sample.json");
    let mobile = include_str!("../../../daemon/src/mobility/samples.json");
    let hip: Value = serde_json::from_str(hip).expect("JSON");
    let mobile: Vec<Value> = serde_json::from_str(mobile).expect("JSON");
    let strange = [
        json!({}),
        json!([]),
        json!(null),
        json!({"link": 3, "outages": {}}),
    ];
    let all = [gateway(), host(), hip]
        .into_iter()
        .chain(mobile)
        .chain(strange);
    for document in all {
        let history = history([document]);
        for (width, height) in [(0, 0), (1, 1), (20, 5), (80, 24), (200, 50), (500, 200)] {
            drawn(&history, &View::default(), width, height);
        }
    }
}

#[test]
fn a_daemon_cannot_steer_the_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{9b}2J\r\n\u{202e}x";
    let mut document = gateway();
    document["interface"] = evil.into();
    document["mechanism"] = evil.into();
    document["link"]["by"] = evil.into();
    document["flow_list"][0]["far"] = evil.into();
    document["outages"][0]["not_helped"][0]["why"] = evil.into();
    document["counters"][evil] = 7.into();
    let mut later = document.clone();
    later["counters"][evil] = 70.into();
    let screen = drawn(&history([document, later]), &View::default(), 200, 40);
    let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!screen.contains(bad), "{screen:?}");
    assert!(screen.contains("\u{fffd}]0;title\u{fffd}"), "{screen}");
}

#[test]
fn a_strip_shows_outages_from_before_the_first_look() {
    let strip = working().strip("wlan0", 100);
    let down: Vec<_> = (0..100).filter(|&n| strip[n] == Spot::Down).collect();
    // Three seconds a column: from 72 s ago to 60 s ago.
    assert_eq!(down, [76, 77, 78, 79]);
    let mut young = gateway();
    young["running_s"] = 150.0.into();
    young["outages"] = json!([]);
    let strip = history([young]).strip("wlan0", 100);
    assert_eq!((strip[49], strip[50]), (Spot::Unknown, Spot::Up));
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let counted = |packets: u64| {
        let mut document = gateway();
        document["counters"]["packets"] = packets.into();
        document
    };
    let of = |counts: &[u64]| {
        let history = history(counts.iter().map(|&count| counted(count)));
        let rates = history.rates();
        rates
            .iter()
            .find(|(name, _)| *name == "packets")
            .map(|(_, rate)| *rate)
    };
    assert_eq!(of(&[5]), None);
    assert_eq!(of(&[5, 25]), Some(20.0));
    assert_eq!(
        of(&[0, 1_000, 1_000, 1_010, 1_020, 1_030, 1_040, 1_050]),
        Some(10.0)
    );
    assert_eq!(of(&[5_000, 1]), Some(0.0), "it was restarted");
}

fn press(view: &mut View, keys: &str) -> Next {
    let mut next = Next::Draw;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            key => KeyCode::Char(key),
        };
        next = view.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    next
}

#[test]
fn keys_sort_and_filter() {
    let snapshot = Snapshot::of(&gateway());
    let far = |view: &View| -> Vec<String> {
        let flows = view.flows(&snapshot);
        flows.iter().map(|flow| flow.far.clone()).collect()
    };
    let mut view = View::default();
    let (first, second, third) = (
        "192.0.2.17:50112".to_owned(),
        "192.0.2.17:38204".to_owned(),
        "[2001:db8:2::17]:40022".to_owned(),
    );
    assert_eq!(far(&view), [first.clone(), second.clone(), third.clone()]);
    press(&mut view, "r");
    assert_eq!(far(&view), [third.clone(), second.clone(), first.clone()]);
    press(&mut view, "ra");
    assert_eq!(far(&view), [first, second.clone()]);
    press(&mut view, "a/q38204\n");
    assert_eq!(far(&view), [""; 0], "`q` belongs to the filter");
    view.handle_key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
    press(&mut view, "/38204\n");
    assert_eq!(far(&view), [second]);
    press(&mut view, "sss");
    assert_eq!(view.sort, Sort::Idle);
    assert_eq!(press(&mut view, "q"), Next::Quit);
    let mut view = View::default();
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut view, "/abc");
    assert_eq!(view.handle_key(end), Next::Quit);
}
