//! The file of listed peers' last addresses, by which a daemon that is started again calls those that it lists no address
//! of.
//!
//! One line a peer: its tag and its addresses, the preferred one first. The file is written anew when they have changed, at
//! most once a second, and put in the place of the old one as a whole. Nobody needs it: one that cannot be read or written is
//! told of once each.

use crate::trusted::{self, Purpose};
use outlast_base::time::{Duration, Instant};
use outlast_hip::Host;
use outlast_wire::hip::Hit;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;
/// The file is written no more often.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause before another attempt, after one that has failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Whereabouts {
    path: PathBuf,
    written: String,
    /// True once something has happened to a peer since then.
    is_behind: bool,
    may_write_at: Instant,
    /// True once it was told that the file cannot be written.
    has_failed: bool,
}

impl Whereabouts {
    /// Opens the file, and says what an earlier daemon has written there.
    ///
    /// It is in the directory for state (`STATE_DIRECTORY`), or beside the control socket without one.
    pub(super) fn open(device: &str, control: &Path) -> (Self, Vec<(Hit, Vec<IpAddr>)>) {
        let beside = || control.with_extension("peers");
        let state = trusted::state_directory();
        let path = state.map_or_else(beside, |state| state.join(format!("{device}.peers")));
        Self::open_at(path)
    }

    fn open_at(path: PathBuf) -> (Self, Vec<(Hit, Vec<IpAddr>)>) {
        let written = match trusted::read(&path, Purpose::Left, LARGEST) {
            Ok(text) => text,
            Err(distrust) => {
                if !distrust.is_absence() {
                    let path = path.display();
                    tracing::warn!("where peers were, in {path}, is not read: {distrust}");
                }
                String::new()
            }
        };
        let known = written.lines().filter_map(parse).collect();
        let file = Self {
            path,
            written,
            is_behind: false,
            may_write_at: Instant::ZERO,
            has_failed: false,
        };
        (file, known)
    }

    /// Notes that a peer may be elsewhere than the file says.
    pub(super) fn note(&mut self) {
        self.is_behind = true;
    }

    /// Writes down where the peers are now, if that may have changed and was looked at a second ago or longer.
    pub(super) fn keep(&mut self, now: Instant, host: &Host) {
        if self.is_behind && now >= self.may_write_at {
            self.write(now, host);
        }
    }

    /// Writes down where the peers are now, if that has changed.
    pub(super) fn write(&mut self, now: Instant, host: &Host) {
        let text = text(host.whereabouts());
        self.is_behind = false;
        self.may_write_at = now + PAUSE;
        if text == self.written {
            return;
        }
        match trusted::replace(&self.path, text.as_bytes()) {
            Ok(()) => self.written = text,
            Err(error) => {
                self.is_behind = true;
                self.may_write_at = now + PAUSE_AFTER_FAILURE;
                if !self.has_failed {
                    let path = self.path.display();
                    tracing::warn!("where peers are is not kept in {path}: {error}");
                }
                self.has_failed = true;
            }
        }
    }

    /// The time at which something is to be written.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.is_behind.then_some(self.may_write_at)
    }
}

fn text(known: impl Iterator<Item = (Hit, Vec<IpAddr>)>) -> String {
    let mut text = String::new();
    for (peer, addresses) in known {
        let _ = write!(text, "{peer}");
        for address in addresses {
            let _ = write!(text, " {address}");
        }
        text.push('\n');
    }
    text
}

/// One line; `None` if nobody understands it.
fn parse(line: &str) -> Option<(Hit, Vec<IpAddr>)> {
    let mut words = line.split_ascii_whitespace();
    let peer: Ipv6Addr = words.next()?.parse().ok()?;
    let addresses: Result<Vec<IpAddr>, _> = words.map(str::parse).collect();
    Some((Hit::from(peer), addresses.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const PEER: &str = "2001:22:9a41:52b4:b4fe:7d2f:2b17:9f13";

    #[test]
    fn lines_that_nobody_understands_are_left_out() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("hip0.peers");
        let written = format!("{PEER} 192.0.2.7 2001:db8::7\n{PEER} here\n\nnobody 192.0.2.1\n");
        fs::write(&path, &written).expect("ours");
        let (_, known) = Whereabouts::open_at(path);
        let peer = Hit::from(PEER.parse::<Ipv6Addr>().expect("a tag"));
        let addresses = ["192.0.2.7", "2001:db8::7"].map(|one| one.parse().expect("an address"));
        assert_eq!(known, [(peer, addresses.to_vec())]);
        assert_eq!(
            text(known.into_iter()),
            format!("{PEER} 192.0.2.7 2001:db8::7\n")
        );
    }

    #[test]
    fn what_has_changed_is_written_at_most_once_a_second_and_after_a_failure_again() {
        use outlast_hip::identity::{Algorithm, Identity};
        use outlast_hip::{Config, Peer};
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("missing").join("hip0.peers");
        let (mut file, known) = Whereabouts::open_at(path.clone());
        assert_eq!(known, []);
        let peer = Hit::from(PEER.parse::<Ipv6Addr>().expect("a tag"));
        let mut now = Instant::ZERO + Duration::from_secs(1);
        let identity = Identity::from_seed(Algorithm::EcdsaP256, [1; 32]).expect("a key");
        let mut host = Host::new(now, Config::default(), identity, [1; 32]);
        host.set_peers([(peer, Peer::default())]);
        let move_to = |host: &mut Host, address: &str| {
            host.recall([(peer, vec![address.parse().expect("an address")])]);
        };
        move_to(&mut host, "192.0.2.7");
        file.note();
        file.keep(now, &host);
        assert_eq!(file.poll_timeout(), Some(now + PAUSE_AFTER_FAILURE));
        fs::create_dir(place.path().join("missing")).expect("ours");
        now += PAUSE_AFTER_FAILURE;
        file.keep(now, &host);
        let written = || fs::read_to_string(&path).expect("it is there");
        assert_eq!(written(), format!("{PEER} 192.0.2.7\n"));
        assert_eq!(file.poll_timeout(), None);
        move_to(&mut host, "192.0.2.8");
        file.note();
        file.keep(now, &host);
        assert_eq!(file.poll_timeout(), Some(now + PAUSE));
        assert_eq!(written(), format!("{PEER} 192.0.2.7\n"), "too soon");
        file.keep(now + PAUSE, &host);
        assert_eq!(written(), format!("{PEER} 192.0.2.8\n"));
        move_to(&mut host, "192.0.2.9");
        file.write(now + PAUSE, &host);
        assert_eq!(written(), format!("{PEER} 192.0.2.9\n"), "before it ends");
    }

    #[test]
    fn a_file_that_somebody_else_may_write_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("hip0.peers");
        fs::write(&path, format!("{PEER} 192.0.2.7\n")).expect("ours");
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
        mode(0o666).expect("ours");
        assert_eq!(Whereabouts::open_at(path.clone()).1, []);
        mode(0o600).expect("ours");
        assert_eq!(Whereabouts::open_at(path.clone()).1.len(), 1);
    }
}
