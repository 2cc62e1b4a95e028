//! One small batch on the live lab, where this machine has what it needs.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_experiments::batch::{self, Plan};
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_lab::Cancel;
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

fn job(mechanism: Mechanism) -> Job {
    let (start, length) = (Duration::from_millis(300), Duration::from_millis(400));
    let setting = Setting {
        name: format!("smoke {mechanism}"),
        rate_mbit_per_s: 10,
        delay: Duration::from_millis(5),
        queue: 50,
        outages: Outages::Single { start, length },
        task: Task::Bulk {
            bytes: ByteCount(700_000),
            direction: Direction::Download,
        },
        congestion: Congestion::Cubic,
        sack: true,
        ip: IpVersion::V4,
        gateway: mechanism,
        mobile: mechanism,
        seed: 1,
        deadline: Duration::from_secs(30),
    };
    Job::new(mechanism.name(), &setting, 0).watching(Watch::Packets)
}

#[test]
fn a_batch_gives_a_record_with_its_trace_for_every_job() {
    let jobs = vec![job(Mechanism::None), job(Mechanism::Hold)];
    let plan = Plan {
        capacity: 2,
        version: "1.2.3".to_owned(),
    };
    let cancel = Cancel::new().expect("an eventfd");
    let (mut records, mut last) = (Vec::new(), batch::Progress::default());
    let store = |record: &_| {
        records.push(Clone::clone(record));
        Ok(())
    };
    match batch::run(jobs, 3, &plan, &cancel, store, |progress| last = *progress) {
        Err(error) if error.is_missing_capability() => {
            outlast_skip::skip(format!("{error}: {:?}", std::error::Error::source(&error)));
            return;
        }
        outcome => assert_eq!(outcome.expect("both runs succeed"), []),
    }
    assert_eq!((last.done, last.total, last.running), (5, 5, 0));
    assert_eq!(records.len(), 2);
    for record in records {
        let record: outlast_experiments::record::Record = record;
        assert!(record.succeeded(), "{record:?}");
        let trace = record.trace.as_ref().expect("the packets were watched");
        assert_eq!(trace.outages.len(), 1);
        let (outage, reconnection) = record.outages().next().expect("there was an outage");
        assert!(
            outage.resume_s.is_some() && reconnection.restart_s.is_some(),
            "{record:?}"
        );
        let sent: u64 = trace
            .data
            .iter()
            .map(|s| s.number + u64::from(s.payload_len))
            .max()
            .unwrap();
        assert!(
            sent >= 700_000,
            "the stream is counted from its first byte: {sent}"
        );
    }
}

#[test]
fn a_cancelled_batch_ends_and_says_so() {
    let cancel = Cancel::new().expect("an eventfd");
    cancel.cancel();
    let plan = Plan {
        capacity: 2,
        version: "1.2.3".to_owned(),
    };
    match batch::run(
        vec![job(Mechanism::None)],
        0,
        &plan,
        &cancel,
        |_| Ok(()),
        |_| {},
    ) {
        Err(batch::BatchError::Cancelled) => {}
        Err(error) if error.is_missing_capability() => outlast_skip::skip(error),
        other => panic!("{other:?}"),
    }
}
