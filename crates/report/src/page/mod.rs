//! A report as one HTML page that needs nothing but itself.
//!
//! No script, no font, no picture and no style sheet is fetched; a content security policy in the
//! page forbids it, too. It follows the reader's light or dark setting, prints on white, and is
//! well-formed XML, so that tools can take it apart.

mod write;

use crate::judgement::Judged;
use crate::plot::Figure;
use crate::table::{Table, Tone};

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    title: String,
    subtitle: Option<String>,
    highlights: Vec<Highlight>,
    sections: Vec<Section>,
    provenance: Provenance,
}

/// A number that a reader should see first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Highlight {
    /// What it is.
    pub label: String,
    /// The number with its unit.
    pub value: String,
    /// What to hold it against.
    pub note: String,
    /// Whether it is as hoped.
    pub tone: Tone,
}

/// A part of the page under its own heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    heading: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Subheading(String),
    Paragraph(String),
    Listing { summary: String, text: String },
    Table(Table),
    Figure { figure: Figure, caption: String },
    Claims(Vec<Judged>),
}

/// What a reader needs to judge and to repeat a measurement. The caller finds it out; nothing here
/// reads a clock or asks the system.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Provenance {
    /// The version of Outlast.
    pub version: String,
    /// The date of the measurement, as the caller writes dates.
    pub date: String,
    /// The running kernel, or that virtual time was used.
    pub kernel: String,
    /// The congestion control of the measured flows.
    pub congestion_control: String,
    /// The seed that repeats the outages.
    pub seed: u64,
    /// The command that repeats the measurement.
    pub command: String,
    /// Anything else, name and value.
    pub more: Vec<(String, String)>,
}

impl Page {
    /// A page without sections.
    #[must_use]
    pub fn new(title: impl Into<String>, provenance: Provenance) -> Self {
        Self {
            title: title.into(),
            subtitle: None,
            highlights: Vec::new(),
            sections: Vec::new(),
            provenance,
        }
    }

    /// Adds a line below the page's title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = Some(subtitle.into());
        self
    }

    /// Adds a number to those shown first.
    pub fn highlight(&mut self, highlight: Highlight) {
        self.highlights.push(highlight);
    }

    /// Adds a section.
    pub fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The page as HTML.
    #[must_use]
    pub fn to_html(&self) -> String {
        write::html(self)
    }
}

impl Section {
    /// A section without content.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            blocks: Vec::new(),
        }
    }

    /// Begins a part of the section, under its own heading.
    #[must_use]
    pub fn subheading(self, text: impl Into<String>) -> Self {
        self.block(Block::Subheading(text.into()))
    }

    /// Adds a paragraph; text between backticks is set as code.
    #[must_use]
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.block(Block::Paragraph(text.into()))
    }

    /// Adds text that is shown as it is, such as a scenario file or a command's output: folded
    /// behind its `summary`, in which text between backticks is set as code.
    #[must_use]
    pub fn listing(self, summary: impl Into<String>, text: impl Into<String>) -> Self {
        self.block(Block::Listing {
            summary: summary.into(),
            text: text.into(),
        })
    }

    /// Adds a table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// Adds a figure with its caption; text between backticks is set as code.
    #[must_use]
    pub fn figure(self, figure: Figure, caption: impl Into<String>) -> Self {
        self.block(Block::Figure {
            figure,
            caption: caption.into(),
        })
    }

    /// Adds published statements beside what was measured, and a line that counts them.
    #[must_use]
    pub fn claims(self, claims: Vec<Judged>) -> Self {
        self.block(Block::Claims(claims))
    }

    fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}
