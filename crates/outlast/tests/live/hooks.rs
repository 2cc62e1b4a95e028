//! The hooks in `packaging/hooks`, each called as its daemon calls it, with an `outlast` in the path
//! that only writes down what it is asked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A host with programs that a hook calls, and a daemon's control socket.
struct Host {
    place: TempDir,
    _daemon: UnixListener,
}

impl Host {
    /// The daemon watches `interface`.
    fn new(interface: &str) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        fs::create_dir(place.path().join("bin")).expect("ours");
        let socket = place.path().join(format!("{interface}.sock"));
        let daemon = UnixListener::bind(socket).expect("ours");
        let host = Self {
            place,
            _daemon: daemon,
        };
        host.program("outlast", "echo \"$*\" >>\"$OUTLAST_RUN/said\"");
        host
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn program(&self, name: &str, script: &str) {
        let text = self.path().join("text");
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("ours");
        // Not written by this process: a child that another test starts meanwhile would have the
        // program open for writing, and what is cannot be executed ("Text file busy").
        let installed = Command::new("install")
            .args([&text, &self.path().join("bin").join(name)])
            .status()
            .expect("install");
        assert!(installed.success(), "{installed}");
    }

    /// Runs a hook as its daemon does.
    fn run(&self, hook: &str, arguments: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.path().join("bin").display());
        Command::new(hooks().join(hook))
            .args(arguments)
            .env_clear()
            .env("PATH", path)
            .env("OUTLAST_RUN", self.path())
            .output()
            .expect("hooks are executable")
    }

    /// What the hook has asked `outlast` since this was asked last.
    #[track_caller]
    fn says(&self, hook: &str, arguments: &[&str]) -> Vec<String> {
        let output = self.run(hook, arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{hook} {arguments:?}: {complaint}");
        assert_eq!(complaint, "", "{hook} {arguments:?}");
        let said = self.path().join("said");
        let lines = fs::read_to_string(&said).unwrap_or_default();
        fs::remove_file(said).ok();
        lines.lines().map(str::to_owned).collect()
    }
}

fn hooks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/hooks")
}

