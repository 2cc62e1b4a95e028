//! Clients of a socket that the daemon listens at: each asks once and is answered once.
//!
//! None of them can keep the daemon from its packets: nothing here ever blocks, a client has a few
//! seconds for all that it wants, what it may say is bounded, and when there are too many, the
//! oldest goes.

use outlast_base::time::{Duration, Instant};
use outlast_linux::poller::{Interest, Poller, Token};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// Clients at once; past it the oldest one goes.
const CLIENTS: usize = 16;
/// How long a client has, from its connection to the last byte of its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One client's connection.
#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// What became of what a client has said so far.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Heard<T> {
    /// The client is not done, or it is gone.
    Nothing,
    /// All that it has to say, and what is known of it.
    Request(Vec<u8>, T),
    /// More than anybody has to say.
    TooMuch,
}

/// The clients of one socket, each with what is known of it.
#[derive(Debug)]
pub(super) struct Clients<T> {
    /// By token: the oldest has the lowest.
    clients: BTreeMap<u64, Client<T>>,
    next_token: u64,
    longest: usize,
}

#[derive(Debug)]
struct Client<T> {
    stream: Stream,
    about: T,
    heard: Vec<u8>,
    /// What is left of the answer, once there is one.
    answer: Option<Vec<u8>>,
    until: Instant,
}

impl<T: Copy> Clients<T> {
    /// Nobody yet. Their tokens begin with `first_token`, and a request has at most `longest`
    /// bytes.
    pub(super) const fn new(first_token: u64, longest: usize) -> Self {
        Self {
            clients: BTreeMap::new(),
            next_token: first_token,
            longest,
        }
    }

