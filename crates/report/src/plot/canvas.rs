//! Writing SVG: elements with classes, and paths in tenths of a pixel.

use std::fmt::{self, Write as _};

use crate::markup::escape;

/// SVG elements, in the order in which they are painted.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    body: String,
}

/// Which part of a text stands at its position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A rectangle; `top` is less than `bottom`, as always in SVG.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

impl Canvas {
    pub(crate) fn into_body(self) -> String {
        self.body
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        let (x, y) = (Px(area.left), Px(area.top));
        let (width, height) = (Px(area.width()), Px(area.height()));
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n"
        ));
    }

    /// A path; nothing at all if it is empty.
    pub(crate) fn path(&mut self, class: &str, path: &Path) {
        if !path.data.is_empty() {
            self.add(format_args!(
                "<path class=\"{class}\" d=\"{}\"/>\n",
                path.data
            ));
        }
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let mut path = Path::default();
        path.line(from, to);
        self.path(class, &path);
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.turned_text(class, at, anchor, 0, text);
    }

    /// Text turned by `degrees`, clockwise, around its position.
    pub(crate) fn turned_text(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        anchor: Anchor,
        degrees: i32,
        text: &str,
    ) {
        let (x, y) = (Px(x), Px(y));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() {
            String::new()
        } else {
            format!(" class=\"{class}\"")
        };
        let turn = match degrees {
            0 => String::new(),
            degrees => format!(" transform=\"rotate({degrees} {x} {y})\""),
        };
        let text = escape(text);
        self.add(format_args!(
            "<text{class} x=\"{x}\" y=\"{y}\"{anchor}{turn}>{text}</text>\n"
        ));
    }

    fn add(&mut self, element: fmt::Arguments<'_>) {
        self.body
            .write_fmt(element)
            .expect("writing to a string does not fail");
    }
}

/// A length or coordinate with at most one decimal.
struct Px(f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tenths::of(self.0).fmt(f)
    }
}

/// A whole number of tenths of a pixel, written as short as SVG allows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Tenths(i64);

impl Tenths {
    fn of(px: f64) -> Self {
        // `as` saturates, and what lies so far out is not seen anyway.
        Self((px * 10.0).round() as i64)
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        match (self.0.unsigned_abs() / 10, self.0.unsigned_abs() % 10) {
            (whole, 0) => write!(f, "{sign}{whole}"),
            (0, tenth) => write!(f, "{sign}.{tenth}"),
            (whole, tenth) => write!(f, "{sign}{whole}.{tenth}"),
        }
    }
}

/// Path data, in steps relative to the last point: short, and free of accumulating errors, as all
/// points are whole tenths.
#[derive(Debug, Default)]
pub(crate) struct Path {
    data: String,
    pen: (Tenths, Tenths),
}

impl Path {
    /// Lifts the pen and sets it down at a point.
    pub(crate) fn start(&mut self, x: f64, y: f64) {
        let to = (Tenths::of(x), Tenths::of(y));
        // The first step of a path is absolute in either case.
        let (dx, dy) = (to.0.0 - self.pen.0.0, to.1.0 - self.pen.1.0);
        self.step('m', &[dx, dy]);
        self.pen = to;
    }

    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        let to = (Tenths::of(x), Tenths::of(y));
        match (to.0.0 - self.pen.0.0, to.1.0 - self.pen.1.0) {
            (dx, 0) => self.step('h', &[dx]),
            (0, dy) => self.step('v', &[dy]),
            (dx, dy) => self.step('l', &[dx, dy]),
        }
        self.pen = to;
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.start(from.0, from.1);
        self.line_to(to.0, to.1);
    }

    /// A point: a line of no length, which a round line cap makes a dot.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        self.start(x, y);
        self.step('h', &[0]);
    }

    /// A closed outline through `points`.
    pub(crate) fn outline(&mut self, points: &[(f64, f64)]) {
        let Some((&(x, y), rest)) = points.split_first() else {
            return;
        };
        self.start(x, y);
        for &(x, y) in rest {
            self.line_to(x, y);
        }
        self.data.push('z');
        // Closing brings the pen back to where the outline began.
        self.pen = (Tenths::of(x), Tenths::of(y));
    }

    pub(crate) fn circle(&mut self, x: f64, y: f64, radius: f64) {
        self.start(x - radius, y);
        let (radius, across) = (Tenths::of(radius), Tenths(Tenths::of(radius).0 * 2));
        let back = Tenths(-across.0);
        let arcs = write!(
            self.data,
            "a{radius} {radius} 0 1 0 {across} 0a{radius} {radius} 0 1 0 {back} 0"
        );
        arcs.expect("writing to a string does not fail");
    }

    fn step(&mut self, command: char, tenths: &[i64]) {
        self.data.push(command);
        for (i, &number) in tenths.iter().enumerate() {
            // A sign parts two numbers as well as a space does.
            if i > 0 && number >= 0 {
                self.data.push(' ');
            }
            write!(self.data, "{}", Tenths(number)).expect("writing to a string does not fail");
        }
    }
}

/// About how wide `text` is at `size` pixels in a sans-serif font; rather too wide than too narrow,
/// as the reader's font is not known.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    use unicode_width::UnicodeWidthChar as _;
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | ' ' => 0.34,
        'f' | 't' | 'r' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        c if c.is_ascii_uppercase() => 0.72,
        c if c.width() == Some(2) => 1.0,
        _ => 0.6,
    };
    text.chars().map(em).sum::<f64>() * size
}
