//! The configuration file's reference, from the keys themselves: outlast.toml(5).
//!
//! `docs/configuration.md` and the package's `config.toml` are written by this module's tests.

use super::keys::SECTIONS;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use outlast_scenario::keys::{Key, Kind};

/// What stands before the keys, by paragraphs.
const DESCRIPTION: [&str; 4] = [
    "The file says what `outlast run` does on an interface, as far as its command line leaves that \
     open. It is TOML: `key = value` lines, some of them below the header of a table.",
    "The file that `--config` names is read; without that, `/etc/outlast/INTERFACE.toml`, or, if \
     there is none, `/etc/outlast/config.toml`. Every key may be left out. `outlast run \
     --check-config` checks the file and says what would hold.",
    "`outlast reload` and SIGHUP make a running gateway read it again. All that is new holds at \
     once, or, if something is wrong, nothing does: then the former configuration holds, and what \
     is wrong stands in the log. Connections and what is kept for them stay.",
    "Sizes and times are written with their unit, in quotes: `\"4 MiB\"`, `\"10 Mbit/s\"`, \
     `\"2 min\"`.",
];

/// What manual pages are about.
pub const VERSION: &str = concat!("outlast ", env!("CARGO_PKG_VERSION"));
/// The package's changes, the newest first.
const CHANGES: &str = include_str!("../../../packaging/debian/changelog");

/// The date of this version, as manual pages have it: that of the package's last change.
pub fn date() -> String {
    let signed = CHANGES.lines().find_map(|line| line.strip_prefix(" -- "));
    let date = signed
        .and_then(|line| line.rsplit_once("  "))
        .map(|(_, date)| date);
    let date = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok());
    date.expect("the last change is signed and dated")
        .date()
        .to_string()
}

/// A gateway of a modem's link, as an example.
const EXAMPLE: &str = "interface = \"wwan0\"
mechanism = \"hold\"
rate = \"20 Mbit/s\"
control_group = \"outlast\"
metrics = \"127.0.0.1:9464\"

[limits]
held_in_all = \"64 MiB\"

[log]
level = \"warn\"
";

/// outlast.toml(5), as roff.
pub fn manual_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["outlast.toml", "5", &date(), VERSION, "Outlast"]);
    page.control("SH", ["NAME"]);
    page.text([roman("outlast.toml - configuration of the Outlast gateway")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("/etc/outlast/"), italic("INTERFACE"), bold(".toml")]);
    page.control("br", []);
    page.text([bold("/etc/outlast/config.toml")]);
    page.control("SH", ["DESCRIPTION"]);
    for (n, paragraph) in DESCRIPTION.iter().enumerate() {
        if n > 0 {
            page.control("PP", []);
        }
        page.text(inlines(paragraph));
    }
    for section in SECTIONS {
        match section.name {
            "" => page.control("SH", ["KEYS"]),
            name => page.control("SH", [&*format!("TABLE [{name}]")]),
        };
        for key in section.keys {
            describe(&mut page, key);
        }
    }
    page.control("SH", ["UNITS"]);
    for kind in [Kind::Duration(0, 0), Kind::Rate(0, 0), Kind::Size(0, 0)] {
        page.control("PP", []);
        page.text([roman(format!(
            "{}: {}.",
            capital(kind.name()),
            kind.units()
        ))]);
    }
    page.control("SH", ["EXAMPLE"]);
    page.control("nf", []);
    for line in EXAMPLE.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.control("SH", ["SEE ALSO"]);
    page.text(inlines(
        "`outlast-run`(1), `outlast-reload`(1), `outlast-status`(1)",
    ));
    page.render()
}

/// One key, as an item of a list.
fn describe(page: &mut Roff, key: &Key) {
    page.control("TP", []);
    if matches!(key.kind, Kind::Table | Kind::Tables) {
        page.text([bold(format!("[{}]", key.name))]);
        page.text(inlines(&format!("{} See below.", key.meaning)));
        return;
    }
    page.text([bold(key.name), roman(" = "), roman(key.example)]);
    page.text(inlines(key.meaning));
    page.control("IP", []);
    page.text(inlines(&format!(
        "{}. {}.",
        capital(&takes(&key.kind)),
        default(key)
    )));
}

/// What a key takes: a kind of value, and of those which.
fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Text | Kind::File | Kind::Command | Kind::Texts => kind.name().to_owned(),
        Kind::Switch => "`true` or `false`".to_owned(),
        Kind::Choice(names) => {
            let names: Vec<_> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            format!("one of {}", names.join(", "))
        }
        _ => format!("{}, {}", kind.name(), kind.range()),
    }
}

/// What holds without it, and why that.
fn default(key: &Key) -> String {
    match key.source {
        "" => format!("Default: {}", key.default),
        source => format!("Default: {} ({source})", key.default),
    }
}

/// Words with the first letter a capital.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Text in which `what is typed` stands in bold.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .filter(|(_, part)| !part.is_empty())
        .map(|(n, part)| match n % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}

#[cfg(test)]
mod tests;
