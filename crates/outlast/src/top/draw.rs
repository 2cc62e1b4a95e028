//! A frame of `outlast top`: what is drawn of a history, as a pure function.

use super::history::{History, SPAN_S, Spot};
use super::snapshot::{Flow, Link, Outage};
use super::view::View;
use outlast_daemon::status::{soon, time};
use outlast_report::unit::Unit;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

/// Links that are shown at most; of others only how many there are.
const LINKS: usize = 6;
/// Outages that are shown at most.
const OUTAGES: usize = 8;
/// Columns from which on there is room for everything.
const WIDE: u16 = 120;

const PLAIN: Style = Style::new();
const HEAD: Style = Style::new().add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED));
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const WARNING: Style = Style::new().fg(Color::Yellow);

/// Draws what `view` wants of `history`.
pub(crate) fn draw(frame: &mut Frame<'_>, history: &History, view: &View) {
    let latest = history.latest();
    let links = latest.links.len().min(LINKS) + usize::from(latest.links.len() > LINKS);
    let outages = latest.outages.len().clamp(1, OUTAGES);
    let rows = |rows: usize| Constraint::Length(u16::try_from(rows).unwrap_or(u16::MAX));
    let [title, head, strips, counts, _, gone, why, flows, keys] = Layout::vertical([
        rows(1),
        rows(1),
        rows(links),
        rows(2),
        rows(1),
        rows(outages + 1),
        rows(1),
        Constraint::Min(2),
        rows(1),
    ])
    .areas(frame.area());
    draw_title(frame, title, history, view);
    draw_links(frame, (head, strips), history);
    draw_counts(frame, counts, history);
    draw_outages(frame, (gone, why), history);
    draw_flows(frame, flows, history, view);
    draw_keys(frame, keys, view);
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, history: &History, view: &View) {
    let latest = history.latest();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut line = Line::from(vec![
        Span::styled("outlast top", bold),
        Span::raw(format!("  {}", latest.title)),
    ]);
    if let Some(trouble) = &view.trouble {
        line.push_span(Span::styled(format!("  {trouble}"), BAD));
    }
    frame.render_widget(Paragraph::new(line), area);
    let running = match view.is_paused {
        true => "paused ".to_owned(),
        false => format!(" running {}", time(latest.running_s)),
    };
    if view.trouble.is_none() {
        let right = Paragraph::new(running).alignment(Alignment::Right);
        let width = 24.min(area.width);
        let place = Rect {
            x: area.right().saturating_sub(width),
            width,
            ..area
        };
        frame.render_widget(right, place);
    }
}

fn draw_links(frame: &mut Frame<'_>, (head, area): (Rect, Rect), history: &History) {
    let links = &history.latest().links;
    let widths = [
        Constraint::Length(if area.width < WIDE { 15 } else { 39 }),
        Constraint::Length(26),
        Constraint::Min(10),
    ];
    let [_, _, strip] = Layout::horizontal(widths).spacing(1).areas(area);
    let legend = format!("last {} min: {UP} up, {DOWN} down", (SPAN_S / 60.0) as u32);
    let heads = Row::new(["link", "state", legend.as_str()]).style(HEAD);
    frame.render_widget(Table::new([heads], widths).column_spacing(1), head);
    let more = links.len().saturating_sub(LINKS);
    let rows = links.iter().take(LINKS).map(|link| {
        let spots = history.strip(&link.name, strip.width.into());
        Row::new([
            Cell::from(link.name.as_str()),
            Cell::from(state_of(link)),
            Cell::from(strip_of(&spots)),
        ])
    });
    let rest = (more > 0).then(|| Row::new([format!("and {more} more")]).style(FAINT));
    frame.render_widget(Table::new(rows.chain(rest), widths).column_spacing(1), area);
}

fn state_of(link: &Link) -> Span<'_> {
    let lasts = link
        .for_s
        .map_or_else(String::new, |for_s| format!(", {}", time(for_s)));
    let style = if link.is_up { GOOD } else { BAD };
    Span::styled(format!("{}{lasts}", link.state), style)
}

/// A link that is up, in a strip.
const UP: &str = "─";
/// A link that is down.
const DOWN: &str = "█";

fn strip_of(spots: &[Spot]) -> Line<'static> {
    let span = |spot: &Spot| match spot {
        Spot::Unknown => Span::styled("·", FAINT),
        Spot::Up => Span::styled(UP, GOOD),
        Spot::Down => Span::styled(DOWN, BAD),
    };
    Line::from_iter(spots.iter().map(span))
}

/// Rates that come first, with the words for them.
const RATES: [(&str, &str); 6] = [
    ("kernel tracked", "segments"),
    ("packets", "in user space"),
    ("taken", "taken"),
    ("resent", "re-sent"),
    ("rereceived", "handed over"),
    ("probes", "probes"),
];

