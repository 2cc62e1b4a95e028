use super::*;
use clap::ValueEnum;
use outlast_scenario::ScenarioError;
use outlast_scenario::keys::Kind;

fn parse(text: &str) -> Result<File, ScenarioError> {
    parse_file(keys::FILE, &keys::TOP, text, "config.toml", File::take)
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_defaults() {
    let file = "interface = \"wwan0\"\nmechanism = \"smart-link-3\"\nqueue = 9\n\
                rate = \"2 Mbit/s\"\ncontrol_mode = \"0660\"\nmetrics = \"[::1]:9464\"\n\
                [indicators]\nneighbour = false\n[limits]\nheld_in_all = \"64 MiB\"\n\
                [log]\nlevel = \"debug\"\nformat = \"json\"\n";
    let given = Given {
        mechanism: Some("hold".parse().expect("a mechanism")),
        log_level: Some(LogLevel::Warn),
        ..Given::default()
    };
    let settings = parse(file).expect("sound").complete(&given);
    let settings = settings.expect("complete");
    assert_eq!(settings.interface, "wwan0");
    assert_eq!(settings.mechanism, Mechanism(PathMechanismKind::Hold));
    assert_eq!((settings.queue, settings.mark), (Some(9), MARK));
    assert_eq!(settings.control, Path::new("/run/outlast/wwan0.sock"));
    assert_eq!(settings.rate, BitRate::from_bits_per_second(2_000_000));
    assert_eq!(settings.access.mode, Some(0o660));
    assert_eq!(
        settings.limits,
        Limits {
            held_in_all: ByteCount(64 << 20),
            ..Sizes::of_this_machine().limits
        }
    );
    let address = "[::1]:9464".parse().expect("literal");
    assert_eq!(settings.metrics, Some(Endpoint::Tcp(address)));
    let expected = Watched {
        neighbour: false,
        ..Watched::default()
    };
    assert_eq!(settings.indicators, expected);
    let log = (settings.log.level, settings.log.format);
    assert_eq!(log, (LogLevel::Warn, LogFormat::Json));
}

#[test]
fn every_mistake_is_named_at_its_place_with_what_is_allowed() {
    let mistakes = [
        ("mechanism = \"hold-all\"", 1, "smart-link-1, "),
        ("interfaces = \"a\"", 1, "interface, mechanism"),
        ("interface = \"a/b\"", 1, "ip link"),
        ("\nrate = 10", 2, "Mbit/s"),
        ("control_mode = \"0777\"", 1, "0660"),
        ("control_mode = \"rw\"", 1, "0660"),
        ("metrics = \"9464\"", 1, "127.0.0.1:9464"),
        ("metrics = \"unix:here\"", 1, "unix:/run"),
        (
            "metrics = \"unix:/run/outlast/metrics.sock\"",
            1,
            "/run/outlast/wwan0.metrics",
        ),
        ("queue = 65536", 1, "0 to 65535"),
        ("[limits]\nflows = 0", 2, "1 to 16777216"),
        ("[limits]\nheld_in_all = \"1 kB\"", 2, "2 KiB to 1 TiB"),
        ("[indicators]\ncarrier = \"no\"", 2, "carrier = true"),
        ("[silence]\nshortest = \"0 s\"", 2, "1 ms to 1 min"),
        ("[damping]\nhalf_life = \"1 ms\"", 2, "100 ms to"),
        ("[damping]\nreuse = 4000", 2, "half the `cut_off`"),
        ("[damping]\ncut_off = 1500", 2, "half the `cut_off`"),
        ("[agents]\nkey = \"k\"", 1, "listen"),
        ("[agents]\njournal = \"j\"\nmobiles = []", 1, "listen"),
        ("[agents]\nlost_after = \"9 s\"", 1, "listen"),
        ("[log]\nlevel = \"loud\"", 2, "error, warn"),
        ("mark = ", 1, "key = value"),
    ];
    for (text, line, allowed) in mistakes {
        let error = parse(text).expect_err(text);
        let [problem] = error.problems() else {
            panic!("{text}: {error:?}");
        };
        assert_eq!(problem.position().expect("a place").0, line, "{text}");
        let told = format!("{problem} {}", problem.remedy());
        assert!(told.contains(allowed), "{text}: {told}");
    }
    let all = "queue = 65536\nrate = 10\n[log]\nlevel = \"loud\"";
    assert_eq!(parse(all).expect_err("three").problems().len(), 3);
}

#[test]
fn an_interface_must_be_named_somewhere() {
    let nothing = File::default().complete(&Given::default());
    assert!(matches!(nothing, Err(Failure::Usage(_))));
}

#[test]
fn the_file_takes_what_the_daemon_offers() {
    let offered: Vec<_> = Mechanism::ALL.iter().map(|kind| kind.info().name).collect();
    assert_eq!(offered, keys::MECHANISMS);
    let names = |key: &Key| match key.kind {
        Kind::Choice(names) => names.to_vec(),
        _ => panic!("`{}` is no choice", key.name),
    };
    for name in names(&keys::LOG_LEVEL) {
        assert!(LogLevel::from_str(name, false).is_ok(), "{name}");
    }
    for name in names(&keys::LOG_FORMAT) {
        assert!(LogFormat::from_str(name, false).is_ok(), "{name}");
    }
}

/// What the reference says of defaults is what holds without the key.
#[test]
fn defaults_are_those_of_the_reference() {
    let limits = Sizes::of(ByteCount(64 << 30)).limits;
    let (silence, damping) = (SilenceConfig::default(), DampingConfig::default());
    let default = |key: &Key| {
        // What follows is for smaller machines.
        let text = key.default.split(", ").next().unwrap_or_default();
        let text = text.trim_matches('`').trim_matches('"');
        let quantity = key.kind.quantity(text);
        quantity.or_else(|| text.parse().ok()).expect(key.name)
    };
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).expect("short");
    for (key, value) in [
        (&keys::FLOWS, limits.flows as u64),
        (&keys::HELD_PER_FLOW, limits.held_per_flow.0),
        (&keys::HELD_IN_ALL, limits.held_in_all.0),
        (&keys::OTHER_PACKETS, limits.other_packets as u64),
        (&keys::OTHER_BYTES, limits.other_bytes.0),
        (&keys::OTHER_AGE, nanos(limits.other_age)),
        (&keys::PEERS, limits.peers as u64),
        (&keys::SHORTEST_SILENCE, nanos(silence.shortest)),
        (&keys::PROBES_PER_SECOND, silence.probes_per_second.into()),
        (&keys::FULL_PACE_FOR, nanos(silence.full_pace_for)),
        (&keys::GIVEN_UP_AFTER, nanos(silence.given_up_after)),
        (&keys::HALF_LIFE, nanos(damping.half_life)),
        (&keys::CUT_OFF, damping.cut_off.into()),
        (&keys::REUSE, damping.reuse.into()),
        (&keys::HOLD_DOWN, nanos(damping.hold_down)),
        (&keys::CLOSED_TIMEOUT, nanos(limits.closed_timeout)),
        (&keys::OPENING_TIMEOUT, nanos(limits.opening_timeout)),
        (
            &keys::ESTABLISHED_TIMEOUT,
            nanos(limits.established_timeout),
        ),
    ] {
        assert_eq!(default(key), value, "{}", key.name);
        let (least, most) = key.kind.bounds().expect("a range");
        assert!((least..=most).contains(&value), "{}", key.name);
    }
}

