//! An outage beyond the first hop, of which no link tells: a packet of the peer on one connection wakes another one.

use super::operating::{status, status_when};
use super::requests::{Network, REMOTE};
use super::{AT_ONCE, Agent, OUTAGE, PATIENCE, ip, pause, read_for, send};
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// From a packet of the remote host on one connection until it has new bytes of an upload on the other one.
fn wait(network: &Network) -> Duration {
    let listen = || TcpListener::bind((REMOTE, 0)).expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let connect = || TcpStream::connect(to).expect("it listens");
        let quiet = network.mobile.run(connect).expect("enter");
        let (mut speaking, _) = listener.accept().expect("it comes");
        scope.spawn(|| send("cubic", &network.mobile, to, &is_over));
        let (mut upload, _) = listener.accept().expect("the sender comes");
        read_for(&mut upload, Duration::from_secs(1));
        // The mobile host's own carrier stays.
        ip(&network.switch, "link set far0 down");
        read_for(&mut upload, OUTAGE);
        ip(&network.switch, "link set far0 up");
        pause(Duration::from_millis(50));
        let spoken = clock::now();
        speaking.write_all(&[7; 64]).expect("a connection");
        let patience = Some(PATIENCE);
        upload.set_read_timeout(patience).expect("a socket");
        let count = again(|| upload.read(&mut [0; 1024])).expect("it goes on");
        let waited = clock::now().since(spoken);
        assert_ne!(count, 0, "the transfer has ended");
        is_over.store(true, Ordering::Relaxed);
        drop((upload, quiet));
        waited
    })
}

#[test]
fn a_packet_of_the_peer_wakes_its_other_connections() {
    let mut tried = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake, and a sender's own timer may
    // be due at that moment, so that a control shows nothing.
    for _ in 0..3 {
        let (Some(with), Some(without)) = (Network::new(true), Network::new(true)) else {
            return;
        };
        let place = Place::new();
        let agent = Agent::start(&place, &with.mobile, &[]);
        let waits = thread::scope(|scope| {
            let both = [&with, &without].map(|network| scope.spawn(|| wait(network)));
            both.map(|wait| wait.join().expect("it is measured"))
        });
        let told = status_when(&place, |status| status["counters"]["peers_silent"] != 0);
        assert_eq!(told["returns"][0]["by"], "first-packet", "{told:#}");
        assert_eq!(told["returns"][0]["peer"], REMOTE, "{told:#}");
        assert_eq!(told["silent_peers"], 0, "{told:#}");
        drop(agent);
        let [with, without] = waits;
        println!("{with:?} with the agent, {without:?} without");
        if with <= AT_ONCE && without > AT_ONCE * 4 {
            return;
        }
        tried.push(waits);
    }
    panic!("with the agent and without: {tried:?}");
}

/// The last connection with a silent peer ends: nobody notices packets any more.
#[test]
fn a_silent_peer_of_whom_nobody_wants_anything_is_forgotten() {
    let Some(network) = Network::new(true) else {
        return;
    };
    let place = Place::new();
    let agent = Agent::start(&place, &network.mobile, &[]);
    let listen = || TcpListener::bind((REMOTE, 0)).expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || TcpStream::connect(to).expect("it listens");
    let mut stream = network.mobile.run(connect).expect("enter");
    ip(&network.switch, "link set far0 down");
    stream.write_all(&[7; 64]).expect("a connection");
    status_when(&place, |status| status["silent_peers"] == 1);
    // With nothing lingering it is gone at once.
    let gone = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    gone.expect("a socket");
    drop(stream);
    status_when(&place, |status| status["silent_peers"] == 0);
    assert_eq!(status(&place)["counters"]["errors"], 0);
    drop(agent);
}
