//! The Immediate Retransmission Option: an agent whose link is back asks, and one that has noticed
//! nothing retransmits.

use super::operating::{status, status_when};
use super::{AT_ONCE, Agent, PATIENCE, ip, pause, resume_of};
use crate::path::skip;
use crate::support::{Place, again};
use outlast_base::time::Duration;
use outlast_host::control::EndpointControl;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::raw::RawSender;
use outlast_linux::stack::TcpStack;
use outlast_linux::sysctl;
use outlast_wire::tcp::{Experimental, TcpOptions};
use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};
use rustix::fd::AsFd;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;

/// The experiment's number.
const EXPERIMENT: [u8; 4] = *b"OLIR";

pub(super) const MOBILE: &str = "10.1.0.1";
pub(super) const REMOTE: &str = "10.1.0.7";

/// A mobile host and a remote one at a switch: only the mobile host's carrier goes away.
pub(super) struct Network {
    pub(super) mobile: Namespace,
    pub(super) switch: Namespace,
    pub(super) remote: Namespace,
}

impl Network {
    pub(super) fn new(sack: bool) -> Option<Self> {
        let new = || {
            let namespace = Namespace::new();
            namespace.inspect_err(|error| skip(error)).ok()
        };
        let (mobile, switch, remote) = (new()?, new()?, new()?);
        ip(&switch, "link add name bridge0 type bridge");
        let ends = [
            ("near0", &mobile, MOBILE, "02:00:00:00:00:01"),
            ("far0", &remote, REMOTE, "02:00:00:00:00:07"),
        ];
        for ((port, host, address, hardware), (_, _, peer, far)) in
            [(ends[0], ends[1]), (ends[1], ends[0])]
        {
            let cable = || {
                let mut routes = RouteSocket::open().expect("netlink");
                let other = Some(host.as_fd());
                routes.add_veth(port, "link0", other).expect("a cable");
            };
            switch.run(cable).expect("enter");
            ip(&switch, &format!("link set {port} master bridge0 up"));
            ip(host, "link set lo up");
            ip(host, &format!("address add {address}/24 dev link0"));
            ip(host, &format!("link set link0 address {hardware} up"));
            // A kernel that asks for its neighbour in vain takes the back-off back by itself.
            let known = format!("neigh add {peer} lladdr {far} dev link0 nud permanent");
            ip(host, &known);
            let sack = if sack { "1" } else { "0" };
            let tune = || sysctl::write("net.ipv4.tcp_sack", sack);
            host.run(tune).expect("enter").expect("a sysctl");
        }
        ip(&switch, "link set bridge0 up");
        Some(Self {
            mobile,
            switch,
            remote,
        })
    }

    pub(super) fn cut(&self) {
        ip(&self.switch, "link set near0 down");
    }

    pub(super) fn mend(&self) {
        ip(&self.switch, "link set near0 up");
    }

    /// From the link's return until the mobile host has new bytes of a download.
    fn resume(&self, congestion: &str) -> Duration {
        resume_of(
            congestion,
            &self.remote,
            &self.mobile,
            || self.cut(),
            || self.mend(),
        )
    }
}

/// Resume times of a download with agents at both hosts, with one at the mobile host only, and without any; and what the asked
/// agent counted of requests.
fn resumes(congestion: &str, sack: bool) -> Option<([Duration; 3], serde_json::Value)> {
    let new = || Network::new(sack);
    let networks = [new()?, new()?, new()?];
    let places = [(); 3].map(|()| Place::new());
    let asking = Agent::start(&places[0], &networks[0].mobile, &[]);
    // It does nothing but what it is asked for.
    places[1].file("host.toml", "[host]\nprobes_silent_peers = false\n");
    let asked = Agent::start(&places[1], &networks[0].remote, &["--config", "host.toml"]);
    let alone = Agent::start(&places[2], &networks[1].mobile, &[]);
    let resumed = thread::scope(|scope| {
        let all = networks.each_ref();
        let all = all.map(|network| scope.spawn(|| network.resume(congestion)));
        all.map(|resumed| resumed.join().expect("it is measured"))
    });
    status_when(&places[0], |status| {
        status["immediate_retransmission"]["sent"] != 0
    });
    let heard = status(&places[1])["immediate_retransmission"].take();
    drop((asking, asked, alone));
    Some((resumed, heard))
}

