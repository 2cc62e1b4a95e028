//! `--kernel`: packaged kernels in virtual time, and what is said where there are none.
//!
//! Those tests that boot a kernel want the directory of one in `OUTLAST_KERNEL`, as `outlast kernels get` makes it, and
//! the emulator.

use crate::place::{Place, Said};
use outlast_skip::skip;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SCENARIO: &str = r#"
[link]
rate = "6 Mbit/s"
delay = "20 ms"

[link.outages]
process = "single"
start = "500 ms"
length = "3 s"

[workload]
kind = "bulk"
bytes = "1 MB"

[outlast]
gateway = "hold"

[run]
deadline = "30 s"
"#;

const SWEEP: &str =
    "[sweep]\nrepeat = 2\n[sweep.grid]\n\"outlast.gateway\" = [\"none\", \"hold\"]\n";

/// A directory with what looks like kernels of these releases, for the processor that `magic` at `offset` means.
fn pretended(place: &Place, name: &str, releases: &[&str], offset: usize, magic: &[u8]) -> PathBuf {
    let directory = place.path().join(name);
    fs::create_dir_all(directory.join("boot")).expect("a directory of ours");
    let mut image = vec![0; 4_096];
    image[offset..offset + magic.len()].copy_from_slice(magic);
    for release in releases {
        let modules = directory.join("lib/modules").join(release);
        fs::create_dir_all(modules).expect("a directory of ours");
        let file = directory.join(format!("boot/vmlinuz-{release}"));
        fs::write(file, &image).expect("a file of ours");
    }
    directory
}

/// A kernel for this machine, which would not boot.
fn native(place: &Place, releases: &[&str]) -> PathBuf {
    match cfg!(target_arch = "aarch64") {
        true => pretended(place, "native", releases, 0x38, b"ARMd"),
        false => pretended(place, "native", releases, 0x202, b"HdrS"),
    }
}

fn place() -> Place {
    let place = Place::new();
    place.file("tunnel.toml", SCENARIO);
    place.file("hold.toml", &format!("{SCENARIO}\n{SWEEP}"));
    place
}

/// Both commands with `--kernel`, in an environment that `change` makes.
fn both(place: &Place, kernel: &Path, change: impl Fn(&mut Command)) -> [Said; 2] {
    ["lab tunnel.toml", "sweep hold.toml"].map(|words| {
        let mut command = place.command(words.split(' '));
        command.arg("--kernel").arg(kernel);
        command.env("OUTLAST_GUESTS", place.path().join("guests"));
        change(&mut command);
        Said::of(command.output().expect("outlast was built"))
    })
}

fn refused(place: &Place, kernel: &Path, words: &[&str]) {
    for said in both(place, kernel, |_| {}) {
        said.refuses(2, words);
    }
}

#[test]
fn what_is_no_kernel_is_named() {
    let place = place();
    let get = "outlast kernels get";
    refused(
        &place,
        Path::new("nowhere"),
        &["nowhere", "no such directory", get],
    );
    refused(&place, place.path(), &["there is no kernel", get]);
    let two = native(&place, &["6.1.0", "6.12.0"]);
    refused(&place, &two, &["more than one kernel", "6.1.0, 6.12.0"]);
    let foreign = match cfg!(target_arch = "aarch64") {
        true => pretended(&place, "foreign", &["6.1.0"], 0x202, b"HdrS"),
        false => pretended(&place, "foreign", &["6.1.0"], 0x38, b"ARMd"),
    };
    let words = ["6.1.0 is a kernel for", "set OUTLAST_GUEST_PROGRAM"];
    refused(&place, &foreign, &words);
    let missing = |command: &mut Command| {
        command.env("OUTLAST_GUEST_PROGRAM", "no-such-file");
    };
    for said in both(&place, &foreign, missing) {
        said.refuses(
            2,
            &["OUTLAST_GUEST_PROGRAM is no-such-file", "No such file"],
        );
    }
    let nothing = pretended(&place, "nothing", &["6.1.0"], 0, b"a text");
    refused(&place, &nothing, &["for neither amd64 nor arm64"]);
    fs::remove_dir_all(nothing.join("lib")).expect("ours");
    refused(&place, &nothing, &["there are no modules"]);
}

