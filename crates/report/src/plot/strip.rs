//! A strip plot: every run's resume time on a scale of logarithms, a row per cell of a matrix, with
//! the limit that is to be kept. A bar would claim a length from zero, which such a scale does
//! not have; marks at the values claim no more than was measured.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas, Path, text_width};
use super::frame::{WIDTH, X_TICKS};
use super::legend::{self, Key, Swatch};
use super::marks::Look;
use super::{Figure, Scale, curves::plural, thinning};
use crate::statistics::Sample;

/// The samples of several variants in several cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// The axis of the samples.
    pub axis: Axis,
    /// The variants compared in each cell, and whether each is a control.
    pub variants: Vec<(String, bool)>,
    /// The cells, from top to bottom.
    pub rows: Vec<StripRow>,
    /// The limit to be kept.
    pub limit: Option<Limit>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct StripRow {
    /// A heading above the row, where a new group begins.
    pub group: Option<String>,
    /// The cell's name.
    pub label: String,
    /// For each variant its samples; `None` is one that never came to pass.
    pub samples: Vec<Vec<Option<f64>>>,
}

/// A value that samples should not exceed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The value, in the axis' unit.
    pub value: f64,
    /// Its name in the legend.
    pub name: String,
}

/// The height of a variant's lane within a row.
const LANE: f64 = 10.0;
/// The least height of a row, so that labels do not touch.
const ROW: f64 = 18.0;
const GROUP: f64 = 24.0;
/// The column for samples that never came to pass.
const NEVER: f64 = 84.0;
/// Its left edge, from the axis' end.
const NEVER_FROM: f64 = 24.0;
const REACH: f64 = 3.2;
/// How many marks of one lane are drawn at most.
const MARKS: usize = 300;

/// Where everything lies.
struct Layout {
    axis: super::axis::FittedAxis,
    area: Area,
    keys: Vec<Key>,
    looks: Vec<Look>,
}

impl Strip {
    /// The plot.
    ///
    /// # Panics
    ///
    /// If a row has not exactly one list of samples per variant.
    #[must_use]
    pub fn draw(&self) -> Figure {
        for row in &self.rows {
            let count = row.samples.len();
            assert_eq!(
                count,
                self.variants.len(),
                "samples per variant of {:?}",
                row.label
            );
        }
        let layout = self.layout();
        let mut canvas = Canvas::default();
        self.draw_ground(&mut canvas, &layout);
        let mut y = layout.area.top;
        for row in &self.rows {
            y += self.group_height(row);
            self.draw_row(&mut canvas, &layout, row, y);
            y += self.row_height();
        }
        legend::draw(
            &mut canvas,
            &layout.keys,
            8.0,
            layout.area.right + NEVER,
            2.0,
        );
        let (width, height) = (WIDTH as u32, (layout.area.bottom + 46.0).ceil() as u32);
        Figure {
            description: self.describe(),
            body: canvas.into_body(),
            width,
            height,
        }
    }

    fn row_height(&self) -> f64 {
        (self.variants.len() as f64 * LANE + 6.0).max(ROW)
    }

    fn group_height(&self, row: &StripRow) -> f64 {
        if row.group.is_some() { GROUP } else { 0.0 }
    }

    fn layout(&self) -> Layout {
        let looks = Look::assign(self.variants.iter().map(|(_, is_control)| *is_control));
        let mut keys: Vec<Key> = (self.variants.iter().zip(&looks))
            .map(|((name, _), look)| Key {
                swatch: Swatch::Sign {
                    class: format!("mark {}", look.colour),
                    mark: look.mark,
                    reach: 4.0,
                },
                text: name.clone(),
            })
            .collect();
        keys.extend(self.limit.as_ref().map(|limit| Key {
            swatch: Swatch::Line {
                class: "limit".to_owned(),
                mark: None,
            },
            text: limit.name.clone(),
        }));
        let widest = self
            .rows
            .iter()
            .map(|row| text_width(&row.label, 12.0))
            .fold(40.0, f64::max);
        let (left, right) = (20.0 + widest, WIDTH - 16.0 - NEVER);
        let top = 8.0 + legend::height(&keys, 8.0, right + NEVER);
        let heights = self
            .rows
            .iter()
            .map(|row| self.group_height(row) + self.row_height());
        let bottom = top + heights.sum::<f64>().max(ROW);
        let limit = self.limit.iter().map(|limit| limit.value);
        let axis = self
            .axis
            .fit(self.samples().flatten().chain(limit), X_TICKS);
        Layout {
            axis,
            area: Area {
                left,
                top,
                right,
                bottom,
            },
            keys,
            looks,
        }
    }

    fn samples(&self) -> impl Iterator<Item = Option<f64>> {
        self.rows
            .iter()
            .flat_map(|row| row.samples.iter().flatten().copied())
    }

