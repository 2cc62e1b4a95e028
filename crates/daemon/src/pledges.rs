//! What outlives this process of connections that it has acknowledged ahead: a file of numbers, by which
//! the guardian, or the next daemon, ends them with an error at both hosts if this process is killed.
//!
//! The file has a record for each, written before the acknowledgement goes out that makes it needed, and
//! whenever its numbers change. It is not synchronised with any disk: it outlives the process, not the
//! machine.

use super::config::Settings;
use super::trusted::{self, Distrust, Purpose};
use outlast_base::time::Duration;
use outlast_gateway::gateway::Pledge;
use outlast_gateway::tracking::{FlowKey, FrozenNumbers};
use outlast_linux::guardian::Aftermath;
use outlast_linux::raw::RawSender;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, SeqNumber};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a record.
const RECORD: usize = 64;
/// The first byte of one that is in use.
const IN_USE: u8 = 1;
/// Records at most: what is acknowledged ahead beyond these is not written down.
const MOST: usize = 65_536;
/// How long a far host is asked for, that may be away: longer than most outages.
pub(super) const GIVES_UP_AFTER: Duration = Duration::from_secs(15 * 60);
/// The pauses between two questions: a Linux host answers no second one that comes sooner.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where they are written down.
pub(super) fn file_of(settings: &Settings) -> PathBuf {
    settings.control.with_extension("pledges")
}

/// Refusal to read what stands in place of the file, which says whose connections to reset.
#[derive(Debug, thiserror::Error)]
#[error("cannot trust {}: {reason}; remove it, or name another place with --control", path.display())]
pub(super) struct Untrusted {
    path: PathBuf,
    reason: Distrust,
}

/// Opens the file that an earlier process of this user, or of root, has left; `None` if there is none.
fn open_left(path: &Path) -> Result<Option<File>, Untrusted> {
    match trusted::open(path, Purpose::Left, OpenOptions::new().read(true)) {
        Ok(file) => Ok(Some(file)),
        Err(reason) if reason.is_absence() => Ok(None),
        Err(reason) => Err(Untrusted {
            path: path.into(),
            reason,
        }),
    }
}

/// The file of this process.
#[derive(Debug)]
pub(super) struct Pledges {
    path: PathBuf,
    /// Made when it is needed for the first time.
    file: Option<File>,
    places: BTreeMap<FlowKey, usize>,
    free: Vec<usize>,
    /// Numbers as they are written, so that the same ones are not written again.
    written: BTreeMap<FlowKey, Pledge>,
    has_failed: bool,
}

impl Pledges {
    /// Begins a new file. Also returns the pledges of an earlier process, whose file is removed.
    ///
    /// # Errors
    /// [`Untrusted`] if something is there that no earlier process of this user has left.
    pub(super) fn begin(settings: &Settings) -> Result<(Self, Vec<Pledge>), Untrusted> {
        Self::begin_at(file_of(settings))
    }

    fn begin_at(path: PathBuf) -> Result<(Self, Vec<Pledge>), Untrusted> {
        let left = open_left(&path)?.map_or_else(Vec::new, |file| read(&file));
        // A guardian that still reads the file sees that another daemon has taken over.
        let _ = std::fs::remove_file(&path);
        let mut pledges = Self {
            path,
            file: None,
            places: BTreeMap::new(),
            free: Vec::new(),
            written: BTreeMap::new(),
            has_failed: false,
        };
        // This process may be killed before they are ended.
        for pledge in &left {
            pledges.note(pledge.numbers.flow, Some(*pledge));
        }
        Ok((pledges, left))
    }

    /// Whether nothing is written down.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The connections that are written down.
    pub(super) fn keys(&self) -> impl Iterator<Item = &FlowKey> {
        self.places.keys()
    }

    pub(super) fn has(&self, key: &FlowKey) -> bool {
        self.places.contains_key(key)
    }

    /// What is to be written down of a connection from now on; `None`: nothing.
    pub(super) fn note(&mut self, key: FlowKey, pledge: Option<Pledge>) {
        let outcome = match pledge {
            Some(pledge) => self.write(key, pledge),
            None => self.erase(&key),
        };
        if let Err(error) = outcome
            && !std::mem::replace(&mut self.has_failed, true)
        {
            let path = self.path.display();
            tracing::warn!(
                "cannot write {path}: {error}; connections that are acknowledged ahead hang if this \
                 process is killed"
            );
        }
    }

