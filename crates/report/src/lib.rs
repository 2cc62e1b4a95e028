//! What Outlast shows of a measurement: tables, plots, claims beside measurements, and a page.
//!
//! Nothing here runs, measures or reads a clock; every input is a plain value that the caller
//! hands in, and every output is a string. The same [`table::Table`] is written for a terminal, as
//! Markdown, HTML, CSV or JSON; plots are SVG that follows the reader's light or dark setting; a
//! [`judgement::Claim`] is written down before the measurement and judged by its numbers; and
//! [`page::Page`] puts all of it on one HTML page that needs no network and no script.
//!
//! ```
//! use outlast_report::table::{Cell, Column, Table, TextStyle};
//! use outlast_report::unit::Unit;
//!
//! let mut table = Table::new([
//!     Column::text("run", "Run"),
//!     Column::quantity("resume_s", "Resume", Unit::Seconds),
//! ]);
//! table.push([Cell::from("plain TCP"), Cell::from(7.1)]);
//! table.push([Cell::from("with Outlast"), Cell::from(0.043)]);
//! assert_eq!(table.to_csv(), "run,resume_s\nplain TCP,7.1\nwith Outlast,0.043\n");
//! assert!(table.to_text(&TextStyle::default()).contains("43.0 ms"));
//! ```
#![forbid(unsafe_code)]

pub mod judgement;
pub mod markup;
pub mod page;
pub mod plot;
pub mod results;
pub mod settings;
pub mod statistics;
pub mod table;
pub mod unit;
pub mod words;
