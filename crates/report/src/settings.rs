//! What a scenario sets, in words: as one line, and as a table.
//!
//! ```
//! use outlast_report::settings;
//! use outlast_scenario::Scenario;
//!
//! let text = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[workload]\nkind = \"bulk\"\n\
//!             bytes = \"5 MB\"\n[outlast]\ngateway = \"hold\"";
//! let scenario = Scenario::parse(text, "a.toml", std::path::Path::new("."))?;
//! assert_eq!(
//!     settings::line(&scenario),
//!     "10 Mbit/s, 25 ms each way, always up. Download of 5 MB. Outlast: hold at the gateway."
//! );
//! # Ok::<(), outlast_scenario::ScenarioError>(())
//! ```

use crate::table::{Cell, Column, Table};
use crate::unit::Unit;
use crate::words::capitalised;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{InFlight, OutageProcess, PipeConfig, RateChange, WhileDown};
use outlast_scenario::{
    Direction, Hop, Indicators, LinkSettings, Mechanism, MobileIp, Pattern, Scenario, Stack,
    Traffic, Workload,
};

/// Link, workload and mechanisms of `scenario` in one line.
#[must_use]
pub fn line(scenario: &Scenario) -> String {
    let link = &scenario.link;
    let others = match scenario.connections().count() - 1 {
        0 => String::new(),
        1 => "; one more connection".to_owned(),
        n => format!("; {n} more connections"),
    };
    let task = capitalised(&task(&scenario.workload));
    format!(
        "{}, {}, {}. {task}{others}. Outlast: {}.",
        rate(link),
        delay(link),
        outages(scenario),
        mechanisms(scenario)
    )
}

/// The mechanisms of `scenario` and where they are: "hold at the gateway".
#[must_use]
pub fn mechanisms(scenario: &Scenario) -> String {
    let places: Vec<(String, Mechanism)> = placed(scenario);
    let mut words = Vec::new();
    for (place, mechanism) in &places {
        let before = places.iter().take_while(|(other, _)| other != place);
        if before.clone().any(|(_, other)| other == mechanism) {
            continue;
        }
        let alike = places.iter().filter(|(_, other)| other == mechanism);
        let alike: Vec<_> = alike.map(|(place, _)| place.as_str()).collect();
        words.push(format!("{mechanism} {}", alike.join(" and ")));
    }
    let timeout = scenario.outlast.user_timeout;
    words.extend(timeout.map(|timeout| format!("a user timeout of {}", time(timeout))));
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => words.join(", "),
    }
}

/// Each place with a mechanism.
fn placed(scenario: &Scenario) -> Vec<(String, Mechanism)> {
    let outlast = &scenario.outlast;
    let own = [
        ("at the gateway", outlast.gateway),
        ("at the mobile", outlast.mobile),
        ("on the fixed host", outlast.fixed),
        ("at the home agent", outlast.home_agent),
    ];
    let own = own.map(|(place, mechanism)| (place.to_owned(), mechanism));
    let hops = (1..).zip(&scenario.hops).flat_map(|(number, hop)| {
        let ends = [("fixed", hop.fixed_end), ("mobile", hop.mobile_end)];
        ends.map(|(end, mechanism)| (format!("at the {end} end of hop {number}"), mechanism))
    });
    let all = own.into_iter().chain(hops);
    all.filter(|(_, mechanism)| *mechanism != Mechanism::None)
        .collect()
}

/// How Mobile IP finds the mobile, and what is at its gateways.
fn places(mobile_ip: MobileIp) -> String {
    let (detection, delay) = (mobile_ip.detection, time(mobile_ip.delay));
    let away = match mobile_ip.foreign_agents {
        true => "foreign agents",
        false => "addresses of its own",
    };
    let home = mobile_ip
        .home
        .map(|home| format!(", home at gateway {home}"));
    let home = home.unwrap_or_default();
    format!("detection {detection}, {away}, {delay} to the home agent{home}")
}

