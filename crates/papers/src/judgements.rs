//! The judgements of the experiments as they are recorded, by extent.
//!
//! `outlast papers run NAME --record crates/papers/judgements` writes a file anew.

use outlast_experiments::experiment::Extent;
use outlast_experiments::recorded::Recorded;

/// An experiment's name, an extent, and the file.
type File = (&'static str, Extent, &'static str);

macro_rules! files {
    ($($name:literal $extent:ident $file:literal),* $(,)?) => {
        &[$(($name, Extent::$extent, include_str!(concat!("../judgements/", $file)))),*]
    };
}

const FILES: &[File] = files! {
    "caceres-iftode" Full "caceres-iftode-full.txt",
    "caceres-iftode" Quick "caceres-iftode-quick.txt",
    "hip" Quick "hip-quick.txt",
    "m-tcp" Quick "m-tcp-quick.txt",
    "mobile-ip" Quick "mobile-ip-quick.txt",
    "schuetz" Quick "schuetz-quick.txt",
    "scott-mapp-sim" Quick "scott-mapp-sim-quick.txt",
    "thesis-handoff" Full "thesis-handoff-full.txt",
    "thesis-handoff" Quick "thesis-handoff-quick.txt",
    "thesis-help" Quick "thesis-help-quick.txt",
    "thesis-timeouts" Full "thesis-timeouts-full.txt",
    "thesis-timeouts" Quick "thesis-timeouts-quick.txt",
};

/// Names of the recorded files.
pub fn files() -> impl Iterator<Item = String> {
    let name = |(experiment, extent, _): &File| format!("{experiment}-{}.txt", extent.name());
    FILES.iter().map(name)
}

/// The recorded judgements of every experiment: of the full extent where that is recorded, else of the quick one.
pub fn all() -> impl Iterator<Item = (&'static str, Extent, Recorded)> {
    let longest = |name| {
        let in_extent = |extent| Some((name, extent, recorded(name, extent)?));
        in_extent(Extent::Full).or_else(|| in_extent(Extent::Quick))
    };
    crate::ALL
        .iter()
        .filter_map(move |experiment| longest(experiment.name))
}

/// The recorded judgements of the experiment of that name; `None` if nothing is recorded in this extent.
///
/// # Panics
/// If the file is of no known form: it is part of this program.
#[must_use]
pub fn recorded(experiment: &str, extent: Extent) -> Option<Recorded> {
    let is_it = |file: &&File| (file.0, file.1) == (experiment, extent);
    let (_, _, text) = FILES.iter().find(is_it)?;
    let parsed = Recorded::parse(text);
    Some(parsed.unwrap_or_else(|error| panic!("{experiment} --{}: {error}", extent.name())))
}
