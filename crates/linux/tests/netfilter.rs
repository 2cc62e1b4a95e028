//! Packets of an interface are handed to a queue, and pass when nobody is there.

mod loopback;

use outlast_linux::namespace::Namespace;
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::queue::{Hook, Queue, Ruling};
use outlast_linux::netfilter::rules::{AddressRange, Claim, RuleSet, Rules, Scope};
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_skip::skip;
use rustix::fd::AsFd;
use socket2::{Domain, Socket, Type};
use std::net::{SocketAddr, UdpSocket};

const RULES: RuleSet<'static> = RuleSet {
    table: "outlast-test",
    interface: "lo",
    queue: 7,
    mark: 77,
    scope: Scope::Everything,
};

/// Runs `test` in a namespace with a loopback device that is up.
fn inside(test: impl FnOnce() + Send) {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return skip(error),
    };
    let run = || {
        loopback::switch_on();
        test();
    };
    namespace.run(run).expect("enter");
}

fn sockets() -> (UdpSocket, UdpSocket) {
    let (one, two) = (
        UdpSocket::bind("127.0.0.1:0").expect("bind"),
        UdpSocket::bind("127.0.0.1:0").expect("bind"),
    );
    one.connect(two.local_addr().expect("bound"))
        .expect("connect");
    (one, two)
}

/// Gives the next packet its verdict; where it was taken, and its length.
fn rule(queue: &mut Queue, poller: &mut Poller, ruling: Ruling) -> (Hook, usize) {
    loop {
        if let Some(queued) = queue.receive().expect("receive") {
            let (id, seen) = (queued.id, (queued.hook, queued.bytes.len()));
            queue.give(id, ruling).expect("send");
            return seen;
        }
        assert_eq!(poller.wait().expect("wait").count(), 1);
    }
}

