//! Who is at the other end of a Unix socket.

use crate::sys::peer;
use rustix::fd::AsFd;
use std::io;

/// The user and the groups that a process had when it connected. The kernel says so, not the
/// process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Credentials {
    /// Its effective user.
    pub user: u32,
    /// Its effective group first, then the supplementary ones.
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The credentials of the process that connected `socket`.
    ///
    /// # Errors
    /// When `socket` is not a connected Unix socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let (user, group) = peer::credentials(socket.as_fd())?;
        let mut groups = vec![group];
        groups.extend(peer::groups(socket.as_fd())?);
        Ok(Self { user, groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_process_that_talks_to_itself_has_its_own_credentials() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let peer = Credentials::of(&one).expect("connected");
        assert_eq!(peer.user, rustix::process::geteuid().as_raw());
        assert_eq!(peer.groups[0], rustix::process::getegid().as_raw());
        let mut supplementary: Vec<_> = rustix::process::getgroups()
            .expect("groups")
            .iter()
            .map(|group| group.as_raw())
            .collect();
        let mut told = peer.groups[1..].to_vec();
        supplementary.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, supplementary);
    }
}
