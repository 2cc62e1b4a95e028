//! Plots as SVG, drawn from plain values.
//!
//! Every plot has a `draw` that gives a [`Figure`]: a drawing whose colours are named by the style
//! sheet rather than fixed in it, so that one and the same drawing suits a light page, a dark page
//! and paper, with a description of what it shows for those who cannot see it. Series differ in
//! mark and dash as well as in colour (a palette after Okabe and Ito that all readers can tell
//! apart).
//!
//! The SVG is written here because a time-sequence diagram has a hundred thousand marks: they are
//! thinned to what the eye can tell apart and share one path per kind. General plotting crates
//! write one element with fixed colours and whole pixels per mark.

mod axis;
mod canvas;
mod curves;
mod frame;
mod legend;
mod marks;
mod strip;
mod thinning;
mod time_sequence;
mod timeline;

pub use axis::{Axis, Scale};
pub use curves::{Curves, Point, Series};
pub use strip::{Limit, Strip, StripRow};
pub use time_sequence::{Acknowledgement, DataSegment, Fate, Outage, TimeSequence};
pub use timeline::{Line, Timeline};

/// The style sheet that gives a figure's classes their colours, light and dark.
pub(crate) const STYLE: &str = include_str!("style.css");

/// A finished drawing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Figure {
    body: String,
    width: u32,
    height: u32,
    description: String,
}

impl Figure {
    /// What the figure shows, in words, made from the data that were drawn.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The drawing for the inside of an HTML page that has the style sheet of
    /// [`crate::page::Page`].
    #[must_use]
    pub fn to_inline_svg(&self) -> String {
        self.svg("", "")
    }

    /// The drawing as a file of its own, style sheet included.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let style = format!(
            "<style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
        );
        self.svg(" xmlns=\"http://www.w3.org/2000/svg\"", &style)
    }

    fn svg(&self, namespace: &str, head: &str) -> String {
        let Self {
            body,
            width,
            height,
            description,
        } = self;
        let description = crate::markup::escape(description);
        format!(
            "<svg{namespace} class=\"plot\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{description}\">\n{head}{body}</svg>\n"
        )
    }
}