#[test]
fn a_missing_emulator_is_named_with_its_package() {
    let place = place();
    let kernel = native(&place, &["6.12.0"]);
    let said = both(&place, &kernel, |command| {
        command.env("PATH", place.path());
    });
    for said in said {
        said.refuses(3, &["qemu-system-", "is not installed", "apt-get install"]);
    }
}

#[test]
fn a_place_for_guests_that_cannot_be_made_is_named() {
    let place = place();
    let kernel = native(&place, &["6.12.0"]);
    let file = place.file("taken", "");
    let said = both(&place, &kernel, |command| {
        command.env("OUTLAST_GUESTS", &file);
    });
    for said in said {
        said.refuses(2, &["taken", "set OUTLAST_GUESTS"]);
    }
    let said = both(&place, &kernel, |command| {
        let variables = ["OUTLAST_GUESTS", "XDG_CACHE_HOME", "HOME"];
        for name in variables {
            command.env_remove(name);
        }
    });
    for said in said {
        said.refuses(2, &["set OUTLAST_GUESTS"]);
    }
}

/// Each cell is looked at before the first run, and shown at its place.
#[test]
fn a_sweep_that_the_lab_cannot_run_is_refused_at_once() {
    let place = place();
    let kernel = native(&place, &["6.12.0"]);
    let text = format!(
        "{SCENARIO}\n[[flows]]\nkind = \"bulk\"\nbytes = \"1 kB\"\n\
         [sweep.grid]\n\"flows.1.count\" = [2, 2000]\n"
    );
    place.file("many.toml", &text);
    let mut command = place.command(["sweep", "many.toml", "--kernel"]);
    command.arg(&kernel);
    let said = Said::of(command.output().expect("outlast was built"));
    said.refuses(2, &["many.toml", "2001 connections", "in cell 2 of 2"]);
    // The simulator has no such limit.
    assert_eq!(place.run(["sweep", "many.toml"]).code, Some(0));
}

