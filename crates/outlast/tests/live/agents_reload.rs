//! Neighbours that a running gateway is told of by a reload, and those that it refuses, in network
//! namespaces.

use crate::path::{Daemon, until};
use crate::roaming::{Agents, NEW, Neighbours, OLD, Roaming, Stream};
use crate::support::Place;
use serde_json::Value;

fn agents(daemon: &Daemon) -> Value {
    daemon.status()["agents"].clone()
}

fn number(daemon: &Daemon, name: &str) -> u64 {
    agents(daemon)[name].as_u64().unwrap_or_default()
}

fn sessions(daemon: &Daemon) -> Vec<String> {
    let agents = agents(daemon);
    let neighbours = agents["neighbours"].as_array().expect("a list");
    let session = |neighbour: &Value| neighbour["session"].as_str().unwrap_or_default().to_owned();
    neighbours.iter().map(session).collect()
}

/// What the new gateway has in its configuration, with something replaced.
fn configure(place: &Place, of: &str, by: &str) {
    let text = crate::roaming::configuration(
        place,
        "zero-window-ack",
        Neighbours::PATIENT,
        (NEW, OLD),
        "agents.key",
    );
    assert!(text.contains(of), "{text}");
    place.file("new.toml", &text.replace(of, by));
}

#[test]
fn neighbours_come_and_go_by_reload_and_what_cannot_change_is_refused() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(both) = Agents::start(&place, &roaming, Neighbours::PATIENT) else {
        return;
    };
    let (old, new) = (both.older(), both.newer());
    until("a session", || sessions(old) == ["up"]);

    configure(&place, &format!("[\"{OLD}\"]"), "[]");
    let said = new.ask(&place, &["reload"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(sessions(new).is_empty());
    until("the end of the session", || sessions(old) == ["down"]);
    // Who was removed is refused from now on, and counted.
    until("a refusal", || number(new, "strangers") > 0);

    for (of, by, name) in [
        (
            "listen = \"10.0.2.2:7348\"",
            "listen = \"10.0.2.2:7349\"",
            "agents.listen",
        ),
        (".frozen\"", ".other\"", "agents.journal"),
    ] {
        configure(&place, of, by);
        new.ask(&place, &["reload"]).refuses(1, &[name, "restart"]);
        assert!(sessions(new).is_empty(), "the former one holds");
    }

    configure(&place, "300 s", "200 s");
    let said = new.ask(&place, &["reload"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    until("a session again", || {
        sessions(old) == ["up"] && sessions(new) == ["up"]
    });

    // Other mobile hosts: the session begins anew.
    configure(&place, "203.0.113.0/24", "203.0.113.7");
    assert_eq!(new.ask(&place, &["reload"]).code, Some(0));
    until("a session once more", || {
        sessions(old) == ["up"] && sessions(new) == ["up"]
    });

    let stream = Stream::start(&roaming);
    until("a part of it", || stream.received() > 500_000);
    // What is sent from now on has certainly not arrived.
    stream.pause();
    roaming.leave();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    old.status_when("the mobile host's absence", is_down);
    stream.go_on_in_vain();
    until("a freeze", || number(old, "frozen") == 1);
    roaming.arrive();
    stream.finish();
    until("the end of the freeze", || number(old, "frozen") == 0);
    assert_eq!(number(old, "lent"), 1);
    assert_eq!(number(new, "taken_over"), 1);
    let said = both.stop();
    for word in ["a neighbour from now on", "no neighbour any more", "agents"] {
        assert!(said.contains(word), "no {word}: {said}");
    }
}

#[test]
fn a_neighbour_with_another_key_is_told_of_once_and_counted_and_a_reload_mends_it() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(mut both) = Agents::start(&place, &roaming, Neighbours::PATIENT) else {
        return;
    };
    until("a session", || sessions(both.older()) == ["up"]);
    both.kill_old();
    crate::roaming::make_key(&place, "other.key");
    both.start_old_with_key(&place, &roaming, "other.key");
    // Not all strangers are of this session: the first one may have come of a second try.
    let first = || agents(both.newer())["neighbours"][0].clone();
    until("four tries", || first()["failures"].as_u64() >= Some(4));
    assert!(number(both.newer(), "strangers") >= 4);
    let neighbour = first();
    let why = neighbour["last_failure"].as_str().unwrap_or_default();
    assert!(why.contains("its key is another one"), "{neighbour}");

    // The right key in the file that the old gateway's configuration names.
    let right = std::fs::read(place.path().join("agents.key")).expect("made");
    std::fs::write(place.path().join("other.key"), right).expect("ours");
    assert_eq!(both.older().ask(&place, &["reload"]).code, Some(0));
    until("a session", || sessions(both.older()) == ["up"]);
    let neighbour = agents(both.newer())["neighbours"][0].clone();
    assert_eq!(neighbour["failures"].as_u64(), Some(0), "{neighbour}");

    let said = both.stop();
    let times = |what: &str| said.matches(what).count();
    // Once before the first session, if that took more than one try, and once since.
    let told = times("no session with who has connected:");
    assert!((1..=2).contains(&told), "{said}");
    // The old one, which dials, tells each reason once.
    assert!(times("no session with a neighbour") <= 2, "{said}");
}
