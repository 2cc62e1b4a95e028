//! An authenticated and encrypted channel to a neighbour: Noise (revision 34) with a key that both
//! have, over a stream.
//!
//! The pattern is NNpsk0: new Diffie-Hellman keys for each session, so that who gets the shared key
//! later cannot read what was recorded, and the shared key mixed in first, so that who has not got
//! it cannot make a single message. With the first message of each side goes the address at which
//! it listens. What is on the stream is a length of two bytes and a message of Noise, whose counters
//! refuse what is replayed, left out or put in another order.
//!
//! Who only replays a recorded first message is answered, and cannot go on: a session is there once
//! a message has come under its new keys, of which the dialling side sends an empty one at once.

use super::key::SharedKey;
use snow::{Builder, HandshakeState, TransportState};
use std::net::SocketAddr;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"outlast agents 1";
const LENGTH: usize = 2;
/// Of one message of Noise.
const LONGEST: usize = 65_535;
const TAG: usize = 16;

/// What is wrong with a channel.
#[derive(Debug, thiserror::Error)]
pub(super) enum Wrong {
    /// The other side has another key, or somebody changes what it says.
    #[error("what it says cannot be read: its key is another one, or it is no agent")]
    Key(#[source] snow::Error),
    /// The first message names no address.
    #[error("it does not say who it is")]
    Nameless,
    /// A message cannot be written.
    #[error("a message cannot be encrypted")]
    Writing(#[source] snow::Error),
}

/// One side of a channel: bytes in, bytes out.
#[derive(Debug)]
pub(super) struct Noise {
    state: State,
    own: SocketAddr,
    /// Who is there, as it says.
    peer: Option<SocketAddr>,
    is_confirmed: bool,
    received: Vec<u8>,
    /// To be sent.
    pub(super) out: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Greeting(Box<HandshakeState>),
    Speaking(Box<TransportState>),
    /// Between the two, and after an error.
    Broken,
}

/// What has come.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Received {
    /// The session is there from now on.
    pub(super) is_new: bool,
    pub(super) messages: Vec<Vec<u8>>,
}

impl Noise {
    /// The side that has dialled. `own` is where it listens.
    pub(super) fn dial(key: &SharedKey, own: SocketAddr) -> Result<Self, Wrong> {
        let state = builder(key).and_then(Builder::build_initiator);
        let mut noise = Self::new(state.map_err(Wrong::Writing)?, own);
        noise.greet()?;
        Ok(noise)
    }

    /// The side that was dialled.
    pub(super) fn answer(key: &SharedKey, own: SocketAddr) -> Result<Self, Wrong> {
        let state = builder(key).and_then(Builder::build_responder);
        Ok(Self::new(state.map_err(Wrong::Writing)?, own))
    }

    fn new(state: HandshakeState, own: SocketAddr) -> Self {
        Self {
            state: State::Greeting(Box::new(state)),
            own,
            peer: None,
            is_confirmed: false,
            received: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Who is there, as it says itself and has proven to have the key.
    pub(super) const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Whether the session is there.
    pub(super) const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Takes bytes from the stream.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Received, Wrong> {
        self.received.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.received);
        let mut rest = &all[..];
        let mut received = Received::default();
        while let Some((message, after)) = split(rest) {
            rest = after;
            self.hear(message, &mut received)
                .inspect_err(|_| self.state = State::Broken)?;
        }
        self.received = rest.to_vec();
        Ok(received)
    }

    /// Says something, once the session is there.
    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), Wrong> {
        if let State::Speaking(state) = &mut self.state {
            let mut buffer = vec![0; message.len() + TAG];
            let length = state.write_message(message, &mut buffer);
            let length = length.map_err(Wrong::Writing)?;
            push(&mut self.out, &buffer[..length]);
        }
        Ok(())
    }

    fn hear(&mut self, message: &[u8], received: &mut Received) -> Result<(), Wrong> {
        let mut buffer = vec![0; LONGEST];
        match &mut self.state {
            State::Greeting(state) => {
                let length = state.read_message(message, &mut buffer);
                let length = length.map_err(Wrong::Key)?;
                let name = str::from_utf8(&buffer[..length]).ok();
                let peer = name.and_then(|name| name.parse().ok());
                self.peer = Some(peer.ok_or(Wrong::Nameless)?);
                if state.is_initiator() {
                    self.speak()?;
                    received.is_new = true;
                    self.is_confirmed = true;
                    return self.send(&[]);
                }
                self.greet()?;
                self.speak()
            }
            State::Speaking(state) => {
                let length = state.read_message(message, &mut buffer);
                let length = length.map_err(Wrong::Key)?;
                received.is_new |= !self.is_confirmed;
                self.is_confirmed = true;
                if length > 0 {
                    received.messages.push(buffer[..length].to_vec());
                }
                Ok(())
            }
            State::Broken => Err(Wrong::Nameless),
        }
    }

    fn greet(&mut self) -> Result<(), Wrong> {
        if let State::Greeting(state) = &mut self.state {
            let mut buffer = vec![0; LONGEST];
            let own = self.own.to_string();
            let length = state.write_message(own.as_bytes(), &mut buffer);
            let length = length.map_err(Wrong::Writing)?;
            push(&mut self.out, &buffer[..length]);
        }
        Ok(())
    }

