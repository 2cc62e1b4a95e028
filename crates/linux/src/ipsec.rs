//! Policies of IPsec that the kernel would not apply to packets of this process's raw sockets.
//!
//! A policy may be for packets with a mark, which a firewall gives to those of others and not to those of this process;
//! and where [`OwnRoutes`] cannot be had, the kernel knows nothing of a packet but its destination. Such packets
//! are not to be sent: they would leave in clear text.

mod policy;

use crate::clock;
use crate::netfilter::rules::OwnRoutes;
use crate::netlink::RouteSocket;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoVti, LinkAttribute, LinkInfo, LinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_XFRM};
use outlast_base::time::{Duration, Instant};
use policy::{Addresses, Mark, Policy};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::io;
use std::net::IpAddr;

/// `XFRM_MSG_GETPOLICY` of `linux/xfrm.h`, and the group in which the kernel tells of changes.
const GET_POLICY: u16 = 0x15;
const POLICY_GROUP: u32 = 1 << (4 - 1);
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Age up to which the list of virtual tunnel interfaces is good, and policies for what is not sent yet.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The policies of the network namespace that it was opened in, for packets with one mark.
#[derive(Debug)]
pub(crate) struct Escapes {
    /// `None` where the kernel has no IPsec.
    kernel: Option<Kernel>,
    mark: u32,
    /// Has the kernel apply policies by all that packets' headers say; `None` where it cannot.
    routes: Option<OwnRoutes>,
    /// Policies that the kernel would not apply.
    policies: Vec<Policy>,
    is_current: bool,
    /// The time of the last question whether policies have changed.
    asked_at: Option<Instant>,
    links: RouteSocket,
    /// Marks that virtual tunnel interfaces alone look policies up with, and when they were listed.
    tunnels: Option<(Instant, Vec<u32>)>,
}

impl Escapes {
    /// Begins to watch the policies, for packets that bear `mark`; without one no packet escapes.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when the process is out of descriptors.
    pub(crate) fn watch(mark: u32) -> io::Result<Self> {
        let routes = OwnRoutes::install(mark).ok();
        let kernel = match Kernel::open() {
            Ok(kernel) => Some(kernel),
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => None,
            Err(error) => return Err(error),
        };
        Ok(Self {
            kernel,
            mark,
            routes,
            policies: Vec::new(),
            is_current: false,
            asked_at: None,
            links: RouteSocket::open().map_err(io::Error::other)?,
            tunnels: None,
        })
    }

    /// True if a policy is, or may be, meant for `packet` that the kernel would not apply.
    ///
    /// # Errors
    /// An error if the kernel does not tell its policies.
    pub(crate) fn has(&mut self, packet: &[u8]) -> io::Result<bool> {
        self.refresh()?;
        if self.policies.is_empty() {
            return Ok(false);
        }
        match Addresses::of(packet) {
            Some(addresses) => self.cover(&addresses),
            None => Ok(false),
        }
    }

    /// True if [`Self::has`] may be of a packet with these addresses, as it was up to a second ago.
    ///
    /// # Errors
    /// An error if the kernel does not tell its policies.
    pub(crate) fn may_have(
        &mut self,
        now: Instant,
        source: IpAddr,
        destination: IpAddr,
    ) -> io::Result<bool> {
        if self.asked_at.is_none_or(|at| now.since(at) >= GOOD_FOR) {
            self.asked_at = Some(now);
            self.refresh()?;
        }
        self.cover(&Addresses::between(source, destination))
    }

    /// Reads the policies, if they are others.
    fn refresh(&mut self) -> io::Result<()> {
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        self.is_current &= !kernel.has_changed()?;
        if !self.is_current {
            let are_routed = self.routes.is_some();
            let is_missed = |policy: &Policy| {
                policy.is_for_forwarded() && !(are_routed && policy.mark.has(self.mark))
            };
            self.policies = kernel.policies()?;
            self.policies.retain(is_missed);
            self.is_current = true;
        }
        Ok(())
    }

