//! Two gateways that hand frozen connections to each other, between a fixed host and a mobile one
//! that moves from the one to the other; in network namespaces.
//!
//! ```text
//! fixed --- core --- old ~~~ mobile
//!               \--- new ~~~ (from now on here)
//! ```

use crate::path::{is_ahead, until, wait};
use crate::roaming::{Agents, Neighbours, Roaming, Stream};
use crate::support::Place;
use outlast_base::time::Duration;
use serde_json::Value;

/// In this time everything else is done in the test in which a neighbour is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);

fn number(status: &Value, name: &str) -> u64 {
    status["agents"][name].as_u64().unwrap_or_default()
}

fn session(status: &Value) -> &str {
    status["agents"]["neighbours"][0]["session"]
        .as_str()
        .unwrap_or_default()
}

/// A download in the course of which the mobile host has left the old gateway, which has frozen
/// it.
///
/// What is frozen is something that was sent after the mobile host had left, so that it cannot have
/// it: of what is on its way just then it may have got a segment, while its acknowledgement was lost.
fn frozen(roaming: &Roaming, agents: &Agents) -> Stream {
    let old = agents.older();
    let speak = agents.neighbours != Neighbours::None;
    if speak {
        old.status_when("a session", |status| session(status) == "up");
    }
    let stream = Stream::start(roaming);
    until("a part of it", || stream.received() > 500_000);
    stream.pause();
    old.flows_when("rest", |status| !is_ahead(status));
    roaming.leave();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    old.status_when("the mobile host's absence", is_down);
    stream.go_on_in_vain();
    if speak {
        let knows = |status: &Value| status["agents"]["neighbours"][0]["frozen"] == 1;
        let new = agents.newer();
        new.status_when("the neighbour's notice", knows);
    }
    stream
}

#[test]
fn a_transfer_follows_its_mobile_host_from_gateway_to_gateway() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(agents) = Agents::start(&place, &roaming, Neighbours::PATIENT) else {
        return;
    };
    let stream = frozen(&roaming, &agents);
    assert_eq!(number(&agents.older().status(), "frozen"), 1);
    roaming.arrive();
    stream.finish();
    let thaws = |status: &Value| number(status, "frozen") == 0;
    let old = agents.older().status_when("the end of the freeze", thaws);
    let new = agents.newer().status();
    assert_eq!(number(&old, "lent"), 1, "{old:#}");
    assert_eq!(number(&old, "settled"), 1, "{old:#}");
    assert_eq!(number(&new, "taken_over"), 1, "{new:#}");
    assert_eq!(number(&new, "frozen"), 0, "{new:#}");
    agents.stop();
}

#[test]
fn a_killed_old_gateway_that_is_started_again_has_kept_its_segment() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(mut agents) = Agents::start(&place, &roaming, Neighbours::PATIENT) else {
        return;
    };
    let stream = frozen(&roaming, &agents);
    agents.kill_old();
    agents.start_old(&place, &roaming);
    let keeps = |status: &Value| number(status, "frozen") == 1;
    agents.older().status_when("the frozen connection", keeps);
    roaming.arrive();
    stream.finish();
    agents.stop();
}

#[test]
fn a_killed_old_gateway_that_stays_away_has_its_frozen_connections_reset_at_both_ends() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(mut agents) = Agents::start(&place, &roaming, Neighbours::LostAfter(LOST_AFTER))
    else {
        return;
    };
    let stream = frozen(&roaming, &agents);
    agents.kill_old();
    roaming.arrive();
    until("the resets", || stream.is_reset_at_both_ends());
    let new = agents.newer().status();
    assert_eq!(number(&new, "reset"), 1, "{new:#}");
}

#[test]
fn without_neighbours_a_killed_old_gateway_ends_the_connection() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(mut agents) = Agents::start(&place, &roaming, Neighbours::None) else {
        return;
    };
    let stream = frozen(&roaming, &agents);
    agents.kill_old();
    roaming.arrive();
    let before = stream.received();
    wait(2 * LOST_AFTER);
    assert_eq!(stream.received(), before, "nothing new arrives");
    assert!(stream.is_ended_anywhere(), "and nobody is told");
    stream.abandon();
}

#[test]
fn who_has_another_key_is_no_neighbour() {
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(mut agents) = Agents::start(&place, &roaming, Neighbours::PATIENT) else {
        return;
    };
    let is_up = |status: &Value| session(status) == "up";
    agents.older().status_when("a session", is_up);
    agents.kill_old();
    crate::roaming::make_key(&place, "other.key");
    agents.start_old_with_key(&place, &roaming, "other.key");
    let refusal = "its key is another one";
    until(refusal, || agents.have_said(refusal));
    for gateway in [agents.older(), agents.newer()] {
        let is_down = |status: &Value| session(status) == "down";
        gateway.status_when("no session", is_down);
    }
    agents.stop();
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    crate::roaming::make_key(&place, "agents.key");
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(place.path().join("agents.key"), open).expect("ours");
    let text = crate::roaming::configuration(
        &place,
        "zero-window-ack",
        Neighbours::PATIENT,
        (crate::roaming::OLD, crate::roaming::NEW),
        "agents.key",
    );
    place.file("open.toml", &text);
    let said = place.run(["run", "--config", "open.toml", "--control", "x.sock"]);
    // Where the data path cannot be had, that is told first.
    if said.code != Some(3) {
        said.refuses(2, &["agents.key", "chmod 600"]);
    }
    let again = place.run(["agents", "key", "agents.key"]);
    again.refuses(2, &["is there already"]);
}
