//! What the command says and how it ends, as far as that needs no namespaces.

use crate::place::{Place, Said};
use outlast_skip::skip;
use serde_json::Value;
use std::io::Read;
use std::process::Command;

/// A sound scenario.
const SOUND: &str = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
    [workload]\nkind = \"bulk\"\nbytes = \"10 kB\"\n";

#[test]
fn without_arguments_it_shows_the_subcommands() {
    let said = Place::new().run([""; 0]);
    said.refuses(
        2,
        &[
            "Usage: outlast",
            "demo",
            "lab",
            "papers",
            "doctor",
            "completions",
        ],
    );
}

#[test]
fn an_unknown_subcommand_is_named() {
    Place::new()
        .run(["docter"])
        .refuses(2, &["'docter'", "'doctor'"]);
}

#[test]
fn a_lab_needs_a_file() {
    Place::new().run(["lab"]).refuses(2, &["<FILE>"]);
}

#[test]
fn a_missing_scenario_file_is_named() {
    let said = Place::new().run(["lab", "tunnel.toml"]);
    said.refuses(2, &[]);
    insta::assert_snapshot!(said.err);
}

#[test]
fn a_directory_is_no_scenario() {
    Place::new()
        .run(["lab", "."])
        .refuses(2, &["Is a directory"]);
}

#[test]
fn a_file_that_is_no_text_does_not_steer_the_terminal() {
    let place = Place::new();
    place.file(
        "program.toml",
        "name = \"\u{1b}]0;title\u{7}\"\nlink = \u{1b}[2J\n",
    );
    let said = place.run(["sim", "program.toml"]);
    said.refuses(2, &["program.toml"]);
    assert!(!said.err.contains(['\u{1b}', '\u{7}']), "{said:?}");
}

