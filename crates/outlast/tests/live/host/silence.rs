//! An outage beyond the first hop, of which no link tells: a packet of the peer on one connection wakes another one.

use super::operating::{status, status_when};
use super::requests::{Network, REMOTE};
use super::{AT_ONCE, Agent, OUTAGE, PATIENCE, ip, pause, read_for, send};
use crate::support::{Place, again, allow_descriptors};
use outlast_base::time::Duration;
use outlast_linux::clock;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
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

/// As many peers as fall silent together, each with an upload and a connection on which it speaks.
const PEERS: u16 = 500;
/// Of both ends of two connections each.
const DESCRIPTORS: u64 = 4 * PEERS as u64 + 500;
/// Long enough for two timeouts in a row, and for four.
const OUTAGES: [Duration; 2] = [Duration::from_millis(1_000), Duration::from_millis(2_500)];

/// The connections of all peers, which are addresses of the remote host's: the mobile host's ends and the remote host's.
fn connections(network: &Network, listener: &TcpListener) -> Vec<[TcpStream; 2]> {
    let port = listener.local_addr().expect("bound").port();
    let of = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let peer = SocketAddr::from(([10, 7, high, low], port));
        let connect = || TcpStream::connect(peer).expect("it listens");
        let near = network.mobile.run(connect).expect("enter");
        let (far, _) = listener.accept().expect("it comes");
        [near, far]
    };
    (0..PEERS).map(of).collect()
}

/// The peers may fall silent again while the agent still looks at what it has restarted.
#[test]
fn everyone_of_many_silent_peers_is_noticed() {
    let Some(network) = Network::new(true) else {
        return;
    };
    if !allow_descriptors(DESCRIPTORS) {
        return;
    }
    ip(&network.remote, "route add local 10.7.0.0/16 dev lo");
    let way = format!("route add 10.7.0.0/16 via {REMOTE}");
    ip(&network.mobile, &way);
    let place = Place::new();
    let agent = Agent::start(&place, &network.mobile, &[]);
    let listen = || TcpListener::bind("0.0.0.0:0").expect("a port");
    let listener = network.remote.run(listen).expect("enter");
    let mut uploads = connections(&network, &listener);
    let mut quiet = connections(&network, &listener);
    for (outage, times) in OUTAGES.into_iter().zip(1_u64..) {
        ip(&network.switch, "link set far0 down");
        for [near, _] in &mut uploads {
            near.write_all(&[7; 512]).expect("a connection");
        }
        pause(outage);
        status_when(&place, |status| status["silent_peers"] == PEERS);
        ip(&network.switch, "link set far0 up");
        pause(Duration::from_millis(50));
        for [_, far] in &mut quiet {
            far.write_all(&[7; 64]).expect("a connection");
        }
        for [_, far] in &mut uploads {
            far.set_read_timeout(Some(PATIENCE)).expect("a socket");
            far.read_exact(&mut [0; 512]).expect("it arrives");
        }
        let told = status_when(&place, |status| status["silent_peers"] == 0);
        let counted = &told["counters"];
        assert_eq!(counted["returns"], times * u64::from(PEERS), "{told:#}");
        assert_eq!(counted["links_refused"], 0, "{told:#}");
        assert_eq!(counted["errors"], 0, "{told:#}");
    }
    drop(agent);
}
