//! The scenarios that come with Outlast are sound.

use crate::fixture::repository;
use outlast_scenario::Scenario;
use std::fs;

#[test]
fn every_example_is_sound() {
    let directory = repository().join("examples/scenarios");
    let mut read = Vec::new();
    for entry in fs::read_dir(directory).expect("the examples are there") {
        let path = entry.expect("the directory can be listed").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            match Scenario::load(&path) {
                Ok(scenario) => read.push(scenario.name),
                Err(error) => panic!("{}", error.render(100)),
            }
        }
    }
    read.sort();
    let expected = [
        "agent",
        "backbone chain",
        "black hole",
        "bus tunnel",
        "chain",
        "curl download",
        "demo",
        "fast retransmit",
        "hand-over between gateways",
        "hip laptop",
        "interactive desktop",
        "laptop between networks",
        "neighbours",
        "rate falls",
        "recorded cell",
        "satellite pass",
        "shared link",
        "single outage",
        "strangers",
        "train between cells",
        "train ride",
        "web requests",
    ];
    assert_eq!(read, expected);
}