#[test]
fn a_check_says_that_an_interface_is_not_there() {
    let said = Place::new().run(["run", "-i", "nosuch0", "--check-config"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("nosuch0 (not there now"), "{said:?}");
}

/// Role, and a table of its file with two keys that are slips, whose right forms follow.
const SLIPS: [(&str, &str, [&str; 2]); 9] = [
    (
        "gateway",
        "mechanim = \"hold\"\nrte = \"1 Mbit/s\"\n",
        ["mechanism", "rate"],
    ),
    (
        "supervisor",
        "mechanim = \"m-tcp\"\nrte = \"1 Mbit/s\"\n",
        ["mechanism", "rate"],
    ),
    (
        "host",
        "[host]\nmechanim = \"m-tcp\"\nper_secnd = 1\n",
        ["mechanism", "per_second"],
    ),
    (
        "hip",
        "[hip]\nky = \"hip.key\"\ndevise = \"hip0\"\n",
        ["key", "device"],
    ),
    (
        "rendezvous",
        "[hip]\nky = \"hip.key\"\ndevise = \"hip0\"\n",
        ["key", "device"],
    ),
    (
        "home-agent",
        "[home_agent]\ninterfac = \"a\"\nadress = \"b\"\n",
        ["interface", "address"],
    ),
    (
        "foreign-agent",
        "[foreign_agent]\ninterfac = \"a\"\ncare_of_adress = \"b\"\n",
        ["interface", "care_of_address"],
    ),
    (
        "mobile-node",
        "[mobile_node]\ndetecton = \"lazy\"\nhome_adress = \"b\"\n",
        ["detection", "home_address"],
    ),
    (
        "correspondent",
        "[correspondent]\ncontol = \"a\"\nmetric = \"b\"\n",
        ["control", "metrics"],
    ),
];

#[test]
fn a_slip_in_the_file_of_any_role_is_shown_with_what_was_meant() {
    let place = Place::new();
    for (role, text, meant) in SLIPS {
        place.file("role.toml", text);
        let arguments = [
            "run",
            "--role",
            role,
            "--config",
            "role.toml",
            "--check-config",
        ];
        let said = place.run(arguments);
        let meant = meant.map(|key| format!("did you mean `{key}`?"));
        said.refuses(2, &["role.toml:", &meant[0], &meant[1]]);
        assert!(!said.err.contains("TOML parse error"), "{role}: {said:?}");
    }
}

#[test]
fn every_mistake_of_a_scenario_is_shown_at_its_place() {
    let place = Place::new();
    let text = "[link]\nrate = \"-10 Mbit/s\"\ndelay = 25\nloss = 5\n\n\
        [link.outages]\nprocess = \"single\"\nup = \"1 s\"\n\n\
        [workload]\nknd = \"bulk\"\nbytes = \"5 ms\"\n";
    place.file("tunnel.toml", text);
    let said = place.run(["lab", "tunnel.toml"]);
    said.refuses(2, &[]);
    insta::assert_snapshot!(said.err);
}

#[test]
fn a_mechanism_in_the_wrong_place_is_refused_before_anything_is_made() {
    let place = Place::new();
    for (key, value, available) in [
        ("gateway", "fast-retransmit", "m-tcp-adaptive"),
        ("fixed", "hold", "retransmission-trigger"),
    ] {
        let text = format!("{SOUND}[outlast]\n{key} = \"{value}\"\n");
        place.file("tunnel.toml", &text);
        let said = place.run(["lab", "tunnel.toml", "--capture", "captures"]);
        said.refuses(2, &["tunnel.toml", value, key, available]);
        assert!(!place.path().join("captures").exists());
    }
}

#[test]
fn places_that_cannot_be_written_are_refused_before_anything_runs() {
    let place = Place::new();
    place.file("tunnel.toml", SOUND);
    place.file("file", "something");
    for (option, value) in [
        ("--report", "."),
        ("--report", "file/report.html"),
        ("--report", "/proc/outlast/report.html"),
        ("--capture", "file"),
        ("--capture", "/proc/outlast"),
    ] {
        let said = place.run(["lab", "tunnel.toml", option, value]);
        said.refuses(2, &[value.trim_end_matches("/report.html"), option]);
    }
    let said = place.run(["demo", "--report", "file/demo.html"]);
    said.refuses(2, &["file", "--report"]);
    let said = place.run(["papers", "run", "hold-channel", "--out", "file"]);
    said.refuses(2, &["file", "--out"]);
}

#[test]
fn a_scenario_may_be_called_like_a_subcommand() {
    let place = Place::new();
    place.file("shell", "no scenario");
    place.run(["lab", "./shell"]).refuses(2, &["./shell"]);
    place
        .run(["lab", "shell"])
        .refuses(2, &["no lab is running"]);
}

#[test]
fn a_shell_needs_a_running_lab() {
    let said = Place::new().run(["lab", "shell", "--", "true"]);
    said.refuses(2, &["no lab is running", "outlast lab FILE"]);
}

#[test]
fn a_view_wants_a_terminal_and_says_what_does_not() {
    let said = Place::new().run(["top", "--control", "nobody.sock"]);
    said.refuses(2, &["wants a terminal", "`outlast status --json`"]);
}

#[test]
fn a_registry_that_others_may_write_to_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    std::fs::create_dir(place.registry()).expect("a directory in ours");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(place.registry(), open).expect("chmod");
    place.run(["lab", "shell"]).refuses(1, &["is not safe"]);
}

#[test]
fn an_unknown_experiment_is_refused_with_those_that_there_are() {
    let known = ["scott-mapp", "hold-matrix", "hold-channel"];
    let listed = [("papers", &known[..1]), ("trials", &known[1..])];
    let place = Place::new();
    for action in ["run", "report"] {
        place
            .run(["papers", action, "hold-chanel"])
            .refuses(2, &known);
    }
    for (command, names) in listed {
        let list = place.run([command, "list"]);
        assert_eq!(list.code, Some(0), "{list:?}");
        for name in known {
            let is_listed = list.out.lines().any(|line| line.starts_with(name));
            assert_eq!(is_listed, names.contains(&name), "{list:?}");
        }
    }
}

