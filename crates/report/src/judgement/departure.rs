//! Reasons for measurements that differ from what was published, as far as they are known.

use super::Judged;
use crate::table::Table;
use std::borrow::Cow;

/// The reason why a different outcome is to be expected here, or the word that none is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Departure {
    /// This reason: another kernel, another channel.
    Known(Cow<'static, str>),
    /// No reason is known; this was tried to find one.
    Unexplained(Cow<'static, str>),
}

/// The departures of a table's claims: each stands once, in a note that the rows refer to.
#[derive(Clone, Debug, Default)]
pub struct Departures(Vec<Departure>);

impl Departure {
    /// The departure in a sentence or more.
    #[must_use]
    pub fn say(&self) -> String {
        match self {
            Self::Known(reason) => format!("Known departure: {reason}"),
            Self::Unexplained(tried) => format!("Not explained: {tried}"),
        }
    }

    /// True if the reason is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// The note with that number.
    fn note(&self, number: usize) -> String {
        match self {
            Self::Known(reason) => format!("Known departure {number}: {reason}"),
            Self::Unexplained(tried) => format!("Departure {number}, not explained: {tried}"),
        }
    }
}

impl From<&'static str> for Departure {
    fn from(reason: &'static str) -> Self {
        Self::Known(reason.into())
    }
}

impl From<String> for Departure {
    fn from(reason: String) -> Self {
        Self::Known(reason.into())
    }
}

impl Departures {
    /// A row's reference to the departure of `judged`; `None` if there is none to tell of.
    pub fn refer(&mut self, judged: &Judged) -> Option<String> {
        let departure = judged.departure()?;
        let known = self.0.iter().position(|known| known == departure);
        let place = known.unwrap_or_else(|| {
            self.0.push(departure.clone());
            self.0.len() - 1
        });
        Some(format!("departure {}", place + 1))
    }

    /// Adds the notes to `table`.
    pub fn note(self, table: &mut Table) {
        for (place, departure) in self.0.into_iter().enumerate() {
            table.note(departure.note(place + 1));
        }
    }
}
