//! What sound scenario files come to.

use crate::fixture::{PLAIN, scenario};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::ConfiguredRate;
use outlast_link::{InFlight, OutageProcess, PipeConfig, RateChange, Way, WhileDown};
use outlast_scenario::{
    CommandLine, Commands, Compare, Congestion, Direction, HostStack, Indicators, IpVersion,
    Mechanism, Outlast, Pattern, Profile, Run, Stack, Traffic, Workload,
};
use std::path::Path;
use std::time::Duration;

fn with(lines: &str) -> String {
    format!("{PLAIN}\n{lines}\n")
}

#[test]
fn the_shortest_scenario_takes_every_default() {
    let scenario = scenario(PLAIN);
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(12_000_000),
        delay: Duration::from_millis(10),
        // 12 Mbit/s times 20 ms are 30 kB.
        queue: 20,
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
    };
    assert_eq!(scenario.name, "test");
    assert_eq!(scenario.link.downlink, pipe);
    assert_eq!(scenario.link.uplink, pipe);
    assert_eq!(scenario.link.outages, OutageProcess::AlwaysUp);
    assert_eq!(scenario.link.in_flight, InFlight::Delivered);
    assert_eq!(scenario.link.mtu, 1_500);
    assert_eq!(
        scenario.workload,
        Workload::Bulk {
            bytes: ByteCount(1_000_000),
            direction: Direction::Download
        }
    );
    assert_eq!(
        scenario.stack,
        Stack {
            profile: Profile::Linux6,
            retries: None,
            max_rto: None,
            congestion: None,
            sack: None,
            timestamps: None,
            timer_phase: None,
            host_latency: Duration::ZERO,
            receive_buffer: None,
            ip: IpVersion::V4,
            mobile: HostStack::default(),
            fixed: HostStack::default(),
        }
    );
    assert_eq!(scenario.outlast, Outlast::default());
    let deadline = Duration::from_secs(300);
    assert_eq!(
        scenario.run,
        Run {
            repeat: 1,
            seed: 1,
            deadline
        }
    );
}

#[test]
fn directions_override_the_link() {
    let scenario = scenario(&with(
        "[link.uplink]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nloss = 0.1\n\
         [link.downlink]\nqueue = 7\nduplicate = 0.2\nreorder = 1",
    ));
    let (down, up) = (scenario.link.downlink, scenario.link.uplink);
    assert_eq!(down.rate, BitRate::from_bits_per_second(12_000_000));
    assert_eq!(
        (down.delay, up.delay),
        (Duration::from_millis(10), Duration::from_millis(20))
    );
    assert_eq!((down.queue, up.queue), (7, 20));
    assert_eq!((down.loss, up.loss), (0.0, 0.1));
    assert_eq!((down.duplicate, down.reorder), (0.2, 1.0));
    assert_eq!(up.rate, BitRate::from_bits_per_second(1_000_000));
}

#[test]
fn both_directions_may_stand_for_the_link() {
    let text = PLAIN.replace("rate = \"12 Mbit/s\"\ndelay = \"10 ms\"\n", "");
    let scenario = scenario(&format!(
        "{text}\n[link.uplink]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
         [link.downlink]\nrate = \"unlimited\"\ndelay = \"2 ms\"\n"
    ));
    assert_eq!(scenario.link.downlink.rate, None);
    assert_eq!(scenario.link.uplink.delay, Duration::from_millis(1));
}

#[test]
fn the_queue_holds_a_bandwidth_delay_product() {
    let queue = |rate: &str, delay: &str| {
        let text = PLAIN.replace("12 Mbit/s", rate).replace("10 ms", delay);
        scenario(&text).link.downlink.queue
    };
    assert_eq!(queue("1 Gbit/s", "20 ms"), 3_334);
    assert_eq!(queue("1 kbit/s", "20 ms"), 20);
    assert_eq!(queue("unlimited", "20 ms"), 20);
    assert_eq!(queue("1000 Gbit/s", "1 h"), 1_000_000);
}