#[test]
fn a_change_is_one_that_can_be_made_or_one_that_cannot() {
    let given = Given {
        interface: Some("wwan0".into()),
        ..Given::default()
    };
    let settings = |text: &str| {
        parse(text)
            .expect("sound")
            .complete(&given)
            .expect("complete")
    };
    let before = settings("");
    let free = settings(
        "rate = \"1 Mbit/s\"\n[limits]\npeers = 1\n[silence]\nprobes_per_second = 9\n\
         [damping]\nenabled = false\n[log]\nlevel = \"warn\"",
    );
    assert_eq!(
        before.free_differences(&free),
        ["rate", "limits", "silence", "damping", "log.level"]
    );
    assert!(before.fixed_differences(&free).is_empty());
    let fixed = settings("queue = 1\ncontrol_group = \"0\"");
    assert_eq!(before.fixed_differences(&fixed), ["control_group", "queue"]);
    assert!(before.free_differences(&fixed).is_empty());
}

/// The files that are shown in a page.
fn files_in(page: &str) -> Vec<String> {
    let text = crate::page::text(page);
    let blocks = text.split("```toml\n").skip(1);
    let files = blocks.filter_map(|rest| rest.split_once("```"));
    files.map(|(file, _)| file.to_owned()).collect()
}

#[test]
fn files_in_the_pages_are_sound_and_complete() {
    let files = files_in("docs/placement.md");
    assert!(
        files.len() >= 5,
        "access router, access point, VPN, home agent, containers"
    );
    let shown = files_in("docs/configuration.md");
    assert!(!shown.is_empty());
    for file in files.iter().chain(&shown) {
        let sound = parse(file).unwrap_or_else(|error| panic!("{file}\n{}", error.render(100)));
        let settings = sound
            .complete(&Given::default())
            .expect("it names the interface");
        assert!(file.contains(&format!("interface = \"{}\"", settings.interface)));
    }
}