    fn write(&mut self, key: FlowKey, pledge: Pledge) -> io::Result<()> {
        if self.written.get(&key) == Some(&pledge) {
            return Ok(());
        }
        let next = self.places.len() + self.free.len();
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => match self.free.pop() {
                Some(free) => free,
                None if next < MOST => next,
                None => return Err(io::ErrorKind::QuotaExceeded.into()),
            },
        };
        self.places.insert(key, place);
        self.file()?
            .write_all_at(&to_bytes(&pledge), offset(place))?;
        self.written.insert(key, pledge);
        Ok(())
    }

    fn erase(&mut self, key: &FlowKey) -> io::Result<()> {
        let Some(place) = self.places.remove(key) else {
            return Ok(());
        };
        self.written.remove(key);
        self.free.push(place);
        self.file()?.write_all_at(&[0; RECORD], offset(place))?;
        if self.is_empty() {
            self.file = None;
            self.free.clear();
            std::fs::remove_file(&self.path)?;
        }
        Ok(())
    }

    fn file(&mut self) -> io::Result<&File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let mut options = OpenOptions::new();
                let file = options.write(true).create_new(true).mode(0o600);
                Ok(none.insert(file.open(&self.path)?))
            }
        }
    }
}

const fn offset(place: usize) -> u64 {
    (place * RECORD) as u64
}

/// After a daemon's death: ends what it has left at both hosts. The near hosts are told at once. A far host
/// may be away: it is asked until somebody else takes care of it, or for a quarter of an hour. What it
/// answers goes to the near host, whose kernel knows no such connection any more, and says so.
pub(super) fn settle(path: &Path, mark: u32, aftermath: &Aftermath<'_>) {
    let file = match open_left(path) {
        Ok(Some(file)) => file,
        Ok(None) => return,
        Err(error) => return aftermath.say(&error.to_string()),
    };
    // The next daemon may make a file that gets the same number.
    let identity = |data: std::fs::Metadata| (data.ino(), data.mtime(), data.mtime_nsec());
    let Ok(own) = file.metadata().map(identity) else {
        return;
    };
    let left = read(&file);
    if left.is_empty() {
        let _ = std::fs::remove_file(path);
        return;
    }
    for pledge in &left {
        let numbers = &pledge.numbers;
        let packets = [numbers.reset_near(), numbers.reset_far(), pledge.ask_far()];
        send(mark, packets);
    }
    let count = left.len();
    aftermath.say(&format!(
        "The daemon is gone. Connections that it had acknowledged ahead are reset: {count}"
    ));
    drop(file);
    aftermath.fall_silent();
    let is_ours = || {
        std::fs::metadata(path)
            .map(identity)
            .is_ok_and(|now| now == own)
    };
    let mut next = pause_after(Duration::ZERO);
    let mut asked_for = Duration::ZERO;
    while asked_for < GIVES_UP_AFTER {
        if aftermath.is_asked_to_end_within(SHORTEST_PAUSE) || !is_ours() {
            return;
        }
        asked_for += SHORTEST_PAUSE;
        if asked_for >= next {
            next = asked_for + pause_after(asked_for);
            send(mark, left.iter().map(Pledge::ask_far));
        }
    }
    let _ = std::fs::remove_file(path);
}