#[test]
fn outage_processes() {
    let process = |lines: &str| {
        scenario(&with(&format!("[link.outages]\n{lines}")))
            .link
            .outages
    };
    let (up, down) = (Duration::from_millis(500), Duration::from_millis(4_500));
    let times = "up = \"500 ms\"\ndown = \"4.5 s\"";
    assert_eq!(process("process = \"always-up\""), OutageProcess::AlwaysUp);
    assert_eq!(
        process(&format!("process = \"periodic\"\n{times}")),
        OutageProcess::Periodic {
            first: up,
            up,
            down
        }
    );
    assert_eq!(
        process(&format!("process = \"periodic\"\n{times}\nstart = \"7 s\"")),
        OutageProcess::Periodic {
            first: Duration::from_secs(7),
            up,
            down
        }
    );
    assert_eq!(
        process(&format!("process = \"uniform\"\n{times}")),
        OutageProcess::Uniform { up, down }
    );
    assert_eq!(
        process(&format!("process = \"normal\"\n{times}")),
        OutageProcess::Normal { up, down }
    );
    assert_eq!(
        process(&format!("process = \"exponential\"\n{times}")),
        OutageProcess::Exponential { up, down }
    );
    assert_eq!(
        process("process = \"single\"\nstart = \"10 s\"\nlength = \"26 s\""),
        OutageProcess::Single {
            start: Duration::from_secs(10),
            length: Duration::from_secs(26)
        }
    );
}

#[test]
fn in_flight_packets_may_be_lost() {
    let text = PLAIN.replace("[link]", "[link]\nin_flight = \"lost\"");
    assert_eq!(scenario(&text).link.in_flight, InFlight::Lost);
}

#[test]
fn a_link_may_keep_its_queue_while_it_is_down() {
    assert_eq!(scenario(PLAIN).link.while_down, WhileDown::Dropped);
    let text = PLAIN.replace("[link]", "[link]\nwhile_down = \"queued\"");
    assert_eq!(scenario(&text).link.while_down, WhileDown::Queued);
}

#[test]
fn links_may_change_their_rates() {
    let text = with(
        "[[rate_changes]]\nat = \"9 s\"\nuplink = \"1 Mbit/s\"\n\n\
                     [[rate_changes]]\nat = \"4 s\"\ndownlink = \"2 Mbit/s\"\n\n\
                     [[hops]]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\n\
                     [[rate_changes]]\nat = \"1 s\"\nuplink = \"3 Mbit/s\"\nhop = 1\n",
    );
    let scenario = scenario(&text);
    let told = |changes: &[RateChange]| -> Vec<_> {
        let megabits = |rate: Option<BitRate>| rate.map(|rate| rate.bits_per_second() / 1_000_000);
        let changes = changes.iter();
        changes
            .map(|change| {
                (
                    change.at.as_secs(),
                    megabits(change.to_mobile),
                    megabits(change.to_fixed),
                )
            })
            .collect()
    };
    assert_eq!(
        told(&scenario.link.rate_changes),
        [(4, Some(2), None), (9, None, Some(1))]
    );
    assert_eq!(
        told(&scenario.hops[0].link.rate_changes),
        [(1, None, Some(3))]
    );
}

#[test]
fn outages_may_be_kept_from_gateways() {
    assert_eq!(scenario(PLAIN).outlast.indicators, Indicators::Link);
    for (name, indicators) in [("link", Indicators::Link), ("silence", Indicators::Silence)] {
        let text = with(&format!("[outlast]\nindicators = \"{name}\""));
        assert_eq!(scenario(&text).outlast.indicators, indicators);
    }
}

#[test]
fn gateways_may_be_told_another_rate_than_the_links_or_none() {
    let rate = |lines: &str| scenario(&with(lines)).outlast.rate;
    let stated = BitRate::from_bits_per_second(3_000_000).expect("not zero");
    assert_eq!(scenario(PLAIN).outlast.rate, ConfiguredRate::Link);
    for (written, expected) in [
        ("link", ConfiguredRate::Link),
        ("unknown", ConfiguredRate::Unknown),
        ("3 Mbit/s", ConfiguredRate::Stated(stated)),
    ] {
        let read = rate(&format!("[outlast]\nrate = \"{written}\""));
        assert_eq!(read, expected);
        assert_eq!(read.to_string(), written);
    }
}

/// The plain scenario with another workload.
fn workload(lines: &str) -> Workload {
    scenario(&PLAIN.replace("kind = \"bulk\"\nbytes = \"1 MB\"", lines)).workload
}

#[test]
fn workloads_have_defaults() {
    assert_eq!(
        workload("kind = \"interactive\""),
        Workload::Interactive {
            interval: Duration::from_millis(200),
            update: ByteCount(64),
            request: ByteCount(10),
            duration: Duration::from_secs(100),
        }
    );
    assert_eq!(
        workload("kind = \"request-response\""),
        Workload::RequestResponse {
            requests: 100,
            request: ByteCount(200),
            response: ByteCount(10_000),
            think: Duration::ZERO,
        }
    );
}