    fn speak(&mut self) -> Result<(), Wrong> {
        if let State::Greeting(state) = std::mem::replace(&mut self.state, State::Broken) {
            let state = state.into_transport_mode().map_err(Wrong::Writing)?;
            self.state = State::Speaking(Box::new(state));
        }
        Ok(())
    }
}

fn builder(key: &SharedKey) -> Result<Builder<'_>, snow::Error> {
    Builder::new(PATTERN.parse()?)
        .psk(0, &key.0)?
        .prologue(PROLOGUE)
}

fn push(out: &mut Vec<u8>, message: &[u8]) {
    let length = u16::try_from(message.len()).expect("Noise has no longer ones");
    out.extend(length.to_be_bytes());
    out.extend(message);
}

/// The first whole message, and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u16) -> SocketAddr {
        SocketAddr::new([192, 0, 2, 1].into(), port)
    }

    fn pair(a: u8, b: u8) -> (Noise, Noise) {
        let dial = Noise::dial(&SharedKey([a; 32]), place(1)).expect("a side");
        let answer = Noise::answer(&SharedKey([b; 32]), place(2)).expect("a side");
        (dial, answer)
    }

    /// A pair that has a session, and what the answering side heard of it.
    fn session() -> (Noise, Noise, Vec<u8>) {
        let (mut dial, mut answer) = pair(7, 7);
        let first = std::mem::take(&mut dial.out);
        assert_eq!(answer.receive(&first).expect("read"), Received::default());
        let received = dial.receive(&std::mem::take(&mut answer.out));
        assert!(received.expect("read").is_new);
        let second = std::mem::take(&mut dial.out);
        assert!(answer.receive(&second).expect("read").is_new);
        (dial, answer, first)
    }

    #[test]
    fn who_has_the_key_is_heard_and_known_by_its_address() {
        let (mut dial, mut answer, _) = session();
        assert_eq!(
            (dial.peer(), answer.peer()),
            (Some(place(2)), Some(place(1)))
        );
        dial.send(b"hello").expect("sent");
        dial.send(&[9; 63_488]).expect("sent");
        let bytes = std::mem::take(&mut dial.out);
        assert!(!bytes.windows(5).any(|five| five == b"hello"));
        // In pieces, as streams are.
        let mut messages = Vec::new();
        for piece in bytes.chunks(1_000) {
            messages.extend(answer.receive(piece).expect("read").messages);
        }
        assert_eq!(messages, [b"hello".to_vec(), vec![9; 63_488]]);
    }

    #[test]
    fn who_has_another_key_is_not_even_answered() {
        let (mut dial, mut answer) = pair(7, 8);
        let refused = answer.receive(&std::mem::take(&mut dial.out));
        assert!(matches!(refused, Err(Wrong::Key(_))));
        assert!(answer.out.is_empty() && answer.peer().is_none());
    }

    #[test]
    fn what_was_recorded_begins_no_session() {
        let (mut dial, _, first) = session();
        let (_, mut answer) = pair(7, 7);
        assert!(!answer.receive(&first).expect("it was sent once").is_new);
        dial.send(b"again").expect("sent");
        assert!(answer.receive(&std::mem::take(&mut dial.out)).is_err());
        assert!(!answer.is_confirmed());
    }

    #[test]
    fn what_is_repeated_left_out_or_changed_ends_the_session() {
        let (mut dial, mut answer, _) = session();
        dial.send(b"one").expect("sent");
        let one = std::mem::take(&mut dial.out);
        assert_eq!(answer.receive(&one).expect("read").messages.len(), 1);
        assert!(answer.receive(&one).is_err());

        let (mut dial, mut answer, _) = session();
        dial.send(b"one").expect("sent");
        dial.out.clear();
        dial.send(b"two").expect("sent");
        assert!(answer.receive(&std::mem::take(&mut dial.out)).is_err());

        let (mut dial, mut answer, _) = session();
        dial.send(b"one").expect("sent");
        let last = dial.out.len() - 1;
        dial.out[last] ^= 1;
        assert!(answer.receive(&std::mem::take(&mut dial.out)).is_err());
    }

    /// So many bytes that are like any others, and the same for each `seed`.
    fn arbitrary(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new()
            .update(&seed.to_be_bytes())
            .finalize_xof()
            .fill(&mut bytes);
        bytes
    }

    #[test]
    fn arbitrary_bytes_mean_nothing_to_anybody_at_any_time() {
        for seed in 0..300_u64 {
            let length = usize::try_from(seed * 7 % 900).expect("few");
            let mut bytes = arbitrary(seed, length);
            if seed % 2 == 0 && bytes.len() >= LENGTH {
                // A whole message, so that it is looked into.
                let rest = u16::try_from(bytes.len() - LENGTH).expect("few");
                bytes[..LENGTH].copy_from_slice(&rest.to_be_bytes());
            }
            let (dial, answer) = pair(7, 7);
            let (speaking, spoken_to, _) = session();
            for mut side in [dial, answer, speaking, spoken_to] {
                let was_confirmed = side.is_confirmed();
                let received = side.receive(&bytes).unwrap_or_default();
                assert_eq!(received, Received::default(), "seed {seed}");
                assert_eq!(side.is_confirmed(), was_confirmed, "seed {seed}");
                assert!(side.received.len() <= LENGTH + LONGEST);
            }
        }
    }
}