fn draw_counts(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let memory = history.latest().memory.iter().map(|(what, bytes, limit)| {
        let of = limit.map_or_else(String::new, |limit| {
            format!(" of {}", Unit::Bytes.show(limit))
        });
        format!("{what} {}{of}", Unit::Bytes.show(*bytes))
    });
    let lines = [("rates", rates_of(history)), ("memory", memory.collect())];
    let lines = lines.map(|(name, parts): (&str, Vec<String>)| {
        let told = joined(&parts, usize::from(area.width).saturating_sub(7));
        Line::from(vec![
            Span::styled(format!("{name:<7}"), FAINT),
            Span::raw(told),
        ])
    });
    frame.render_widget(Paragraph::new(lines.to_vec()), area);
}

/// As many of the parts as fit so many columns, the first in any case.
fn joined(parts: &[String], columns: usize) -> String {
    let Some((first, rest)) = parts.split_first() else {
        return "-".into();
    };
    let mut told = first.clone();
    for part in rest {
        if told.len() + 2 + part.len() > columns {
            break;
        }
        told.push_str(", ");
        told.push_str(part);
    }
    told
}

/// Counts of the last seconds.
fn rates_of(history: &History) -> Vec<String> {
    let rates = history.rates();
    let words = |name: &str| {
        RATES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|known| known.1)
    };
    let of = |words: &str, rate: f64| format!("{}/s {words}", rounded(rate));
    let first = RATES.iter().filter_map(|(name, words)| {
        let found = rates.iter().find(|(counted, _)| counted == name)?;
        (found.1 > 0.0).then(|| of(words, found.1))
    });
    // What else the kernel's programs count is for `outlast status`.
    let others = rates.iter().filter(|(name, rate)| {
        words(name).is_none() && *rate > 0.0 && !name.starts_with("kernel ")
    });
    let mut told: Vec<String> = first
        .chain(others.map(|(name, rate)| of(name, *rate)))
        .collect();
    if told.is_empty() && !rates.is_empty() {
        told.push("nothing is counted at the moment".into());
    }
    told
}

fn rounded(rate: f64) -> String {
    match rate {
        ..0.05 => "0".into(),
        0.05..10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

fn draw_outages(frame: &mut Frame<'_>, (area, below): (Rect, Rect), history: &History) {
    let is_wide = area.width >= WIDE;
    let latest = history.latest();
    let outages = &latest.outages;
    let left = if is_wide { "not helped" } else { "unhelped" };
    let heads = [
        "outage of",
        "began",
        "length",
        "by",
        latest.helped,
        "within",
        "by itself",
        left,
    ];
    let widths = [
        Constraint::Length(if is_wide { 39 } else { 15 }),
        Constraint::Length(if is_wide { 16 } else { 10 }),
        Constraint::Length(if is_wide { 12 } else { 8 }),
        Constraint::Length(if is_wide { 15 } else { 9 }),
        Constraint::Length(7),
        Constraint::Length(if is_wide { 12 } else { 7 }),
        Constraint::Length(if is_wide { 16 } else { 9 }),
        Constraint::Min(7),
    ];
    let rows = outages
        .iter()
        .take(OUTAGES)
        .map(|outage| outage_row(outage, is_wide));
    let none = Row::new(["none yet"]).style(FAINT);
    let rows: Vec<Row<'_>> = match outages.is_empty() {
        true => vec![none],
        false => rows.collect(),
    };
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(HEAD))
        .column_spacing(1);
    frame.render_widget(table, area);
    let mut unhelped = outages
        .iter()
        .take(OUTAGES)
        .filter(|one| !one.why.is_empty());
    if let Some(outage) = unhelped.next().filter(|_| !is_wide) {
        let why = format!("unhelped: {}", outage.why);
        frame.render_widget(Paragraph::new(why).style(FAINT), below);
    }
}

fn outage_row(outage: &Outage, is_wide: bool) -> Row<'_> {
    let length = match (outage.length_s, outage.is_over) {
        (Some(length_s), true) => time(length_s),
        (Some(length_s), false) => format!("{} +", time(length_s)),
        (None, _) => "unknown".into(),
    };
    let left = match (outage.not_helped, outage.why.as_str()) {
        (None, _) => String::new(),
        (Some(some @ 1..), why) if is_wide => format!("{some}: {why}"),
        (Some(some), _) => some.to_string(),
    };
    let without = outage.without_s.map_or_else(String::new, |without_s| {
        let about = if is_wide { "about " } else { "~" };
        format!("{about}{}", soon(without_s))
    });
    let ago = if is_wide { " ago" } else { "" };
    let row = Row::new([
        outage.link.clone(),
        format!("{}{ago}", time(outage.began_ago_s)),
        length,
        outage.by.clone(),
        outage
            .helped
            .map_or_else(String::new, |some| some.to_string()),
        outage
            .slowest_s
            .map_or_else(String::new, |slowest_s| brief(slowest_s, is_wide)),
        without,
        left,
    ]);
    row.style(if outage.is_over { PLAIN } else { BAD })
}

