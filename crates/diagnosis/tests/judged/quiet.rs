//! Captures without an outage: idle applications, slow receivers, and plain loss.

use crate::case::{Ends, Run, run};

/// A link of 10 Mbit/s that is always up, with `link` besides.
fn scenario(link: &str, workload: &str, other: &str) -> String {
    format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n{link}\n[workload]\n{workload}\n{other}\n\
         [run]\ndeadline = \"120 s\"\n"
    )
}

fn quiet(name: &str, run: &Run) {
    for ends in [Ends::Mobile, Ends::Fixed, Ends::Both] {
        let findings = run.findings(ends);
        assert!(
            findings.counters.segments > 20,
            "{name}: {:?}",
            findings.counters
        );
        assert_eq!(findings.outages, [], "{name}, {ends:?}");
    }
}

/// Plain loss: at random, and by a short queue.
#[test]
fn plain_loss_is_no_outage() {
    let mut count = 0;
    for loss in ["0.001", "0.01", "0.03", "0.05"] {
        for stack in ["cubic", "reno", "bbr"] {
            let link = format!("loss = {loss}");
            let work = "kind = \"bulk\"\nbytes = \"1 MB\"";
            for sack in [true, false] {
                let other = format!("[stack]\ncongestion = \"{stack}\"\nsack = {sack}");
                quiet(
                    &format!("{loss} {stack} {sack}"),
                    &run(&scenario(&link, work, &other)),
                );
                count += 1;
            }
        }
    }
    for queue in [5, 10] {
        let work = "kind = \"bulk\"\nbytes = \"4 MB\"\ndirection = \"upload\"";
        quiet(
            "queue",
            &run(&scenario(&format!("queue = {queue}"), work, "")),
        );
        count += 1;
    }
    assert_eq!(count, 26);
}

#[test]
fn an_idle_application_is_no_outage() {
    for think in ["300 ms", "2 s", "7 s"] {
        for loss in ["0.0", "0.02"] {
            for response in ["1 kB", "200 kB"] {
                let work = format!(
                    "kind = \"request-response\"\nrequests = 12\nthink = \"{think}\"\nresponse = \"{response}\""
                );
                let name = format!("{think} {loss} {response}");
                quiet(&name, &run(&scenario(&format!("loss = {loss}"), &work, "")));
            }
        }
    }
}

#[test]
fn a_slow_receiver_is_no_outage() {
    for buffer in ["8 KiB", "64 KiB"] {
        let work = "kind = \"bulk\"\nbytes = \"1 MB\"";
        let other = format!("[stack]\nreceive_buffer = \"{buffer}\"");
        quiet(buffer, &run(&scenario("", work, &other)));
    }
    let other = "[link.downlink]\nrate = \"64 kbit/s\"";
    let work = "kind = \"bulk\"\nbytes = \"300 kB\"";
    quiet(
        "slow link",
        &run(&format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n{other}\n[workload]\n{work}\n"
        )),
    );
}
