//! QUIC as quinn has it: a connection over which one end sends without end, and the other one reads in order.

use super::arrivals::Arrival;
use super::epoch::Epoch;
use super::losses::Losses;
use super::machine::Machine;
use super::payload::{byte_at, is_right};
use bytes::BytesMut;
use outlast_base::time::Instant;
use quinn_proto::congestion::BbrConfig;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

/// The configuration of the end of this number; what it draws at random comes from `seed`, if there is one.
fn endpoint_config(seed: Option<u64>, number: u64) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.rng_seed(seed.map(|seed| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes
    }));
    config
}

/// The name in the certificate.
const NAME: &str = "fixed.example";
/// Bytes handed to the connection at once.
const PIECE: usize = 16 << 10;

/// Server and client of one connection; the client is told by whom it is answered.
#[derive(Debug)]
pub struct Pair {
    /// Answers.
    pub server: Peer,
    /// Asks.
    pub client: Peer,
}

/// One end of the connection.
pub struct Peer {
    epoch: Epoch,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    sends: bool,
    stream: Option<StreamId>,
    /// Bytes handed to the connection, or read from it.
    offset: u64,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    /// What the application has read.
    pub arrivals: Vec<Arrival>,
    /// Why the connection ended, if it did.
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

impl Pair {
    /// A client that connects to the server at `server_at`, at `now`; `server_sends` says which of both does. Both have
    /// quinn's own congestion control, CUBIC.
    ///
    /// # Errors
    /// When keys cannot be had.
    pub fn new(
        now: Instant,
        server_at: SocketAddr,
        server_sends: bool,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let transport = Arc::new(TransportConfig::default());
        Self::with_transport(now, server_at, server_sends, &transport, None)
    }

    /// As [`Self::new`], with all that quinn itself draws at random from `seed`, such as the packet numbers that it
    /// leaves out. Keys stay random.
    ///
    /// # Errors
    /// When keys cannot be had.
    pub fn seeded(
        now: Instant,
        server_at: SocketAddr,
        server_sends: bool,
        seed: u64,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let transport = Arc::new(TransportConfig::default());
        Self::with_transport(now, server_at, server_sends, &transport, Some(seed))
    }

    /// As [`Self::new`], with BBR.
    ///
    /// # Errors
    /// When keys cannot be had.
    pub fn with_bbr(
        now: Instant,
        server_at: SocketAddr,
        server_sends: bool,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
        Self::with_transport(now, server_at, server_sends, &Arc::new(transport), None)
    }

    fn with_transport(
        now: Instant,
        server_at: SocketAddr,
        server_sends: bool,
        transport: &Arc<TransportConfig>,
        seed: Option<u64>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let endpoint = |number| Arc::new(endpoint_config(seed, number));
        let epoch = Epoch::new(now);
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let server = Peer::server(
            epoch,
            certificate.clone(),
            key,
            server_sends,
            Arc::clone(transport),
            endpoint(0),
        )?;
        let client = Peer::client(
            epoch,
            certificate,
            server_at,
            !server_sends,
            Arc::clone(transport),
            endpoint(1),
        )?;
        Ok(Self { server, client })
    }
}

impl Peer {
    fn server(
        epoch: Epoch,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
        sends: bool,
        transport: Arc<TransportConfig>,
        endpoint: Arc<EndpointConfig>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let crypto = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let crypto = Arc::new(QuicServerConfig::try_from(crypto)?);
        let mut config = ServerConfig::with_crypto(crypto);
        config.transport_config(transport);
        let config = Some(Arc::new(config));
        let endpoint = Endpoint::new(endpoint, config, true, None);
        Ok(Self::new(epoch, endpoint, sends))
    }

    fn client(
        epoch: Epoch,
        certificate: CertificateDer<'static>,
        server: SocketAddr,
        sends: bool,
        transport: Arc<TransportConfig>,
        endpoint: Arc<EndpointConfig>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let crypto = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto)?));
        config.transport_config(transport);
        let mut endpoint = Endpoint::new(endpoint, None, true, None);
        let connection = endpoint.connect(epoch.begin(), config, server, NAME)?;
        let mut client = Self::new(epoch, endpoint, sends);
        client.connection = Some(connection);
        Ok(client)
    }

    fn new(epoch: Epoch, endpoint: Endpoint, sends: bool) -> Self {
        Self {
            epoch,
            endpoint,
            connection: None,
            sends,
            stream: None,
            offset: 0,
            outbox: VecDeque::new(),
            arrivals: Vec::new(),
            ended: None,
            is_intact: true,
        }
    }

    /// What the connection has taken for lost so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let stats = self.connection.as_ref().map(|(_, it)| it.stats());
        stats.map_or(Losses::default(), |stats| Losses {
            packets: stats.path.lost_packets,
            window: Some(stats.path.cwnd),
        })
    }

    fn queue(&mut self, transmit: &Transmit, bytes: &[u8]) {
        let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let datagrams = bytes[..transmit.size].chunks(size);
        let datagrams = datagrams.map(|datagram| (transmit.destination, datagram.to_vec()));
        self.outbox.extend(datagrams);
    }

    /// Takes what the connection has to say, until it has nothing more.
    fn settle(&mut self, now: Instant) {
        loop {
            let Some((handle, connection)) = &mut self.connection else {
                return;
            };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            let Some(event) = connection.poll() else {
                break;
            };
            match event {
                Event::Connected if self.sends => {
                    self.stream = connection.streams().open(Dir::Uni);
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.stream = connection.streams().accept(Dir::Uni);
                }
                Event::ConnectionLost { reason } => self.ended = Some(reason.to_string()),
                _ => {}
            }
        }
        if self.sends {
            self.write();
        } else {
            self.read(now);
        }
    }

    fn write(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        loop {
            let piece: Vec<u8> = (self.offset..).take(PIECE).map(byte_at).collect();
            match stream.write(&piece) {
                Ok(written) => self.offset += written as u64,
                // Blocked until something is acknowledged, or ended, of which there is an event.
                Err(_) => return,
            }
        }
    }

    fn read(&mut self, now: Instant) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.recv_stream(stream);
        // Read to the end already, or ended, of which there is an event.
        let Ok(mut chunks) = stream.read(true) else {
            return;
        };
        let before = self.offset;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            self.is_intact &= chunk.offset == self.offset && is_right(chunk.offset, &chunk.bytes);
            self.offset += chunk.bytes.len() as u64;
        }
        // Whether there is something to be sent shows when it is asked for.
        let _should_transmit = chunks.finalize();
        if self.offset > before {
            self.arrivals.push(Arrival {
                at: now,
                sent: None,
                number: None,
                bytes: self.offset - before,
            });
        }
    }
}

impl Machine for Peer {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let (at, mut answer) = (self.epoch.at(now), Vec::new());
        let datagram = BytesMut::from(datagram);
        match self
            .endpoint
            .handle(at, from, None, None, datagram, &mut answer)
        {
            None => {}
            Some(DatagramEvent::Response(transmit)) => self.queue(&transmit, &answer),
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, at, &mut answer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(refused) => {
                        self.ended = Some(refused.cause.to_string());
                        if let Some(transmit) = refused.response {
                            self.queue(&transmit, &answer);
                        }
                    }
                }
            }
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let at = self.epoch.at(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if self.outbox.is_empty() {
            let at = self.epoch.at(now);
            let mut bytes = Vec::new();
            let (_, connection) = self.connection.as_mut()?;
            let transmit = connection.poll_transmit(at, 1, &mut bytes)?;
            self.queue(&transmit, &bytes);
        }
        self.outbox.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(|at| self.epoch.back(at))
    }
}
