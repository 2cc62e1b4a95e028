//! Plots: well-formed, of bounded size, coloured by the style sheet alone, and true to their data.

use outlast_report::plot::{
    Acknowledgement, Axis, Curves, DataSegment, Fate, Figure, Limit, Line, Outage, Point, Series,
    Strip, StripRow, TimeSequence, Timeline,
};
use outlast_report::unit::Unit;
use proptest::prelude::*;

const FATES: [Fate; 4] = [Fate::Passed, Fate::Dropped, Fate::Taken, Fate::FromOutlast];

fn segment(time_s: f64, sequence: u64, fate: Fate) -> DataSegment {
    DataSegment {
        time_s,
        sequence,
        length: 1448,
        fate,
    }
}

fn ack(time_s: f64, number: u64, fate: Fate) -> Acknowledgement {
    Acknowledgement {
        time_s,
        number,
        fate,
    }
}

/// Two segments, an outage that swallows the third, and Outlast's help after it.
fn small_trace() -> TimeSequence {
    TimeSequence {
        data: vec![
            segment(0.1, 0, Fate::Passed),
            segment(0.2, 1448, Fate::Passed),
            segment(0.5, 2896, Fate::Dropped),
            segment(1.2, 2896, Fate::Taken),
            segment(1.5, 2896, Fate::FromOutlast),
        ],
        acknowledgements: vec![
            ack(0.14, 1448, Fate::Passed),
            ack(0.45, 2896, Fate::Dropped),
            ack(1.5, 2896, Fate::FromOutlast),
        ],
        outages: vec![Outage {
            start_s: 0.4,
            end_s: Some(1.4),
        }],
        window_s: None,
    }
}

fn small_curves() -> Curves {
    let point = |x, y| Point::new(x, y).deviating(2.0);
    Curves {
        x: Axis::new("Availability", Unit::Share),
        y: Axis::new("Mean duration", Unit::Seconds),
        series: vec![
            Series {
                name: "plain TCP".to_owned(),
                is_control: true,
                points: vec![point(0.2, f64::NAN), point(0.6, 30.0), point(1.0, 12.0)],
            },
            Series {
                name: "hold".to_owned(),
                is_control: false,
                points: vec![point(0.2, 52.0), point(0.6, 18.0), point(1.0, 11.0)],
            },
        ],
        optimum: Some((
            "optimum".to_owned(),
            vec![(0.2, 50.0), (0.6, 16.7), (1.0, 10.0)],
        )),
    }
}

fn small_strip() -> Strip {
    Strip {
        axis: Axis::new("Time to new data", Unit::Seconds).logarithmic(),
        variants: vec![("without".to_owned(), true), ("hold".to_owned(), false)],
        rows: vec![
            StripRow {
                group: Some("cubic".to_owned()),
                label: "download, 10 s".to_owned(),
                samples: vec![vec![Some(7.1), None, None], vec![Some(0.043), Some(0.2)]],
            },
            StripRow {
                group: None,
                label: "upload, 10 s".to_owned(),
                samples: vec![vec![None], vec![]],
            },
        ],
        limit: Some(Limit {
            value: 0.09,
            name: "one round trip + 50 ms".to_owned(),
        }),
    }
}

/// Checks what holds for every figure; gives it back for more.
#[track_caller]
fn check(figure: &Figure) -> &Figure {
    let svg = figure.to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| {
        panic!("not well-formed: {error}\n{svg}");
    });
    let root = document.root_element();
    assert_eq!(root.attribute("aria-label"), Some(figure.description()));
    let style = include_str!("../src/plot/style.css");
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        for attribute in element.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            let allowed = [
                "class",
                "x",
                "y",
                "width",
                "height",
                "d",
                "text-anchor",
                "transform",
            ];
            let on_root = ["viewBox", "role", "aria-label"];
            assert!(
                allowed.contains(&name) || element == root && on_root.contains(&name),
                "{name}={value:?} on {:?}: looks come from the style sheet",
                element.tag_name()
            );
            if name == "class" {
                for class in value.split_whitespace() {
                    let has_style = |end: &str| style.contains(&format!(".{class}{end}"));
                    assert!(has_style(" ") || has_style(","), "no style for {class:?}");
                }
            }
            if matches!(name, "x" | "y" | "d" | "transform") {
                assert!(
                    !value.contains(['N', 'i']),
                    "not a number: {name}={value:?}"
                );
            }
        }
    }
    figure
}