    fn cover(&mut self, addresses: &Addresses) -> io::Result<bool> {
        let missed = self.policies.iter().filter(|one| one.covers(addresses));
        let marks: Vec<Mark> = missed.map(|policy| policy.mark).collect();
        if marks.iter().all(Mark::is_none) {
            return Ok(!marks.is_empty());
        }
        let tunnels = self.tunnels()?;
        let is_of_tunnel = |mark: &Mark| !mark.is_none() && tunnels.contains(&mark.value);
        Ok(!marks.iter().all(is_of_tunnel))
    }

    fn tunnels(&mut self) -> io::Result<&[u32]> {
        let now = clock::now();
        let is_good = |(at, _): &(Instant, _)| now.since(*at) < GOOD_FOR;
        if !self.tunnels.as_ref().is_some_and(is_good) {
            let ask = RouteNetlinkMessage::GetLink(LinkMessage::default());
            let links = self.links.dump(ask).map_err(io::Error::other)?;
            self.tunnels = Some((now, links.iter().filter_map(mark_of_tunnel).collect()));
        }
        Ok(self.tunnels.as_ref().map_or(&[], |(_, marks)| marks))
    }
}

/// Conversations with the kernel about the policies of a namespace.
#[derive(Debug)]
struct Kernel {
    /// Tells of changes.
    changes: Socket,
    /// Lists the policies.
    list: Socket,
    sequence: u32,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        let open = |groups| {
            let mut socket = Socket::new(NETLINK_XFRM)?;
            socket.bind(&SocketAddr::new(0, groups))?;
            Ok::<_, io::Error>(socket)
        };
        Ok(Self {
            changes: open(POLICY_GROUP)?,
            list: open(0)?,
            sequence: 0,
        })
    }

    /// True if policies have changed since this was asked before.
    fn has_changed(&self) -> io::Result<bool> {
        let mut has = false;
        loop {
            let received = rustix::net::recv(&self.changes, &mut [0; 1], RecvFlags::DONTWAIT);
            match received {
                // There was no room for all that it told.
                Ok(_) | Err(Errno::NOBUFS) => has = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(has),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// All policies.
    fn policies(&mut self) -> io::Result<Vec<Policy>> {
        /// A family of addresses follows the header: none, which stands for all.
        const REQUEST: u32 = HEADER as u32 + 4;
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = Vec::new();
        request.extend(REQUEST.to_ne_bytes());
        request.extend(GET_POLICY.to_ne_bytes());
        request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend([0; 8]);
        self.list.send(&request, 0)?;
        let mut policies = Vec::new();
        loop {
            let (datagram, _) = self.list.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while let Some(message) = Message::first(&mut rest) {
                // Others are left from a list that was broken off.
                match message.kind {
                    _ if message.sequence != self.sequence => {}
                    DONE => return Ok(policies),
                    ERROR => return Err(refusal(message.body)),
                    _ => policies.extend(Policy::read(message.body)),
                }
            }
        }
    }
}

/// A message from the kernel.
struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes the first of several messages.
    fn first(rest: &mut &'a [u8]) -> Option<Self> {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let bytes = rest.get(..length)?;
        let message = Self {
            kind: u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?),
            sequence: u32::from_ne_bytes(*bytes.get(8..)?.first_chunk()?),
            body: bytes.get(HEADER..)?,
        };
        *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

fn refusal(body: &[u8]) -> io::Error {
    match body.first_chunk() {
        Some(number) => io::Error::from_raw_os_error(-i32::from_ne_bytes(*number)),
        None => io::ErrorKind::InvalidData.into(),
    }
}

/// The mark with which a virtual tunnel interface looks up the policies of what it carries.
fn mark_of_tunnel(link: &RouteNetlinkMessage) -> Option<u32> {
    let RouteNetlinkMessage::NewLink(link) = link else {
        return None;
    };
    let about = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(about) => Some(about),
            _ => None,
        })?;
    about.iter().find_map(|one| match one {
        LinkInfo::Data(InfoData::Vti(data)) => data.iter().find_map(|value| match value {
            InfoVti::OKey(key) => Some(*key),
            _ => None,
        }),
        _ => None,
    })
}