#[test]
fn quick_and_full_exclude_each_other() {
    let said = Place::new().run(["papers", "run", "hold-matrix", "--quick", "--full"]);
    said.refuses(2, &["--quick", "--full"]);
}

#[test]
fn completions_are_understood_by_their_shells() {
    let place = Place::new();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let said = place.run(["completions", shell]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        assert!(said.out.contains("outlast"), "{shell}");
        let script = place.file(shell, &said.out);
        match Command::new(shell).arg(check).arg(script).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
            Err(error) => skip(format!("{shell}: {error}")),
        }
    }
    place
        .run(["completions", "csh"])
        .refuses(2, &["csh", "bash"]);
}

/// What bash offers for the last of `words`.
fn bash_offers(place: &Place, words: &[&str]) -> Option<Vec<String>> {
    let script = place.file("script", &place.run(["completions", "bash"]).out);
    let last = words.len() - 1;
    let driver = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={last}; _outlast outlast '{}' '{}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" "),
        words[last],
        words[last - 1],
    );
    let mut bash = Command::new("bash");
    let output = bash
        .args(["--norc", "-c", &driver])
        .current_dir(place.path());
    let output = output
        .output()
        .inspect_err(|error| skip(format!("bash: {error}")))
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn bash_offers_mechanisms_interfaces_and_no_files_for_numbers() {
    let place = Place::new();
    place.file("a-file", "");
    let Some(mechanisms) = bash_offers(&place, &["outlast", "run", "--mechanism", ""]) else {
        return;
    };
    assert!(mechanisms.contains(&"auto".to_owned()), "{mechanisms:?}");
    assert_eq!(mechanisms.len(), 12);
    for command in ["run", "status", "notify", "reload"] {
        let interfaces = bash_offers(&place, &["outlast", command, "-i", ""]).expect("as above");
        assert!(
            interfaces.contains(&"lo".to_owned()),
            "{command}: {interfaces:?}"
        );
        assert!(!interfaces.contains(&"a-file".to_owned()), "{interfaces:?}");
    }
    let numbers = bash_offers(&place, &["outlast", "lab", "--jobs", ""]).expect("as above");
    assert_eq!(numbers, [""]);
    let files = bash_offers(&place, &["outlast", "run", "--config", ""]).expect("as above");
    assert!(files.contains(&"a-file".to_owned()), "{files:?}");
}

#[test]
fn the_help_of_run_names_every_mechanism() {
    let said = Place::new().run(["run", "--help"]);
    for name in ["none", "smart-link-4", "hold", "auto", "acknowledge-ahead"] {
        let line = format!("- {name}: ");
        assert!(
            said.out.contains(&line) || said.out.contains(&format!("- {name}:")),
            "{name}: {}",
            said.out
        );
    }
    let said = Place::new().run(["run", "--mechanism", "hld"]);
    said.refuses(2, &["'hld'", "auto", "a similar value exists: 'hold'"]);
}

#[test]
fn the_doctor_tells_the_same_in_words_and_in_json() {
    let place = Place::new();
    let (words, json) = (place.run(["doctor"]), place.run(["doctor", "--json"]));
    assert_eq!(words.code, json.code);
    let json: Value = serde_json::from_str(&json.out).expect("one document");
    let ready = |command: &str| json["ready"][command] == true;
    let code = |all: bool| Some(if all { 0 } else { 3 });
    assert_eq!(words.code, code(ready("lab") && ready("run")), "{words:?}");
    for command in ["lab", "run"] {
        assert_eq!(
            place.run(["doctor", command]).code,
            code(ready(command)),
            "{command}"
        );
    }
    place
        .run(["doctor", "sim"])
        .refuses(2, &["'sim'", "lab, run"]);
    let probes = json["probes"].as_array().expect("a list");
    assert!(probes.len() > 5, "{json:#}");
    for probe in probes {
        let name = probe["name"].as_str().expect("a name");
        let sign = if probe["available"] == true {
            "ok"
        } else {
            "--"
        };
        let line = words.out.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {}", words.out));
        assert!(line.starts_with(sign), "{line}");
        if probe["available"] == false {
            let remedy = probe["remedy"].as_str().expect("missing parts have one");
            assert!(words.out.contains(remedy), "{remedy}");
        }
    }
    assert!(!words.out.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let mut child = place.start(["completions", "zsh"]);
    let mut start = [0; 8];
    let mut out = child.stdout.take().expect("piped");
    out.read_exact(&mut start).expect("more than a few bytes");
    drop(out);
    let said = Said::of(child.wait_with_output().expect("ends"));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
}

#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else {
        return skip("there is no /dev/full");
    };
    let mut command = place.command(["papers", "list"]);
    let output = command.stdout(full).output().expect("outlast was built");
    let said = Said::of(output);
    said.refuses(1, &["standard output", "No space left"]);
}