#[test]
fn packets_wait_for_a_verdict_where_they_are_sent_and_where_they_are_received() {
    inside(|| {
        let mut queue = Queue::take(RULES.queue).expect("free");
        let rules = match Rules::install(&RULES) {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let mut poller = Poller::new().expect("epoll");
        poller
            .add(&queue, Token(0), Interest::Readable)
            .expect("add");
        let (one, two) = sockets();
        one.send(b"first").expect("send");
        assert_eq!(
            rule(&mut queue, &mut poller, Ruling::Drop),
            (Hook::Sent, 33)
        );
        one.send(b"second").expect("send");
        assert_eq!(
            rule(&mut queue, &mut poller, Ruling::Accept),
            (Hook::Sent, 34)
        );
        assert_eq!(
            rule(&mut queue, &mut poller, Ruling::Accept),
            (Hook::Received, 34)
        );
        let mut buffer = [0; 16];
        assert_eq!(two.recv(&mut buffer).expect("receive"), 6);
        drop(rules);
        one.send(b"third").expect("send");
        assert_eq!(two.recv(&mut buffer).expect("receive"), 5);
        assert!(queue.receive().expect("receive").is_none());
    });
}

#[test]
fn marked_packets_pass_and_all_do_when_nobody_has_the_queue() {
    inside(|| {
        let queue = Queue::take(RULES.queue).expect("free");
        let _rules = match Rules::install(&RULES) {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let (one, two) = sockets();
        let marked = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("socket");
        marked.set_mark(RULES.mark).expect("CAP_NET_ADMIN");
        let to: SocketAddr = two.local_addr().expect("bound");
        // The loopback device hands the mark on to the receiving side.
        marked.send_to(b"marked", &to.into()).expect("send");
        let mut buffer = [0; 16];
        assert_eq!(two.recv(&mut buffer).expect("receive"), 6);
        drop(queue);
        one.send(b"unattended").expect("send");
        assert_eq!(two.recv(&mut buffer).expect("receive"), 10);
    });
}

#[test]
fn a_queue_has_one_owner_and_a_table_too() {
    inside(|| {
        let _queue = Queue::take(RULES.queue).expect("free");
        let error = Queue::take(RULES.queue).expect_err("taken");
        assert_eq!(error.to_string(), "queue 7 is taken by another program");
        let _rules = match Rules::install(&RULES) {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let error = Rules::install(&RULES).expect_err("there already");
        let taken = "the nftables table \"outlast-test\" belongs to another program";
        assert_eq!(error.to_string(), taken);
    });
}

#[test]
fn a_claim_is_one_owners_until_it_is_dropped_and_no_packet_sees_it() {
    inside(|| {
        let claim = match Claim::stake("outlast/test") {
            Ok(claim) => claim,
            Err(error) => return skip(error),
        };
        let error = Claim::stake("outlast/test").expect_err("there already");
        assert!(
            matches!(error, NetfilterError::TableTaken { .. }),
            "{error}"
        );
        let _another = Claim::stake("outlast/another").expect("of another name");
        let (one, two) = sockets();
        one.send(b"passes").expect("send");
        let mut buffer = [0; 16];
        assert_eq!(two.recv(&mut buffer).expect("receive"), 6);
        drop(claim);
        Claim::stake("outlast/test").expect("free again");
    });
}

fn range(first: &str, last: &str) -> AddressRange {
    AddressRange {
        first: first.parse().expect("literal"),
        last: last.parse().expect("literal"),
    }
}

/// Whether a datagram to `address` is taken where it is sent.
fn is_taken(queue: &mut Queue, address: &str) -> bool {
    let to: std::net::IpAddr = address.parse().expect("literal");
    let from = UdpSocket::bind(SocketAddr::new(to, 0)).expect("bind");
    let receiver = UdpSocket::bind(SocketAddr::new(to, 0)).expect("bind");
    receiver.set_nonblocking(true).expect("a socket");
    let to = receiver.local_addr().expect("bound");
    from.send_to(b"probe", to).expect("send");
    let mut poller = Poller::new().expect("epoll");
    for (token, source) in [queue.as_fd(), receiver.as_fd()].into_iter().enumerate() {
        let token = Token(token as u64);
        poller.add(source, token, Interest::Readable).expect("add");
    }
    let mut taken = false;
    let mut buffer = [0; 16];
    loop {
        while let Some(queued) = queue.receive().expect("receive") {
            let id = queued.id;
            taken |= queued.hook == Hook::Sent;
            queue.give(id, Ruling::Accept).expect("send");
        }
        match receiver.recv(&mut buffer) {
            Ok(length) => {
                assert_eq!(length, 5);
                return taken;
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        assert!(poller.wait().expect("wait").count() > 0);
    }
}

#[test]
fn only_packets_to_and_from_some_addresses_wait_and_these_change_in_one_step() {
    inside(|| {
        let mut queue = Queue::take(RULES.queue).expect("free");
        let ranges = [
            range("127.0.0.5", "127.0.0.6"),
            range("127.0.0.9", "127.0.0.9"),
        ];
        let set = RuleSet {
            scope: Scope::Ranges(&ranges),
            ..RULES
        };
        let mut rules = match Rules::install(&set) {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let mut taken = |rules: &mut Rules, ranges: Option<&[AddressRange]>| {
            if let Some(ranges) = ranges {
                rules.replace(ranges).expect("replaced");
            }
            let places = [
                "127.0.0.4",
                "127.0.0.5",
                "127.0.0.6",
                "127.0.0.7",
                "127.0.0.9",
                "::1",
            ];
            places.map(|place| is_taken(&mut queue, place))
        };
        let none = [false; 6];
        assert_eq!(
            taken(&mut rules, None),
            [false, true, true, false, true, false]
        );
        // Ranges that overlap those before.
        let others = [range("127.0.0.6", "127.0.0.7"), range("::1", "::1")];
        assert_eq!(
            taken(&mut rules, Some(&others)),
            [false, false, true, true, false, true]
        );
        assert_eq!(taken(&mut rules, Some(&[])), none);
        assert_eq!(
            taken(&mut rules, Some(&AddressRange::EVERYTHING)),
            [true; 6]
        );
        // As many as are sent in several messages.
        let many: Vec<AddressRange> = (0..4096_u32)
            .map(|n| {
                let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + 2 * n).into();
                AddressRange {
                    first: address,
                    last: address,
                }
            })
            .collect();
        assert_eq!(taken(&mut rules, Some(&many)), none);
        drop(rules);
        let method = Rules::install(&set).expect("again").method();
        let mut rules = Rules::install_by(&set, method).expect("in the same way");
        assert_eq!(
            taken(&mut rules, None),
            [false, true, true, false, true, false]
        );
    });
}

/// What goes to 127.0.0.5 is taken where it is sent, and not where it is received.
fn taken_where_it_is_sent() -> Result<Rules, NetfilterError> {
    let ranges = [range("127.0.0.5", "127.0.0.5")];
    Rules::install(&RuleSet {
        scope: Scope::Ranges(&ranges),
        ..RULES
    })
}

/// Waits until something can be had from the queue.
fn await_packets(queue: &Queue) {
    let mut poller = Poller::new().expect("epoll");
    poller
        .add(queue, Token(0), Interest::Readable)
        .expect("add");
    assert_eq!(poller.wait().expect("wait").count(), 1);
}

#[test]
fn packets_that_come_while_the_queue_is_told_something_are_not_forgotten() {
    inside(|| {
        let queue = Queue::take(RULES.queue).expect("free");
        let _rules = match taken_where_it_is_sent() {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let from = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let to = UdpSocket::bind("127.0.0.5:0").expect("bind");
        to.set_read_timeout(Some(std::time::Duration::from_secs(30)))
            .expect("a socket");
        from.send_to(b"waits", to.local_addr().expect("bound"))
            .expect("send");
        await_packets(&queue);
        // It is in front of the kernel's answer.
        queue.take_aggregates(false).expect("configured");
        let mut buffer = [0; 16];
        assert_eq!(to.recv(&mut buffer).expect("it passes"), 5);
    });
}

#[test]
fn a_verdict_that_came_too_late_is_not_taken_for_a_refusal_of_what_is_asked_next() {
    inside(|| {
        let mut queue = Queue::take(RULES.queue).expect("free");
        let _rules = match Rules::install(&RULES) {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let (one, _two) = sockets();
        one.send(b"once").expect("send");
        await_packets(&queue);
        let id = queue.receive().expect("receive").expect("it waits").id;
        for _ in 0..2 {
            queue.give(id, Ruling::Drop).expect("send");
        }
        queue.take_aggregates(false).expect("configured");
    });
}

#[test]
fn a_queue_that_overflows_can_be_told_something() {
    /// By far more than a queue has room for, and then as many as fit into any room that is left.
    const PACKETS: [(usize, usize); 2] = [(1_500, 60_000), (1_500, 0)];
    inside(|| {
        let queue = Queue::take(RULES.queue).expect("free");
        let _rules = match taken_where_it_is_sent() {
            Ok(rules) => rules,
            Err(error) => return skip(error),
        };
        let from = UdpSocket::bind("127.0.0.1:0").expect("bind");
        // What waits counts as being sent.
        let room = rustix::net::sockopt::set_socket_send_buffer_size_force(&from, 1 << 30);
        if let Err(error) = room {
            return skip(error);
        }
        let to = UdpSocket::bind("127.0.0.5:0").expect("bind");
        let address = to.local_addr().expect("bound");
        for (packets, length) in PACKETS {
            for _ in 0..packets {
                from.send_to(&vec![7; length], address).expect("send");
            }
        }
        to.set_nonblocking(true).expect("a socket");
        to.recv(&mut [0; 8])
            .expect("those for which there was no room have passed");
        let (tell, hear) = std::sync::mpsc::channel();
        // It is left behind if it never comes back.
        std::thread::spawn(move || tell.send(queue.take_aggregates(false)));
        let patience = std::time::Duration::from_secs(30);
        let told = hear
            .recv_timeout(patience)
            .expect("an answer, at some time");
        told.expect("configured");
    });
}
