//! NFQUEUE: netfilter hands packets to a process and waits for its verdict.

use super::{ProbeResult, available, missing};
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NLMSG_ERROR};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;

/// `NFNL_SUBSYS_QUEUE` and `NFQNL_MSG_CONFIG` of `linux/netfilter/nfnetlink.h` and
/// `nfnetlink_queue.h`.
const CONFIGURE_QUEUE: u16 = 3 << 8 | 2;
/// The attribute that holds a command, and the command that takes a queue.
const NFQA_CFG_CMD: u16 = 1;
const NFQNL_CFG_CMD_BIND: u8 = 1;

pub(super) fn queue() -> ProbeResult {
    match bind_queue_zero() {
        Ok(()) => available("took queue 0"),
        Err(error) => {
            let remedy = match error.raw_os_error() {
                Some(libc::EPERM) => "run as root (CAP_NET_ADMIN)",
                _ => {
                    "a kernel built with CONFIG_NETFILTER_NETLINK_QUEUE, or \
                      `sudo modprobe nfnetlink_queue`"
                }
            };
            missing(format!("cannot take a queue: {error}"), remedy)
        }
    }
}

/// Takes queue 0 of the calling thread's namespace; closing the socket gives it back.
fn bind_queue_zero() -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&bind_request(), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    // struct nlmsghdr, then the error number of struct nlmsgerr.
    let kind = answer
        .get(4..6)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u16::from_ne_bytes);
    let error = answer
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(errno)) => Err(io::Error::from_raw_os_error(-errno)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "an answer that is no acknowledgement",
        )),
    }
}

/// `nlmsghdr`, `nfgenmsg`, and one attribute with `nfqnl_msg_config_cmd`.
fn bind_request() -> Vec<u8> {
    const LENGTH: u32 = 16 + 4 + 8;
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(CONFIGURE_QUEUE.to_ne_bytes());
    message.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend(1_u32.to_ne_bytes()); // sequence number
    message.extend(0_u32.to_ne_bytes()); // port: the kernel fills it in
    message.extend([0, 0, 0, 0]); // any family, version 0, queue 0
    message.extend(8_u16.to_ne_bytes()); // length of the attribute
    message.extend(NFQA_CFG_CMD.to_ne_bytes());
    message.extend([NFQNL_CFG_CMD_BIND, 0, 0, 0]);
    message
}
