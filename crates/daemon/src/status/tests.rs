use super::*;
use crate::page;
use outlast_report::table::{Charset, TextStyle};
use serde_json::Value;
use std::collections::BTreeSet;

/// A gateway of an access point, one of whose stations is away.
pub(crate) fn sample() -> Status {
    serde_json::from_str(include_str!("sample.json")).expect("a status")
}

#[test]
fn its_form_can_be_read_again() {
    let value: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
    let written = serde_json::to_value(sample()).expect("JSON");
    assert_eq!(
        written, value,
        "the sample lacks a field, or has one too many"
    );
}

#[test]
fn what_people_see_is_in_the_page() {
    let status = sample();
    let table = status.flow_table().expect("connections were asked for");
    let style = TextStyle {
        charset: Charset::Unicode,
        width: Some(100),
        paint: &|_, text| text.to_owned(),
    };
    let seen = format!("{}\n{}", status.to_text(Some(100)), table.to_text(&style));
    page::assert_part(
        "docs/gateway.md",
        "status",
        &format!("```text\n{seen}```\n"),
    );
}

#[test]
fn one_of_a_kind_is_told_as_one() {
    let status = sample_with(|counters| {
        for counter in ["acks_resent", "kicks_repeated", "resumes"] {
            counters[counter] = 1.into();
        }
    });
    let text = status.to_text(None);
    let counted = "571 re-sent, 1 acknowledgement re-sent, 83 probes, 1 kick repeated, 1 resume\n";
    assert!(text.contains(counted), "{text}");
}

#[test]
fn every_cap_is_counted() {
    let counted: Vec<_> = sample().counters.each().map(|(name, _, _)| name).collect();
    assert!(CAPS.iter().all(|cap| counted.contains(cap)));
}

#[test]
fn every_cap_that_was_reached_shows() {
    let none = sample_with(|_| {});
    assert!(none.to_text(None).contains("caps reached"));
    for cap in CAPS {
        let status = sample_with(|counters| counters[cap] = 3.into());
        let text = status.to_text(None);
        assert!(text.contains(&format!("{cap} 3: ")), "{text}");
        assert!(!text.contains("caps reached"), "{text}");
    }
}

#[test]
fn a_full_table_of_the_kernel_s_shows() {
    let full = "cap reached   flows 3: connections that gave way";
    let mut status = sample_with(|_| {});
    assert!(!status.to_text(None).contains(full));
    let kernel = status.kernel.as_mut().expect("a part in the kernel");
    kernel.evicted = 3;
    let text = status.to_text(None);
    assert!(
        text.contains(full) && !text.contains("caps reached"),
        "{text}"
    );
}

#[test]
fn a_bridge_that_has_the_packets_shows() {
    let mut status = sample();
    assert!(!status.to_text(None).contains("a port of"));
    status.port_of = Some("br-lan".into());
    let text = status.to_text(None);
    assert!(text.contains("a port of br-lan, which takes"), "{text}");
}

#[test]
fn an_older_daemon_that_counts_less_is_understood() {
    let mut value: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
    let kernel = value["kernel"].as_object_mut().expect("numbers");
    assert!(kernel.remove("evicted").is_some());
    let status: Status = serde_json::from_value(value).expect("a status");
    assert_eq!(status.kernel.expect("a part in the kernel").evicted, 0);
}

/// The sample without a cap reached, and with these counters changed.
fn sample_with(change: impl FnOnce(&mut Value)) -> Status {
    let mut value: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
    for cap in CAPS {
        value["counters"][cap] = 0.into();
    }
    change(&mut value["counters"]);
    serde_json::from_value(value).expect("a status")
}

fn assert_part(part: &str, all: impl Iterator<Item = (&'static str, &'static str, u64)>) {
    let mut table = "\n| counter | what is counted |\n|---|---|\n".to_owned();
    for (name, what, _) in all {
        table.push_str(&format!("| `{name}` | {what} |\n"));
    }
    page::assert_part("docs/gateway.md", part, &format!("{table}\n"));
}

#[test]
fn every_counter_is_in_the_page() {
    let sample = sample();
    assert_part("counters", sample.counters.each());
    assert_part(
        "kernel",
        sample.kernel.expect("a part in the kernel").each(),
    );
}

/// The path of every field below `value`, such as `resumes[].after_s`.
fn paths(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                paths(&format!("{prefix}{dot}{name}"), value, found);
            }
        }
        Value::Array(values) => {
            for value in values {
                paths(&format!("{prefix}[]"), value, found);
            }
        }
        _ => {
            found.insert(prefix.to_owned());
        }
    }
}

#[test]
fn every_field_is_in_the_page_and_no_other() {
    let mut fields = BTreeSet::new();
    paths(
        "",
        &serde_json::to_value(sample()).expect("JSON"),
        &mut fields,
    );
    fields.retain(|field| !field.starts_with("counters.") && !field.starts_with("kernel."));
    let part = page::part("docs/gateway.md", "fields");
    let rows = part
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let described: BTreeSet<_> = rows
        .flat_map(|row| row.split(", "))
        .map(|name| name.trim_matches('`').to_owned())
        .collect();
    assert_eq!(described, fields);
}
