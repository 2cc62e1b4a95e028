//! The shapes that stand for values.

use super::canvas::Path;

/// A shape around a point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Wedge,
    Cross,
    Plus,
}

impl Mark {
    /// The closed shapes that tell series apart, in order.
    const SERIES: [Self; 5] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Diamond,
        Self::Wedge,
    ];

    /// Adds the shape around `(x, y)` to `path`; `reach` is half its width.
    pub(crate) fn draw(self, path: &mut Path, x: f64, y: f64, reach: f64) {
        let r = reach;
        match self {
            Self::Circle => path.circle(x, y, r),
            // Of equal extent, a square looks larger than a circle and a triangle smaller.
            Self::Square => {
                let r = r * 0.9;
                path.outline(&[
                    (x - r, y - r),
                    (x + r, y - r),
                    (x + r, y + r),
                    (x - r, y + r),
                ]);
            }
            Self::Triangle => {
                let r = r * 1.15;
                path.outline(&[(x, y - r), (x + r, y + 0.75 * r), (x - r, y + 0.75 * r)]);
            }
            Self::Diamond => {
                let r = r * 1.2;
                path.outline(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)]);
            }
            Self::Wedge => {
                let r = r * 1.15;
                path.outline(&[(x, y + r), (x + r, y - 0.75 * r), (x - r, y - 0.75 * r)]);
            }
            Self::Cross => {
                path.start(x - r, y - r);
                path.line_to(x + r, y + r);
                path.start(x + r, y - r);
                path.line_to(x - r, y + r);
            }
            Self::Plus => {
                path.start(x - r, y);
                path.line_to(x + r, y);
                path.start(x, y - r);
                path.line_to(x, y + r);
            }
        }
    }
}

/// What tells one series from another: colour, dash and mark, none of them alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Look {
    pub(crate) colour: &'static str,
    pub(crate) dash: &'static str,
    pub(crate) mark: Mark,
}

impl Look {
    const COLOURS: [&'static str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];
    const DASHES: [&'static str; 4] = ["", "d1", "d2", "d3"];

    /// The look of the `index`-th series that is not a control.
    pub(crate) fn of_series(index: usize) -> Self {
        Self {
            colour: Self::COLOURS[index % Self::COLOURS.len()],
            dash: Self::DASHES[index % Self::DASHES.len()],
            mark: Mark::SERIES[(index + 1) % Mark::SERIES.len()],
        }
    }

    /// The look of the control, against which the others are held: neutral.
    pub(crate) const fn of_control() -> Self {
        Self {
            colour: "control",
            dash: "",
            mark: Mark::Circle,
        }
    }

    /// A look for each series, given which of them are controls.
    pub(crate) fn assign(controls: impl Iterator<Item = bool>) -> Vec<Self> {
        let mut next = 0;
        let look = |is_control| {
            if is_control {
                return Self::of_control();
            }
            next += 1;
            Self::of_series(next - 1)
        };
        controls.map(look).collect()
    }
}
