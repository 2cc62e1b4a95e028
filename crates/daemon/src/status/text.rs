//! What `outlast status` shows to people.

use super::{Counters, Damped, Flow, Kernel, Link, PeerDown, Resume, Silent, Status, Tables};
use outlast_base::units::BitRate;
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_scenario::keys::Kind;
use std::fmt::Write as _;
use std::net::IpAddr;

/// Peers that are listed; of others only how many there are.
const PEERS: usize = 10;
/// What values stand behind, for those that take more than a line.
const INDENT: &str = "              ";
/// Outages of which is told.
const OUTAGES: usize = 5;
/// Connections that moved again of which is told.
const RESUMES: usize = 5;

impl Status {
    /// Everything but the connections, in so many columns; in as many as it takes if there is no
    /// end to them.
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| push_line(&mut text, columns, name, value);
        line("interface", &self.interface);
        if let Some(of) = &self.port_of {
            let warning = format!("a port of {of}, which takes every packet: run it on {of}");
            line("", &warning);
        }
        line("mechanism", &self.mechanism);
        if self.acknowledges_ahead {
            line("", "acknowledges what the receiver has not");
        }
        line("data path", &self.data_path);
        let config = self.config.as_deref().unwrap_or("none");
        line("configuration", config);
        if let Some(metrics) = &self.metrics {
            line("metrics", metrics);
        }
        line("running", &time(self.running_s));
        let Link { state, for_s, by } = &self.link;
        let rate = self.rate_bits_per_s.and_then(BitRate::from_bits_per_second);
        let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
        let why = match (state.as_str(), by.as_str()) {
            ("down", by @ ("carrier" | "address" | "route" | "notify")) => format!(" ({by})"),
            _ => String::new(),
        };
        line("link", &format!("{state} for {}{why}{rate}", time(*for_s)));
        self.tell_links(&mut line);
        line("flows", &format!("{} of {}", self.flows, self.limits.flows));
        line("held", &self.held());
        if let Some(resident) = self.resident_bytes {
            let resident = Unit::Bytes.show(resident as f64);
            line("memory", &format!("{resident} of this process"));
        }
        if let Some(tables) = &self.tables {
            line("tables", &tables.to_text());
        }
        line("counted", &self.counted());
        self.tell_refused(&mut line);
        if let Some(compression) = self.counters.compression() {
            line("compression", &compression);
        }
        if let Some(kernel) = &self.kernel {
            line("in the kernel", &kernel.to_text());
        }
        let mut caps = self.counters.caps_reached().peekable();
        let evicted = self.kernel.map_or(0, |kernel| kernel.evicted);
        if evicted > 0 {
            line(
                "cap reached",
                &format!(
                    "flows {evicted}: connections that gave way to others, since the kernel's table \
                     was full (limits.flows)"
                ),
            );
        }
        if caps.peek().is_none() && evicted == 0 {
            line("caps reached", "none");
        }
        for (cap, what, count) in caps {
            line(
                "cap reached",
                &format!("{cap} {count}: {}", uncapital(what)),
            );
        }
        self.tell_past(&mut line);
        text
    }

    /// The last outages, and the last connections that moved again.
    fn tell_past(&self, line: &mut dyn FnMut(&str, &str)) {
        for outage in self.outages.iter().rev().take(OUTAGES) {
            line("outage", &outage.to_text_ago());
        }
        for resume in self.resumes.iter().rev().take(RESUMES) {
            line("resumed", &resume.to_text());
        }
    }

    /// Peers, neighbours, and links that are doubted.
    fn tell_links(&self, line: &mut dyn FnMut(&str, &str)) {
        for PeerDown { peer, for_s, by } in self.peers_down.iter().take(PEERS) {
            line("peer", &format!("{peer} down for {} ({by})", time(*for_s)));
        }
        if let Some(more @ 1..) = self.peers_down.len().checked_sub(PEERS) {
            line("", &format!("and {more} more peers down"));
        }
        for (name, value) in self
            .agents
            .iter()
            .flat_map(super::neighbours::Agents::lines)
        {
            line(name, &value);
        }
        for silent in self.silent.iter().take(PEERS) {
            line("silent", &silent.to_text());
        }
        if let Some(more @ 1..) = self.silent.len().checked_sub(PEERS) {
            line("", &format!("and {more} more silent links"));
        }
        for damped in self.damped.iter().take(PEERS) {
            line("damped", &damped.to_text());
        }
        if let Some(more @ 1..) = self.damped.len().checked_sub(PEERS) {
            line("", &format!("and {more} more damped links"));
        }
    }

    fn held(&self) -> String {
        let caps = &self.limits;
        format!(
            "{} of {} for TCP, {} of {} of others",
            Unit::Bytes.show(self.held_bytes as f64),
            size(caps.held_in_all_bytes),
            Unit::Bytes.show(self.held_other_bytes as f64),
            size(caps.other_bytes),
        )
    }

    /// Packets that a firewall or IPsec of this host kept from leaving.
    fn tell_refused(&self, line: &mut dyn FnMut(&str, &str)) {
        let Counters {
            forbidden,
            unprotected,
            ..
        } = self.counters;
        for (name, packets, why) in [
            ("firewall", forbidden, "dropped by a rule of this host"),
            (
                "IPsec",
                unprotected,
                "not sent, as a policy might not hold for them",
            ),
        ] {
            if packets > 0 {
                let packets = several(packets, "packet");
                line(name, &format!("{packets} {why}"));
            }
        }
    }

    fn counted(&self) -> String {
        let counters = &self.counters;
        let all = [
            several(counters.packets, "packet"),
            format!("{} taken", counters.taken),
            format!("{} re-sent", counters.resent),
            several(counters.acks_resent, "acknowledgement") + " re-sent",
            several(counters.probes, "probe"),
            several(counters.kicks_repeated, "kick") + " repeated",
            several(counters.resumes, "resume"),
        ];
        all.join(", ")
    }

    /// The connections, if they were asked for.
    pub fn flow_table(&self) -> Option<Table> {
        let flows = self.flow_list.as_ref()?;
        // What all have in common stands above.
        let names_mechanism = flows.iter().any(|flow| flow.mechanism != self.mechanism);
        let mut columns = vec![
            Column::text("near", "near"),
            Column::text("far", "far"),
            Column::quantity("held_bytes", "held", Unit::Bytes),
            Column::quantity("outstanding_bytes", "unacked", Unit::Bytes),
            Column::quantity("rtt_s", "RTT", Unit::Seconds),
            Column::quantity("idle_s", "idle", Unit::Seconds),
        ];
        let has_shares = flows.iter().any(|flow| flow.share_bits_per_s.is_some());
        let share = || Column::quantity("share_bits_per_s", "share", Unit::BitsPerSecond);
        columns.extend(has_shares.then(share));
        columns.extend(names_mechanism.then(|| Column::text("mechanism", "mechanism")));
        columns.push(Column::text("doing", "doing"));
        let mut table = Table::new(columns);
        for flow in flows {
            table.push(flow.row(has_shares, names_mechanism));
        }
        let more = self.flows.saturating_sub(flows.len());
        if more > 0 {
            table.note(format!(
                "{more} more keep no more than these; --limit shows up to {}.",
                super::flows::MOST
            ));
        }
        Some(table)
    }
}

