//! Sockets that take packets from the path.

use super::{ProbeResult, available, missing};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;

/// The Host Identity Protocol (RFC 7401, section 10).
const HIP: i32 = 139;

/// `AF_XDP` of `linux/socket.h`.
const AF_XDP: libc::c_int = 44;

const AS_ROOT: &str = "run as root (CAP_NET_RAW)";

pub(super) fn packet() -> ProbeResult {
    match Socket::new(Domain::PACKET, Type::RAW, None) {
        Ok(_) => available("opened one"),
        Err(error) => missing(
            format!("cannot open one: {error}"),
            remedy(&error, "PACKET"),
        ),
    }
}

/// Raw sockets of both families, as HIP needs them.
pub(super) fn raw() -> ProbeResult {
    for (option, domain) in [("INET", Domain::IPV4), ("IPV6", Domain::IPV6)] {
        if let Err(error) = Socket::new(domain, Type::RAW, Some(Protocol::from(HIP))) {
            let what = format!("cannot open one for {option}: {error}");
            return missing(what, remedy(&error, option));
        }
    }
    available("opened one of each family")
}

pub(super) fn xdp() -> ProbeResult {
    match Socket::new(Domain::from(AF_XDP), Type::RAW, None) {
        Ok(_) => available("opened a socket"),
        Err(error) => missing(
            format!("cannot open a socket: {error}"),
            remedy(&error, "XDP_SOCKETS"),
        ),
    }
}

pub(super) fn transparent() -> ProbeResult {
    let attempt = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_ip_transparent_v4(true)
    };
    match attempt() {
        Ok(()) => available("a socket may answer for foreign addresses"),
        Err(error) => missing(
            format!("a socket may not answer for foreign addresses: {error}"),
            "run as root (CAP_NET_ADMIN)",
        ),
    }
}

fn remedy(error: &io::Error, option: &str) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => AS_ROOT.into(),
        _ => format!("a kernel built with CONFIG_{option}=y"),
    }
}
