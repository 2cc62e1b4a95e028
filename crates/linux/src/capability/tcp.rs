//! What the kernel's TCP can be set to.

use super::{ProbeResult, available, describe, missing};
use crate::socket::set_congestion_control;
use crate::sysctl::{self, SysctlError};
use socket2::{Domain, Socket, Type};

pub(super) fn congestion_control(name: &str) -> ProbeResult {
    let remedy = || format!("`sudo modprobe tcp_{name}`, or a kernel built with it");
    let socket = match Socket::new(Domain::IPV4, Type::STREAM, None) {
        Ok(socket) => socket,
        Err(error) => return missing(format!("no TCP socket: {error}"), remedy()),
    };
    match set_congestion_control(&socket, name) {
        Ok(()) => available("a socket took it"),
        Err(error) => missing(describe(&error), remedy()),
    }
}

pub(super) fn rto_max() -> ProbeResult {
    match sysctl::read("net.ipv4.tcp_rto_max_ms") {
        Ok(millis) => available(format!("{millis} ms")),
        Err(error @ SysctlError::NotFound { .. }) => missing(describe(&error), "Linux 6.15"),
        Err(error) => missing(describe(&error), "access to /proc/sys"),
    }
}