#[test]
fn a_time_sequence_diagram() {
    let figure = small_trace().draw();
    insta::assert_snapshot!(check(&figure).to_inline_svg());
}

#[test]
fn curves_with_error_bars() {
    let figure = small_curves().draw();
    insta::assert_snapshot!(check(&figure).to_inline_svg());
}

#[test]
fn a_strip_plot() {
    let figure = small_strip().draw();
    insta::assert_snapshot!(check(&figure).to_inline_svg());
}

/// A window that grows, collapses in an outage and grows again, under a bound that is set late.
fn small_timeline() -> Timeline {
    Timeline {
        y: Axis::new("Window", Unit::Count),
        lines: vec![
            Line {
                name: "congestion window".to_owned(),
                is_control: false,
                values: vec![(0.0, 1.0), (0.2, 2.0), (0.4, 4.0), (1.5, 1.0), (1.7, 2.0)],
            },
            Line {
                name: "threshold".to_owned(),
                is_control: true,
                values: vec![(0.0, f64::NAN), (1.5, 2.0)],
            },
        ],
        outages: vec![Outage {
            start_s: 0.5,
            end_s: Some(1.2),
        }],
        window_s: (0.0, 2.0),
    }
}

#[test]
fn a_timeline() {
    insta::assert_snapshot!(check(&small_timeline().draw()).to_inline_svg());
}

#[test]
fn a_timeline_begins_with_the_value_in_force() {
    let mut timeline = small_timeline();
    timeline.window_s = (0.3, 1.0);
    let figure = timeline.draw();
    let words = check(&figure).description();
    assert!(
        words.contains("congestion window between 2 and 4"),
        "{words}"
    );
    assert!(words.contains("threshold without a value"), "{words}");
}

#[test]
fn a_long_timeline_is_thinned_to_what_can_be_seen() {
    let mut timeline = small_timeline();
    let saw = |i: u32| (f64::from(i) * 1e-5, f64::from(i % 50));
    timeline.lines[0].values = (0..200_000).map(saw).collect();
    let svg = timeline.draw().to_svg();
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
}

#[test]
fn only_what_lies_in_the_window_is_shown_and_counted() {
    let whole = small_trace();
    let part = TimeSequence {
        window_s: Some((1.0, 2.0)),
        ..whole
    };
    assert_eq!(
        part.draw().description(),
        "Time-sequence diagram from 1.00 s to 2.00 s with 1 outage: 0 data segments and 0 ACKs \
         crossed the link; 0 data segments and 0 ACKs were dropped; Outlast took 1 packet, sent 1 \
         segment again and put in 1 ACK."
    );
}

#[test]
fn an_outage_that_never_ended_is_shaded_to_the_end() {
    let mut trace = small_trace();
    trace.outages = vec![Outage {
        start_s: 0.4,
        end_s: None,
    }];
    let figure = trace.draw();
    assert!(check(&figure).description().contains("with 1 outage"));
    assert!(figure.to_inline_svg().contains("class=\"band\""));
}

#[test]
fn the_legend_names_what_is_there_and_nothing_else() {
    let mut trace = small_trace();
    trace.data.retain(|segment| segment.fate == Fate::Passed);
    trace.acknowledgements.clear();
    let svg = trace.draw().to_inline_svg();
    assert!(
        svg.contains("data segment (2)") && svg.contains("link down"),
        "{svg}"
    );
    assert!(
        !svg.contains("dropped (") && !svg.contains("by Outlast ("),
        "{svg}"
    );
}

#[test]
fn samples_that_never_came_to_pass_are_counted_and_beyond_the_limit() {
    assert_eq!(
        small_strip().draw().description(),
        "Time to new data in 2 cells, on a scale of logarithms. without: 7.10 s to 7.10 s, 3 \
         never, 4 of 4 beyond the limit; hold: 43.0 ms to 200 ms, 0 never, 1 of 2 beyond the \
         limit."
    );
}

