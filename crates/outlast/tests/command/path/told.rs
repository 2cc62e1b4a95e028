//! A mobile, a gateway and a fixed host whose gateway is told of its link by hand, with a daemon there or without.

use super::{Daemon, Over, skip};
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_testbed::site::{Cut, Neighbours, Site, SiteConfig};

/// A link of 10 Mbit/s and 40 ms, CUBIC at both hosts.
pub(crate) struct ToldSite {
    place: Place,
    pub(crate) site: Site,
    daemon: Option<Daemon>,
}

impl ToldSite {
    /// With a daemon on the gateway over that data path, or without; `None`, after a word why, where this machine lacks
    /// what that needs.
    pub(crate) fn new(over: Option<Over>) -> Option<Self> {
        let config = SiteConfig {
            rate: BitRate::from_bits_per_second(10_000_000).expect("not zero"),
            delay: Duration::from_millis(20),
            queue: 100,
            congestion: "cubic",
            sack: true,
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