/// Everything that `scenario` sets and that a reader of its results has to know, a row for each.
#[must_use]
pub fn table(scenario: &Scenario) -> Table {
    let mut rows = Rows::default();
    let link = &scenario.link;
    rows.push("Rate", rate(link));
    rows.push("Delay", delay(link));
    rows.push(
        "Queue",
        both(link, |pipe| format!("{} packets", pipe.queue)),
    );
    rows.push_unless_empty("Damage", damage(link));
    rows.push("MTU", format!("{} B", link.mtu));
    rows.push("Outages", outages(scenario));
    if scenario.link.outages != OutageProcess::AlwaysUp {
        let on_their_way = match link.in_flight {
            InFlight::Delivered => "delivered when the link goes down",
            InFlight::Lost => "lost when the link goes down",
        };
        rows.push("Packets on their way", on_their_way);
        if link.while_down == WhileDown::Queued {
            rows.push("Packets in the queue", "wait until the link is up again");
        }
    }
    for change in &link.rate_changes {
        rows.push("Rate changes", rate_change(change));
    }
    for (number, hop) in (1..).zip(&scenario.hops) {
        rows.push(&format!("Hop {number}"), hop_in_words(hop));
    }
    rows.push("Workload", task(&scenario.workload));
    for flow in &scenario.flows {
        let task = task(&flow.workload);
        let each = format!("{} × {task}, from {} on", flow.count, time(flow.begin));
        rows.push("Further connections", each);
    }
    for source in &scenario.traffic {
        rows.push("Cross traffic", traffic(source));
    }
    rows.push("Outlast", mechanisms(scenario));
    if scenario.has_outlast() {
        let indicators = match scenario.outlast.indicators {
            Indicators::Link => "the link tells at once",
            Indicators::Silence => "nobody tells: silence, and the first packet after it",
        };
        rows.push("Outages are known by", indicators);
    }
    if scenario.outlast.compresses {
        let text = format!("on, for content of the kind {}", scenario.content);
        rows.push("Compression", text);
    }
    if let Some(agents) = scenario.agents {
        let delay = time(agents.delay);
        rows.push("Between gateways", format!("messages take {delay} one way"));
    }
    if let Some(mobile_ip) = scenario.mobile_ip {
        rows.push("Mobile IP", places(mobile_ip));
    }
    if !scenario.handoffs.is_empty() {
        rows.push("Hand-offs", scenario.handoffs.len().to_string());
    }
    if !scenario.crashes.is_empty() {
        rows.push("Crashes of gateways", scenario.crashes.len().to_string());
    }
    rows.push("TCP", stack(&scenario.stack));
    rows.push("Given up after", time(scenario.run.deadline));
    rows.into_table()
}

#[derive(Default)]
struct Rows(Vec<(String, String)>);

impl Rows {
    fn push(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn push_unless_empty(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.push(name, value);
        }
    }

    fn into_table(self) -> Table {
        let mut table = Table::new([
            Column::text("setting", "Setting"),
            Column::text("value", "Value"),
        ]);
        for (name, value) in self.0 {
            table.push([Cell::from(name), Cell::from(value)]);
        }
        table
    }
}

/// What holds of both ways of a link, or of each.
fn both(link: &LinkSettings, of: impl Fn(&PipeConfig) -> String) -> String {
    let [down, up] = [&link.downlink, &link.uplink].map(of);
    match down == up {
        true => down,
        false => format!("{down} to the mobile, {up} to the fixed host"),
    }
}

fn rate(link: &LinkSettings) -> String {
    if let OutageProcess::Deliveries { trace, .. } = &link.outages {
        return format!("{} on average, as recorded", trace.mean_rate());
    }
    let rate = |rate: Option<BitRate>| rate.map_or("unlimited rate".into(), |r| r.to_string());
    both(link, |pipe| rate(pipe.rate))
}

fn rate_change(change: &RateChange) -> String {
    let ways = [("downlink", change.to_mobile), ("uplink", change.to_fixed)];
    let rates = ways
        .into_iter()
        .filter_map(|(way, rate)| Some(format!("{way} {}", rate?)));
    format!(
        "{} from {} on",
        rates.collect::<Vec<_>>().join(", "),
        time(change.at)
    )
}

fn delay(link: &LinkSettings) -> String {
    match link.downlink.delay == link.uplink.delay {
        true => format!("{} each way", time(link.downlink.delay)),
        false => both(link, |pipe| time(pipe.delay)),
    }
}

fn damage(link: &LinkSettings) -> String {
    let of = |pipe: &PipeConfig| {
        let kinds = [
            (pipe.loss, "lost"),
            (pipe.duplicate, "duplicated"),
            (pipe.reorder, "reordered"),
        ];
        let kinds = kinds.into_iter().filter(|(share, _)| *share > 0.0);
        let words: Vec<_> = kinds
            .map(|(share, what)| format!("{} {what}", Unit::Share.show_exact(share)))
            .collect();
        words.join(", ")
    };
    both(link, of)
}

