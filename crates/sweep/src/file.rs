//! The table `[sweep]` of a file.

use crate::axis::{Axis, Dimension, Value, whole_number};
use crate::plan::{MAX_RUNS, Seeds};
use crate::range;
use crate::sample::Sample;
use outlast_scenario::keys::{self, Key, Kind, SECTIONS, Section};
use outlast_scenario::{Document, Problem, ScenarioError};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table's name.
pub(crate) const SWEEP: &str = "sweep";

const KEYS: [&str; 6] = ["scenario", "repeat", "seeds", "grid", "zip", "sample"];
const SEEDS: [&str; 2] = ["common", "independent"];

/// What `[sweep]` says.
#[derive(Debug)]
pub(crate) struct Content {
    /// The scenario that is varied: the file itself, or the one that it names.
    pub(crate) base: Document,
    /// How often each cell is run, if the table says so.
    pub(crate) repeat: Option<u64>,
    pub(crate) seeds: Seeds,
    /// In the order of the file.
    pub(crate) dimensions: Vec<Dimension>,
    /// In the order of the file.
    pub(crate) samples: Vec<Sample>,
    /// Where the table begins.
    pub(crate) at: Range<usize>,
}

/// A table within `[sweep]`.
pub(crate) struct Table<'t> {
    /// Where it is written.
    pub(crate) at: Range<usize>,
    entries: &'t DeTable<'t>,
}

type Entry<'t> = (
    &'t Spanned<toml::de::DeString<'t>>,
    &'t Spanned<DeValue<'t>>,
);

impl<'t> Table<'t> {
    pub(crate) fn value(&self, name: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entry(name).map(|(_, value)| value)
    }

    fn entry(&self, name: &str) -> Option<Entry<'t>> {
        let mut entries = self.entries.iter();
        entries.find(|(key, _)| key.get_ref() == name)
    }
}

/// Reads a file's `[sweep]`, noting everything that is wrong with it.
pub(crate) struct Sheet<'d> {
    document: &'d Document,
    /// The scenario, if it need not be read.
    base: Option<Document>,
    problems: RefCell<Vec<Problem>>,
}

/// Reads `[sweep]` of a file. The scenario that it names is `base`, if that is given, and else read.
///
/// # Errors
/// Everything that is wrong with the table. The scenario is not looked at.
pub(crate) fn read(document: &Document, base: Option<Document>) -> Result<Content, ScenarioError> {
    let sheet = Sheet {
        document,
        base,
        problems: RefCell::default(),
    };
    let top = document.table();
    let content = sheet.content(&top);
    let problems = sheet.problems.into_inner();
    match content {
        Some(content) if problems.is_empty() => Ok(content),
        _ => Err(ScenarioError::new(problems)),
    }
}

