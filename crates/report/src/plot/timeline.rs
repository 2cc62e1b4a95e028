//! A variable over time, in steps, with the outages shaded: a congestion window and what bounds it,
//! in the manner of Caceres and Iftode's figure 4.

use super::axis::{Axis, FittedAxis};
use super::canvas::{Canvas, Path};
use super::frame::{Frame, WIDTH, X_TICKS, Y_TICKS};
use super::legend::{Key, Swatch};
use super::marks::Look;
use super::time_sequence::Outage;
use super::{Figure, curves::plural};
use crate::unit::Unit;

/// Variables of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The axis upwards.
    pub y: Axis,
    /// The variables, in the order of the legend.
    pub lines: Vec<Line>,
    /// The outages, in any order.
    pub outages: Vec<Outage>,
    /// The stretch of time to be shown, in seconds.
    pub window_s: (f64, f64),
}

/// One variable: each value holds until the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Whether it is what the others are compared with; drawn in a neutral colour.
    pub is_control: bool,
    /// When it changed, in seconds, and to what; times do not fall. Where a value is not finite
    /// there is nothing to draw.
    pub values: Vec<(f64, f64)>,
}

const HEIGHT: f64 = 380.0;
/// Half a pixel: changes closer than this look like one.
const FINEST: f64 = 0.5;

impl Timeline {
    /// The plot.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let mut x = Axis::new("Time", Unit::Seconds);
        x.range = Some(self.window_s);
        let x = x.fit([].into_iter(), X_TICKS);
        let values = || self.lines.iter().flat_map(|line| line.within(&x));
        let y = self.y.fit(values().map(|(_, value)| value), Y_TICKS);
        let looks = Look::assign(self.lines.iter().map(|line| line.is_control));
        let keys = self.keys(&looks, &x);
        let frame = Frame::new(x, y, &keys, HEIGHT);

        let mut canvas = Canvas::default();
        Outage::shade(&self.outages, &frame, &mut canvas);
        frame.draw_grid(&mut canvas);
        for (line, look) in self.lines.iter().zip(&looks) {
            let class = format!("line {} {}", look.colour, look.dash);
            canvas.path(&class, &line.steps(&frame));
        }
        frame.draw_axes(&mut canvas, &keys);
        Figure {
            description: self.describe(&frame.x),
            body: canvas.into_body(),
            width: WIDTH as u32,
            height: HEIGHT as u32,
        }
    }

    fn keys(&self, looks: &[Look], x: &FittedAxis) -> Vec<Key> {
        let lines = self.lines.iter().zip(looks).map(|(line, look)| Key {
            swatch: Swatch::Line {
                class: format!("line {} {}", look.colour, look.dash),
                mark: None,
            },
            text: line.name.clone(),
        });
        let outage = Outage::within(&self.outages, x).next().map(|_| Key {
            swatch: Swatch::Band {
                class: "band".to_owned(),
            },
            text: "link down".to_owned(),
        });
        lines.chain(outage).collect()
    }

    fn describe(&self, x: &FittedAxis) -> String {
        let ranges = self.lines.iter().map(|line| {
            let values = line.within(x).map(|(_, value)| value);
            let values = values.filter(|value| value.is_finite());
            let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), ends);
            if low > high {
                return format!("{} without a value", line.name);
            }
            let [low, high] = [low, high].map(|value| self.y.unit.show(value));
            format!("{} between {low} and {high}", line.name)
        });
        format!(
            "{} from {} to {} with {}: {}.",
            self.y.label,
            Unit::Seconds.show(x.low),
            Unit::Seconds.show(x.high),
            plural(Outage::within(&self.outages, x).count(), "outage"),
            ranges.collect::<Vec<_>>().join("; ")
        )
    }
}

impl Line {
    /// The values that are shown: the one in force at the left end, and those that follow.
    fn within(&self, x: &FittedAxis) -> impl Iterator<Item = (f64, f64)> {
        let (low, high) = (x.low, x.high);
        let begun = self.values.partition_point(|&(time, _)| time <= low);
        let values = &self.values[begun.saturating_sub(1)..];
        let shown = values.iter().take_while(move |&&(time, _)| time <= high);
        shown.map(move |&(time, value)| (time.max(low), value))
    }

    /// The line, interrupted where a value is not finite. What changes more than once within half a
    /// pixel becomes an upright stroke, so that the longest run has no more points than the eye can
    /// tell apart.
    fn steps(&self, frame: &Frame) -> Path {
        let mut path = Path::default();
        let mut last: Option<f64> = None;
        for column in self.columns(frame) {
            let Some(Stroke { x, low, high, end }) = column else {
                last = None;
                continue;
            };
            match last {
                Some(y) => path.line_to(x, y),
                None => path.start(x, low),
            }
            if low < high {
                path.line_to(x, low);
                path.line_to(x, high);
            }
            path.line_to(x, end);
            last = Some(end);
        }
        if let Some(y) = last {
            path.line_to(frame.x(frame.x.high), y);
        }
        path
    }

    /// The columns of pixels in which the value changes, from left to right; `None` where the line
    /// is interrupted.
    fn columns(&self, frame: &Frame) -> Vec<Option<Stroke>> {
        let mut columns: Vec<Option<Stroke>> = Vec::new();
        for (time, value) in self.within(&frame.x) {
            let (x, y) = (frame.x(time), frame.y(value));
            match columns.last_mut() {
                None | Some(None) if !value.is_finite() => {}
                _ if !value.is_finite() => columns.push(None),
                Some(Some(stroke)) if x - stroke.x < FINEST => {
                    stroke.low = stroke.low.min(y);
                    stroke.high = stroke.high.max(y);
                    stroke.end = y;
                }
                _ => columns.push(Some(Stroke {
                    x,
                    low: y,
                    high: y,
                    end: y,
                })),
            }
        }
        columns
    }
}

/// What happens in one column of pixels.
struct Stroke {
    x: f64,
    low: f64,
    high: f64,
    /// Where the line goes on.
    end: f64,
}
