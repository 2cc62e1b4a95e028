//! Curves with error bars: success rates and durations against availability, with the optimum as
//! a plain line, in the manner of Scott and Mapp's figures 5 to 7 and 12 to 14.

use super::axis::Axis;
use super::canvas::{Canvas, Path};
use super::frame::{Frame, WIDTH, X_TICKS, Y_TICKS};
use super::legend::{Key, Swatch};
use super::marks::Look;
use super::{Figure, Scale};

/// One or more series over the same axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
    /// What could be had at best, as points of a plain line; `None` draws none. Its name is the
    /// legend's.
    pub optimum: Option<(String, Vec<(f64, f64)>)>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Whether it is what the others are compared with; drawn in a neutral colour.
    pub is_control: bool,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// A point and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The position to the right.
    pub x: f64,
    /// The value. Where it is not finite there is nothing to draw, and the line is interrupted.
    pub y: f64,
    /// The lower and upper end of the error bar.
    pub spread: Option<(f64, f64)>,
}

const HEIGHT: f64 = 420.0;
/// Half the width of a mark.
const REACH: f64 = 4.0;
/// Series with error bars are moved this far apart, so that bars at the same x can be told apart.
const ASIDE: f64 = 4.5;
/// Room for marks and for bars aside at the ends of the axes.
const MARGIN: f64 = 14.0;

impl Point {
    /// A point without an error bar.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }

    /// Gives the point an error bar of `deviation` up and down.
    #[must_use]
    pub fn deviating(mut self, deviation: f64) -> Self {
        self.spread = Some((self.y - deviation, self.y + deviation));
        self
    }

    /// Gives the point an error bar from `low` to `high`.
    #[must_use]
    pub const fn between(mut self, low: f64, high: f64) -> Self {
        self.spread = Some((low, high));
        self
    }
}

impl Curves {
    /// The plot.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let looks = Look::assign(self.series.iter().map(|series| series.is_control));
        let keys = self.keys(&looks);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let optimum = || self.optimum.iter().flat_map(|(_, points)| points);
        let x = points()
            .map(|point| point.x)
            .chain(optimum().map(|point| point.0));
        let ends = points()
            .filter_map(|point| point.spread)
            .flat_map(|(low, high)| [low, high]);
        let y = points()
            .map(|point| point.y)
            .chain(ends)
            .chain(optimum().map(|point| point.1));
        let (x, y) = (self.x.fit(x, X_TICKS), self.y.fit(y, Y_TICKS));
        let frame = Frame::new(x, y, &keys, HEIGHT).with_margin(MARGIN);

        let mut canvas = Canvas::default();
        frame.draw_grid(&mut canvas);
        if let Some((_, points)) = &self.optimum {
            canvas.path("optimum", &polyline(&frame, points.iter().copied(), 0.0));
        }
        let asides = self.asides();
        for ((series, look), aside) in self.series.iter().zip(&looks).zip(&asides) {
            series.draw_lines(&mut canvas, &frame, look, *aside);
        }
        // All marks lie above all lines, or a line would run through another series' mark.
        for ((series, look), aside) in self.series.iter().zip(&looks).zip(&asides) {
            series.draw_marks(&mut canvas, &frame, look, *aside);
        }
        frame.draw_axes(&mut canvas, &keys);
        let (width, height) = (WIDTH as u32, HEIGHT as u32);
        Figure {
            description: self.describe(),
            body: canvas.into_body(),
            width,
            height,
        }
    }

    fn keys(&self, looks: &[Look]) -> Vec<Key> {
        let series = self.series.iter().zip(looks).map(|(series, look)| Key {
            swatch: Swatch::Line {
                class: format!("line {} {}", look.colour, look.dash),
                mark: Some((format!("mark {}", look.colour), look.mark)),
            },
            text: series.name.clone(),
        });
        let optimum = self.optimum.as_ref().map(|(name, _)| Key {
            swatch: Swatch::Line {
                class: "optimum".to_owned(),
                mark: None,
            },
            text: name.clone(),
        });
        series.chain(optimum).collect()
    }

    /// How many pixels each series is moved to the side: none unless there are error bars.
    fn asides(&self) -> Vec<f64> {
        let any_spread = self
            .series
            .iter()
            .flat_map(|s| &s.points)
            .any(|p| p.spread.is_some());
        let step = if any_spread { ASIDE } else { 0.0 };
        let centre = self.series.len().saturating_sub(1) as f64 / 2.0;
        (0..self.series.len())
            .map(|i| (i as f64 - centre) * step)
            .collect()
    }

    fn describe(&self) -> String {
        let mut words = format!("{} against {}", self.y.label, lower_first(&self.x.label));
        if self.y.scale == Scale::Logarithmic {
            words.push_str(" on a scale of logarithms");
        }
        let series = self.series.iter().map(|series| {
            let mut finite = series.points.iter().filter(|point| point.y.is_finite());
            let first = finite.next();
            let last = finite.next_back().or(first);
            let show = |point: &Point| {
                format!(
                    "{} at {}",
                    self.y.unit.show(point.y),
                    self.x.unit.show_exact(point.x)
                )
            };
            match (first, last) {
                (Some(first), Some(last)) => {
                    format!("{} from {} to {}", series.name, show(first), show(last))
                }
                _ => format!("{} without a value", series.name),
            }
        });
        format!("{words}: {}.", series.collect::<Vec<_>>().join("; "))
    }
}

impl Series {
    fn draw_lines(&self, canvas: &mut Canvas, frame: &Frame, look: &Look, aside: f64) {
        let points = self.points.iter().map(|point| (point.x, point.y));
        let class = format!("line {} {}", look.colour, look.dash);
        canvas.path(&class, &polyline(frame, points, aside));
        let mut bars = Path::default();
        for point in &self.points {
            let Some((low, high)) = point.spread.filter(|_| point.y.is_finite()) else {
                continue;
            };
            let (x, bottom, top) = (frame.x(point.x) + aside, frame.y(low), frame.y(high));
            bars.start(x, bottom);
            bars.line_to(x, top);
            for end in [bottom, top] {
                bars.start(x - 3.0, end);
                bars.line_to(x + 3.0, end);
            }
        }
        canvas.path(&format!("bar {}", look.colour), &bars);
    }

    fn draw_marks(&self, canvas: &mut Canvas, frame: &Frame, look: &Look, aside: f64) {
        let mut marks = Path::default();
        for point in self.points.iter().filter(|point| point.y.is_finite()) {
            let (x, y) = (frame.x(point.x) + aside, frame.y(point.y));
            look.mark.draw(&mut marks, x, y, REACH);
        }
        canvas.path(&format!("mark {}", look.colour), &marks);
    }
}

/// A line through `points`, interrupted where one is not finite.
fn polyline(frame: &Frame, points: impl Iterator<Item = (f64, f64)>, aside: f64) -> Path {
    let mut path = Path::default();
    let mut is_down = false;
    for (x, y) in points {
        let is_drawn = x.is_finite() && y.is_finite();
        if is_drawn {
            let (x, y) = (frame.x(x) + aside, frame.y(y));
            if is_down {
                path.line_to(x, y);
            } else {
                path.start(x, y);
            }
        }
        is_down = is_drawn;
    }
    path
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

/// `count` and `thing`, in the plural where it is not one.
pub(crate) fn plural(count: usize, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}