/// With every example taken out of its comment, the package's file is sound; as it is, it says
/// nothing.
#[test]
fn the_package_s_file_is_sound() {
    let file = crate::page::text("packaging/config.toml");
    assert_eq!(parse(&file).expect("sound"), File::default());
    let is_example = |line: &&str| line.starts_with('#') && !line.starts_with("# ") && *line != "#";
    let examples = file.lines().filter(is_example).count();
    let keys: usize = keys::SECTIONS
        .iter()
        .map(|section| section.keys.len())
        .sum();
    assert_eq!(
        examples,
        keys - (keys::SECTIONS.len() - 1),
        "one for each key but the tables"
    );
    let lines = file.lines().map(|line| {
        line.strip_prefix('#')
            .filter(|_| is_example(&line))
            .unwrap_or(line)
    });
    let all: String = lines.map(|line| format!("{line}\n")).collect();
    parse(&all).unwrap_or_else(|error| panic!("{}", error.render(100)));
}

#[test]
fn agents_that_the_mechanism_leaves_without_work_are_warned_of() {
    let warnings = |text: &str| {
        let file = parse(&format!("interface = \"wwan0\"\n{text}")).expect("sound");
        let settings = file.complete(&Given::default()).expect("complete");
        settings.warnings()
    };
    let journal = "[agents]\njournal = \"/tmp/journal\"\n";
    for mechanism in ["none", "hold", "acknowledge-ahead", "auto", "smart-link-4"] {
        let told = warnings(&format!("mechanism = \"{mechanism}\"\n{journal}"));
        let [warning] = &told[..] else {
            panic!("{mechanism}: {told:?}");
        };
        for word in ["[agents]", mechanism, "zero-window-ack"] {
            assert!(warning.contains(word), "{warning}");
        }
    }
    let sound = warnings(&format!("mechanism = \"zero-window-ack\"\n{journal}"));
    assert_eq!((sound, warnings("mechanism = \"hold\"")), (vec![], vec![]));
}

#[test]
fn the_file_that_is_read_is_named_whole() {
    let given = Given {
        config: Some("gateway.toml".into()),
        ..Given::default()
    };
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(given.file(), Some(here.join("gateway.toml")));
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_none() {
    let place = tempfile::tempdir().expect("a place");
    let at = |name: &str| place.path().join(name);
    assert!(!is_something(&at("absent.toml")));
    std::fs::write(at("file"), "").expect("ours");
    std::os::unix::fs::symlink(at("absent.toml"), at("dangling.toml")).expect("ours");
    std::os::unix::fs::symlink(at("loop"), at("loop")).expect("ours");
    for name in [
        "file",
        "dangling.toml",
        "loop/wwan0.toml",
        "file/wwan0.toml",
    ] {
        assert!(is_something(&at(name)), "{name}");
        assert!(name == "file" || File::load(&at(name)).is_err(), "{name}");
    }
}

#[test]
fn a_supervisor_does_m_tcp_and_nothing_else() {
    let settle = |text: &str| {
        let given = Given {
            role: PathRole::Supervisor,
            interface: Some("wwan0".into()),
            ..Given::default()
        };
        let settings = parse(text).expect("sound").complete(&given);
        settings.map(|settings| settings.mechanism.0)
    };
    assert_eq!(settle("").ok(), Some(PathMechanismKind::MTcpAdaptive));
    let published = settle("mechanism = \"m-tcp\"\n");
    assert_eq!(published.ok(), Some(PathMechanismKind::MTcp));
    let refused = settle("mechanism = \"hold\"\n").expect_err("not M-TCP");
    assert_eq!(
        refused.to_string(),
        "a supervisor does not do \"hold\": take m-tcp-adaptive or m-tcp, or --role gateway"
    );
}
