//! A mobile, a gateway and a fixed host whose gateway is told of its link by hand, with a daemon there or without.

use super::{Daemon, Over, skip};
use crate::support::{Place, again};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Cut, Neighbours, Place as Host, Site, SiteConfig};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// A link of 10 Mbit/s and 40 ms.
pub(crate) struct ToldSite {
    place: Place,
    pub(crate) site: Site,
    daemon: Option<Daemon>,
}

impl ToldSite {
    /// With a daemon on the gateway over that data path, or without; `None`, after a word why, where this machine lacks
    /// what that needs.
    pub(crate) fn new(over: Option<Over>) -> Option<Self> {
        Self::with_sack(over, true)
    }

    /// Its hosts permit SACK or do not.
    pub(crate) fn with_sack(over: Option<Over>, sack: bool) -> Option<Self> {
        Self::with_stack(over, sack, "cubic")
    }

    /// Its hosts permit SACK or do not, and have that congestion control.
    pub(crate) fn with_stack(over: Option<Over>, sack: bool, congestion: &str) -> Option<Self> {
        let config = SiteConfig {
            rate: BitRate::from_bits_per_second(10_000_000).expect("not zero"),
            delay: Duration::from_millis(20),
            queue: 100,
            congestion,
            sack,
            neighbours: Neighbours::AsUsual,
        };
        let place = Place::new();
        let site = Site::new(&config).inspect_err(|error| skip(error)).ok()?;
        let daemon = match over {
            Some(over) => Some(Daemon::start_over(over, &place, &site.gateway, "hold")?),
            None => None,
        };
        Some(Self {
            place,
            site,
            daemon,
        })
    }

    /// One host sends to the other as fast as it can: its socket, and when something was read.
    pub(crate) fn transfer(&self, from: Host, to: Host) -> (TcpStream, Receiver<Instant>) {
        let listen = || TcpListener::bind((to.address(IpVersion::V4), 0)).expect("a port");
        let listener = self.home(to).run(listen).expect("enter");
        let to = listener.local_addr().expect("bound");
        let (say, read) = mpsc::channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody sends");
            let mut buffer = vec![0; 1 << 16];
            while matches!(again(|| stream.read(&mut buffer)), Ok(1..)) {
                if say.send(clock::now()).is_err() {
                    break;
                }
            }
        });
        let connect = || TcpStream::connect(to).expect("it listens");
        let sender = self.home(from).run(connect).expect("enter");
        let mut sends = sender.try_clone().expect("a descriptor");
        thread::spawn(move || while again(|| sends.write_all(&[1; 1 << 16])).is_ok() {});
        (sender, read)
    }

    /// The link goes, and the mobile host does not see it: who has no carrier tries again twice a second.
    pub(crate) fn cut(&self) {
        self.site.cut(Cut::BlackHole).expect("the link lives");
    }

    /// The daemon is told so.
    pub(crate) fn tell_down(&self) {
        self.tell("down");
    }

    /// The link is back, and the daemon is told; when it was.
    pub(crate) fn mend(&self) -> Instant {
        let back = self.site.mend().expect("the link lives");
        self.tell("up");
        back
    }

    /// What `outlast status --json` says once `is_so` holds of it.
    ///
    /// # Panics
    ///
    /// Where there is no daemon, or it never holds.
    #[track_caller]
    pub(crate) fn status_when(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let daemon = self.daemon.as_ref().expect("it was asked for");
        daemon.status_when(what, is_so)
    }

    fn home(&self, host: Host) -> &Namespace {
        match host {
            Host::Fixed => &self.site.fixed,
            Host::Inner | Host::Outer => &self.site.gateway,
            Host::Mobile => &self.site.mobile,
        }
    }

    fn tell(&self, state: &str) {
        if let Some(daemon) = &self.daemon {
            let said = daemon.ask(&self.place, &["notify", state]);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
    }

    pub(crate) fn stop(self) {
        if let Some(daemon) = self.daemon {
            daemon.stop();
        }
    }
}