impl Counters {
    /// What compression has done; `None` if nothing.
    fn compression(&self) -> Option<String> {
        if self.compression_offers + self.compression_agreed + self.restored == 0 {
            return None;
        }
        let mut parts = vec![several(self.compressed, "segment")];
        if self.compressed_from_bytes > 0 {
            let share = self.compressed_to_bytes as f64 / self.compressed_from_bytes as f64;
            let (share, from) = (
                Unit::Share.show(share),
                Unit::Bytes.show(self.compressed_from_bytes as f64),
            );
            parts.push(format!("{share} of {from}"));
        }
        parts.push(format!("{} incompressible", self.incompressible));
        parts.push(format!("{} restored", self.restored));
        Some(parts.join(", "))
    }
}

impl Flow {
    fn row(&self, has_shares: bool, names_mechanism: bool) -> Vec<Cell> {
        let mut doing = self.doing.clone();
        if self.phase != "established" {
            doing = format!("{doing}, {}", self.phase);
        }
        if !self.why.is_empty() {
            doing = format!("{doing}: {}", self.why);
        }
        let tone = match &self.link[..] {
            "down" => Tone::Warning,
            _ => Tone::Plain,
        };
        let mut row = vec![
            self.near.as_str().into(),
            self.far.as_str().into(),
            self.held_bytes.into(),
            self.outstanding_bytes.into(),
            self.rtt_s.map_or(Cell::missing(), Cell::from),
            self.idle_s.into(),
        ];
        let share = || self.share_bits_per_s.map_or(Cell::missing(), Cell::from);
        row.extend(has_shares.then(share));
        row.extend(names_mechanism.then(|| self.mechanism.as_str().into()));
        row.push(Cell::from(doing).tone(tone));
        row
    }
}

