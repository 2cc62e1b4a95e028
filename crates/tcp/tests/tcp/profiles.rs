//! Every constant of every profile says where it comes from.

use outlast_tcp::profile::{Profile, Source};
use std::collections::BTreeSet;

#[test]
fn each_source_is_named() {
    for profile in Profile::ALL {
        for (what, source) in profile.sources() {
            let (Source::Published(text)
            | Source::Standard(text)
            | Source::Code(text)
            | Source::Assumed(text)) = source;
            assert!(text.len() > 4, "{}: {what}", profile.name);
            if let Source::Standard(text) = source {
                assert!(text.starts_with("RFC "), "{}: {what}: {text}", profile.name);
            }
            if let Source::Code(text) = source {
                let file = [".c", ".h", "rc.conf", "sysctl "]
                    .iter()
                    .any(|name| text.contains(name));
                assert!(file, "{}: {what}: in which file is {text}?", profile.name);
            }
        }
    }
}

#[test]
fn names_are_those_of_scenario_files() {
    let names: BTreeSet<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
    assert_eq!(names.len(), Profile::ALL.len());
    for name in [
        "bsd-4.3-tahoe",
        "netbsd-1997",
        "freebsd-2.2",
        "sunos-5.6",
        "aix-4.3",
        "linux-2.2",
        "linux-2.4",
        "linux-6",
    ] {
        assert_eq!(Profile::by_name(name).expect("known").name, name);
    }
    assert!(Profile::by_name("plan-9").is_none());
}

#[test]
fn bounds_are_in_order() {
    for profile in Profile::ALL {
        assert!(*profile.min_rto <= *profile.initial_rto, "{}", profile.name);
        assert!(*profile.initial_rto <= *profile.max_rto, "{}", profile.name);
        assert!(
            profile.persist.min <= profile.persist.max,
            "{}",
            profile.name
        );
        assert!(
            profile.congestion_choices.contains(&profile.congestion),
            "{}",
            profile.name
        );
    }
}