    /// Stripes, grid, axis and limit.
    fn draw_ground(&self, canvas: &mut Canvas, layout: &Layout) {
        let Area {
            left,
            top,
            right,
            bottom,
        } = layout.area;
        let mut y = top;
        for (i, row) in self.rows.iter().enumerate() {
            y += self.group_height(row);
            if i % 2 == 0 {
                let bottom = y + self.row_height();
                canvas.rect(
                    "stripe",
                    Area {
                        left: 0.0,
                        top: y,
                        right: WIDTH,
                        bottom,
                    },
                );
            }
            y += self.row_height();
        }
        let (mut grid, mut fine, mut axes) = (Path::default(), Path::default(), Path::default());
        for tick in &layout.axis.ticks {
            let x = layout.axis.position(tick.value, left, right);
            let Some(label) = &tick.label else {
                fine.line((x, top), (x, bottom));
                continue;
            };
            grid.line((x, top), (x, bottom));
            axes.line((x, bottom), (x, bottom + 4.0));
            canvas.text("tick", (x, bottom + 18.0), Anchor::Middle, label);
        }
        axes.line((left, bottom), (right, bottom));
        if self.has_never() {
            axes.line((right + NEVER_FROM, bottom), (right + NEVER, bottom));
            let middle = right + f64::midpoint(NEVER_FROM, NEVER);
            canvas.text("tick", (middle, bottom + 18.0), Anchor::Middle, "never");
        }
        canvas.path("fine", &fine);
        canvas.path("grid", &grid);
        canvas.path("axis", &axes);
        let label = (f64::midpoint(left, right), bottom + 38.0);
        canvas.text("", label, Anchor::Middle, &layout.axis.label);
        if let Some(limit) = &self.limit {
            let x = layout.axis.position(limit.value, left, right);
            canvas.line("limit", (x, top), (x, bottom));
        }
    }

    fn has_never(&self) -> bool {
        self.samples().any(|sample| sample.is_none())
    }

    fn draw_row(&self, canvas: &mut Canvas, layout: &Layout, row: &StripRow, top: f64) {
        let Area { left, right, .. } = layout.area;
        if let Some(group) = &row.group {
            canvas.text("strong", (8.0, top - 7.0), Anchor::Start, group);
        }
        let middle = top + self.row_height() / 2.0;
        canvas.text("small", (left - 8.0, middle + 4.0), Anchor::End, &row.label);
        let first = middle - (self.variants.len() as f64 - 1.0) / 2.0 * LANE;
        for (i, (samples, look)) in row.samples.iter().zip(&layout.looks).enumerate() {
            let y = first + i as f64 * LANE;
            let values = samples.iter().copied().flatten();
            let places = values.map(|value| (layout.axis.position(value, left, right), y));
            let mut marks = Path::default();
            for (x, y) in thinning::points(&places.collect::<Vec<_>>(), 1.0, MARKS) {
                look.mark.draw(&mut marks, x, y, REACH);
            }
            let never = samples.iter().filter(|sample| sample.is_none()).count();
            let x = right + f64::midpoint(NEVER_FROM, NEVER);
            if never > 0 {
                look.mark.draw(&mut marks, x, y, REACH);
            }
            if never > 1 {
                canvas.text(
                    "count",
                    (x + 7.0, y + 3.5),
                    Anchor::Start,
                    &format!("×{never}"),
                );
            }
            canvas.path(&format!("mark sample {}", look.colour), &marks);
            // The median of few values says less than the values themselves.
            if let Some(sample) =
                Sample::of(samples.iter().copied().flatten()).filter(|s| s.count > 9)
            {
                let x = layout.axis.position(sample.median, left, right);
                canvas.line(
                    &format!("median {}", look.colour),
                    (x, y - 5.0),
                    (x, y + 5.0),
                );
            }
        }
    }

    fn describe(&self) -> String {
        let mut words = format!("{} in {}", self.axis.label, plural(self.rows.len(), "cell"));
        if self.axis.scale == Scale::Logarithmic {
            words.push_str(", on a scale of logarithms");
        }
        let variants = self.variants.iter().enumerate().map(|(i, (name, _))| {
            let samples = || {
                self.rows
                    .iter()
                    .flat_map(move |row| row.samples[i].iter().copied())
            };
            let never = samples().filter(Option::is_none).count();
            let range = Sample::of(samples().flatten()).map_or_else(
                || "no value".to_owned(),
                |s| {
                    format!(
                        "{} to {}",
                        self.axis.unit.show(s.least),
                        self.axis.unit.show(s.greatest)
                    )
                },
            );
            let over = self.limit.as_ref().map_or_else(String::new, |limit| {
                let over = samples()
                    .filter(|s| s.is_none_or(|value| value > limit.value))
                    .count();
                format!(", {over} of {} beyond the limit", samples().count())
            });
            format!("{name}: {range}, {never} never{over}")
        });
        format!("{words}. {}.", variants.collect::<Vec<_>>().join("; "))
    }
}
