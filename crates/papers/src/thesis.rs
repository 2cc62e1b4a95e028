//! A thesis on TCP over Mobile IP (paper 003): what hand-offs cost four stacks of its time, here with
//! our model of them in virtual time.
//!
//! Two experiments: [`TIMEOUTS`] has tables 3.2 to 3.7 and figures 3.5 to 3.7 (what a sender does once
//! its peer is gone), [`HANDOFF`] has tables 4.1 and 4.3 to 4.6 (what Mobile IP's hand-offs make of
//! it). Every number that it prints is a claim with a tolerance, which stands beside the number.
//!
//! Where our runs depart from its laboratory is said in [`path`].

pub mod added_round_trips;
pub mod handoff;
pub mod table_3_2;
pub mod table_3_3;
pub mod table_3_4;
pub mod table_3_5;
pub mod table_3_6;
pub mod table_3_7;
pub mod table_4_1;
pub mod table_4_3;
pub mod table_4_4;
pub mod table_4_5;
pub mod table_4_6;
pub mod timeouts;

use crate::present;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;
use std::borrow::Cow;

/// A number of the thesis.
fn claim(
    place: &'static str,
    statement: impl Into<Cow<'static, str>>,
    unit: Unit,
    published: Published,
    tolerance: Tolerance,
) -> Claim {
    present::claim(
        "Thesis",
        place,
        statement.into(),
        unit,
        published,
        tolerance,
    )
}
