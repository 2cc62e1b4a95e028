//! Thousands of connections, and who speaks and listens at their ends.
//!
//! On each of them the fixed host says something small again and again. What it says is a function of
//! the connection's number and of the byte's place, so that the mobile host can check every byte.

use outlast_base::time::{Duration, Instant};
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::timer::Timer;
use outlast_testbed::site::{Place, Site};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk {
    /// On so many connections.
    pub(super) connections: usize,
    /// So many bytes at a time.
    pub(super) message: usize,
    /// On each connection once in this time; the connections take turns, evenly spread.
    pub(super) period: Duration,
    /// For so long.
    pub(super) length: Duration,
}

/// Both ends of every connection, in the same order.
#[derive(Debug)]
pub(super) struct Crowd {
    speakers: Vec<TcpStream>,
    listeners: Vec<TcpStream>,
}

/// What came over one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// When the application read how many bytes.
    pub(super) reads: Vec<(Instant, usize)>,
    bytes: usize,
    /// A byte was another one than was sent.
    pub(super) is_damaged: bool,
    /// The other end has said that it is over, after all that it had to say.
    pub(super) is_complete: bool,
}

/// When a thread of this process woke up, and by how much too late: a sign of what the daemon, a process
/// like this one, is kept waiting for.
pub(super) type Overslept = (Instant, Duration);

/// Connections that are opened at once: fewer than wait to be accepted.
const AT_ONCE: usize = 64;
/// How long the ends wait for each other at the beginning.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the speaker looks whose turn it is.
const TICK: Duration = Duration::from_millis(5);
/// Descriptors beside those of the connections.
const OTHER_DESCRIPTORS: u64 = 256;

const END: Token = Token(u64::MAX);
const CANCEL: Token = Token(u64::MAX - 1);

impl Talk {
    /// Messages in all that are due by `after` its beginning.
    pub(super) fn due(&self, after: Duration) -> u64 {
        let (connections, period) = (self.connections as u128, self.period.as_nanos());
        let all = connections * (self.length.as_nanos() / period);
        let due = after.as_nanos() * connections / period;
        u64::try_from(due.min(all)).unwrap_or(u64::MAX)
    }

    /// Messages on each connection.
    fn each(&self) -> u64 {
        self.due(self.length) / self.connections as u64
    }

    fn byte(number: usize, place: usize) -> u8 {
        (number.wrapping_mul(31) ^ place.wrapping_mul(7) ^ (place >> 8)) as u8
    }

    fn message(&self, number: usize, turn: u64) -> Vec<u8> {
        let first = usize::try_from(turn).unwrap_or(usize::MAX) * self.message;
        (first..first + self.message)
            .map(|place| Self::byte(number, place))
            .collect()
    }
}

/// Room for so many connections in this process; `Err` with how many descriptors it may have.
pub(super) fn make_room(connections: usize) -> Result<(), u64> {
    let wanted = 2 * connections as u64 + OTHER_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let may = maximum.unwrap_or(u64::MAX);
    let more = Rlimit {
        current: Some(wanted),
        maximum,
    };
    if may < wanted || setrlimit(Resource::Nofile, more).is_err() {
        return Err(may);
    }
    Ok(())
}

impl Crowd {
    /// Opens every connection, from the mobile host to the fixed one.
    pub(super) fn open(site: &Site, talk: &Talk) -> io::Result<Self> {
        let any = SocketAddr::new(Place::Fixed.ipv4().into(), 0);
        let listener = inside(&site.fixed, || TcpListener::bind(any))?;
        let server = listener.local_addr()?;
        let connections = talk.connections;
        let each = connections.div_ceil(AT_ONCE);
        let numbers: Vec<usize> = (0..connections).collect();
        let (speakers, listeners) = thread::scope(|scope| {
            let accepting = scope.spawn(|| accept(&listener, connections));
            let connecting: Vec<_> = numbers
                .chunks(each)
                .map(|numbers| scope.spawn(|| inside(&site.mobile, || connect(server, numbers))))
                .collect();
            let mut listeners = Vec::with_capacity(connections);
            for thread in connecting {
                listeners.extend(joined(thread)?);
            }
            Ok::<_, io::Error>((joined(accepting)?, listeners))
        })?;
        for stream in speakers.iter().chain(&listeners) {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
        }
        Ok(Self {
            speakers,
            listeners,
        })
    }

    /// Says and hears everything from `begin` on, until all is heard or `end` has come.
    pub(super) fn talk(
        self,
        talk: &Talk,
        begin: Instant,
        end: Instant,
        cancel: &Cancel,
    ) -> io::Result<(Vec<Heard>, Vec<Overslept>)> {
        thread::scope(|scope| {
            let Self {
                speakers,
                listeners,
            } = self;
            let speaking = scope.spawn(move || speak(speakers, talk, begin, cancel));
            let heard = listen(listeners, talk, end, cancel);
            // Nobody listens any more, which ends the speaker, too. Its connections stand until here:
            // what they have not delivered is not given up.
            let (_speakers, overslept) = joined(speaking)?;
            Ok((heard?, overslept))
        })
    }
}