#[test]
fn help_says_what_exit_codes_mean() {
    let said = Place::new().run(["--help"]);
    assert_eq!(said.code, Some(0));
    insta::assert_snapshot!(said.out);
}

#[test]
fn a_simulation_is_captured_and_reported_at_every_link() {
    let place = Place::new();
    place.file(
        "chain.toml",
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
         [[hops]]\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"200 kB\"\n[run]\nrepeat = 2\n",
    );
    let arguments = [
        "sim",
        "chain.toml",
        "--json",
        "--capture",
        "a/b",
        "--report",
        "c/page.html",
    ];
    let said = place.run(arguments.into_iter().chain(["--trace", "d"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("c/page.html"), "{said:?}");
    for run in ["1", "2"] {
        for end in ["fixed", "mobile", "hop1.fixed", "hop1.mobile"] {
            let name = format!("a/b/chain-{run}.{end}.pcapng");
            let file = std::fs::read(place.path().join(&name)).expect("it was written");
            assert!(file.len() > 200_000, "{name}");
        }
        let variables = place.path().join(format!("d/chain-{run}.csv"));
        assert!(variables.exists());
    }
    let page = std::fs::read_to_string(place.path().join("c/page.html")).expect("the page");
    assert_eq!(page.matches("<figure").count(), 2, "a diagram for each run");
    assert!(page.contains("simulated in virtual time"));
}

#[test]
fn a_control_is_run_beside_and_only_where_there_is_something_to_leave_out() {
    let place = Place::new();
    let outage = "[link.outages]\nprocess = \"single\"\nstart = \"3 ms\"\nlength = \"2 s\"\n";
    let with = format!("{SOUND}{outage}[outlast]\ngateway = \"hold\"\n[run]\nrepeat = 2\n");
    place.file("tunnel.toml", &with);
    let said = place.run(["sim", "tunnel.toml", "--control", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let json: Value = serde_json::from_str(&said.out).expect("one document");
    for (list, gateway) in [("runs", "hold"), ("control", "none")] {
        let runs = json[list].as_array().expect("a list");
        let seeds: Vec<_> = runs.iter().map(|run| run["seed"].as_u64()).collect();
        assert_eq!(seeds, [Some(1), Some(2)], "{list}");
        assert!(runs.iter().all(|run| run["gateway"] == gateway), "{list}");
    }
    let resume = |list: &str| {
        json[list][0]["outages"][0]["resume_s"]
            .as_f64()
            .expect("it resumed")
    };
    assert!(resume("runs") * 2.0 < resume("control"), "{json:#}");
    let said = place.run(["sim", "tunnel.toml", "--control"]);
    for words in ["seed 1, control", "with Outlast", "control"] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    place.file("plain.toml", SOUND);
    for command in ["sim", "lab"] {
        let said = place.run([command, "plain.toml", "--control"]);
        said.refuses(2, &["plain.toml", "--control", "[outlast]"]);
    }
    let said = place.run(["sim", "plain.toml", "--json"]);
    let json: Value = serde_json::from_str(&said.out).expect("one document");
    assert!(json.get("control").is_none(), "{json:#}");
}
