//! SCTP in UDP (RFC 6951), as sctp-proto has it: an association over which one end sends messages without end.
//!
//! Messages go over one stream, in order, each of them in one chunk. The payload is that of all of them in a row.

use super::arrivals::Arrival;
use super::epoch::Epoch;
use super::machine::Machine;
use super::payload::{byte_at, is_right};
use bytes::Bytes;
use outlast_base::time::Instant;
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, ConnectError, DatagramEvent, Endpoint,
    EndpointConfig, Event, Payload, PayloadProtocolIdentifier, ServerConfig, StreamEvent, StreamId,
    Transmit,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where SCTP is in UDP (RFC 6951, section 4.1).
pub const PORT: u16 = 9_899;
/// The stream that carries the messages.
const STREAM: StreamId = 0;
/// Bytes of a message.
const MESSAGE: usize = 1_000;
/// Bytes that may wait to be sent or acknowledged.
const BUFFER: usize = 256 << 10;

/// One end of the association.
pub struct Peer {
    epoch: Epoch,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    sends: bool,
    is_open: bool,
    /// Bytes handed to the association, or read from it.
    offset: u64,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    /// What the application has read.
    pub arrivals: Vec<Arrival>,
    /// Why the association ended, if it did.
    pub ended: Option<String>,
    /// Whether every byte was the one that was sent at its place.
    pub is_intact: bool,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer")
            .field("sends", &self.sends)
            .field("offset", &self.offset)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Peer {
    /// The end that is asked, and sends.
    #[must_use]
    pub fn server(now: Instant) -> Self {
        let config = Some(Arc::new(ServerConfig::default()));
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), config);
        Self::new(now, endpoint, true)
    }

    /// The end that asks `server`, and reads.
    ///
    /// # Errors
    /// When no association can be made to that address.
    pub fn client(now: Instant, server: SocketAddr) -> Result<Self, ConnectError> {
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None);
        let association = endpoint.connect(ClientConfig::default(), server)?;
        let mut client = Self::new(now, endpoint, false);
        client.association = Some(association);
        Ok(client)
    }

    fn new(now: Instant, endpoint: Endpoint, sends: bool) -> Self {
        Self {
            epoch: Epoch::new(now),
            endpoint,
            association: None,
            sends,
            is_open: false,
            offset: 0,
            outbox: VecDeque::new(),
            arrivals: Vec::new(),
            ended: None,
            is_intact: true,
        }
    }

    /// Takes what the association has to say, until it has nothing more.
    fn settle(&mut self, now: Instant) {
        let Some((handle, association)) = &mut self.association else {
            return;
        };
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(answer);
            }
        }
        while let Some(event) = association.poll() {
            match event {
                Event::Connected if self.sends => {
                    let binary = PayloadProtocolIdentifier::Binary;
                    match association.open_stream(STREAM, binary) {
                        Ok(_) => self.is_open = true,
                        Err(error) => self.ended = Some(error.to_string()),
                    }
                }
                Event::Stream(StreamEvent::Opened { id: STREAM }) => self.is_open = true,
                Event::HandshakeFailed { reason } | Event::AssociationLost { reason } => {
                    self.ended = Some(reason.to_string());
                }
                _ => {}
            }
        }
        let handled = match (self.is_open, self.sends) {
            (false, _) => Ok(()),
            (true, true) => self.write(),
            (true, false) => self.read(now),
        };
        if let Err(error) = handled {
            self.ended.get_or_insert(error.to_string());
        }
    }

    fn write(&mut self) -> Result<(), sctp_proto::Error> {
        let Some((_, association)) = &mut self.association else {
            return Ok(());
        };
        let mut stream = association.stream(STREAM)?;
        while stream.buffered_amount()? < BUFFER {
            let message: Vec<u8> = (self.offset..).take(MESSAGE).map(byte_at).collect();
            self.offset += stream.write(&message)? as u64;
        }
        Ok(())
    }

    fn read(&mut self, now: Instant) -> Result<(), sctp_proto::Error> {
        let Some((_, association)) = &mut self.association else {
            return Ok(());
        };
        let mut stream = association.stream(STREAM)?;
        let before = self.offset;
        while let Some(message) = stream.read()? {
            let mut bytes = vec![0; message.len()];
            message.read(&mut bytes)?;
            self.is_intact &= is_right(self.offset, &bytes);
            self.offset += bytes.len() as u64;
        }
        if self.offset > before {
            self.arrivals.push(Arrival {
                at: now,
                sent: None,
                number: None,
                bytes: self.offset - before,
            });
        }
        Ok(())
    }

    fn queue(&mut self, transmit: Transmit) {
        if let Payload::RawEncode(datagrams) = transmit.payload {
            let to = transmit.remote;
            let datagrams = datagrams.into_iter().map(|bytes| (to, bytes.to_vec()));
            self.outbox.extend(datagrams);
        }
    }
}

impl Machine for Peer {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let at = self.epoch.at(now);
        let datagram = Bytes::copy_from_slice(datagram);
        match self.endpoint.handle(at, from, None, None, datagram) {
            None => {}
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association));
            }
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.epoch.at(now);
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(at);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if self.outbox.is_empty() {
            let at = self.epoch.at(now);
            while let Some(transmit) = self.endpoint.poll_transmit() {
                self.queue(transmit);
            }
            while let Some(transmit) = self
                .association
                .as_mut()
                .and_then(|(_, association)| association.poll_transmit(at))
            {
                self.queue(transmit);
            }
        }
        self.outbox.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let (_, association) = self.association.as_ref()?;
        association.poll_timeout().map(|at| self.epoch.back(at))
    }
}
