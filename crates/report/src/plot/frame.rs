//! What all plots with two axes have in common: legend, grid, ticks and labels.

use super::axis::FittedAxis;
use super::canvas::{Anchor, Area, Canvas, Path, text_width};
use super::legend::{self, Key};

/// The place that a plot has, and its axes.
pub(crate) struct Frame {
    pub(crate) x: FittedAxis,
    pub(crate) y: FittedAxis,
    /// Where values are drawn.
    pub(crate) area: Area,
    /// How far inside the area its least and greatest values lie, so that marks are not cut.
    margin: f64,
}

/// About how many ticks an axis to the right has.
pub(crate) const X_TICKS: u32 = 9;
/// About how many ticks an axis upwards has.
pub(crate) const Y_TICKS: u32 = 6;

/// The width of every figure in pixels; the page scales it down where there is less room.
pub(crate) const WIDTH: f64 = 950.0;

impl Frame {
    /// Lays a figure of `height` pixels out: legend on top, labels left and below.
    pub(crate) fn new(x: FittedAxis, y: FittedAxis, keys: &[Key], height: f64) -> Self {
        let labels = y.ticks.iter().filter_map(|tick| tick.label.as_deref());
        let widest = labels
            .map(|label| text_width(label, 12.0))
            .fold(0.0, f64::max);
        let (left, right) = (34.0 + widest, WIDTH - 16.0);
        let top = 8.0 + legend::height(keys, left, right);
        let area = Area {
            left,
            top,
            right,
            bottom: height - 46.0,
        };
        Self {
            x,
            y,
            area,
            margin: 0.0,
        }
    }

    /// Leaves room for marks at the ends of the axes.
    pub(crate) fn with_margin(mut self, margin: f64) -> Self {
        self.margin = margin;
        self
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        self.x.position(
            value,
            self.area.left + self.margin,
            self.area.right - self.margin,
        )
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.y.position(
            value,
            self.area.bottom - self.margin,
            self.area.top + self.margin,
        )
    }

    /// The grid, which goes below everything else.
    pub(crate) fn draw_grid(&self, canvas: &mut Canvas) {
        let Area {
            left,
            top,
            right,
            bottom,
        } = self.area;
        let (mut grid, mut fine) = (Path::default(), Path::default());
        for tick in &self.x.ticks {
            let x = self.x(tick.value);
            let path = if tick.label.is_some() {
                &mut grid
            } else {
                &mut fine
            };
            path.line((x, top), (x, bottom));
        }
        for tick in &self.y.ticks {
            let y = self.y(tick.value);
            let path = if tick.label.is_some() {
                &mut grid
            } else {
                &mut fine
            };
            path.line((left, y), (right, y));
        }
        canvas.path("fine", &fine);
        canvas.path("grid", &grid);
    }

    /// Axes, ticks, labels and legend, which go above everything else.
    pub(crate) fn draw_axes(&self, canvas: &mut Canvas, keys: &[Key]) {
        let Area {
            left,
            top,
            right,
            bottom,
        } = self.area;
        let mut axes = Path::default();
        axes.line((left, top), (left, bottom));
        axes.line((left, bottom), (right, bottom));
        for (value, label) in labelled(&self.x) {
            let x = self.x(value);
            axes.line((x, bottom), (x, bottom + 4.0));
            canvas.text("tick", (x, bottom + 18.0), Anchor::Middle, label);
        }
        for (value, label) in labelled(&self.y) {
            let y = self.y(value);
            axes.line((left - 4.0, y), (left, y));
            canvas.text("tick", (left - 8.0, y + 4.0), Anchor::End, label);
        }
        canvas.path("axis", &axes);
        let below = (f64::midpoint(left, right), bottom + 38.0);
        canvas.text("", below, Anchor::Middle, &self.x.label);
        let beside = (16.0, f64::midpoint(top, bottom));
        canvas.turned_text("", beside, Anchor::Middle, -90, &self.y.label);
        legend::draw(canvas, keys, left, right, 2.0);
    }
}

/// The ticks that have a label.
fn labelled(axis: &FittedAxis) -> impl Iterator<Item = (f64, &str)> {
    axis.ticks
        .iter()
        .filter_map(|tick| Some((tick.value, tick.label.as_deref()?)))
}
