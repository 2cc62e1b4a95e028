//! The kernel's programs and `host` adopt the same user timeouts.
//!
//! Where this machine does not take the programs, a test says so and ends.

use aya::programs::ProgramError;
use outlast_base::time::Duration;
use outlast_host::control::ConnectionId;
use outlast_host::user_timeout::{Adopted, AdoptionLimits, UserTimeoutOption};
use outlast_linux::namespace::Namespace;
use outlast_linux::user_timeout::{UserTimeoutConfig, UserTimeoutError, UserTimeouts};
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

/// Peers of a test, none of which shares a counter with another where secrets are those of trials.
const PEERS: [&str; 9] = [
    "192.0.2.1",
    "192.0.2.2",
    "192.0.2.3",
    "192.0.2.4",
    "2001:db8:1::1",
    // Of the same network.
    "2001:db8:1::2",
    "2001:db8:2::1",
    "2001:db8:3::1",
    "2001:db8:4::1",
];

/// What happens to one of several connections.
#[derive(Clone, Copy, Debug)]
struct Request {
    connection: usize,
    remote_s: u64,
    rto_ms: u64,
}

fn request() -> impl Strategy<Value = Request> {
    let remote = prop_oneof![
        1..200_u64,
        1..32_768_u64,
        (1..32_768_u64).prop_map(|n| n * 60)
    ];
    let rto = prop_oneof![200..1_000_u64, 1..120_000_u64];
    (0..24_usize, remote, rto).prop_map(|(connection, remote_s, rto_ms)| Request {
        connection,
        remote_s,
        rto_ms,
    })
}

fn option() -> impl Strategy<Value = UserTimeoutOption> {
    let seconds = || {
        prop_oneof![3 => 1..60_u64, 1 => 1..600_u64, 1 => 1..2_000_000_u64]
            .prop_map(Duration::from_secs)
    };
    (seconds(), seconds(), seconds()).prop_map(|(advertise, one, other)| UserTimeoutOption {
        advertise,
        at_least: one.min(other),
        at_most: one.max(other),
    })
}

/// The connection of that number: three of each peer's, roughly.
fn connection(number: usize) -> ConnectionId {
    let peer: IpAddr = PEERS[number % PEERS.len()].parse().expect("literal");
    let local: IpAddr = match peer {
        IpAddr::V4(_) => "198.51.100.7".parse().expect("literal"),
        IpAddr::V6(_) => "2001:db8::7".parse().expect("literal"),
    };
    let port = 40_000 + u16::try_from(number).expect("a few");
    ConnectionId {
        local: SocketAddr::new(local, port),
        remote: SocketAddr::new(peer, 443),
    }
}

fn programs(option: UserTimeoutOption, limits: AdoptionLimits) -> Option<UserTimeouts> {
    let config = UserTimeoutConfig {
        option,
        limits,
        is_one_sided: true,
        cgroups: Vec::new(),
        in_outage: None,
        rules: Vec::new(),
    };
    let loaded = UserTimeouts::load_for_trial(&config);
    loaded.map_err(skip_or_panic).ok()
}

/// Says what this machine lacks; that the kernel found the programs wanting is no lack of its.
fn skip_or_panic(error: UserTimeoutError) {
    let is_refusal = matches!(&error, UserTimeoutError::Program(ProgramError::LoadError { io_error, .. })
        if io_error.raw_os_error() != Some(libc::EPERM));
    assert!(!is_refusal, "{error:?}");
    outlast_skip::skip(error);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_kernel_adopts_what_the_host_adopts(
        option in option(),
        per_peer in 1..4_usize,
        in_all in 1..12_usize,
        requests in prop::collection::vec(request(), 1..80),
    ) {
        let limits = AdoptionLimits { per_peer, in_all };
        let Some(programs) = programs(option, limits) else { return Ok(()) };
        let mut adopted = Adopted::new(limits);
        let mut kept = [false; 24];
        for request in requests {
            let id = connection(request.connection);
            let remote = Duration::from_secs(request.remote_s);
            let rto = Duration::from_millis(request.rto_ms);
            let refused = adopted.refused();
            let wanted = adopted.adopt(id, &option, Some(remote), rto, true);
            let is_refused = adopted.refused() > refused;
            let is_kept = &mut kept[request.connection];
            let answer = programs.ask(id.remote.ip(), remote, rto, *is_kept);
            let answer = answer.expect("it runs");
            *is_kept = answer.is_kept;
            prop_assert_eq!(Some(answer.timeout), wanted, "{:?}", request);
            prop_assert_eq!(answer.is_refused, is_refused, "{:?}", request);
            let count = kept.iter().filter(|is_kept| **is_kept).count();
            prop_assert_eq!(count, adopted.len(), "{:?}", request);
        }
    }
}

#[test]
fn the_kernel_takes_the_programs_and_goes_through_the_sockets() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return outlast_skip::skip(error),
    };
    let config = UserTimeoutConfig {
        option: UserTimeoutOption::default(),
        limits: AdoptionLimits::default(),
        is_one_sided: true,
        cgroups: Vec::new(),
        in_outage: None,
        rules: Vec::new(),
    };
    let attached = || {
        let mut timeouts = UserTimeouts::attach(&config)?;
        let taken = timeouts.take_over()?;
        timeouts.give_back()?;
        Ok(taken)
    };
    match namespace.run(attached).expect("enter") {
        // There are no sockets yet.
        Ok(taken) => assert_eq!(taken, (0, 0)),
        Err(error) => skip_or_panic(error),
    }
}
