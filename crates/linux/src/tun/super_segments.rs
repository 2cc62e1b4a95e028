//! TUN devices that carry super-segments: what TCP sends in a row is one packet, to be cut by its size of
//! segments, as network cards do it (TSO).

use super::{Tun, TunError, Written};
use crate::sys::tun::{self, Carries};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io::{self, IoSlice};

/// Length of `struct virtio_net_hdr` of `linux/virtio_net.h`, which is before each packet.
const HEADER_LEN: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4` and `_TCPV6`.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// Where TCP has its checksum, in bytes from its header's start.
const CHECKSUM_AT: u16 = 16;

/// The process's end of an interface that carries super-segments. The interface is gone when it is dropped.
#[derive(Debug)]
pub struct SuperSegmentTun {
    tun: Tun,
}

/// A packet that the host has sent into the interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FromHost<'b> {
    /// From its IP header on.
    pub bytes: &'b [u8],
    /// Bytes of payload of each segment that it is to be cut into; `None` of a packet that is none.
    pub segment_size: Option<u16>,
    /// Its checksum is only that of the pseudo-header, as for a network card.
    pub lacks_checksum: bool,
}

/// What a super-segment of TCP is made of, for [`SuperSegmentTun::write_super_segment`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpLayout {
    /// Where the TCP header starts.
    pub transport_at: u16,
    /// Where the payload starts.
    pub payload_at: u16,
    /// Bytes of payload of each segment but the last.
    pub segment_size: u16,
}

impl SuperSegmentTun {
    /// Bytes that are enough for any packet that is read.
    pub const BUFFER: usize = HEADER_LEN + super::MAX_PACKET;

    /// Makes the interface `name` in the network namespace of the calling thread. It is down and has no
    /// address.
    ///
    /// # Errors
    /// As [`Tun::create`].
    pub fn create(name: &str) -> Result<Self, TunError> {
        let tun = Tun::make(name, Carries::SuperSegments)?;
        tun::take_super_segments(tun.as_fd()).map_err(|source| TunError::Create {
            name: name.into(),
            source,
        })?;
        Ok(Self { tun })
    }

    /// The next packet that the host sends into the interface, read into `buffer`; `None` if there is
    /// none at the moment.
    ///
    /// A packet that does not fit loses its end: [`Self::BUFFER`] bytes are always enough.
    ///
    /// # Errors
    /// When the interface was taken away.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<FromHost<'b>>> {
        let Some(read) = self.tun.read(buffer)? else {
            return Ok(None);
        };
        let Some((&header, bytes)) = read.split_first_chunk::<HEADER_LEN>() else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let [flags, kind, _, _, size_a, size_b, ..] = header;
        let size = u16::from_ne_bytes([size_a, size_b]);
        Ok(Some(FromHost {
            bytes,
            segment_size: (kind != 0 && size != 0).then_some(size),
            lacks_checksum: flags & NEEDS_CHECKSUM != 0,
        }))
    }

    /// Hands `packet`, with its checksums, to the host as if the interface had received it.
    ///
    /// # Errors
    /// When the packet is no IP packet, or the interface was taken away.
    pub fn write(&self, packet: &[u8]) -> io::Result<Written> {
        self.write_with([0; HEADER_LEN], packet)
    }

    /// Hands a TCP segment that is longer than a packet to the host, which believes its payload to be
    /// intact. Its checksum field has the sum of the pseudo-header.
    ///
    /// # Errors
    /// When it is none, or the interface was taken away.
    pub fn write_super_segment(&self, packet: &[u8], layout: TcpLayout) -> io::Result<Written> {
        let kind = match packet.first().map(|first| first >> 4) {
            Some(6) => TCP_V6,
            _ => TCP_V4,
        };
        let words = [
            layout.payload_at,
            layout.segment_size,
            layout.transport_at,
            CHECKSUM_AT,
        ];
        let mut header = [0; HEADER_LEN];
        header[..2].copy_from_slice(&[NEEDS_CHECKSUM, kind]);
        for (field, word) in header[2..].chunks_exact_mut(2).zip(words) {
            field.copy_from_slice(&word.to_ne_bytes());
        }
        self.write_with(header, packet)
    }

    fn write_with(&self, header: [u8; HEADER_LEN], packet: &[u8]) -> io::Result<Written> {
        let parts = [IoSlice::new(&header), IoSlice::new(packet)];
        loop {
            match rustix::io::writev(&self.tun, &parts) {
                Ok(_) => return Ok(Written::Delivered),
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(Written::NoRoom),
                Err(Errno::IO) => return Ok(Written::Down),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl AsFd for SuperSegmentTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