    /// Somebody has connected; by which token it is known from now on.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        stream: Stream,
        about: T,
        poller: &Poller,
    ) -> io::Result<u64> {
        stream.set_nonblocking()?;
        let token = self.next_token;
        self.next_token += 1;
        poller.add(&stream, Token(token), Interest::Readable)?;
        if self.clients.len() >= CLIENTS {
            tracing::debug!("too many clients at once: the oldest goes");
            let _ = self.clients.pop_first();
        }
        let client = Client {
            stream,
            about,
            heard: Vec::new(),
            answer: None,
            until: now + PATIENCE,
        };
        self.clients.insert(token, client);
        Ok(token)
    }

    /// A client is ready: what it asks for, once it has said all, which `ends` tells by where the
    /// request ends.
    pub(super) fn serve(&mut self, token: u64, ends: impl Fn(&[u8]) -> Option<usize>) -> Heard<T> {
        let Some(client) = self.clients.get_mut(&token) else {
            return Heard::Nothing;
        };
        if client.answer.is_some() {
            self.go_on(token);
            return Heard::Nothing;
        }
        let mut buffer = [0; 4096];
        match client.stream.read(&mut buffer) {
            Ok(0) => {
                self.clients.remove(&token);
                Heard::Nothing
            }
            Ok(length) => {
                client.heard.extend_from_slice(&buffer[..length]);
                match ends(&client.heard) {
                    Some(end) => {
                        client.heard.truncate(end);
                        Heard::Request(std::mem::take(&mut client.heard), client.about)
                    }
                    None if client.heard.len() > self.longest => Heard::TooMuch,
                    None => Heard::Nothing,
                }
            }
            Err(error) if is_passing(&error) => Heard::Nothing,
            Err(error) => {
                tracing::debug!(%error, "a client has gone");
                self.clients.remove(&token);
                Heard::Nothing
            }
        }
    }

    /// Answers a client and ends the conversation once it has taken that.
    pub(super) fn answer(&mut self, token: u64, answer: Vec<u8>, poller: &Poller) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        client.answer = Some(answer);
        self.go_on(token);
        if let Some(client) = self.clients.get(&token)
            && let Err(error) = poller.modify(&client.stream, Token(token), Interest::Writable)
        {
            tracing::debug!(%error, "a client cannot be waited for");
            self.clients.remove(&token);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        // All have equally long.
        self.clients
            .first_key_value()
            .map(|(_, client)| client.until)
    }

    /// Sends away who has taken too long.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while self.poll_timeout().is_some_and(|until| until <= now) {
            let _ = self.clients.pop_first();
        }
    }

    /// Writes as much of an answer as the client takes now.
    fn go_on(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        let Some(answer) = &mut client.answer else {
            return;
        };
        while !answer.is_empty() {
            match client.stream.write(answer) {
                Ok(0) => break,
                Ok(length) => {
                    answer.drain(..length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_passing(&error) => return,
                Err(error) => {
                    tracing::debug!(%error, "a client has gone");
                    break;
                }
            }
        }
        self.clients.remove(&token);
    }
}

/// Whether to try again later.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(heard: &[u8]) -> Option<usize> {
        heard.iter().position(|&byte| byte == b'\n')
    }

    fn connect(clients: &mut Clients<u8>, poller: &Poller, now: Instant) -> (UnixStream, u64) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let token = clients.admit(now, Stream::Unix(ours), 9, poller);
        (theirs, token.expect("admitted"))
    }

    #[test]
    fn a_request_may_come_in_pieces_and_a_long_answer_is_taken_in_pieces() {
        let (mut clients, poller) = (Clients::new(7, 100), Poller::new().expect("epoll"));
        let (mut theirs, token) = connect(&mut clients, &poller, Instant::ZERO);
        assert_eq!(token, 7);
        theirs.write_all(b"how are").expect("written");
        assert_eq!(clients.serve(token, line), Heard::Nothing);
        theirs.write_all(b" you?\nand").expect("written");
        let request = clients.serve(token, line);
        assert_eq!(request, Heard::Request(b"how are you?".to_vec(), 9));
        let long: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        clients.answer(token, long.clone(), &poller);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).expect("read");
            all
        });
        while !clients.clients.is_empty() {
            assert_eq!(clients.serve(token, line), Heard::Nothing);
            std::thread::yield_now();
        }
        assert!(reader.join().expect("read") == long);
    }

    #[test]
    fn who_says_too_much_or_nothing_is_not_waited_for() {
        let (mut clients, poller) = (Clients::new(0, 100), Poller::new().expect("epoll"));
        let (mut chatty, token) = connect(&mut clients, &poller, Instant::ZERO);
        chatty.write_all(&[b'x'; 101]).expect("written");
        assert_eq!(clients.serve(token, line), Heard::TooMuch);
        let (_silent, _) = connect(&mut clients, &poller, Instant::ZERO + PATIENCE);
        let (deaf, token) = connect(&mut clients, &poller, Instant::ZERO + PATIENCE * 2);
        // It never reads.
        clients.answer(token, vec![0; 10_000_000], &poller);
        assert_eq!(clients.clients.len(), 3);
        for left in [2, 1, 0] {
            let at = clients.poll_timeout().expect("somebody is there");
            clients.handle_timeout(at);
            assert_eq!(clients.clients.len(), left);
        }
        drop(deaf);
    }

    #[test]
    fn of_too_many_the_oldest_goes() {
        let (mut clients, poller) = (Clients::new(0, 100), Poller::new().expect("epoll"));
        let all: Vec<_> = (0..CLIENTS + 1)
            .map(|_| connect(&mut clients, &poller, Instant::ZERO))
            .collect();
        assert_eq!(clients.clients.len(), CLIENTS);
        let (mut first, mut last) = (&all[0].0, &all[CLIENTS].0);
        assert_eq!(first.read(&mut [0]).expect("closed"), 0);
        last.write_all(b"x\n").expect("written");
        let heard = clients.serve(all[CLIENTS].1, line);
        assert_eq!(heard, Heard::Request(b"x".to_vec(), 9));
    }
}
