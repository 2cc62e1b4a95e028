//! The page: its structure, and that it needs and fetches nothing but itself.

use std::fmt::Write as _;

use outlast_report::judgement::{Claim, Judged, Measured, Published, Source, Tolerance};
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::plot::{Axis, Curves, Figure, Point, Series};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use roxmltree::{Document, Node};

fn table(name: &str) -> Table {
    let mut table = Table::new([
        Column::text("run", "Run"),
        Column::quantity("resume_s", "Resume", Unit::Seconds),
    ])
    .titled(name);
    table.push([Cell::from(name), Cell::from(0.043).tone(Tone::Good)]);
    table.note(name);
    table
}

fn figure(name: &str) -> Figure {
    let points = vec![Point::new(0.1, 1.0), Point::new(1.0, 2.0)];
    Curves {
        x: Axis::new("Availability", Unit::Share),
        y: Axis::new("Duration", Unit::Seconds),
        series: vec![Series {
            name: name.to_owned(),
            is_control: false,
            points,
        }],
        optimum: None,
    }
    .draw()
}

fn claims(name: &str) -> Vec<Judged> {
    let claim = Claim {
        source: Source {
            work: name.to_owned().into(),
            place: "figure 5".into(),
        },
        statement: name.to_owned().into(),
        unit: Unit::Share,
        published: Published::AtLeast(1.0),
        tolerance: Tolerance::Absolute(0.05),
        departure: Some(name.to_owned().into()),
    };
    vec![
        claim.judge(Some(Measured {
            value: 0.98,
            standard_deviation: Some(0.02),
            count: 14,
        })),
        claim.judge(Some(Measured::single(0.4))),
        claim.judge(None),
    ]
}

/// A page with every kind of content, in which every text that a caller can give is `name`.
fn page(name: &str) -> Page {
    let provenance = Provenance {
        version: name.to_owned(),
        date: name.to_owned(),
        kernel: name.to_owned(),
        congestion_control: name.to_owned(),
        seed: 7,
        command: name.to_owned(),
        more: vec![(name.to_owned(), name.to_owned())],
    };
    let mut page = Page::new(name, provenance).subtitle(name);
    let text = name.to_owned();
    page.highlight(Highlight {
        label: text.clone(),
        value: text.clone(),
        note: text,
        tone: Tone::Good,
    });
    page.push(Section::new(name).paragraph(name).table(table(name)));
    page.push(
        Section::new(name)
            .figure(figure(name), name)
            .figure(figure(name), name),
    );
    page.push(Section::new(name).claims(claims(name)).listing(name, name));
    page
}

fn parse(html: &str) -> Document<'_> {
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    Document::parse_with_options(html, options).unwrap_or_else(|error| panic!("{error}\n{html}"))
}

/// The elements and texts of the page, one per line; what is inside drawings is left out.
fn outline(node: Node<'_, '_>, depth: usize, lines: &mut String) {
    let indent = "  ".repeat(depth);
    for child in node.children() {
        if child.is_text() {
            let text = child.text().unwrap_or_default().trim();
            if !text.is_empty() {
                writeln!(lines, "{indent}{text:?}").expect("a string takes it");
            }
        } else if child.is_element() {
            write!(lines, "{indent}{}", child.tag_name().name()).expect("a string takes it");
            for attribute in child.attributes() {
                write!(lines, " {}={:?}", attribute.name(), attribute.value())
                    .expect("a string takes it");
            }
            lines.push('\n');
            if !matches!(child.tag_name().name(), "svg" | "style") {
                outline(child, depth + 1, lines);
            }
        }
    }
}

#[test]
fn the_structure_of_a_page() {
    let html = page("Words").to_html();
    let mut lines = String::new();
    outline(parse(&html).root(), 0, &mut lines);
    insta::assert_snapshot!(lines);
}

#[test]
fn a_page_with_little_on_it() {
    let html = Page::new("Little", Provenance::default()).to_html();
    let document = parse(&html);
    let has = |name: &str| document.descendants().any(|node| node.has_tag_name(name));
    assert!(has("h1") && has("footer"));
    assert!(!has("nav") && !has("section") && !has("ul"));
}