/// A short time, in at most seven columns unless there is room.
fn brief(seconds: f64, is_wide: bool) -> String {
    match is_wide {
        true => soon(seconds),
        false => soon(seconds).replace("under ", "<"),
    }
}

fn draw_flows(frame: &mut Frame<'_>, area: Rect, history: &History, view: &View) {
    let latest = history.latest();
    if !latest.lists_flows {
        let none = "Only gateways list connections.";
        return frame.render_widget(Paragraph::new(none).style(FAINT), area);
    }
    let is_wide = area.width >= WIDE;
    let flows = view.flows(latest);
    let room = usize::from(area.height.saturating_sub(1));
    let first = view.first.min(flows.len().saturating_sub(room));
    // Where there is little room, the addresses need it.
    let others: &[u16] = if is_wide {
        &[8, 8, 8, 10, 10, 12]
    } else {
        &[8, 0, 0, 5, 10, 7]
    };
    let taken: u16 = others.iter().sum::<u16>() + 7;
    let address = area.width.saturating_sub(taken) / 2;
    let address = if is_wide { address } else { address + 1 };
    let others = others.iter().copied().filter(|width| *width > 0);
    let widths = [address, address]
        .into_iter()
        .chain(others)
        .map(Constraint::Length);
    let near = format!(
        "near ({} of {})",
        flows.len(),
        latest.flows_in_all.max(latest.flows.len() as u64)
    );
    let heads = [
        near.as_str(),
        "far",
        "held",
        "unacked",
        "RTT",
        "idle",
        "doing",
        "resumed",
    ];
    let is_shown = |column: usize| is_wide || !matches!(column, 3 | 4);
    let heads = (0..)
        .zip(heads)
        .filter(|(column, _)| is_shown(*column))
        .map(|(_, head)| head);
    let shown = flows.iter().skip(first).take(room);
    let rows = shown.map(|flow| {
        let cells = flow_cells(flow, is_wide, address.into());
        let cells = (0..).zip(cells).filter(|(column, _)| is_shown(*column));
        Row::new(cells.map(|(_, cell)| cell)).style(style_of(flow))
    });
    let none = flows.is_empty().then(|| Row::new(["none"]).style(FAINT));
    let table = Table::new(rows.chain(none), widths)
        .header(Row::new(heads).style(HEAD))
        .column_spacing(1);
    frame.render_widget(table, area);
}

fn style_of(flow: &Flow) -> Style {
    match (flow.stalls(), flow.resumed_s) {
        (true, _) => WARNING,
        (false, Some(_)) => GOOD,
        (false, None) => PLAIN,
    }
}

fn flow_cells(flow: &Flow, is_wide: bool, address: usize) -> [String; 8] {
    let idle = match (is_wide, flow.idle_s) {
        (false, ..60.0) => format!("{:.1}s", flow.idle_s),
        (false, 60.0..3_600.0) => format!("{}m", flow.idle_s as u64 / 60),
        (false, _) => format!("{}h", flow.idle_s as u64 / 3_600),
        (true, _) => time(flow.idle_s),
    };
    [
        fitted(&flow.near, address),
        fitted(&flow.far, address),
        Unit::Bytes.show(flow.held_bytes),
        Unit::Bytes.show(flow.outstanding_bytes),
        flow.rtt_s.map_or_else(|| "-".into(), soon),
        idle,
        flow.doing.clone(),
        flow.resumed_s
            .map_or_else(String::new, |resumed_s| brief(resumed_s, is_wide)),
    ]
}

/// An address and port in so many columns: of one that is too long the middle goes, as its end tells more.
fn fitted(address: &str, columns: usize) -> String {
    let characters: Vec<char> = address.chars().collect();
    if characters.len() <= columns {
        return address.into();
    }
    let end = columns.saturating_sub(1) / 2;
    let (begin, end) = (columns.saturating_sub(1) - end, characters.len() - end);
    let ends = characters[..begin]
        .iter()
        .chain(&['…'])
        .chain(&characters[end..]);
    ends.collect()
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let text = match view.is_typing {
        true => format!("filter: {}_  (Enter keeps it, Esc drops it)", view.filter),
        false => {
            let order = if view.is_reversed { ", reversed" } else { "" };
            let filter = match view.filter.is_empty() {
                true => String::new(),
                false => format!(" [{}]", view.filter),
            };
            let all = if view.only_stalled {
                "all"
            } else {
                "stalled only"
            };
            format!(
                "q quit  s sort [{}{order}]  r reverse  / filter{filter}  a {all}  p pause",
                view.sort.name()
            )
        }
    };
    frame.render_widget(Paragraph::new(text).style(FAINT), area);
}
