//! What `outlast status` shows of the roles `hip` and `rendezvous`.

use crate::status::text::{push_line, several, time};
use outlast_base::time::Instant;
use outlast_hip::{Counters, Host, Refusal, View};
use outlast_report::unit::Unit;
use outlast_wire::hip::Hit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Associations that are shown to people; of others only how many there are.
const SHOWN: usize = 20;

/// How a daemon is that speaks HIP. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HipStatus {
    /// `hip` or `rendezvous`.
    pub(super) role: String,
    /// This host's tag.
    pub(super) tag: Ipv6Addr,
    /// This host's LSI, by which applications know it that have no IPv6.
    pub(super) lsi: Option<Ipv4Addr>,
    /// The TUN device.
    pub(super) device: String,
    pub(super) config: String,
    /// Where metrics are served.
    pub(super) metrics: Option<String>,
    pub(super) running_s: f64,
    /// This host's addresses, the preferred one first.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) associations: Vec<Association>,
    /// Hosts that are registered here.
    pub(super) registrations: Vec<Registration>,
    pub(super) counters: Counts,
    /// Packets dropped, by reason.
    pub(super) refused: BTreeMap<String, u64>,
}

/// An association with another host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Association {
    /// The other host's tag.
    pub(super) peer: Ipv6Addr,
    /// What people call it.
    pub(super) name: Option<String>,
    /// The LSI that stands for it here.
    pub(super) lsi: Option<Ipv4Addr>,
    /// As in RFC 7401, section 4.4.2.
    pub(super) state: String,
    /// Why the last exchange failed.
    pub(super) failure: Option<String>,
    /// The other host's addresses, the preferred one first.
    pub(super) addresses: Vec<Address>,
    pub(super) spi_in: Option<u32>,
    pub(super) spi_out: Option<u32>,
    /// Packets that wait for a path.
    pub(super) waiting: u64,
    /// Applications' packets that went to the other host since the base exchange.
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    /// Readdressings that are complete.
    pub(super) readdressings: u64,
    pub(super) last_readdressing: Option<Last>,
    /// For how long the keys for data have been in use.
    #[serde(default)]
    pub(super) keys_for_s: Option<f64>,
    /// How often keys for data were replaced since the base exchange.
    #[serde(default)]
    pub(super) rekeyings: u64,
    /// How often the other host has not answered an offer of new keys.
    #[serde(default)]
    pub(super) failed_rekeyings: u64,
    /// For how long this host is registered there.
    pub(super) registered_for_s: Option<f64>,
}

/// An address of another host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Address {
    pub(super) address: IpAddr,
    /// `unverified`, `active` or `deprecated` (RFC 8046, section 5.1).
    pub(super) state: String,
}

/// The last readdressing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Last {
    /// Where the other host was reached then.
    pub(super) address: IpAddr,
    /// From its first packet to its end.
    pub(super) took_s: f64,
    /// Since its end.
    pub(super) ago_s: f64,
}

/// A host that is registered at a rendezvous server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Registration {
    pub(super) client: Ipv6Addr,
    /// Time until it ends, unless it is renewed.
    pub(super) for_s: f64,
}

/// Counts since the daemon began.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Counts {
    /// R1 packets sent.
    pub(super) r1_sent: u64,
    /// Diffie-Hellman agreements computed for I2 packets.
    pub(super) agreements: u64,
    /// Packets forwarded to registered hosts.
    pub(super) forwarded: u64,
    /// Applications' packets sealed.
    pub(super) sealed: u64,
    /// Packets delivered to applications.
    pub(super) opened: u64,
}

/// What the daemon adds to what its host tells.
pub(super) struct About<'a> {
    pub(super) role: &'a str,
    pub(super) device: &'a str,
    pub(super) config: String,
    pub(super) metrics: Option<String>,
    pub(super) began: Instant,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) lsi: Option<Ipv4Addr>,
    pub(super) names: BTreeMap<Hit, &'a str>,
}

