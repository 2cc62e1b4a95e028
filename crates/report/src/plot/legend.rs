//! The legend: what each mark and line means, in rows above the plot.

use super::canvas::{Anchor, Area, Canvas, Path, text_width};
use super::marks::Mark;

/// One meaning.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) swatch: Swatch,
    pub(crate) text: String,
}

/// The sample of what is drawn.
#[derive(Clone, Debug)]
pub(crate) enum Swatch {
    /// A line, with a mark in its middle if it has marks.
    Line {
        class: String,
        mark: Option<(String, Mark)>,
    },
    /// An upright line.
    Stem { class: String },
    /// A dot.
    Dot { class: String },
    /// A mark alone.
    Sign {
        class: String,
        mark: Mark,
        reach: f64,
    },
    /// A filled area.
    Band { class: String },
}

const SWATCH: f64 = 30.0;
const ROW: f64 = 20.0;
const FONT: f64 = 13.0;

/// Lays `keys` out between `left` and `right`; gives each key's row and x, and the total height.
fn layout(keys: &[Key], left: f64, right: f64) -> (Vec<(f64, f64)>, f64) {
    let mut places = Vec::with_capacity(keys.len());
    let (mut x, mut row) = (left, 0.0);
    for key in keys {
        let width = SWATCH + 6.0 + text_width(&key.text, FONT);
        if x > left && x + width > right {
            (x, row) = (left, row + 1.0);
        }
        places.push((x, row * ROW));
        x += width + 14.0;
    }
    let height = if keys.is_empty() {
        0.0
    } else {
        (row + 1.0) * ROW + 6.0
    };
    (places, height)
}

/// How much room the legend takes from the top.
pub(crate) fn height(keys: &[Key], left: f64, right: f64) -> f64 {
    layout(keys, left, right).1
}

pub(crate) fn draw(canvas: &mut Canvas, keys: &[Key], left: f64, right: f64, top: f64) {
    for (key, (x, y)) in keys.iter().zip(layout(keys, left, right).0) {
        let middle = top + y + ROW / 2.0;
        key.swatch.draw(canvas, x, middle);
        canvas.text(
            "",
            (x + SWATCH + 6.0, middle + 4.5),
            Anchor::Start,
            &key.text,
        );
    }
}

impl Swatch {
    fn draw(&self, canvas: &mut Canvas, x: f64, y: f64) {
        let centre = x + SWATCH / 2.0;
        let mut path = Path::default();
        match self {
            Self::Line { class, mark } => {
                canvas.line(class, (x, y), (x + SWATCH, y));
                if let Some((class, mark)) = mark {
                    mark.draw(&mut path, centre, y, 4.0);
                    canvas.path(class, &path);
                }
            }
            Self::Stem { class } => {
                for i in 0..3 {
                    let x = centre + f64::from(i - 1) * 5.0;
                    let foot = y + 5.0 - f64::from(i) * 3.0;
                    path.start(x, foot);
                    path.line_to(x, foot - 5.0);
                }
                canvas.path(class, &path);
            }
            Self::Dot { class } => {
                for i in 0..3 {
                    path.dot(
                        centre + f64::from(i - 1) * 5.0,
                        y + 2.0 - f64::from(i) * 2.0,
                    );
                }
                canvas.path(class, &path);
            }
            Self::Sign { class, mark, reach } => {
                mark.draw(&mut path, centre, y, *reach);
                canvas.path(class, &path);
            }
            Self::Band { class } => {
                let (left, right) = (x + 4.0, x + SWATCH - 4.0);
                canvas.rect(
                    class,
                    Area {
                        left,
                        top: y - 6.0,
                        right,
                        bottom: y + 6.0,
                    },
                );
            }
        }
    }
}