#[test]
fn every_hook_is_a_shell_script_that_can_be_run_and_is_tested_here() {
    let mut names: Vec<_> = fs::read_dir(hooks())
        .expect("the hooks")
        .map(|entry| {
            let path = entry.expect("the hooks").path();
            let text = fs::read_to_string(&path).expect("text");
            assert!(text.starts_with("#!/bin/sh\n"), "{}", path.display());
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{}", path.display());
            path.file_name()
                .expect("a file")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["hostapd", "modemmanager", "networkmanager", "wireguard"]
    );
}

#[test]
fn networkmanager_tells_of_its_interface() {
    let host = Host::new("wwan0");
    for (action, state) in [
        ("up", "up"),
        ("down", "down"),
        ("vpn-up", "up"),
        ("vpn-down", "down"),
    ] {
        let said = host.says("networkmanager", &["wwan0", action]);
        assert_eq!(said, [format!("notify {state} --interface wwan0")]);
    }
    for arguments in [
        &["wwan0", "pre-up"][..],
        &["wwan0", "dhcp4-change"],
        &["none", "hostname"],
        &["", "connectivity-change"],
        &["eth0", "up"],
        &["wwan0"],
        &[],
    ] {
        assert_eq!(
            host.says("networkmanager", arguments),
            [""; 0],
            "{arguments:?}"
        );
    }
}

#[test]
fn an_agent_beside_the_hosts_tcp_is_told_of_every_interface() {
    let host = Host::new("host");
    let told = |state: &str, link: &str| format!("notify {state} --interface host --link {link}");
    let said = host.says("networkmanager", &["wlan0", "down"]);
    assert_eq!(said, [told("down", "wlan0")]);
    let said = host.says(
        "modemmanager",
        &["Modem/0", "Bearer/1", "wwan0", "connected"],
    );
    assert_eq!(said, [told("up", "wwan0")]);
    // A gateway beside it hears of its own interface, also if the agent watches others alone.
    let _gateway = UnixListener::bind(host.path().join("wwan0.sock")).expect("ours");
    let refusing = "echo \"$*\" >>\"$OUTLAST_RUN/said\"; case $* in *--link*) exit 1 ;; esac";
    host.program("outlast", refusing);
    let said = host.says("networkmanager", &["wwan0", "up"]);
    let to_gateway = "notify up --interface wwan0".to_owned();
    assert_eq!(said, [told("up", "wwan0"), to_gateway]);
}

#[test]
fn modemmanager_tells_of_its_connection() {
    let host = Host::new("wwan0");
    let objects = [
        "/org/freedesktop/ModemManager1/Modem/0",
        "/org/freedesktop/ModemManager1/Bearer/1",
    ];
    for (told, state) in [("connected", "up"), ("disconnected", "down")] {
        let said = host.says("modemmanager", &[objects[0], objects[1], "wwan0", told]);
        assert_eq!(said, [format!("notify {state} --interface wwan0")]);
    }
    for arguments in [
        ["wwan0", "unknown"],
        ["wwan1", "connected"],
        ["", "connected"],
    ] {
        let arguments = [&objects[..], &arguments].concat();
        assert_eq!(
            host.says("modemmanager", &arguments),
            [""; 0],
            "{arguments:?}"
        );
    }
    assert_eq!(host.says("modemmanager", &[]), [""; 0]);
}

const STATION: &str = "02:00:00:00:00:07";

#[test]
fn hostapd_tells_of_all_addresses_of_a_station() {
    let host = Host::new("wlan7");
    host.program(
        "ip",
        "[ \"$*\" = \"neigh show dev wlan7\" ] || exit 1\n\
         echo '192.0.2.7 lladdr 02:00:00:00:00:07 REACHABLE'\n\
         echo '192.0.2.8 lladdr 02:00:00:00:00:08 STALE'\n\
         echo 'fe80::7 lladdr 02:00:00:00:00:07 STALE'\n\
         echo '2001:db8::7 lladdr 02:00:00:00:00:07 STALE'\n\
         echo '192.0.2.9 FAILED'",
    );
    for (event, state) in [("AP-STA-CONNECTED", "up"), ("AP-STA-DISCONNECTED", "down")] {
        let said = host.says("hostapd", &["wlan7", event, STATION]);
        let of = |peer| format!("notify {state} --interface wlan7 --peer {peer}");
        assert_eq!(said, [of("192.0.2.7"), of("2001:db8::7")]);
    }
    let nothing = [""; 0];
    assert_eq!(host.says("hostapd", &["wlan7", "AP-ENABLED", ""]), nothing);
    assert_eq!(
        host.says("hostapd", &["wlan7", "AP-STA-CONNECTED"]),
        nothing
    );
    assert_eq!(
        host.says("hostapd", &["wlan8", "AP-STA-CONNECTED", STATION]),
        nothing
    );
    let stranger = "02:00:00:00:00:99";
    assert_eq!(
        host.says("hostapd", &["wlan7", "AP-STA-CONNECTED", stranger]),
        nothing
    );
}

/// `wg show wg7 WHAT`, with handshakes of so many seconds ago.
fn peers(host: &Host, ages: [u64; 3]) {
    let [one, two, three] = ages;
    host.program(
        "wg",
        &format!(
            "now=$(date +%s)\n\
             [ \"$1 $2\" = 'show wg7' ] || exit 1\n\
             case $3 in\n\
             latest-handshakes)\n\
             printf 'ONE=\\t%s\\nTWO=\\t%s\\nTHREE=\\t%s\\nNEVER=\\t0\\n' \
             $((now - {one})) $((now - {two})) $((now - {three})) ;;\n\
             persistent-keepalive)\n\
             printf 'ONE=\\t25\\nTWO=\\t25\\nTHREE=\\toff\\nNEVER=\\t25\\n' ;;\n\
             allowed-ips)\n\
             printf 'ONE=\\t10.8.0.2/32 2001:db8::2/128\\nTWO=\\t10.8.0.3/32 10.9.0.0/24\\n'\n\
             printf 'THREE=\\t10.8.0.4/32\\nNEVER=\\t10.8.0.5/32\\n' ;;\n\
             esac"
        ),
    );
}

#[test]
fn wireguards_peers_are_away_without_a_session_and_back_with_a_new_one() {
    let host = Host::new("wg7");
    let look = || host.says("wireguard", &["wg7"]);
    let nothing = [""; 0];
    peers(&host, [20, 30, 40]);
    assert_eq!(look(), nothing);
    peers(&host, [400, 30, 400]);
    let down = ["10.8.0.2", "2001:db8::2"]
        .map(|peer| format!("notify down --interface wg7 --peer {peer}"));
    assert_eq!(look(), down);
    assert_eq!(look(), nothing, "it was told");
    peers(&host, [401, 200, 401]);
    assert_eq!(look(), ["notify down --interface wg7 --peer 10.8.0.3"]);
    peers(&host, [0, 201, 402]);
    let up =
        ["10.8.0.2", "2001:db8::2"].map(|peer| format!("notify up --interface wg7 --peer {peer}"));
    assert_eq!(look(), up);
    peers(&host, [1, 0, 403]);
    assert_eq!(look(), ["notify up --interface wg7 --peer 10.8.0.3"]);
    assert_eq!(look(), nothing);
}

#[test]
fn wireguard_is_watched_until_it_is_gone() {
    let host = Host::new("wg7");
    // The second look finds no interface.
    host.program("sleep", "rm \"$OUTLAST_RUN/bin/wg\"; printf '#!/bin/sh\\nexit 1\\n' >\"$OUTLAST_RUN/bin/wg\"; chmod +x \"$OUTLAST_RUN/bin/wg\"");
    peers(&host, [400, 30, 40]);
    assert_eq!(host.says("wireguard", &["wg7", "watch"]).len(), 2);
    assert!(!host.path().join("wireguard-wg7.away").exists());
    assert_eq!(host.run("wireguard", &[]).status.code(), Some(2));
    assert_eq!(
        host.run("wireguard", &["wg7", "look"]).status.code(),
        Some(2)
    );
}