#[test]
fn workloads_take_their_keys() {
    assert_eq!(
        workload("kind = \"bulk\"\nbytes = \"5 MiB\"\ndirection = \"upload\""),
        Workload::Bulk {
            bytes: ByteCount(5 << 20),
            direction: Direction::Upload
        }
    );
    assert_eq!(Direction::Upload.way(), Way::ToFixed);
    assert_eq!(
        workload("kind = \"request-response\"\nrequests = 3\nthink = \"1 s\""),
        Workload::RequestResponse {
            requests: 3,
            request: ByteCount(200),
            response: ByteCount(10_000),
            think: Duration::from_secs(1),
        }
    );
}

#[test]
fn commands_are_texts_or_lists() {
    let commands = workload(
        "kind = \"command\"\nserver = \"nc -l 80 < in\"\nclient = [\"fetch\", \"a b\"]\nready = 80\n\
         sent = \"in\"\nreceived = \"/tmp/out\"",
    );
    assert_eq!(
        commands,
        Workload::Command(Commands {
            server: CommandLine::Shell("nc -l 80 < in".to_owned()),
            client: CommandLine::Words(vec!["fetch".to_owned(), "a b".to_owned()]),
            ready: 80,
            compare: Some(Compare {
                sent: Path::new("./in").to_owned(),
                received: Path::new("/tmp/out").to_owned(),
            }),
        })
    );
}

#[test]
fn the_stack_takes_its_keys() {
    let stack = scenario(&with(
        "[stack]\nprofile = \"bsd-4.3-tahoe\"\nretries = 9\nmax_rto = \"64 s\"\ncongestion = \"reno\"\nsack = false\n\
         timestamps = false\ntimer_phase = \"1.5 s\"\nip = \"ipv6\"\nreceive_buffer = \"18824 B\"\n\
         [stack.mobile]\nprofile = \"linux-2.2\"\nmax_rto = \"1 s\"\n\
         [stack.fixed]\nprofile = \"aix-4.3\"\nreceive_buffer = \"64 KiB\"",
    ))
    .stack;
    let expected = Stack {
        profile: Profile::Bsd43Tahoe,
        retries: Some(9),
        max_rto: Some(Duration::from_secs(64)),
        congestion: Some(Congestion::Reno),
        sack: Some(false),
        timestamps: Some(false),
        timer_phase: Some(Duration::from_millis(1_500)),
        host_latency: Duration::ZERO,
        receive_buffer: Some(ByteCount(18_824)),
        ip: IpVersion::V6,
        mobile: HostStack {
            profile: Some(Profile::Linux22),
            max_rto: Some(Duration::from_secs(1)),
            receive_buffer: None,
        },
        fixed: HostStack {
            profile: Some(Profile::Aix43),
            max_rto: None,
            receive_buffer: Some(ByteCount(65_536)),
        },
    };
    assert_eq!(stack, expected);
}

#[test]
fn every_mechanism_has_its_places() {
    let asked = |place: &str, mechanism: Mechanism| {
        scenario(&with(&format!("[outlast]\n{place} = \"{mechanism}\""))).outlast
    };
    for mechanism in Mechanism::AT_GATEWAY {
        assert_eq!(asked("gateway", mechanism).gateway, mechanism);
    }
    for mechanism in Mechanism::AT_MOBILE {
        assert_eq!(asked("mobile", mechanism).mobile, mechanism);
    }
    for mechanism in Mechanism::AT_FIXED {
        assert_eq!(asked("fixed", mechanism).fixed, mechanism);
    }
    for mechanism in Mechanism::ALL {
        assert!(
            Mechanism::AT_MOBILE.contains(mechanism),
            "{mechanism} has no place"
        );
    }
}

#[test]
fn user_timeouts_are_off_or_what_the_option_carries() {
    let timeout = |value: &str| {
        scenario(&with(&format!("[outlast]\nuser_timeout = \"{value}\"")))
            .outlast
            .user_timeout
    };
    assert_eq!(timeout("off"), None);
    assert_eq!(timeout("90 s"), Some(Duration::from_secs(90)));
    assert_eq!(timeout("32767 s"), Some(Duration::from_secs(32_767)));
    assert_eq!(timeout("10 h"), Some(Duration::from_secs(36_000)));
}

#[test]
fn runs_have_neighbouring_seeds() {
    let scenario = scenario(&with("[run]\nrepeat = 3\nseed = 41\ndeadline = \"1 min\""));
    assert_eq!(scenario.link_config(0).seed, 41);
    assert_eq!(scenario.link_config(2).seed, 43);
    assert_eq!(scenario.run.deadline, Duration::from_secs(60));
}