#[test]
fn a_download_resumes_at_once_with_agents_at_both_hosts() {
    thread::scope(|scope| {
        for congestion in ["cubic", "bbr"] {
            for sack in [true, false] {
                scope.spawn(move || judge(congestion, sack));
            }
        }
    });
}

fn judge(congestion: &str, sack: bool) {
    let mut tried = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake, and a sender's own timer may
    // be due at the link's return, so that a control shows nothing, or a request finds nothing to do.
    for _ in 0..3 {
        let Some((all, heard)) = resumes(congestion, sack) else {
            return;
        };
        let [both, mobile, none] = all;
        let is_granted = heard["granted"] != 0;
        // A sender with SACK goes on for the mobile's own agent, too, which tries silent peers.
        let control = match sack {
            true => none,
            false => mobile.min(none),
        };
        if is_granted && both <= AT_ONCE && control > AT_ONCE * 4 {
            return;
        }
        tried.push((all, heard));
    }
    panic!("{congestion}, SACK {sack}: {tried:?}");
}

/// From the link's return until the mobile host reads what the remote one has sent amid the outage, over a connection that
/// had been idle for longer than peers are known to wait.
fn hears_after_idling(network: &Network) -> Duration {
    let listen = || TcpListener::bind((MOBILE, 0)).expect("a port");
    let listener = network.mobile.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect = || TcpStream::connect(to).expect("it listens");
    let mut remote = network.remote.run(connect).expect("enter");
    let mut mobile = listener.accept().expect("it comes").0;
    mobile.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut message = [7; 100];
    remote.write_all(&message).expect("it is open");
    again(|| mobile.read_exact(&mut message)).expect("it comes");
    pause(Duration::from_secs(5));
    network.cut();
    pause(Duration::from_millis(500));
    remote.write_all(&message).expect("it is open");
    // Long after one repetition and long before the next.
    pause(Duration::from_millis(4_200));
    network.mend();
    let back = clock::now();
    again(|| mobile.read_exact(&mut message)).expect("it comes");
    clock::now().since(back)
}

#[test]
fn what_was_sent_over_a_connection_that_had_been_idle_comes_at_once() {
    let mut tried = Vec::new();
    // Where other tests keep the processors busy a run may be late for their sake.
    for _ in 0..3 {
        let (Some(helped), Some(alone)) = (Network::new(true), Network::new(true)) else {
            return;
        };
        let places = [Place::new(), Place::new()];
        places[1].file("host.toml", "[host]\nprobes_silent_peers = false\n");
        let agents = [
            Agent::start(&places[0], &helped.mobile, &[]),
            Agent::start(&places[1], &helped.remote, &["--config", "host.toml"]),
        ];
        let [with, without] = thread::scope(|scope| {
            let both = [&helped, &alone].map(|network| scope.spawn(|| hears_after_idling(network)));
            both.map(|heard| heard.join().expect("it is measured"))
        });
        drop(agents);
        if with <= AT_ONCE * 2 && without > AT_ONCE * 8 {
            return;
        }
        tried.push([with, without]);
    }
    panic!("with agents and without: {tried:?}");
}

const CONNECTIONS: usize = 100;
const PER_SECOND: u64 = 40;
const BURST: u64 = 5;

