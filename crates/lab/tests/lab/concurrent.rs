//! Many labs at once in one process.

use crate::support::run;
use std::collections::BTreeSet;

#[test]
fn sixteen_labs_at_once_do_not_disturb_each_other() {
    let transfer = |seed: u32| {
        run(&format!(
            "[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
             [link.outages]\nprocess = \"periodic\"\nup = \"300 ms\"\ndown = \"200 ms\"\n\
             [workload]\nkind = \"bulk\"\nbytes = \"300 kB\"\n\
             [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n\
             [run]\nseed = {seed}\ndeadline = \"3 min\"\n"
        ))
    };
    let reports: Vec<_> = std::thread::scope(|scope| {
        let labs: Vec<_> = (0..16)
            .map(|seed| scope.spawn(move || transfer(seed)))
            .collect();
        labs.into_iter()
            .map(|lab| lab.join().expect("no panic"))
            .collect()
    });
    let mut seeds = BTreeSet::new();
    for report in reports {
        let Some(report) = report else { return };
        let result = report.result;
        assert!(
            result.completed && result.intact == Some(true),
            "{:?}",
            result.error
        );
        assert_eq!(result.bytes_received, Some(300_000));
        seeds.insert(result.settings.seed);
    }
    assert_eq!(seeds.len(), 16);
}