impl Kernel {
    fn to_text(self) -> String {
        let Self {
            tracked,
            odd_segments,
            recorded,
            thinned,
            diversions,
            ..
        } = self;
        let not_copied = match thinned {
            0 => String::new(),
            some => format!(", {some} not, for the link is too fast"),
        };
        format!(
            "{} tracked, {odd_segments} odd, {recorded} copied for a while{not_copied}, {} through \
             user space",
            several(tracked, "segment"),
            several(diversions, "time")
        )
    }
}

/// Adds a name and its value, folded to so many columns.
pub(crate) fn push_line(text: &mut String, columns: Option<usize>, name: &str, value: &str) {
    let folded = textwrap::Options::new(columns.unwrap_or(usize::MAX)).subsequent_indent(INDENT);
    let line = format!("{name:<13} {value}");
    let _ = writeln!(text, "{}", textwrap::fill(&line, &folded));
}

/// A number of things that have a regular plural.
pub(crate) fn several(count: u64, thing: &str) -> String {
    let ending = match thing {
        _ if count == 1 => "",
        thing if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {thing}{ending}")
}

/// Whose link it is.
fn whose(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "the link".into(), |peer| peer.to_string())
}

impl Silent {
    fn to_text(&self) -> String {
        let (whose, owed) = (whose(self.peer), time(self.for_s));
        format!("{whose} has not answered for {owed}; packets pass")
    }
}

impl Tables {
    fn to_text(self) -> String {
        let Self {
            connections_bytes,
            openings_bytes,
            recorder_bytes,
        } = self;
        let show = |bytes: u64| Unit::Bytes.show(bytes as f64);
        format!(
            "{} for connections, {} for handshakes, {} for copies, in the kernel",
            show(connections_bytes),
            show(openings_bytes),
            show(recorder_bytes)
        )
    }
}

impl Damped {
    pub(crate) fn to_text(&self) -> String {
        let Self {
            said,
            told,
            penalty,
            for_s,
            again_s,
            ..
        } = self;
        format!(
            "{} flaps since {}: {told} although said to be {said}, penalty {penalty}, again in {}",
            whose(self.peer),
            time(*for_s),
            time(*again_s)
        )
    }
}

impl Resume {
    fn to_text(&self) -> String {
        let Self {
            near,
            far,
            after_s,
            ago_s,
        } = self;
        format!(
            "{near} - {far}, {} after link-up, {} ago",
            soon(*after_s),
            time(*ago_s)
        )
    }
}

/// A size as the configuration has it: `256 MiB`.
fn size(bytes: u64) -> String {
    let written = Kind::Size(0, u64::MAX).write(bytes);
    written.expect("sizes are written with a unit")
}

/// A sentence as a part of another one.
fn uncapital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}

/// A time as people say it: `4.2 s`, `3 min 20 s`, `5 h 7 min`, `12 d 3 h`.
#[must_use]
pub fn time(seconds: f64) -> String {
    // A negative time is none: it was measured a moment later.
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3_600 % 24),
    }
}

/// A time that may be very short: `under 0.1 ms`, `0.4 ms`, `31 ms`, else as [`time`]; never zero.
#[must_use]
pub fn soon(seconds: f64) -> String {
    let millis = seconds * 1_000.0;
    match millis {
        ..0.1 => "under 0.1 ms".into(),
        0.1..9.95 => format!("{millis:.1} ms"),
        9.95..999.5 => format!("{millis:.0} ms"),
        _ => time(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_so_short_that_it_is_none() {
        for (seconds, said) in [
            (0.0, "under 0.1 ms"),
            (0.000_4, "0.4 ms"),
            (0.031, "31 ms"),
            (0.999_7, "1.0 s"),
            (61.0, "1 min 1 s"),
        ] {
            assert_eq!(soon(seconds), said);
        }
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        for (seconds, said) in [
            (0.04, "0.0 s"),
            (59.94, "59.9 s"),
            (61.0, "1 min 1 s"),
            (3_600.0, "1 h 0 min"),
            (1_000_000.0, "11 d 13 h"),
        ] {
            assert_eq!(time(seconds), said);
        }
    }
}