/// The mobile host asks for far more than the remote one's agent grants.
#[test]
fn a_flood_of_requests_stays_within_the_rate_and_harms_no_connection() {
    let Some(network) = Network::new(true) else {
        return;
    };
    let place = Place::new();
    let table = format!("[host]\nper_second = {PER_SECOND}\nburst = {BURST}\n");
    place.file("host.toml", &table);
    let agent = Agent::start(&place, &network.remote, &["--config", "host.toml"]);
    let listen = || TcpListener::bind((MOBILE, 0)).expect("a port");
    let listener = network.mobile.run(listen).expect("enter");
    let to = listener.local_addr().expect("bound");
    let connect_all = || [(); CONNECTIONS].map(|()| TcpStream::connect(to).expect("it listens"));
    let mut senders = network.remote.run(connect_all).expect("enter");
    let mut receivers = [(); CONNECTIONS].map(|()| listener.accept().expect("it comes").0);
    network.cut();
    for sender in &mut senders {
        sender.write_all(&[7; 512]).expect("it is open");
    }
    // All have had timeouts.
    pause(Duration::from_millis(1_500));
    let began = clock::now();
    let sent = network
        .remote
        .run(|| flood(Duration::from_secs(2)))
        .expect("enter");
    let time = clock::now() - began;
    let status = status(&place);
    let allowed = BURST + PER_SECOND * (time.as_millis() as u64 + 500) / 1_000;
    let [heard, granted] = ["heard", "granted"].map(|name| {
        status["immediate_retransmission"][name]
            .as_u64()
            .expect("a count")
    });
    let retransmissions = status["counters"]["retransmissions"].as_u64();
    let retransmissions = retransmissions.expect("a count");
    assert!(sent > 2_000, "{sent} in {time:?}");
    assert!(heard > sent / 2, "{heard} of {sent}: {status:#}");
    assert!(granted < heard / 2, "{status:#}");
    assert!(
        (1..=allowed).contains(&retransmissions),
        "more than {allowed} in {time:?}: {status:#}"
    );
    network.mend();
    for receiver in &mut receivers {
        receiver.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut all = [0; 512];
        receiver.read_exact(&mut all).expect("nothing was harmed");
    }
    drop(agent);
}

/// Asks for a retransmission of every connection in the mobile host's name, over and over; how often.
fn flood(time: Duration) -> u64 {
    let mut stack = TcpStack::open(0).expect("the agent runs, too");
    let sender = RawSender::open(0, None).expect("the agent runs, too");
    let mut connections = Vec::new();
    stack
        .connections(&mut connections)
        .expect("it can be listed");
    let remote: IpAddr = REMOTE.parse().expect("literal");
    connections.retain(|one| one.id.local.ip() == remote);
    let end = clock::now() + time;
    let mut sent = 0;
    while clock::now() < end {
        for one in &connections {
            let (source, destination) = (one.id.remote, one.id.local);
            let ip = IpHeader {
                source: source.ip(),
                destination: destination.ip(),
                hop_limit: 64,
                traffic_class: 0,
                identification: 0,
            };
            let data = EXPERIMENT.as_slice().try_into().expect("four bytes");
            let options = TcpOptions {
                experimental: Some(Experimental { kind: 253, data }),
                ..TcpOptions::default()
            };
            let header = TcpHeader {
                source_port: source.port(),
                destination_port: destination.port(),
                seq: one.rcv_nxt,
                ack: one.snd_una,
                flags: TcpFlags::ACK,
                window: 1_000,
                options,
                ..TcpHeader::default()
            };
            let segment = Packet::tcp_segment(ip, header, &[]);
            let accepted = sender.send(destination.ip(), &segment.to_bytes());
            sent += u64::from(accepted.is_ok());
        }
    }
    sent
}

/// Nobody asks an agent that was told not to.
#[test]
fn a_host_that_is_told_not_to_neither_asks_nor_hears() {
    let Some(network) = Network::new(true) else {
        return;
    };
    let place = Place::new();
    place.file("host.toml", "[host]\nimmediate_retransmission = false\n");
    let _agent = Agent::start(&place, &network.mobile, &["--config", "host.toml"]);
    let status = status(&place);
    assert!(status["immediate_retransmission"].is_null(), "{status:#}");
}