impl HipStatus {
    pub(super) fn of(now: Instant, host: &Host, about: About<'_>) -> Self {
        let About {
            role,
            device,
            config,
            metrics,
            began,
            addresses,
            lsi,
            names,
        } = about;
        let registrations = host.registrations(now).map(|(client, ends)| Registration {
            client: client.address(),
            for_s: ends.since(now).as_secs_f64(),
        });
        let counters = host.counters();
        let refused = Refusal::ALL.map(|refusal| {
            let count = counters.refused(refusal);
            (refusal.name().to_owned(), count)
        });
        Self {
            role: role.into(),
            tag: host.hit().address(),
            lsi,
            device: device.into(),
            config,
            metrics,
            running_s: now.since(began).as_secs_f64(),
            addresses,
            associations: host
                .views()
                .map(|view| {
                    let known = [Some(view.peer), view.stand_in].into_iter().flatten();
                    let name = known.filter_map(|key| names.get(&key)).next().copied();
                    Association::of(now, view, name)
                })
                .collect(),
            registrations: registrations.collect(),
            counters: Counts::from(counters),
            refused: refused.into_iter().collect(),
        }
    }

    /// Everything, in so many columns; in as many as it takes if there is no end to them.
    #[must_use]
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| push_line(&mut text, columns, name, value);
        line("role", &format!("{} on {}", self.role, self.device));
        line("tag", &self.tag.to_string());
        if let Some(lsi) = &self.lsi {
            line("lsi", &lsi.to_string());
        }
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        let addresses = match &addresses[..] {
            [] => "none".into(),
            addresses => addresses.join(", "),
        };
        line("addresses", &addresses);
        line("configuration", &self.config);
        if let Some(metrics) = &self.metrics {
            line("metrics", metrics);
        }
        line("running", &time(self.running_s));
        line("counted", &self.counted());
        line("refused", &self.told_refusals());
        if self.role == super::Kind::Rendezvous.name() {
            let count = self.registrations.len() as u64;
            line("registered", &several(count, "host"));
        }
        line("associations", &self.associations.len().to_string());
        for association in self.associations.iter().take(SHOWN) {
            association.tell(&mut line);
        }
        if let Some(more @ 1..) = self.associations.len().checked_sub(SHOWN) {
            line("", &format!("and {more} more, which --json shows"));
        }
        text
    }

    fn counted(&self) -> String {
        let Counts {
            r1_sent,
            agreements: _,
            forwarded,
            sealed,
            opened,
        } = self.counters;
        format!(
            "{} sent, {opened} received, {forwarded} forwarded, {r1_sent} answers to first packets",
            several(sealed, "packet")
        )
    }

    fn told_refusals(&self) -> String {
        let all = self.refused.iter().filter(|(_, count)| **count > 0);
        let all: Vec<_> = all
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        match &all[..] {
            [] => "none".into(),
            all => all.join(", "),
        }
    }
}

impl From<&Counters> for Counts {
    fn from(counters: &Counters) -> Self {
        // All of them: who adds one is told here that it is to be shown.
        let Counters {
            refused: _,
            r1_sent,
            agreements,
            forwarded,
            sealed,
            opened,
        } = *counters;
        Self {
            r1_sent,
            agreements,
            forwarded,
            sealed,
            opened,
        }
    }
}

