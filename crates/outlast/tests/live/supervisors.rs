//! Two supervisor hosts of M-TCP that hand a mobile's connections to each other while these transfer, both
//! ways; in network namespaces.
//!
//! The mobile says nothing to anybody when it comes: its first packet shows that it is there. Whichever
//! daemon is killed, and whenever, both transfers go on, and everything arrives as it was sent.

use crate::killing::Random;
use crate::path::{Transfer, wait};
use crate::roaming::{Agents, MOBILE, Neighbours, Roaming};
use crate::support::{Place, allow_descriptors};
use outlast_base::time::Duration;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Of each transfer, at least.
const BYTES: usize = 4_000_000;
/// So much of each has come before the mobile moves, and comes between two moves.
const PART: usize = BYTES / 4;
/// The mobile is nowhere for so long: the senders time out.
const NOWHERE: Duration = Duration::from_millis(1_000);
/// For this a thousand connections may wait for each other.
const PATIENCE: Duration = Duration::from_secs(120);
/// Within this everything is over that supervisor hosts say to each other when the mobile comes.
const MOVE: Duration = Duration::from_millis(600);

fn number(status: &Value, name: &str) -> u64 {
    status["agents"][name].as_u64().unwrap_or_default()
}

/// Both daemons, with a session between them.
fn neighbours(place: &Place, roaming: &Roaming, mechanism: &'static str) -> Option<Agents> {
    let agents = Agents::start_with(place, roaming, Neighbours::PATIENT, mechanism)?;
    for daemon in [agents.older(), agents.newer()] {
        let has_session = |status: &Value| status["agents"]["neighbours"][0]["session"] == "up";
        daemon.status_when("a session", has_session);
    }
    Some(agents)
}

/// The mobile is out of the old supervisor host's reach, which knows.
fn leave(roaming: &Roaming, agents: &Agents) {
    roaming.leave();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    let old = agents.older();
    old.status_when("the mobile's absence", is_down);
    wait(NOWHERE);
}

/// Both hosts, both daemons, and a transfer each way.
struct Scene {
    _place: Place,
    roaming: Roaming,
    agents: Agents,
    transfers: [Transfer; 2],
}

impl Scene {
    fn new(mechanism: &'static str) -> Option<Self> {
        let place = Place::new();
        let roaming = Roaming::new()?;
        let agents = neighbours(&place, &roaming, mechanism)?;
        let [out, input] = roaming.connected();
        let download = Transfer::over(out, input, BYTES);
        let [input, out] = roaming.connected();
        let upload = Transfer::over(out, input, BYTES);
        let mut scene = Self {
            _place: place,
            roaming,
            agents,
            transfers: [download, upload],
        };
        scene.go_on();
        Some(scene)
    }

    /// A part of each transfer comes.
    fn go_on(&mut self) {
        for transfer in &mut self.transfers {
            transfer.wait_for(PART);
        }
    }

    fn leave(&self) {
        leave(&self.roaming, &self.agents);
    }

    fn finish(self) {
        for transfer in self.transfers {
            transfer.finish();
        }
    }
}

/// Expects that so many connections came from the neighbour, and that the time is told that it took.
#[expect(
    clippy::print_stderr,
    reason = "who runs the test wants to know how long a move takes"
)]
fn expect_move(status: &Value, connections: usize) {
    let last = &status["agents"]["last_move"];
    assert_eq!(last["mobile"], MOBILE, "{status:#}");
    assert_eq!(last["connections"], connections, "{status:#}");
    let took = last["took_us"].as_u64().expect("a time");
    eprintln!("{connections} connections moved in {took} us");
    assert!(took < 10_000_000, "{status:#}");
}

#[test]
fn transfers_follow_their_mobile_from_supervisor_host_to_supervisor_host_and_back() {
    for mechanism in ["m-tcp-adaptive", "m-tcp"] {
        let Some(mut scene) = Scene::new(mechanism) else {
            return;
        };
        scene.leave();
        scene.roaming.arrive();
        let has_both = |status: &Value| status["agents"]["last_move"]["connections"] == 2;
        let (old, new) = (scene.agents.older(), scene.agents.newer());
        let status = new.status_when("both connections", has_both);
        expect_move(&status, 2);
        assert_eq!(number(&status, "taken_over"), 2, "{status:#}");
        assert_eq!(number(&old.status(), "lent"), 2);
        scene.go_on();
        scene.roaming.leave_new();
        wait(NOWHERE);
        scene.roaming.come_back();
        let (old, new) = (scene.agents.older(), scene.agents.newer());
        expect_move(&old.status_when("both connections", has_both), 2);
        assert_eq!(number(&new.status(), "lent"), 2);
        scene.go_on();
        scene.agents.stop();
        for transfer in scene.transfers {
            transfer.finish();
        }
    }
}

