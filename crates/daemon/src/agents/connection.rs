//! TCP connections to neighbours, none of which the daemon ever waits for.

use super::key::SharedKey;
use super::noise::{Noise, Received, Wrong};
use outlast_base::time::{Duration, Instant};
use outlast_linux::poller::{Interest, Poller, Token};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// How long it may take to get a session.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that wait for a neighbour to take them, beyond which no message is made for it.
const MOST_WAITING: usize = 256 << 10;
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    token: Token,
    noise: Noise,
    is_connecting: bool,
    waits_for_room: bool,
    /// Who has connected; nobody, if that was this side.
    from: Option<IpAddr>,
    /// When there must be a session.
    pub(super) until: Instant,
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the connection has ended")]
    Closed,
    #[error("{0}")]
    Broken(#[from] io::Error),
    #[error("{0}")]
    Wrong(#[from] Wrong),
}

impl Connection {
    /// Begins to connect from `own` to `neighbour`. What is sent bears `mark`.
    pub(super) fn dial(
        now: Instant,
        key: &SharedKey,
        own: SocketAddr,
        neighbour: SocketAddr,
        mark: u32,
        (poller, token): (&Poller, Token),
    ) -> Result<Self, Ended> {
        let noise = Noise::dial(key, own)?;
        let socket = socket(neighbour)?;
        socket.set_mark(mark)?;
        // The neighbour is to see the address that it knows; the port may be any.
        socket.bind(&SockAddr::from(SocketAddr::new(own.ip(), 0)))?;
        match socket.connect(&SockAddr::from(neighbour)) {
            Err(error)
                if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
            {
                return Err(error.into());
            }
            _ => {}
        }
        let stream = TcpStream::from(socket);
        poller.add(&stream, token, Interest::Both)?;
        Ok(Self {
            stream,
            token,
            noise,
            is_connecting: true,
            waits_for_room: true,
            from: None,
            until: now + PATIENCE,
        })
    }

    /// Takes a connection that somebody has made.
    pub(super) fn accept(
        now: Instant,
        key: &SharedKey,
        own: SocketAddr,
        stream: TcpStream,
        mark: u32,
        (poller, token): (&Poller, Token),
    ) -> Result<Self, Ended> {
        let noise = Noise::answer(key, own)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        socket2::SockRef::from(&stream).set_mark(mark)?;
        poller.add(&stream, token, Interest::Readable)?;
        let from = stream.peer_addr()?.ip();
        Ok(Self {
            from: Some(from),
            stream,
            token,
            noise,
            is_connecting: false,
            waits_for_room: false,
            until: now + PATIENCE,
        })
    }

    /// Whether there is a session.
    pub(super) const fn is_up(&self) -> bool {
        self.noise.is_confirmed()
    }

    /// The address of who has connected; `None` if that was this side.
    pub(super) const fn from(&self) -> Option<IpAddr> {
        self.from
    }

    /// Who is there, as it says itself.
    pub(super) const fn peer(&self) -> Option<SocketAddr> {
        self.noise.peer()
    }

    /// Whether another message may be made for it.
    pub(super) const fn has_room(&self) -> bool {
        self.noise.out.len() < MOST_WAITING
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), Ended> {
        Ok(self.noise.send(message)?)
    }

    /// Something has happened to it: what it says.
    pub(super) fn serve(&mut self, poller: &Poller) -> Result<Received, Ended> {
        if self.is_connecting {
            if let Some(error) = self.stream.take_error()? {
                return Err(error.into());
            }
            match self.stream.peer_addr() {
                Ok(_) => self.is_connecting = false,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    return Ok(Received::default());
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut received = Received::default();
        let mut buffer = vec![0; PIECE];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err(Ended::Closed),
            Ok(length) => received = self.noise.receive(&buffer[..length])?,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error.into()),
        }
        self.flush(poller)?;
        Ok(received)
    }

    /// Writes what the neighbour takes now.
    pub(super) fn flush(&mut self, poller: &Poller) -> Result<(), Ended> {
        if self.is_connecting {
            return Ok(());
        }
        let mut written = 0;
        while written < self.noise.out.len() {
            match self.stream.write(&self.noise.out[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.noise.out.drain(..written);
        let waits = !self.noise.out.is_empty();
        if waits != self.waits_for_room {
            self.waits_for_room = waits;
            let interest = match waits {
                true => Interest::Both,
                false => Interest::Readable,
            };
            poller.modify(&self.stream, self.token, interest)?;
        }
        Ok(())
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