impl Association {
    fn of(now: Instant, view: View, name: Option<&str>) -> Self {
        // All of it, as above.
        let View {
            peer,
            stand_in: _,
            lsi,
            state,
            failure,
            addresses,
            spis,
            waiting,
            sent,
            received,
            readdressings,
            last_readdressing,
            keys_since,
            rekeyings,
            failed_rekeyings,
            registered_until,
        } = view;
        let addresses = addresses.iter().map(|known| Address {
            address: known.address,
            state: known.state.name().into(),
        });
        let registered_until = registered_until.filter(|until| *until > now);
        Self {
            peer: peer.address(),
            name: name.map(str::to_owned),
            lsi,
            state: state.name().into(),
            failure: failure.map(|failure| failure.to_string()),
            addresses: addresses.collect(),
            spi_in: spis.map(|(inbound, _)| inbound),
            spi_out: spis.map(|(_, outbound)| outbound),
            waiting: waiting as u64,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            received_packets: received.packets,
            received_bytes: received.bytes,
            readdressings,
            last_readdressing: last_readdressing.map(|last| Last {
                address: last.address,
                took_s: last.took.as_secs_f64(),
                ago_s: now.since(last.ended).as_secs_f64(),
            }),
            keys_for_s: keys_since.map(|since| now.since(since).as_secs_f64()),
            rekeyings,
            failed_rekeyings,
            registered_for_s: registered_until.map(|until| until.since(now).as_secs_f64()),
        }
    }

    fn tell(&self, line: &mut dyn FnMut(&str, &str)) {
        let why = self.failure.as_ref();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        line("association", &format!("{} {}{why}", self.peer, self.state));
        let lsi = self.lsi.map(|lsi| format!("lsi {lsi}"));
        let known: Vec<_> = self.name.iter().chain(&lsi).map(String::as_str).collect();
        if !known.is_empty() {
            line("", &known.join(", "));
        }
        let addresses = self.addresses.iter();
        let addresses: Vec<_> = addresses
            .map(|known| format!("{} ({})", known.address, known.state))
            .collect();
        if !addresses.is_empty() {
            line("", &format!("at {}", addresses.join(", ")));
        }
        let volume = |packets, bytes| {
            let bytes = Unit::Bytes.show(bytes as f64);
            format!("{} ({bytes})", several(packets, "packet"))
        };
        let (sent, received) = (
            volume(self.sent_packets, self.sent_bytes),
            volume(self.received_packets, self.received_bytes),
        );
        let waiting = self.waiting;
        line(
            "",
            &format!("sent {sent}, received {received}, waiting {waiting}"),
        );
        if let Some(last) = &self.last_readdressing {
            let Last {
                address,
                took_s,
                ago_s,
            } = last;
            let (times, ago) = (several(self.readdressings, "time"), time(*ago_s));
            line(
                "",
                &format!("readdressed {times}, last to {address} in {took_s:.3} s, {ago} ago"),
            );
        }
        if let Some(age) = self.keys_for_s {
            let (times, age) = (several(self.rekeyings, "time"), time(age));
            let failed = match self.failed_rekeyings {
                0 => String::new(),
                count => format!(", {} without an answer", several(count, "offer")),
            };
            line("", &format!("keys {age} old, replaced {times}{failed}"));
        }
        if let Some(left) = self.registered_for_s {
            line(
                "",
                &format!("this host is registered there for {}", time(left)),
            );
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page;
    use serde_json::Value;

    /// A host with one association and one that failed.
    pub(in crate::hip) fn sample() -> HipStatus {
        serde_json::from_str(include_str!("sample.json")).expect("a status")
    }

    #[test]
    fn its_form_can_be_read_again() {
        let value: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
        let written = serde_json::to_value(sample()).expect("JSON");
        assert_eq!(
            written, value,
            "the sample lacks a field, or has one too many"
        );
    }

    #[test]
    fn what_people_see_is_in_the_page() {
        let seen = sample().to_text(Some(100));
        page::assert_part("docs/hip.md", "status", &format!("```text\n{seen}```\n"));
    }

    #[test]
    fn of_very_many_associations_some_are_shown() {
        let mut status = sample();
        let one = status.associations[0].clone();
        status.associations = vec![one; SHOWN + 3];
        let text = status.to_text(None);
        assert_eq!(text.matches("association   ").count(), SHOWN);
        assert!(text.contains("and 3 more, which --json shows"), "{text}");
    }
}
