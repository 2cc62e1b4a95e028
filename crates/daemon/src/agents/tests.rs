use super::noise::Noise;
use super::*;
use crate::config::Watched;
use crate::testing::namespace_with_loopback;
use outlast_gateway::gateway::GatewayConfig;
use outlast_linux::clock;
use std::io::{Read, Write};

const OWN: &str = "127.0.0.1:7348";
const DIALLED: &str = "127.0.0.2:7348";
const ANOTHER: &str = "127.0.0.3:7348";

/// Does `work` in a namespace that has a loopback; without one, says what is missing.
pub(super) fn on_a_loopback(work: impl FnOnce() + Send) {
    if let Some(namespace) = namespace_with_loopback() {
        namespace.run(work).expect("enter");
    }
}

/// What a driver needs of its daemon.
pub(super) struct Surroundings {
    now: Instant,
    gateway: Gateway,
    indicators: Indicators,
    poller: Poller,
}

impl Surroundings {
    pub(super) fn new() -> Self {
        Self {
            now: clock::now(),
            gateway: Gateway::new(GatewayConfig::default()),
            indicators: Indicators::new("wwan0", Watched::default(), 9),
            poller: Poller::new().expect("epoll"),
        }
    }

    pub(super) fn open(&self, settings: &AgentSettings) -> Driver {
        let tokens = Tokens {
            listener: Token(1),
            first: 10,
        };
        let Ok(driver) = Driver::open(self.now, settings, (7, 1), &self.poller, tokens) else {
            panic!("it does not open")
        };
        driver
    }

    pub(super) fn place(&mut self) -> Place<'_> {
        Place {
            now: self.now,
            gateway: &mut self.gateway,
            indicators: &self.indicators,
            poller: &self.poller,
        }
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().expect("literal")
}

/// Whom a session is with, and whose connection has failed, once somebody who says to be `name` has
/// answered where one neighbour was dialled.
fn answered_by(name: &str) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
    let place = tempfile::tempdir().expect("a place");
    let [key, journal] = ["agents.key", "journal"].map(|name| place.path().join(name));
    assert!(key::make(&key).is_ok());
    let listener = TcpListener::bind(at(DIALLED)).expect("free");
    let settings = AgentSettings::between(OWN, &[DIALLED, ANOTHER], &key, &journal);
    let mut around = Surroundings::new();
    let mut driver = around.open(&settings);
    let mut site = around.place();
    driver.handle_timeout(&mut site);
    let token = driver.sessions.as_ref().expect("it listens").neighbours[&at(DIALLED)].dialling;
    let token = token.expect("it was dialled");
    let (mut stream, _) = listener.accept().expect("somebody dials");
    driver.serve(&mut site, token);
    let shared = SharedKey::load(&key).expect("made");
    let mut noise = Noise::answer(&shared, at(name)).expect("a side");
    let mut greeting = [0; 256];
    let length = stream.read(&mut greeting).expect("it greets");
    noise.receive(&greeting[..length]).expect("it has the key");
    stream.write_all(&noise.out).expect("room");
    driver.serve(&mut site, token);
    let known = &driver.sessions.as_ref().expect("it listens").neighbours;
    let those = |is_meant: fn(&Neighbour) -> bool| {
        let meant = known.iter().filter(|(_, known)| is_meant(known));
        meant.map(|(neighbour, _)| *neighbour).collect()
    };
    (
        those(|known| known.session.is_some()),
        those(|known| known.failures.count > 0 && known.dial_at.is_some()),
    )
}

#[test]
fn who_answers_for_another_gets_no_session_and_is_dialled_again() {
    on_a_loopback(|| {
        assert_eq!(answered_by(DIALLED), (vec![at(DIALLED)], vec![]));
        assert_eq!(answered_by(ANOTHER), (vec![], vec![at(DIALLED)]));
    });
}