#[test]
fn journals_of_the_simulator_and_of_kernels_are_not_mixed() {
    let place = place();
    let kernel = native(&place, &["6.12.0"]);
    let said = place.run(["sweep", "hold.toml", "--out", "here"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut command = place.command(["sweep", "hold.toml", "--out", "here", "--kernel"]);
    command.arg(&kernel);
    let said = Said::of(command.output().expect("outlast was built"));
    said.refuses(
        2,
        &["runs of the simulator, and this is Linux 6.12.0", "--out"],
    );
}

/// The kernel to boot, if there is one.
fn kernel() -> Option<PathBuf> {
    let Some(kernel) = std::env::var_os("OUTLAST_KERNEL").filter(|kernel| !kernel.is_empty())
    else {
        skip("OUTLAST_KERNEL names no unpacked kernel");
        return None;
    };
    let emulator = match cfg!(target_arch = "aarch64") {
        true => "qemu-system-aarch64",
        false => "qemu-system-x86_64",
    };
    let asked = Command::new(emulator)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if asked.is_err() {
        skip(format!("{emulator} is not installed"));
        return None;
    }
    Some(std::path::absolute(kernel).expect("a path"))
}

/// Loops that keep processors busy.
struct Busy([Child; 2]);

impl Busy {
    fn new() -> Self {
        Self([(); 2].map(|()| {
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", "while :; do :; done"]);
            shell.spawn().expect("a shell")
        }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for each in &mut self.0 {
            each.kill().expect("it is ours");
            each.wait().expect("it was killed");
        }
    }
}

/// Runs the command to its end.
fn run(place: &Place, words: &str, kernel: &Path) -> Said {
    let mut command = place.command(words.split(' '));
    command.arg("--kernel").arg(kernel);
    let said = Said::of(command.output().expect("outlast was built"));
    assert_eq!(said.code, Some(0), "{said:?}");
    said
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it was written");
    let each = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        let data = fs::read(&path).expect("a file");
        (PathBuf::from(path.file_name().expect("a name")), data)
    });
    each.collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_a_busy_machine_too() {
    let Some(kernel) = kernel() else { return };
    let place = place();
    // The same command in the same directory: its words are part of what the guest is given.
    let once = || {
        let said = run(&place, "lab tunnel.toml --json --capture here", &kernel);
        (said.out, files(&place.path().join("here")), said.err)
    };
    let quiet = once();
    if quiet.2.contains("real-time priority") {
        skip("without the right to real-time priority, runs on a busy machine may differ");
        return;
    }
    let busy = {
        let _busy = Busy::new();
        once()
    };
    let result: Value = serde_json::from_str(&quiet.0).expect("JSON");
    assert_eq!(result["world"], "kernel");
    assert_eq!(result["runs"][0]["completed"], true, "{result:#}");
    assert_eq!(result["runs"][0]["kernel"], result["kernel"]);
    assert_eq!(quiet.1.len(), 2);
    assert!(quiet.0 == busy.0, "{}\n{}", quiet.0, busy.0);
    assert!(quiet.1 == busy.1, "the captures differ");
}

#[test]
fn a_sweep_gives_the_same_tables_however_it_is_carried_out() {
    let Some(kernel) = kernel() else { return };
    let place = place();
    let tables = |threads: &str, out: &str| {
        let words = format!("sweep hold.toml --threads {threads} --out {out}");
        let said = run(&place, &words, &kernel);
        assert!(said.out.contains("4 runs on Linux"), "{said:?}");
        let mut files = files(&place.path().join(out));
        // Its lines are in the order in which the runs end.
        files.remove(Path::new("journal.jsonl"));
        files
    };
    let one = tables("1", "one");
    assert!(one == tables("2", "two"), "1 and 2 threads");
    let runs = String::from_utf8_lossy(&one[Path::new("runs.csv")]).into_owned();
    assert_eq!(runs.matches(",kernel,").count(), 1 + 4, "{runs}");
}

#[test]
fn programs_of_the_host_run_in_the_guest() {
    let Some(kernel) = kernel() else { return };
    let place = place();
    fs::create_dir(place.path().join("below")).expect("ours");
    let program = env!("CARGO_BIN_EXE_outlast");
    // Whatever listens will do; the client ends at once.
    let text = SCENARIO.replace(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        &format!(
            "kind = \"command\"\nserver = \"\"\"exec ./serve \"$OUTLAST_FIXED:8080\" \"\"\"\n\
             client = [\"{program}\", \"--version\"]\nready = 8080"
        ),
    );
    let Some(busybox) = ["/usr/bin/busybox", "/bin/busybox"]
        .into_iter()
        .find(|path| Path::new(path).exists())
    else {
        skip("busybox is not installed");
        return;
    };
    place.file("below/fetch.toml", &text);
    let script = place.file(
        "below/serve",
        &format!("#!{busybox} sh\nexec {busybox} httpd -f -p \"$1\"\n"),
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(script, mode).expect("ours");
    let report = place.path().join("page.html");
    let words = format!(
        "lab ./below/../below/fetch.toml --json --report {}",
        report.display()
    );
    let said = run(&place, &words, &kernel);
    let result: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(result["runs"][0]["completed"], true, "{result:#}");
    let page = fs::read_to_string(report).expect("the page");
    for words in [
        "in virtual time",
        "outlast lab ./below/../below/fetch.toml --kernel",
    ] {
        assert!(page.contains(words), "{words:?} is not on the page");
    }
}