/// Attributes through which a browser fetches, submits or runs something.
const REACHING_OUT: [&str; 12] = [
    "src",
    "srcset",
    "href",
    "data",
    "action",
    "formaction",
    "poster",
    "background",
    "cite",
    "manifest",
    "ping",
    "xlink:href",
];

#[track_caller]
fn assert_self_contained(html: &str) {
    let document = parse(html);
    let mut offences = Vec::new();
    for node in document.descendants().filter(Node::is_element) {
        let tag = node.tag_name().name();
        if matches!(
            tag,
            "script" | "link" | "iframe" | "object" | "embed" | "base" | "img" | "form"
        ) {
            offences.push(format!("element {tag}"));
        }
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            let is_local = name == "href" && value.starts_with('#');
            if REACHING_OUT.contains(&name) && !is_local || name.starts_with("on") {
                offences.push(format!("{name}={value:?} on {tag}"));
            }
            if name == "href" && is_local {
                let target = |node: Node<'_, '_>| node.attribute("id") == Some(&value[1..]);
                assert!(
                    document.descendants().any(target),
                    "no element has the id {value:?}"
                );
            }
        }
        if tag == "style" {
            let style = node.text().unwrap_or_default();
            for word in ["url(", "@import", "@font-face", "http", "//"] {
                if style.contains(word) {
                    offences.push(format!("{word} in the style sheet"));
                }
            }
        }
    }
    assert!(offences.is_empty(), "the page reaches out: {offences:#?}");
    let policy = document
        .descendants()
        .find(|node| node.attribute("http-equiv") == Some("Content-Security-Policy"));
    let policy = policy
        .and_then(|node| node.attribute("content"))
        .expect("the page has a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    assert_self_contained(&page("Words").to_html());
}

#[test]
fn no_text_becomes_markup() {
    let hostile = "<img src=x onerror=alert(1)>\"'&<script src=\"https://example.org/x.js\">\
                   </style></svg>]]>`<b>`\u{0}\u{1b}";
    let html = page(hostile).to_html();
    assert_self_contained(&html);
    let words = page("Words").to_html();
    let tags = |html: &str| {
        let document = parse(html);
        let elements = document.descendants().filter(Node::is_element);
        // Code is set for backticks, which the hostile text has and the other has not.
        let names = elements.map(|node| node.tag_name().name().to_owned());
        names.filter(|name| name != "code").collect::<Vec<_>>()
    };
    assert_eq!(tags(&html), tags(&words));
}

#[test]
fn every_figure_has_a_caption_and_a_description() {
    let html = page("Words").to_html();
    let document = parse(&html);
    let figures: Vec<Node<'_, '_>> = document
        .descendants()
        .filter(|node| node.has_tag_name("figure"))
        .collect();
    assert_eq!(figures.len(), 2);
    for (i, figure) in figures.iter().enumerate() {
        let svg = figure
            .children()
            .find(|node| node.has_tag_name("svg"))
            .expect("a drawing");
        assert_eq!(svg.attribute("role"), Some("img"));
        assert!(
            svg.attribute("aria-label")
                .is_some_and(|label| label.len() > 20)
        );
        let caption = figure
            .children()
            .find(|node| node.has_tag_name("figcaption"));
        let bold = caption
            .and_then(|node| node.first_element_child())
            .and_then(|b| b.text());
        assert_eq!(bold, Some(format!("Figure {}.", i + 1)).as_deref());
    }
}

/// Dark colours must not reach paper, and both schemes name the same colours.
#[test]
fn light_dark_and_paper() {
    for style in [
        include_str!("../src/plot/style.css"),
        include_str!("../src/page/style.css"),
    ] {
        let names = |css: &str| -> Vec<String> {
            let lines = css.lines().filter_map(|line| line.trim().split_once(':'));
            let names = lines.map(|(name, _)| name.to_owned());
            names.filter(|name| name.starts_with("--")).collect()
        };
        let dark = "@media screen and (prefers-color-scheme: dark) {";
        let (light, rest) = style
            .split_once(dark)
            .expect("a dark scheme, for screens only");
        let (dark, _) = rest.split_once("\n}\n").expect("the scheme ends");
        assert_eq!(names(light), names(dark));
    }
}