#[test]
fn further_connections_take_what_they_do_not_say_from_the_stack() {
    let scenario = scenario(&with(
        "[stack]\ncongestion = \"reno\"\nsack = false\nip = \"ipv6\"\n\
         receive_buffer = \"32 kB\"\n[stack.mobile]\nreceive_buffer = \"64 kB\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"5 kB\"\ndirection = \"upload\"\nbegin = \"2 s\"\n\
         timestamps = false\n\
         [[flows]]\nkind = \"request-response\"\ncount = 3\nprofile = \"linux-2.4\"\nretries = 4\n\
         receive_buffer = \"9 kB\"\n",
    ));
    assert!(scenario.has_topology());
    let [upload, exchanges] = &scenario.flows[..] else {
        panic!("two tables")
    };
    assert_eq!((upload.count, upload.begin), (1, Duration::from_secs(2)));
    let bulk = Workload::Bulk {
        bytes: ByteCount(5_000),
        direction: Direction::Upload,
    };
    assert_eq!(upload.workload, bulk);
    let own = Stack {
        timestamps: Some(false),
        ..scenario.stack
    };
    assert_eq!(upload.stack, own);
    assert_eq!((exchanges.count, exchanges.begin), (3, Duration::ZERO));
    let other = Stack {
        profile: Profile::Linux24,
        retries: Some(4),
        max_rto: None,
        congestion: None,
        sack: None,
        timestamps: None,
        receive_buffer: Some(ByteCount(9_000)),
        timer_phase: None,
        host_latency: Duration::ZERO,
        ip: IpVersion::V6,
        mobile: HostStack::default(),
        fixed: HostStack::default(),
    };
    assert_eq!(exchanges.stack, other);
}

#[test]
fn cross_traffic_takes_its_defaults() {
    let hop = "[[hops]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let scenario = scenario(&with(&format!(
        "{hop}[[traffic]]\npattern = \"constant\"\nrate = \"1 Mbit/s\"\n\
         [[traffic]]\npattern = \"on-off\"\nrate = \"2 Mbit/s\"\non = \"1 s\"\noff = \"3 s\"\nhop = 1\n\
         direction = \"upload\"\npacket = \"100 B\"\nbegin = \"1 s\"\nend = \"9 s\"\n"
    )));
    let rate = |bits| BitRate::from_bits_per_second(bits).expect("not zero");
    let constant = Traffic {
        hop: 0,
        direction: Direction::Download,
        pattern: Pattern::Constant,
        rate: rate(1_000_000),
        packet: ByteCount(1_500),
        begin: Duration::ZERO,
        end: None,
    };
    let on_off = Traffic {
        hop: 1,
        direction: Direction::Upload,
        pattern: Pattern::OnOff {
            on: Duration::from_secs(1),
            off: Duration::from_secs(3),
        },
        rate: rate(2_000_000),
        packet: ByteCount(100),
        begin: Duration::from_secs(1),
        end: Some(Duration::from_secs(9)),
    };
    assert_eq!(scenario.traffic, [constant, on_off]);
}

#[test]
fn a_chain_of_links_is_as_slow_as_its_slowest_and_as_long_as_all() {
    let chain = scenario(&with(
        "[[hops]]\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\nfixed_end = \"hold\"\n\
         [hops.downlink]\nrate = \"2 Mbit/s\"\n\
         [[hops]]\nrate = \"unlimited\"\ndelay = \"7 ms\"\nloss = 0.5\n",
    ));
    assert_eq!(chain.hops[0].fixed_end, Mechanism::Hold);
    assert_eq!(chain.hops[0].mobile_end, Mechanism::None);
    let seeds = [0, 1].map(|number| chain.hop_config(0, number).expect("it is there").seed);
    assert!(seeds[0] != seeds[1] && !seeds.contains(&chain.link_config(0).seed));
    assert_eq!(chain.hop_config(0, 2), None);
    let whole = chain.path_config(0).expect("no hop goes away");
    assert_eq!(
        whole.to_mobile.rate,
        BitRate::from_bits_per_second(2_000_000)
    );
    assert_eq!(
        whole.to_fixed.rate,
        BitRate::from_bits_per_second(4_000_000)
    );
    assert_eq!(whole.round_trip(), Duration::from_millis(2 * (10 + 5 + 7)));
    let framing = chain.framing();
    let ideal = chain
        .ideal_time(0, framing)
        .expect("a bulk transfer has one");
    // 44 ms, and 1 MB with headers at 2 Mbit/s.
    assert!((4.1..4.25).contains(&ideal.as_secs_f64()), "{ideal:?}");

    let interrupted = scenario(&with(
        "[[hops]]\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\n\
         [hops.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"1 s\"\n",
    ));
    assert_eq!(interrupted.path_config(0), None);
    assert_eq!(interrupted.ideal_time(0, framing), None);
}
