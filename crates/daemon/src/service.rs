//! What the service manager is told (sd_notify(3)), if one started us: the protocol of
//! `Type=notify-reload`, and a sign of life where it watches.
//!
//! A manager that does not read never makes the daemon wait: news that finds no room waits itself,
//! and is sent again.

use outlast_base::time::{Duration, Instant};
use sd_notify::NotifyState;
use std::collections::VecDeque;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Between two attempts to send what found no room.
const RETRY: Duration = Duration::from_millis(250);

/// News that waits at most; the oldest goes, as later news supersedes it.
const MOST_WAITING: usize = 16;

/// What is told to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    /// Where the service manager listens; `None`: there is none, or it cannot be told.
    manager: Option<Manager>,
    /// The watchdog bites after twice this.
    pause: Option<Duration>,
    next: Option<Instant>,
    /// News that found no room, in order.
    waiting: VecDeque<String>,
    /// When it is sent again.
    retry: Option<Instant>,
}

/// A way to the service manager that never waits.
#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Manager {
    /// The manager at `NOTIFY_SOCKET`: a path, or a name of the abstract namespace after `@`.
    fn open(name: &[u8]) -> io::Result<Self> {
        let address = match name.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    fn send(&self, news: &str) -> io::Result<()> {
        let sent = self.socket.send_to_addr(news.as_bytes(), &self.address);
        sent.map(|_| ())
    }
}

impl Service {
    /// Whoever started us.
    pub(super) fn new(now: Instant) -> Self {
        let name = std::env::var_os("NOTIFY_SOCKET");
        let manager = name.and_then(|name| {
            let opened = Manager::open(name.as_bytes());
            let opened = opened.inspect_err(|error| {
                tracing::warn!(%error, "cannot tell the service manager");
            });
            opened.ok()
        });
        Self::with(now, manager, sd_notify::watchdog_enabled())
    }

    fn with(now: Instant, manager: Option<Manager>, watchdog: Option<Duration>) -> Self {
        let pause = watchdog.map(|patience| patience / 2);
        Self {
            manager,
            pause,
            next: pause.map(|_| now),
            waiting: VecDeque::new(),
            retry: None,
        }
    }

    /// Packets are looked after from now on.
    pub(super) fn ready(&mut self, now: Instant, status: &str) {
        self.tell(now, &[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The configuration is being read; [`Self::ready`] ends that.
    pub(super) fn reloading(&mut self, now: Instant) {
        match NotifyState::monotonic_usec_now() {
            Ok(at) => self.tell(now, &[NotifyState::Reloading, at]),
            Err(error) => tracing::warn!(%error, "cannot tell the service manager of a reload"),
        }
    }

    /// The end.
    pub(super) fn stopping(&mut self, now: Instant) {
        self.tell(now, &[NotifyState::Stopping]);
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.next, self.retry].into_iter().flatten().min()
    }

    /// Gives a sign of life if it is time: the loop comes round. Sends again what found no room.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.retry.is_some_and(|retry| retry <= now) {
            self.send_waiting(now);
        }
        if let Some(pause) = self.pause
            && self.next.is_some_and(|next| next <= now)
        {
            // The next one is as good as this one.
            if self.waiting.is_empty() {
                self.tell(now, &[NotifyState::Watchdog]);
            }
            self.next = Some(now + pause);
        }
    }

    fn tell(&mut self, now: Instant, state: &[NotifyState<'_>]) {
        if self.manager.is_none() {
            return;
        }
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        let lines = state.iter().map(|state| format!("{state}\n"));
        self.waiting.push_back(lines.collect());
        self.send_waiting(now);
    }

    fn send_waiting(&mut self, now: Instant) {
        self.retry = None;
        let Some(manager) = &self.manager else {
            return;
        };
        while let Some(news) = self.waiting.front() {
            match manager.send(news) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.retry = Some(now + RETRY);
                    return;
                }
                Err(error) => tracing::warn!(%error, "cannot tell the service manager"),
            }
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(manager: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 256];
        let length = manager.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }

    /// A service that is watched every two seconds, and its manager, which has read nothing.
    fn watched(place: &tempfile::TempDir) -> (Service, UnixDatagram) {
        let path = place.path().join("notify.sock");
        let manager = UnixDatagram::bind(&path).expect("ours");
        manager.set_nonblocking(true).expect("a socket");
        let open = Manager::open(path.as_os_str().as_bytes()).expect("it listens");
        let patience = Some(Duration::from_secs(2));
        (Service::with(Instant::ZERO, Some(open), patience), manager)
    }

    #[test]
    fn a_manager_that_does_not_read_makes_nobody_wait_and_hears_all_news_later() {
        let place = tempfile::TempDir::new().expect("a temporary directory");
        let (mut service, manager) = watched(&place);
        let mut now = Instant::ZERO;
        // However long a queue this machine allows: it is full at some time, and a send that waited
        // would never return.
        while service.retry.is_none() {
            service.handle_timeout(now);
            now += Duration::from_secs(1);
        }
        service.reloading(now);
        service.ready(now, "link up");
        let next = service.poll_timeout().expect("it tries again");
        assert!(next <= now + RETRY, "{next:?}");
        while let Some(news) = heard(&manager) {
            assert_eq!(news, "WATCHDOG=1\n");
        }
        now += RETRY;
        service.handle_timeout(now);
        let later: Vec<String> = std::iter::from_fn(|| heard(&manager)).collect();
        let at = |word| later.iter().position(|news| news.contains(word));
        let (reloading, ready) = (at("RELOADING=1"), at("READY=1\nSTATUS=link up"));
        assert!(reloading.is_some() && reloading < ready, "{later:?}");
        assert!(service.waiting.is_empty());
    }

    #[test]
    fn what_waits_is_bounded() {
        let place = tempfile::TempDir::new().expect("a temporary directory");
        let (mut service, manager) = watched(&place);
        for n in 0..10_000 {
            service.ready(Instant::ZERO, &n.to_string());
        }
        assert!(service.waiting.len() <= MOST_WAITING);
        // Its queue may have room for less than waits.
        let mut now = Instant::ZERO;
        let mut last = None;
        while !service.waiting.is_empty() {
            last = std::iter::from_fn(|| heard(&manager)).last().or(last);
            now += RETRY;
            service.send_waiting(now);
        }
        last = std::iter::from_fn(|| heard(&manager)).last().or(last);
        let last = last.expect("it was told when there was room");
        assert!(last.contains("9999"), "{last}");
    }

    #[test]
    fn a_name_of_the_abstract_namespace_is_known() {
        let name = format!("outlast-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let manager = UnixDatagram::bind_addr(&address).expect("ours");
        let open = Manager::open(format!("@{name}").as_bytes()).expect("it listens");
        let mut service = Service::with(Instant::ZERO, Some(open), None);
        service.stopping(Instant::ZERO);
        assert_eq!(heard(&manager).as_deref(), Some("STOPPING=1\n"));
    }
}