#[test]
fn plots_of_nothing_are_still_plots() {
    check(&TimeSequence::default().draw());
    check(
        &Curves {
            series: vec![],
            optimum: None,
            ..small_curves()
        }
        .draw(),
    );
    check(
        &Strip {
            rows: vec![],
            variants: vec![],
            limit: None,
            ..small_strip()
        }
        .draw(),
    );
}

#[test]
fn names_cannot_break_out_of_the_drawing() {
    let hostile = "</text><script>alert(1)</script>\" onload=\"x";
    let mut curves = small_curves();
    curves.series[0].name = hostile.to_owned();
    curves.x.label = hostile.to_owned();
    check(&curves.draw());
}

/// A transfer of 434 MB in 300,000 segments: drawn in full, it would be tens of megabytes.
#[test]
fn a_long_transfer_is_thinned_to_what_can_be_seen() {
    let mut trace = TimeSequence::default();
    for n in 0..300_000u32 {
        let (time_s, sequence) = (f64::from(n) * 0.0012, u64::from(n) * 1448);
        trace.data.push(segment(time_s, sequence, Fate::Passed));
        trace
            .acknowledgements
            .push(ack(time_s + 0.04, sequence, Fate::Passed));
    }
    let figure = trace.draw();
    let svg = check(&figure).to_inline_svg();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    assert!(
        svg.contains("data segment (300000)"),
        "the legend counts all of them"
    );
}

/// Nothing that a trace can hold makes a figure so large that a page of six exceeds 2 MB.
#[test]
fn the_worst_trace_stays_within_the_budget() {
    let mut state = 1u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    let mut trace = TimeSequence::default();
    for n in 0..120_000 {
        let fate = FATES[n % 4];
        trace
            .data
            .push(segment(random() as f64 / 1e5, random() * 50, fate));
        trace
            .acknowledgements
            .push(ack(random() as f64 / 1e5, random() * 50, fate));
    }
    let figure = trace.draw();
    let svg = check(&figure).to_inline_svg();
    assert!(svg.len() < 330_000, "{} bytes", svg.len());
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..1000.0f64,
        1 => prop::num::f64::ANY,
        1 => Just(0.0),
    ]
}

proptest! {
    /// Whatever the numbers, figures stay well-formed and their coordinates are numbers.
    #[test]
    fn any_trace_can_be_drawn(
        data in prop::collection::vec((any_number(), any::<u64>(), any::<u32>(), 0..4usize), 0..20),
        acks in prop::collection::vec((any_number(), any::<u64>(), 0..4usize), 0..20),
        outages in prop::collection::vec((any_number(), prop::option::of(any_number())), 0..4),
        window_s in prop::option::of((any_number(), any_number())),
    ) {
        let data = data.into_iter().map(|(time_s, sequence, length, fate)| {
            DataSegment { time_s, sequence, length, fate: FATES[fate] }
        });
        let trace = TimeSequence {
            data: data.collect(),
            acknowledgements: acks.into_iter().map(|(t, n, fate)| ack(t, n, FATES[fate])).collect(),
            outages: outages.into_iter().map(|(start_s, end_s)| Outage { start_s, end_s }).collect(),
            window_s,
        };
        check(&trace.draw());
    }

    #[test]
    fn any_curves_can_be_drawn(
        points in prop::collection::vec((any_number(), any_number(), any_number()), 0..20),
        is_logarithmic in any::<bool>(),
        range in prop::option::of((any_number(), any_number())),
    ) {
        let mut curves = small_curves();
        let point = |(x, y, deviation)| Point::new(x, y).deviating(deviation);
        curves.series[1].points = points.into_iter().map(point).collect();
        if is_logarithmic {
            curves.y = curves.y.logarithmic();
        }
        curves.y.range = range;
        check(&curves.draw());
    }

    #[test]
    fn any_samples_can_be_drawn(
        samples in prop::collection::vec(prop::option::of(any_number()), 0..20)
    ) {
        let mut strip = small_strip();
        strip.rows[0].samples[1] = samples;
        check(&strip.draw());
    }
}