fn inside<T: Send>(
    place: &Namespace,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    place.run(work).map_err(io::Error::other)?
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Each connection says first which one it is.
fn connect(server: SocketAddr, numbers: &[usize]) -> io::Result<Vec<TcpStream>> {
    let one = |&number: &usize| {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
        stream.write_all(&(number as u64).to_be_bytes())?;
        Ok(stream)
    };
    numbers.iter().map(one).collect()
}

fn accept(listener: &TcpListener, connections: usize) -> io::Result<Vec<TcpStream>> {
    let mut all = BTreeMap::new();
    listener.set_nonblocking(true)?;
    let given_up = clock::now() + PATIENCE;
    while all.len() < connections {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if clock::now() > given_up {
                    return Err(ErrorKind::TimedOut.into());
                }
                pause(TICK)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut number = [0; 8];
        stream.read_exact(&mut number)?;
        all.insert(u64::from_be_bytes(number), stream);
    }
    Ok(all.into_values().collect())
}

fn pause(time: Duration) -> io::Result<()> {
    let mut timer = Timer::new()?;
    timer.set(Some(clock::now() + time))?;
    let mut poller = Poller::new()?;
    poller.add(&timer, END, Interest::Readable)?;
    // It ends with whatever comes first: the time, or a signal.
    let _ready = poller.wait()?.count();
    Ok(())
}

fn speak(
    mut streams: Vec<TcpStream>,
    talk: &Talk,
    begin: Instant,
    cancel: &Cancel,
) -> io::Result<(Vec<TcpStream>, Vec<Overslept>)> {
    let all = talk.due(talk.length);
    let connections = talk.connections as u64;
    let mut said = 0;
    // What did not fit into a send buffer.
    let mut unsaid: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    let mut is_over = vec![false; streams.len()];
    let mut overslept = Vec::new();
    let mut turns_left = vec![talk.each(); streams.len()];
    while (said < all || !unsaid.is_empty()) && !cancel.is_cancelled() {
        let now = clock::now();
        let due = if now < begin {
            0
        } else {
            talk.due(now.since(begin))
        };
        for turn in said..due {
            let number = usize::try_from(turn % connections).expect("a connection's number");
            let message = talk.message(number, turn / connections);
            unsaid.entry(number).or_default().extend(message);
            turns_left[number] -= 1;
        }
        said = said.max(due);
        unsaid.retain(|&number, rest| {
            is_over[number] = is_over[number] || !say(&mut streams[number], rest);
            if rest.is_empty() && turns_left[number] == 0 {
                // One that broke has been heard of by its listener.
                let _ = streams[number].shutdown(Shutdown::Write);
            }
            !rest.is_empty() && !is_over[number]
        });
        let asleep = clock::now();
        pause(TICK)?;
        let awake = clock::now();
        overslept.push((awake, awake.since(asleep).saturating_sub(TICK)));
    }
    Ok((streams, overslept))
}

/// Says what fits; whether the connection still stands.
fn say(stream: &mut TcpStream, rest: &mut Vec<u8>) -> bool {
    match stream.write(rest) {
        Ok(length) => {
            rest.drain(..length);
            true
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
    }
}

fn listen(
    mut streams: Vec<TcpStream>,
    talk: &Talk,
    end: Instant,
    cancel: &Cancel,
) -> io::Result<Vec<Heard>> {
    let mut poller = Poller::new()?;
    let mut timer = Timer::new()?;
    timer.set(Some(end))?;
    poller.add(&timer, END, Interest::Readable)?;
    poller.add(cancel, CANCEL, Interest::Readable)?;
    for (number, stream) in streams.iter().enumerate() {
        poller.add(stream, Token(number as u64), Interest::Readable)?;
    }
    let whole = usize::try_from(talk.each()).unwrap_or(usize::MAX) * talk.message;
    let mut heard = vec![Heard::default(); streams.len()];
    let mut left = streams.len();
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let ready: Vec<Token> = poller.wait()?.map(|ready| ready.token).collect();
        for token in ready {
            if matches!(token, END | CANCEL) {
                return Ok(heard);
            }
            let number = usize::try_from(token.0).expect("a connection's number");
            if heard[number].hear(number, &mut streams[number], &mut buffer, whole) {
                poller.remove(&streams[number])?;
                left -= 1;
            }
        }
    }
    Ok(heard)
}

impl Heard {
    /// Takes what has come; whether that was the last.
    fn hear(
        &mut self,
        number: usize,
        stream: &mut TcpStream,
        buffer: &mut [u8],
        whole: usize,
    ) -> bool {
        match stream.read(buffer) {
            Ok(0) => {
                self.is_complete = self.bytes == whole;
                true
            }
            Ok(length) => {
                let is_right = |(place, &byte)| byte == Talk::byte(number, self.bytes + place);
                self.is_damaged |= !buffer[..length].iter().enumerate().all(is_right);
                self.bytes += length;
                self.reads.push((clock::now(), length));
                false
            }
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// When something new came first, `since` then.
    pub(super) fn first_since(&self, since: Instant) -> Option<Instant> {
        let mut times = self.reads.iter().map(|&(at, _)| at);
        times.find(|&at| at >= since)
    }

    /// Bytes that had come by then.
    pub(super) fn bytes_by(&self, then: Instant) -> usize {
        let before = self.reads.iter().take_while(|&&(at, _)| at <= then);
        before.map(|&(_, length)| length).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_in_each_period_and_it_ends_with_whole_ones() {
        let talk = Talk {
            connections: 10,
            message: 3,
            period: Duration::from_secs(2),
            length: Duration::from_secs(5),
        };
        assert_eq!(talk.due(Duration::ZERO), 0);
        assert_eq!(talk.due(Duration::from_secs(1)), 5);
        assert_eq!(talk.due(Duration::from_secs(4)), 20);
        assert_eq!(talk.due(Duration::from_secs(9)), 20);
        assert_eq!(talk.each(), 2);
        let [first, second] = [0, 1].map(|turn| talk.message(7, turn));
        let whole: Vec<u8> = (0..6).map(|place| Talk::byte(7, place)).collect();
        assert_eq!([first, second].concat(), whole);
    }
}
