//! Writes a page with every kind of table and plot, filled with made-up but plausible values, to
//! look at: `cargo run -p outlast-report --example sample_page -- sample.html`.
//!
//! Beside the page it writes each figure as an SVG file of its own.

use std::path::Path;

use outlast_report::judgement::{Claim, Judged, Measured, Published, Source, Tolerance};
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::plot::{
    Acknowledgement, Axis, Curves, DataSegment, Fate, Figure, Limit, Outage, Point, Series, Strip,
    StripRow, TimeSequence,
};
use outlast_report::statistics::wilson_interval;
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;

fn main() -> std::io::Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .unwrap_or_else(|| "sample.html".into());
    let path = Path::new(&path);
    for (name, figure) in figures() {
        std::fs::write(path.with_file_name(format!("{name}.svg")), figure.to_svg())?;
    }
    std::fs::write(path, page().to_html())
}

fn figures() -> [(&'static str, Figure); 6] {
    let plain = trace(false);
    let held = trace(true);
    let detail = TimeSequence {
        window_s: Some((5.9, 6.6)),
        ..held.clone()
    };
    [
        ("figure-1", plain.draw()),
        ("figure-hold", held.draw()),
        ("figure-hold-detail", detail.draw()),
        ("figure-5", success_rates().draw()),
        ("figure-7", durations().draw()),
        ("resume", resume_times().draw()),
    ]
}

fn page() -> Page {
    let provenance = Provenance {
        version: "0.1.0".to_owned(),
        date: "2026-01-31".to_owned(),
        kernel: "made-up values, no kernel".to_owned(),
        congestion_control: "cubic".to_owned(),
        seed: 1,
        command: "cargo run -p outlast-report --example sample_page".to_owned(),
        more: vec![(
            "Link".to_owned(),
            "5 Mbit/s, 20 ms each way, 75 packets".to_owned(),
        )],
    };
    let mut page = Page::new("A sample of every table and plot", provenance)
        .subtitle("All values on this page are made up; it shows how a report looks.");
    page.highlight(highlight(
        "Plain TCP",
        "not completed",
        "gave up after 60 s",
        Tone::Bad,
    ));
    page.highlight(highlight(
        "With Outlast",
        "12.9 s",
        "ideal is 12.0 s",
        Tone::Good,
    ));
    page.highlight(highlight(
        "Worst resume",
        "47 ms",
        "one round trip is 40 ms",
        Tone::Good,
    ));
    page.highlight(highlight("Statements", "3 of 5", "reproduced", Tone::Plain));

    for section in sections() {
        page.push(section);
    }
    page
}

fn sections() -> [Section; 4] {
    let [plain, held, detail, rates, durations, resume] = figures().map(|(_, figure)| figure);
    let twice = Section::new("The same download, twice")
        .paragraph(
            "A download of 5 MB crosses a link that is down for 0.8 s to 2.5 s again and again. \
             Plain TCP waits for its next timeout after each outage; with `gateway = \"hold\"` \
             data flow as soon as the link is back.",
        )
        .table(comparison())
        .figure(
            plain,
            "Plain TCP. After each outage the sender waits for its next timeout although the \
             link has long been back.",
        )
        .figure(
            held,
            "The same outages with `hold` at both ends of the link.",
        )
        .figure(
            detail,
            "One reconnection of the last figure: the receiver's newest ACK is put in, the \
             packets that the link dropped are sent again, and new data follow.",
        );
    let availability = Section::new("Success and duration against availability")
        .paragraph("Fourteen transfers at each of ten availabilities and five levels.")
        .figure(
            rates,
            "Transfers that completed, with 95 % Wilson intervals. Compare figure 5 of the paper.",
        )
        .figure(
            durations,
            "Mean duration of the transfers that completed, with standard deviations. Compare \
             figures 6 and 7 of the paper.",
        );
    let matrix = Section::new("Time from link-up to new data")
        .paragraph("Every mark is one run; the column at the right holds runs that never resumed.")
        .figure(resume, "Resume times in each cell of the matrix.");
    let published = Section::new("Published and measured")
        .claims(claims())
        .listing(
            "The scenario, as it was run",
            "name = \"bus tunnel\"\n\n[link]\nrate = \"5 Mbit/s\"\ndelay = \"20 ms\"\n",
        );
    [twice, availability, matrix, published]
}

fn highlight(label: &str, value: &str, note: &str, tone: Tone) -> Highlight {
    let [label, value, note] = [label, value, note].map(str::to_owned);
    Highlight {
        label,
        value,
        note,
        tone,
    }
}

fn comparison() -> Table {
    let mut table = Table::new([
        Column::text("run", "Run"),
        Column::text("completed", "Completed"),
        Column::quantity("elapsed_s", "Time", Unit::Seconds),
        Column::quantity("ideal_s", "Ideal", Unit::Seconds),
        Column::quantity("utilisation", "Utilisation", Unit::Share),
        Column::quantity("resume_median_s", "Median resume", Unit::Seconds),
        Column::quantity("resume_worst_s", "Worst resume", Unit::Seconds),
        Column::quantity("retransmitted_bytes", "Retransmitted", Unit::Bytes),
    ])
    .titled("5 MB over a link that comes and goes");
    table.push([
        Cell::from("plain TCP"),
        Cell::from(false).tone(Tone::Bad),
        Cell::missing(),
        Cell::from(12.0),
        Cell::from(0.081).tone(Tone::Bad),
        Cell::from(4.52).tone(Tone::Bad),
        Cell::from(12.3).tone(Tone::Bad),
        Cell::from(212_700.0),
    ]);
    table.push([
        Cell::from("with hold"),
        Cell::from(true).tone(Tone::Good),
        Cell::from(12.9),
        Cell::from(12.0),
        Cell::from(0.963).tone(Tone::Good),
        Cell::from(0.041).tone(Tone::Good),
        Cell::from(0.047).tone(Tone::Good),
        Cell::from(43_440.0),
    ]);
    table.note("Utilisation is the share of connected time that was used at the link's rate.");
    table
}

fn claim(
    place: &'static str,
    statement: &'static str,
    unit: Unit,
    published: Published,
    tolerance: Tolerance,
) -> Claim {
    let source = Source {
        work: "Scott and Mapp 2003".into(),
        place: place.into(),
    };
    Claim {
        source,
        statement: statement.into(),
        unit,
        published,
        tolerance,
        departure: None,
    }
}

fn claims() -> Vec<Judged> {
    let complete = claim(
        "figure 5",
        "Levels 3 and 4 complete every transfer, down to 10 % availability.",
        Unit::Share,
        Published::AtLeast(1.0),
        Tolerance::Absolute(0.05),
    );
    let none = claim(
        "section 5.3",
        "Unaided TCP completes no transfer at 10 % availability.",
        Unit::Share,
        Published::AtMost(0.0),
        Tolerance::Absolute(0.1),
    );
    let mut degraded = claim(
        "section 5.3",
        "At 90 % availability unaided TCP takes 50 % longer than the optimum.",
        Unit::Factor,
        Published::About(1.5),
        Tolerance::Relative(0.1),
    );
    degraded.departure = Some("a modern sender keeps its window over short outages.".into());
    let close = claim(
        "figure 6",
        "Levels 3 and 4 stay close to the optimum.",
        Unit::Factor,
        Published::About(1.0),
        Tolerance::Relative(0.1),
    );
    let interactive = claim(
        "figure 14",
        "Level 3 delivers 80 % of the updates at half availability.",
        Unit::Share,
        Published::About(0.8),
        Tolerance::Absolute(0.05),
    );
    let share = |value, count| {
        Some(Measured {
            value,
            standard_deviation: None,
            count,
        })
    };
    let mean = |value, deviation, count| {
        Some(Measured {
            value,
            standard_deviation: Some(deviation),
            count,
        })
    };
    vec![
        complete.judge(share(1.0, 140)),
        none.judge(share(0.0, 14)),
        degraded.judge(mean(1.21, 0.08, 14)),
        close.judge(mean(1.036, 0.012, 28)),
        interactive.judge(None),
    ]
}

/// A pseudo-random number from 0 to 1 for each `n`, always the same one.
fn noise(n: u64) -> f64 {
    let mut bits = n
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(0x632b_e59b_d9b4_e019);
    bits = (bits ^ (bits >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((bits ^ (bits >> 29)) >> 11) as f64 / (1u64 << 53) as f64
}

const OUTAGES: [(f64, f64); 4] = [(1.2, 2.1), (4.0, 6.0), (8.3, 9.1), (11.0, 13.5)];
const SEGMENT: u32 = 1448;
const ROUND_TRIP_S: f64 = 0.040;
/// The time that a segment occupies a link of 5 Mbit/s.
const SPACING_S: f64 = 0.0024;
/// Segments that are sent into an outage before the window is full.
const WINDOW: u64 = 40;

/// A sender that fills the link while it is up, and after each outage resumes after one round trip
/// (with Outlast) or at its next timeout (without).
fn trace(with_outlast: bool) -> TimeSequence {
    let outage = |&(start_s, end_s): &(f64, f64)| Outage {
        start_s,
        end_s: Some(end_s),
    };
    let mut trace = TimeSequence {
        outages: OUTAGES.iter().map(outage).collect(),
        ..Default::default()
    };
    let (mut now, mut next) = (0.1, 0);
    for (down, up) in OUTAGES.into_iter().chain([(16.0, 16.0)]) {
        now = run(&mut trace, now, down, &mut next);
        if up > down {
            now = outage_in(&mut trace, (down, up), &mut next, with_outlast);
        }
    }
    trace
}

/// Sends from `now` until `down`, in slow start first; gives the time of the last segment.
fn run(trace: &mut TimeSequence, mut now: f64, down: f64, next: &mut u64) -> f64 {
    let mut window = 10.0;
    while now < down {
        let burst = (window as u64).min((ROUND_TRIP_S / SPACING_S) as u64);
        for _ in 0..burst {
            if now >= down {
                break;
            }
            let (sequence, length) = (*next * u64::from(SEGMENT), SEGMENT);
            trace.data.push(DataSegment {
                time_s: now,
                sequence,
                length,
                fate: Fate::Passed,
            });
            *next += 1;
            let (time_s, number) = (now + ROUND_TRIP_S, *next * u64::from(SEGMENT));
            let fate = if time_s < down {
                Fate::Passed
            } else {
                Fate::Dropped
            };
            if (*next).is_multiple_of(2) {
                trace.acknowledgements.push(Acknowledgement {
                    time_s,
                    number,
                    fate,
                });
            }
            now += SPACING_S;
        }
        now += (ROUND_TRIP_S - burst as f64 * SPACING_S).max(0.0);
        window *= 1.8;
    }
    now
}

/// What happens while the link is down and until data flow again; gives the time from which they
/// do.
fn outage_in(
    trace: &mut TimeSequence,
    (down, up): (f64, f64),
    next: &mut u64,
    with_outlast: bool,
) -> f64 {
    let first = *next;
    let mut lost = |time_s: f64, number: u64, fate: Fate| {
        let (sequence, length) = (number * u64::from(SEGMENT), SEGMENT);
        trace.data.push(DataSegment {
            time_s,
            sequence,
            length,
            fate,
        });
    };
    for i in 0..WINDOW {
        lost(down + i as f64 * SPACING_S, first + i, Fate::Dropped);
    }
    let (mut timeout, mut wait) = (down + 0.24, 0.24);
    while timeout < up {
        lost(
            timeout,
            first,
            if with_outlast {
                Fate::Taken
            } else {
                Fate::Dropped
            },
        );
        wait *= 2.0;
        timeout += wait;
    }
    if !with_outlast {
        return timeout;
    }
    for i in 0..WINDOW {
        lost(
            up + 0.002 + i as f64 * SPACING_S,
            first + i,
            Fate::FromOutlast,
        );
        let (time_s, number) = (
            up + 0.002 + i as f64 * SPACING_S + ROUND_TRIP_S,
            first + i + 1,
        );
        let (number, fate) = (number * u64::from(SEGMENT), Fate::Passed);
        trace.acknowledgements.push(Acknowledgement {
            time_s,
            number,
            fate,
        });
    }
    let number = first * u64::from(SEGMENT);
    let fate = Fate::FromOutlast;
    trace.acknowledgements.push(Acknowledgement {
        time_s: up + 0.001,
        number,
        fate,
    });
    *next = first + WINDOW;
    up + 0.002 + WINDOW as f64 * SPACING_S
}

const LEVELS: [&str; 5] = [
    "plain TCP (level 0)",
    "re-receive once (1)",
    "re-receive five times (2)",
    "re-send once (3)",
    "re-send five times (4)",
];

/// How a level fares at an availability: the share of trials that complete, and how many times the
/// optimum they take.
fn fares(level: usize, availability: f64) -> (f64, f64) {
    let bad = (1.0 - availability).powi(2);
    match level {
        0 => (
            (1.25 - 2.2 * bad).clamp(0.0, 1.0),
            1.0 + 3.5 * (1.0 - availability).sqrt(),
        ),
        1 | 2 => (
            (1.4 - 1.4 * bad).clamp(0.0, 1.0),
            1.0 + 2.2 * (1.0 - availability).sqrt(),
        ),
        _ => (1.0, 1.03),
    }
}

fn availabilities() -> impl Iterator<Item = f64> {
    (1..=10).map(|tenth| f64::from(tenth) / 10.0)
}

fn success_rates() -> Curves {
    let series = LEVELS.iter().enumerate().map(|(level, name)| {
        let points = availabilities().map(|availability| {
            let successes = (fares(level, availability).0 * 14.0).round();
            let (low, high) = wilson_interval(successes as u64, 14).expect("fourteen trials");
            Point::new(availability, successes / 14.0).between(low, high)
        });
        Series {
            name: (*name).to_owned(),
            is_control: level == 0,
            points: points.collect(),
        }
    });
    Curves {
        x: Axis::new("Availability of the link", Unit::Share).range(0.1, 1.0),
        y: Axis::new("Transfers completed", Unit::Share).range(0.0, 1.0),
        series: series.collect(),
        optimum: None,
    }
}

fn durations() -> Curves {
    const AT_BEST_S: f64 = 84.0;
    let series = [0, 1, 3].into_iter().map(|level| {
        let points = availabilities().map(|availability| {
            let (success, factor) = fares(level, availability);
            let at_best = AT_BEST_S / availability;
            let y = if success > 0.0 {
                at_best * factor
            } else {
                f64::NAN
            };
            Point::new(availability, y).deviating(at_best * (factor - 1.0) * 0.3 + 2.0)
        });
        Series {
            name: LEVELS[level].to_owned(),
            is_control: level == 0,
            points: points.collect(),
        }
    });
    let optimum = (10..=100).map(|percent| f64::from(percent) / 100.0);
    let optimum = optimum
        .map(|availability| (availability, AT_BEST_S / availability))
        .collect();
    Curves {
        x: Axis::new("Availability of the link", Unit::Share).range(0.1, 1.0),
        y: Axis::new("Mean duration", Unit::Seconds),
        series: series.collect(),
        optimum: Some(("optimum".to_owned(), optimum)),
    }
}

fn resume_times() -> Strip {
    let variants = [
        ("without Outlast", true),
        ("hold at one end", false),
        ("hold at both ends", false),
    ];
    let mut rows = Vec::new();
    for congestion in ["cubic", "bbr", "reno"] {
        for (i, way) in ["download", "upload"].into_iter().enumerate() {
            for (j, outage_s) in [1.0, 10.0, 30.0].into_iter().enumerate() {
                let cell = (rows.len() as u64 + 1) * 1000;
                let at = |n: u64| noise(cell + n);
                let plain = (0..5).map(|n| Some(0.2 + at(n) * outage_s)).map(|resume| {
                    resume.filter(|_| congestion != "bbr" || outage_s < 30.0 || at(77) < 0.5)
                });
                let one = (10..15).map(|n| Some(0.05 + at(n).powi(6) * 4.0));
                let both = (20..25).map(|n| Some(0.041 + at(n) * 0.02));
                rows.push(StripRow {
                    group: (i + j == 0).then(|| congestion.to_owned()),
                    label: format!("{way}, {outage_s} s outage"),
                    samples: vec![plain.collect(), one.collect(), both.collect()],
                });
            }
        }
    }
    Strip {
        axis: Axis::new("Time from link-up to new data", Unit::Seconds).logarithmic(),
        variants: variants
            .map(|(name, is_control)| (name.to_owned(), is_control))
            .to_vec(),
        rows,
        limit: Some(Limit {
            value: 0.090,
            name: "one round trip + 50 ms".to_owned(),
        }),
    }
}