#[test]
fn transfers_survive_the_end_of_the_old_supervisor_host_before_the_move() {
    let Some(mut scene) = Scene::new("m-tcp-adaptive") else {
        return;
    };
    scene.leave();
    scene.agents.kill_old();
    scene.roaming.arrive();
    scene.go_on();
    let new = scene.agents.newer().status();
    assert_eq!(number(&new, "taken_over"), 0, "nobody has told it: {new:#}");
    scene.finish();
}

#[test]
fn transfers_survive_the_end_of_the_new_supervisor_host_once_it_has_taken_over() {
    let Some(mut scene) = Scene::new("m-tcp-adaptive") else {
        return;
    };
    scene.leave();
    scene.roaming.arrive();
    let has_some = |status: &Value| number(status, "taken_over") > 0;
    let new = scene.agents.newer();
    new.status_when("a connection", has_some);
    scene.agents.kill_new();
    scene.finish();
}

#[test]
fn transfers_survive_the_end_of_either_supervisor_host_at_any_moment_of_the_move() {
    let mut random = Random::new("a move between supervisor hosts");
    for kill in [Agents::kill_old, Agents::kill_new] {
        let Some(mut scene) = Scene::new("m-tcp-adaptive") else {
            return;
        };
        scene.leave();
        scene.roaming.arrive();
        wait(random.below(MOVE));
        kill(&mut scene.agents);
        scene.finish();
    }
}

/// Connections that a mobile takes along at once.
const MANY: usize = 1_000;
/// What each sends at a time: several segments.
const PIECE: usize = 6_000;

/// A connection: who sends, and who receives.
struct Stream {
    number: usize,
    out: TcpStream,
    input: TcpStream,
    sent: usize,
    received: usize,
}

impl Stream {
    /// Every second one is an upload.
    fn new(roaming: &Roaming, number: usize) -> Self {
        let [fixed, mobile] = roaming.connected();
        let (out, input) = match number.is_multiple_of(2) {
            true => (fixed, mobile),
            false => (mobile, fixed),
        };
        input.set_read_timeout(Some(PATIENCE)).expect("not zero");
        out.set_write_timeout(Some(PATIENCE)).expect("not zero");
        Self {
            number,
            out,
            input,
            sent: 0,
            received: 0,
        }
    }

    /// The bytes from `from` on, which are others for each connection.
    fn piece(&self, from: usize) -> Vec<u8> {
        let byte = |at: usize| (at * 31 + at / 251 + self.number * 7) as u8;
        (from..from + PIECE).map(byte).collect()
    }

    fn send(&mut self) {
        let piece = self.piece(self.sent);
        self.out.write_all(&piece).expect("room in the buffer");
        self.sent += PIECE;
    }

    fn receive(&mut self) {
        let mut got = vec![0; PIECE];
        let number = self.number;
        let read = self.input.read_exact(&mut got);
        read.unwrap_or_else(|error| panic!("connection {number}: {error}"));
        assert!(got == self.piece(self.received), "connection {number}");
        self.received += PIECE;
    }
}

#[test]
fn a_thousand_connections_are_moved_while_transferring() {
    // Both ends of each, and each once more for its thread.
    if !allow_descriptors(4 * MANY as u64 + 100) {
        return;
    }
    let place = Place::new();
    let Some(roaming) = Roaming::new() else {
        return;
    };
    let Some(agents) = neighbours(&place, &roaming, "m-tcp-adaptive") else {
        return;
    };
    let mut streams: Vec<Stream> = (0..MANY).map(|n| Stream::new(&roaming, n)).collect();
    for stream in &mut streams {
        stream.send();
        stream.receive();
    }
    // What is on its way when the mobile leaves, and what its senders repeat meanwhile.
    roaming.leave();
    streams.iter_mut().for_each(Stream::send);
    leave(&roaming, &agents);
    roaming.arrive();
    let new = agents.newer();
    let has_all = |status: &Value| status["agents"]["last_move"]["connections"] == MANY;
    let status = new.status_when("all connections", has_all);
    expect_move(&status, MANY);
    assert_eq!(number(&status, "taken_over"), MANY as u64, "{status:#}");
    for stream in &mut streams {
        stream.receive();
        stream.send();
        stream.receive();
    }
    agents.stop();
}