impl Sheet<'_> {
    fn content(&self, top: &DeTable<'_>) -> Option<Content> {
        let file = Table {
            at: 0..0,
            entries: top,
        };
        let Some((name, value)) = file.entry(SWEEP) else {
            self.note(
                0..0,
                "the file has no table `[sweep]`",
                "in this file",
                "add `[sweep.grid]` with keys and lists of values, or run the scenario with \
                 `outlast sim`",
            );
            return None;
        };
        let sweep = self.table(name.span(), "sweep", value)?;
        self.refuse_unknown(&sweep, "`[sweep]`", &KEYS);
        let mut dimensions = self.grid(&sweep);
        dimensions.extend(self.zips(&sweep));
        dimensions.sort_by_key(Dimension::at);
        let mut samples = self.samples(&sweep);
        samples.sort_by_key(|sample| sample.axis.key_at.start);
        self.refuse_twice(&dimensions, &samples);
        let seeds = self.choice(&sweep, "seeds", &SEEDS);
        Some(Content {
            repeat: self.repeat(&sweep),
            seeds: match seeds? {
                "independent" => Seeds::Independent,
                _ => Seeds::Common,
            },
            dimensions,
            samples,
            at: name.span(),
            base: self.base(&file, &sweep)?,
        })
    }

    /// The scenario: this file, or the one that `scenario` names.
    fn base(&self, file: &Table<'_>, sweep: &Table<'_>) -> Option<Document> {
        let Some(value) = sweep.value("scenario") else {
            return Some(self.document.clone());
        };
        let Some(path) = value.get_ref().as_str().filter(|path| !path.is_empty()) else {
            self.note(
                value.span(),
                "`scenario` takes a file's path",
                "not a path",
                "write `scenario = \"ferry.toml\"`; it counts from this file's directory",
            );
            return None;
        };
        for (name, _) in file
            .entries
            .iter()
            .filter(|(name, _)| name.get_ref() != SWEEP)
        {
            self.note(
                name.span(),
                format!("`{}` contradicts `scenario = \"{path}\"`", name.get_ref()),
                "belongs into the scenario",
                "keep the scenario in one file: here or there",
            );
        }
        if let Some(base) = &self.base {
            return Some(base.clone());
        }
        let path = self.document.directory().join(path);
        match Document::load(&path) {
            Ok(document) => Some(document),
            Err(error) => {
                let unreadable = |problem: &Problem| problem.position().is_none();
                match error.problems() {
                    [problem] if unreadable(problem) => self.note(
                        value.span(),
                        problem.to_string(),
                        "this file",
                        "check the path; it counts from this file's directory",
                    ),
                    problems => self.problems.borrow_mut().extend_from_slice(problems),
                }
                None
            }
        }
    }

    fn repeat(&self, sweep: &Table<'_>) -> Option<u64> {
        let value = sweep.value("repeat")?;
        let repeat = whole_number(value.get_ref()).filter(|n| (1..=MAX_RUNS).contains(n));
        if repeat.is_none() {
            self.note(
                value.span(),
                format!("`repeat = {}` is out of range", self.written(value.span())),
                format!("allowed: 1 to {MAX_RUNS}"),
                "write how often each cell is run, such as `repeat = 100`",
            );
        }
        repeat
    }

    fn grid(&self, sweep: &Table<'_>) -> Vec<Dimension> {
        let leaves = self.leaves(sweep, "grid");
        let axes = leaves.iter().filter_map(|leaf| self.axis(leaf));
        axes.map(|axis| {
            self.refuse_equal_values(&axis);
            Dimension { axes: vec![axis] }
        })
        .collect()
    }

    fn zips(&self, sweep: &Table<'_>) -> Vec<Dimension> {
        let Some(value) = sweep.value("zip") else {
            return Vec::new();
        };
        let items: Vec<_> = match value.get_ref() {
            DeValue::Array(items) => items.iter().collect(),
            _ => vec![value],
        };
        let mut dimensions = Vec::new();
        for item in items {
            let Some(table) = self.table(item.span(), "zip", item) else {
                continue;
            };
            let mut leaves = Vec::new();
            self.collect(&table, "", &mut leaves);
            let mut axes: Vec<_> = leaves.iter().filter_map(|leaf| self.axis(leaf)).collect();
            axes.sort_by_key(|axis| axis.key_at.start);
            if axes.len() == leaves.len() && self.have_one_length(&table, &axes) {
                dimensions.push(Dimension { axes });
            }
        }
        dimensions
    }

    /// Whether axes can move together.
    fn have_one_length(&self, table: &Table<'_>, axes: &[Axis]) -> bool {
        let [first, others @ ..] = axes else {
            let remedy = "write two or more keys with lists of one length";
            self.note(table.at.clone(), "nothing to zip", "empty", remedy);
            return false;
        };
        let other = others
            .iter()
            .find(|axis| axis.values.len() != first.values.len());
        if let Some(axis) = other {
            self.note(
                axis.key_at.clone(),
                format!(
                    "`{}` has {} values, `{}` beside it {}",
                    axis.path,
                    axis.values.len(),
                    first.path,
                    first.values.len()
                ),
                "moves together with the others",
                "give all keys of a `[[sweep.zip]]` equally many values, or write them into \
                 `[sweep.grid]`",
            );
        }
        other.is_none()
    }

    fn samples(&self, sweep: &Table<'_>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for leaf in self.leaves(sweep, "sample") {
            let Some(axis) = self.new_axis(&leaf) else {
                continue;
            };
            let is_number = crate::axis::bounds(axis.key).is_some();
            if !is_number || leaf.path == "run.seed" {
                self.note(
                    leaf.key_at.clone(),
                    format!("`{}` cannot be drawn", leaf.path),
                    "not a measure",
                    "write a list of values into `[sweep.grid]`; seeds differ by themselves",
                );
                continue;
            }
            match leaf.value.get_ref() {
                DeValue::Table(entries) => {
                    let table = Table {
                        at: leaf.value.span(),
                        entries,
                    };
                    samples.extend(Sample::read(self, axis, &table));
                }
                _ => self.note(
                    leaf.value.span(),
                    format!("`{}` is not a distribution", leaf.path),
                    "expected a table",
                    format!(
                        "write `{{ distribution = \"uniform\", from = {}, to = … }}`, or a list of \
                         values into `[sweep.grid]`",
                        axis.key.example
                    ),
                ),
            }
        }
        samples
    }

    fn axis(&self, leaf: &Leaf<'_>) -> Option<Axis> {
        let mut axis = self.new_axis(leaf)?;
        axis.values = match leaf.value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                self.note(
                    leaf.value.span(),
                    format!("`{}` has no values", leaf.path),
                    "an empty list",
                    format!("write at least one, such as `[{}]`", axis.key.example),
                );
                return None;
            }
            DeValue::Array(items) => {
                let value = |item: &Spanned<DeValue<'_>>| {
                    let toml = self.written(item.span());
                    Value::written(axis.key, toml, item.span(), item.get_ref())
                };
                items.iter().map(value).collect()
            }
            DeValue::Table(entries) => {
                let table = Table {
                    at: leaf.value.span(),
                    entries,
                };
                range::values(self, &axis, &table)
            }
            _ => {
                self.note(
                    leaf.value.span(),
                    format!("`{}` is neither a list nor a range", leaf.path),
                    "a single value",
                    format!(
                        "write `[{}]`, or set what does not vary in the scenario",
                        self.written(leaf.value.span())
                    ),
                );
                return None;
            }
        };
        if leaf.value.get_ref().is_table() {
            axis.label_computed();
        }
        (!axis.values.is_empty()).then_some(axis)
    }

    /// An axis without values for a key that can vary.
    fn new_axis(&self, leaf: &Leaf<'_>) -> Option<Axis> {
        let Some(key) = keys::find(&leaf.path) else {
            self.refuse_key(leaf);
            return None;
        };
        let refusal = match (key.kind.name(), leaf.path.as_str()) {
            (_, "run.repeat") => Some("set `repeat` in `[sweep]`: each cell is run that often"),
            (_, "name") => Some("remove it: a name changes nothing"),
            _ => match key.kind {
                Kind::Table | Kind::Tables => {
                    Some("vary its keys, such as `link.delay` or `flows.1.bytes`")
                }
                Kind::Command => Some("remove it: programs run in the lab only"),
                _ => None,
            },
        };
        if let Some(remedy) = refusal {
            let message = format!("`{}` cannot be varied", leaf.path);
            self.note(leaf.key_at.clone(), message, "not a parameter", remedy);
            return None;
        }
        Some(Axis {
            path: leaf.path.clone(),
            key,
            key_at: leaf.key_at.clone(),
            values: Vec::new(),
        })
    }

    fn refuse_key(&self, leaf: &Leaf<'_>) {
        let paths: Vec<String> = SECTIONS
            .iter()
            .flat_map(|section| section.keys.iter().map(|key| path_of(section, key)))
            .collect();
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let table = leaf.path.rsplit_once('.').map(|(table, _)| table);
        let known = table.and_then(|table| Some((table, keys::section(table)?)));
        let list = SECTIONS
            .iter()
            .find(|section| section.is_list && leaf.path.split('.').next() == Some(section.name));
        let remedy = match (known, list) {
            (Some((table, known)), _) => {
                let names: Vec<_> = known.keys.iter().map(|key| key.name).collect();
                format!("`{table}` has {}", names.join(", "))
            }
            (None, Some(list)) => format!(
                "number the tables of `{}` from 1, as in `{}`",
                list.header(),
                path_of(list, list.keys[0])
            ),
            (None, None) => {
                "write a key of the scenario file with its table, such as `link.delay` \
                             (see docs/scenario-file.md)"
                    .to_owned()
            }
        };
        let ending = format!(".{}", leaf.path);
        let whole = names.iter().find(|name| name.ends_with(&ending));
        let hint = whole.map_or_else(
            || did_you_mean(&leaf.path, &names),
            |name| format!("did you mean `{name}`?"),
        );
        let message = format!("a scenario file has no key `{}`", leaf.path);
        self.note(leaf.key_at.clone(), message, hint, remedy);
    }

    fn refuse_equal_values(&self, axis: &Axis) {
        // Neighbours in a range are told apart where it is read.
        if axis.values.windows(2).any(|pair| pair[0].at == pair[1].at) {
            return;
        }
        let mut seen = BTreeSet::new();
        for value in &axis.values {
            if !seen.insert(&value.toml) {
                self.note(
                    value.at.clone(),
                    format!("`{}` stands in the list twice", value.toml),
                    "the second",
                    "keep one of them",
                );
            }
        }
    }

    fn refuse_twice(&self, dimensions: &[Dimension], samples: &[Sample]) {
        let axes = dimensions.iter().flat_map(|dimension| &dimension.axes);
        let axes: Vec<&Axis> = axes
            .chain(samples.iter().map(|sample| &sample.axis))
            .collect();
        for (index, axis) in axes.iter().enumerate() {
            if axes[..index]
                .iter()
                .any(|earlier| earlier.path == axis.path)
            {
                self.note(
                    axis.key_at.clone(),
                    format!("`{}` is varied twice", axis.path),
                    "also varied elsewhere in `[sweep]`",
                    "keep it in one of `grid`, `zip` and `sample`",
                );
            }
        }
    }

    /// The keys that the table `name` of `[sweep]` varies, in the order of the file.
    fn leaves<'t>(&self, sweep: &Table<'t>, name: &str) -> Vec<Leaf<'t>> {
        let mut leaves = Vec::new();
        if let Some((key, value)) = sweep.entry(name)
            && let Some(table) = self.table(key.span(), name, value)
        {
            self.collect(&table, "", &mut leaves);
        }
        leaves.sort_by_key(|leaf| leaf.key_at.start);
        leaves
    }

    /// Collects the keys of `table`, whose dotted path is `prefix`: `"link.delay" = …` and
    /// `link.delay = …` say the same.
    fn collect<'t>(&self, table: &Table<'t>, prefix: &str, leaves: &mut Vec<Leaf<'t>>) {
        for (name, value) in table.entries {
            let path = match prefix {
                "" => name.get_ref().to_string(),
                prefix => format!("{prefix}.{}", name.get_ref()),
            };
            match value.get_ref() {
                DeValue::Table(entries) if is_table(&path) => {
                    let table = Table {
                        at: value.span(),
                        entries,
                    };
                    self.collect(&table, &path, leaves);
                }
                _ => leaves.push(Leaf {
                    path,
                    key_at: name.span(),
                    value,
                }),
            }
        }
    }

    fn table<'t>(
        &self,
        at: Range<usize>,
        name: &str,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<Table<'t>> {
        let entries = value.get_ref().as_table();
        if entries.is_none() {
            self.note(
                value.span(),
                format!("`{name}` takes a table"),
                "not a table",
                match name {
                    "sweep" => "open it with a line `[sweep]`",
                    "zip" => "open each group of keys with a line `[[sweep.zip]]`",
                    "sample" => "open it with a line `[sweep.sample]`",
                    _ => "open it with a line `[sweep.grid]`",
                },
            );
        }
        entries.map(|entries| Table { at, entries })
    }

    /// One of `names`, the first without the key; `None` if it is none of them.
    pub(crate) fn choice(
        &self,
        table: &Table<'_>,
        key: &str,
        names: &[&'static str],
    ) -> Option<&'static str> {
        let Some(value) = table.value(key) else {
            return names.first().copied();
        };
        let text = value.get_ref().as_str();
        let known = names.iter().copied().find(|name| text == Some(*name));
        if known.is_none() {
            self.note(
                value.span(),
                format!("`{}` is not a value of `{key}`", self.written(value.span())),
                did_you_mean(text.unwrap_or_default(), names),
                format!("write one of {}", names.join(", ")),
            );
        }
        known
    }

    /// Notes that `key` has no business beside `because`.
    pub(crate) fn forbid(&self, table: &Table<'_>, key: &str, because: &str) {
        if let Some((name, _)) = table.entry(key) {
            let message = format!("`{key}` contradicts {because}");
            self.note(name.span(), message, "does not belong here", "remove it");
        }
    }

    pub(crate) fn refuse_unknown(&self, table: &Table<'_>, place: &str, known: &[&str]) {
        for (name, _) in table.entries {
            let written = name.get_ref().as_ref();
            if !known.contains(&written) {
                self.note(
                    name.span(),
                    format!("{place} has no key `{written}`"),
                    did_you_mean(written, known),
                    format!("there may stand {}", known.join(", ")),
                );
            }
        }
    }

    pub(crate) fn note(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let problem = Problem::new(self.document.source(), span, message, label, remedy);
        self.problems.borrow_mut().push(problem);
    }

    /// What is written at a place.
    pub(crate) fn written(&self, span: Range<usize>) -> &str {
        self.document.source().text.get(span).unwrap_or_default()
    }
}

/// A key that is varied, as it is written.
struct Leaf<'t> {
    path: String,
    key_at: Range<usize>,
    value: &'t Spanned<DeValue<'t>>,
}

fn path_of(section: &Section, key: &Key) -> String {
    match (section.name, section.is_list) {
        ("", _) => key.name.to_owned(),
        (name, true) => format!("{name}.1.{}", key.name),
        (name, false) => format!("{name}.{}", key.name),
    }
}

/// Whether tables of the scenario begin with `path`.
fn is_table(path: &str) -> bool {
    keys::section(path).is_some() || SECTIONS.iter().any(|section| section.name == path)
}

fn did_you_mean(written: &str, known: &[&str]) -> String {
    let distance = |name: &&&str| strsim::damerau_levenshtein(written, name);
    let nearest = known.iter().min_by_key(distance);
    let near = nearest.filter(|name| distance(name) <= (name.len().max(written.len()) / 3).max(1));
    near.map_or_else(
        || "not known".to_owned(),
        |name| format!("did you mean `{name}`?"),
    )
}