fn outages(scenario: &Scenario) -> String {
    if !scenario.handoffs.is_empty() {
        let gaps = scenario.handoffs.iter().map(|handoff| handoff.gap);
        return format!("down during hand-offs, {} in all", time(gaps.sum()));
    }
    process(&scenario.link.outages)
}

fn process(process: &OutageProcess) -> String {
    let repeated = |up: Duration, down: Duration, how: &str| {
        format!("up for {} and down for {}{how}", time(up), time(down))
    };
    match process {
        OutageProcess::AlwaysUp => "always up".to_owned(),
        OutageProcess::Single { start, length } => {
            format!("down once, for {} after {}", time(*length), time(*start))
        }
        OutageProcess::Periodic { first, up, down } => {
            let again = repeated(*up, *down, " in turn");
            match first == up {
                true => again,
                false => format!("{again}, first down after {}", time(*first)),
            }
        }
        OutageProcess::Uniform { up, down } => {
            repeated(*up, *down, ", each give or take up to a half")
        }
        OutageProcess::Normal { up, down } => {
            repeated(*up, *down, " on average, normally distributed")
        }
        OutageProcess::Exponential { up, down } => {
            repeated(*up, *down, " on average, exponentially distributed")
        }
        OutageProcess::States(trace) => {
            format!("down {} times, as recorded", trace.outages().len())
        }
        OutageProcess::Deliveries { gap, .. } => {
            format!(
                "down where the trace has nothing for more than {}",
                time(*gap)
            )
        }
    }
}

fn hop_in_words(hop: &Hop) -> String {
    let Hop { link, .. } = hop;
    let queue = both(link, |pipe| format!("{} packets of queue", pipe.queue));
    let damage = damage(link);
    let mut words = vec![rate(link), delay(link), queue, process(&link.outages)];
    words.extend((!damage.is_empty()).then_some(damage));
    words.join(", ")
}

fn traffic(source: &Traffic) -> String {
    let Traffic {
        hop,
        direction,
        pattern,
        rate,
        packet,
        begin,
        end,
    } = source;
    let how = match pattern {
        Pattern::Constant => "constant".to_owned(),
        Pattern::Poisson => "Poisson".to_owned(),
        Pattern::OnOff { on, off } => format!("on for {}, off for {}", time(*on), time(*off)),
    };
    let link = match hop {
        0 => "the mobile's link".to_owned(),
        n => format!("hop {n}"),
    };
    let to = match direction {
        Direction::Download => "to the mobile",
        Direction::Upload => "to the fixed host",
    };
    let until = end.map_or(String::new(), |end| format!(" until {}", time(end)));
    let from = time(*begin);
    format!("{rate} {to} on {link}, {how}, packets of {packet}, from {from} on{until}")
}

fn task(workload: &Workload) -> String {
    match workload {
        Workload::Bulk { bytes, direction } => format!("{direction} of {bytes}"),
        Workload::Interactive {
            interval,
            update,
            duration,
            ..
        } => {
            let (interval, duration) = (time(*interval), time(*duration));
            format!("an update of {update} every {interval} for {duration}")
        }
        Workload::RequestResponse {
            requests,
            request,
            response,
            think,
        } => {
            let pause = match think.as_nanos() {
                0 => String::new(),
                _ => format!(", {} between them", time(*think)),
            };
            format!("{requests} requests of {request} for {response} each{pause}")
        }
        Workload::Command(_) => "programs of the user's".to_owned(),
    }
}

fn stack(stack: &Stack) -> String {
    let mut words = vec![stack.ip.to_string().replace("ip", "IP")];
    let named = |name: &str, set: Option<bool>| set.map(|on| on_or_off(name, on));
    words.extend(stack.congestion.map(|congestion| congestion.to_string()));
    words.extend(named("SACK", stack.sack));
    words.extend(named("timestamps", stack.timestamps));
    words.extend(stack.retries.map(|retries| format!("{retries} retries")));
    let longest = |max: Duration| format!("timeouts of {} at most", time(max));
    words.extend(stack.max_rto.map(longest));
    let buffer = |bytes: ByteCount| format!("{bytes} of receive buffer");
    words.extend(stack.receive_buffer.map(buffer));
    words.join(", ")
}

fn on_or_off(name: &str, on: bool) -> String {
    let state = if on { "on" } else { "off" };
    format!("{name} {state}")
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds >= 120.0 && seconds % 60.0 == 0.0 {
        true => format!("{} min", seconds / 60.0),
        false => Unit::Seconds.show_exact(seconds),
    }
}