/// The pause before a far host is asked again that has been asked for so long.
pub(super) fn pause_after(asked_for: Duration) -> Duration {
    (asked_for / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Without a daemon nobody else sends, and what is not sent now is sent again.
fn send(mark: u32, packets: impl IntoIterator<Item = Packet>) {
    if let Ok(sender) = RawSender::open(mark, None) {
        for packet in packets {
            let _ = sender.send(packet.header().ip.destination, &packet.to_bytes());
        }
    }
}

fn read(file: &File) -> Vec<Pledge> {
    let mut left = Vec::new();
    let mut record = [0; RECORD];
    for place in 0..MOST {
        if file.read_exact_at(&mut record, offset(place)).is_err() {
            break;
        }
        left.extend(from_bytes(&record));
    }
    left
}

/// In use, whether there are timestamps, ports, addresses, numbers, timestamps.
fn to_bytes(pledge: &Pledge) -> [u8; RECORD] {
    let FrozenNumbers {
        flow,
        acked,
        until,
        far_next,
        ..
    } = pledge.numbers;
    let mut bytes = Vec::with_capacity(RECORD);
    bytes.extend([IN_USE, u8::from(pledge.stamps.is_some()), 0, 0]);
    for end in [flow.near, flow.far] {
        bytes.extend(end.port().to_be_bytes());
        bytes.extend(v6(end.ip()).octets());
    }
    for number in [acked, until, far_next] {
        bytes.extend(number.0.to_be_bytes());
    }
    let stamps = pledge.stamps.unwrap_or(Timestamps { value: 0, echo: 0 });
    bytes.extend(stamps.value.to_be_bytes());
    bytes.extend(stamps.echo.to_be_bytes());
    let mut record = [0; RECORD];
    for (to, from) in record.iter_mut().zip(bytes) {
        *to = from;
    }
    record
}

/// `None` for a record that is not in use, or none.
fn from_bytes(record: &[u8; RECORD]) -> Option<Pledge> {
    let (&[IN_USE, has_stamps, _, _], rest) = record.split_first_chunk()? else {
        return None;
    };
    let (near, rest) = end(rest)?;
    let (far, rest) = end(rest)?;
    let mut words = rest.chunks_exact(4);
    let mut word = || {
        let word = words.next()?.first_chunk().copied()?;
        Some(u32::from_be_bytes(word))
    };
    let [acked, until, far_next] = [word()?, word()?, word()?].map(SeqNumber);
    let (value, echo) = (word()?, word()?);
    Some(Pledge {
        numbers: FrozenNumbers {
            flow: FlowKey { near, far },
            acked,
            until,
            far_next,
            stamps: None,
        },
        stamps: (has_stamps != 0).then_some(Timestamps { value, echo }),
    })
}

fn end(bytes: &[u8]) -> Option<(SocketAddr, &[u8])> {
    let (port, rest) = bytes.split_first_chunk()?;
    let (address, rest) = rest.split_first_chunk::<16>()?;
    let address = Ipv6Addr::from(*address).to_canonical();
    let port = u16::from_be_bytes(*port);
    Some((SocketAddr::new(address, port), rest))
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pledge(near: &str, stamps: Option<Timestamps>) -> Pledge {
        Pledge {
            numbers: FrozenNumbers {
                flow: FlowKey {
                    near: near.parse().expect("literal"),
                    far: "203.0.113.7:443".parse().expect("literal"),
                },
                acked: SeqNumber(u32::MAX),
                until: SeqNumber(70_000),
                far_next: SeqNumber(5),
                stamps: None,
            },
            stamps,
        }
    }

    #[test]
    fn what_an_earlier_process_has_left_is_read_and_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("wwan0.pledges");
        let left = pledge("192.0.2.1:80", None);
        let (mut before, nothing) = Pledges::begin_at(path.clone()).expect("nothing is there");
        assert_eq!(nothing, []);
        before.note(left.numbers.flow, Some(left));
        let (after, found) = Pledges::begin_at(path).expect("it is this user's");
        assert_eq!(found, [left]);
        assert!(after.has(&left.numbers.flow));
    }

    /// Whoever may write to the directory could have the daemon wait, or reset others' connections.
    #[test]
    fn what_somebody_else_may_have_written_is_refused_without_waiting() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use rustix::process::geteuid;
        use std::os::unix::fs::{PermissionsExt, chown, symlink};
        use std::os::unix::net::UnixListener;
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let record = to_bytes(&pledge("192.0.2.1:80", None));
        let write = |name: &str, mode| {
            std::fs::write(at(name), record).expect("ours");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(at(name), permissions).expect("ours");
        };
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        std::fs::create_dir(at("directory")).expect("ours");
        let _listener = UnixListener::bind(at("socket")).expect("ours");
        write("good", 0o600);
        symlink(at("good"), at("link")).expect("ours");
        write("writable", 0o620);
        write("strange", 0o600);
        let no_file = "it is no regular file";
        let mut cases = vec![
            ("fifo", no_file.to_owned()),
            ("directory", no_file.to_owned()),
            ("socket", no_file.to_owned()),
            ("link", no_file.to_owned()),
            ("writable", "others may write to it (mode 620)".to_owned()),
        ];
        if geteuid().is_root() {
            chown(at("strange"), Some(65_534), None).expect("as root");
            cases.push((
                "strange",
                "it belongs to the user with the number 65534".to_owned(),
            ));
        }
        for (name, reason) in cases {
            let path = at(name);
            let (told, heard) = std::sync::mpsc::channel();
            let begin = move || told.send(Pledges::begin_at(path).map(|(_, left)| left.len()));
            std::thread::spawn(begin);
            let begun = heard.recv_timeout(Duration::from_secs(20));
            let error = begun
                .expect("it does not wait")
                .expect_err(name)
                .to_string();
            assert!(error.contains(&reason), "{name}: {error}");
            assert!(error.contains("--control"), "{name}: {error}");
        }
        assert!(Pledges::begin_at(at("good")).is_ok(), "the control");
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let stamps = Some(Timestamps { value: 1, echo: 2 });
        for pledge in [
            pledge("192.0.2.1:80", None),
            pledge("[2001:db8::5]:65535", stamps),
        ] {
            assert_eq!(from_bytes(&to_bytes(&pledge)), Some(pledge));
        }
        assert_eq!(from_bytes(&[0; RECORD]), None);
    }
}
