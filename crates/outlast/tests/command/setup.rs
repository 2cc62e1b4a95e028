//! `outlast setup` on machines that are made of files, below a directory of their own.

use crate::place::{Place, Said};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A machine's files.
struct Machine {
    place: Place,
}

impl Machine {
    /// A machine with the package, systemd, and a kernel of today.
    fn new() -> Self {
        let machine = Self {
            place: Place::new(),
        };
        machine.file("proc/sys/kernel/osrelease", "6.12.0-1-amd64\n");
        machine.file("proc/meminfo", "MemTotal:        8000000 kB\n");
        machine.file("sys/kernel/btf/vmlinux", "");
        machine.file("sys/class/net/lo/type", "772\n");
        machine.file("run/systemd/system/there", "");
        machine.file("var/lib/there", "");
        machine.file(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\noutlast:x:998:998::/:\n",
        );
        machine.file("lib/systemd/system/outlast@.service", "");
        machine.file("lib/systemd/system/outlast-host.service", "");
        machine
    }

    /// A laptop on Wi-Fi, with NetworkManager.
    fn laptop() -> Self {
        let machine = Self::new();
        machine.interface("wlan0", "DEVTYPE=wlan\n", true);
        machine.file("sys/class/power_supply/BAT0/type", "Battery\n");
        machine.file("run/NetworkManager/there", "");
        machine.file("etc/NetworkManager/dispatcher.d/01-ifupdown", "#!/bin/sh\n");
        machine
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("machine")
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("ours");
        fs::write(path, text).expect("ours");
    }

    fn read(&self, path: &str) -> String {
        let path = self.root().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn interface(&self, name: &str, properties: &str, is_default: bool) {
        self.file(&format!("sys/class/net/{name}/type"), "1\n");
        self.file(&format!("sys/class/net/{name}/uevent"), properties);
        let path = self.root().join("proc/net/route");
        let mut routes =
            fs::read_to_string(&path).unwrap_or_else(|_| "Iface\tDestination\n".into());
        if is_default {
            routes += &format!("{name}\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n");
        }
        routes += &format!("{name}\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
        self.file("proc/net/route", &routes);
    }

    fn setup(&self, arguments: &[&str]) -> Said {
        let before = ["setup", "--root", "machine"];
        self.place.run(before.iter().chain(arguments))
    }

    /// Contents and permissions of every file, and every directory.
    fn tree(&self) -> BTreeMap<PathBuf, Option<(u32, Vec<u8>)>> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.root()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).expect("ours") {
                let path = entry.expect("ours").path();
                if path.is_dir() {
                    open.push(path.clone());
                    tree.insert(path, None);
                } else {
                    let metadata = fs::metadata(&path).expect("ours");
                    let contents = fs::read(&path).expect("ours");
                    tree.insert(path, Some((metadata.permissions().mode(), contents)));
                }
            }
        }
        tree
    }

    /// Checks a configuration by the command that would run it.
    fn check_config(&self, role: &[&str], path: &str) -> Said {
        let file = Path::new("machine").join(path);
        let file = file.to_str().expect("text");
        let before = ["run", "--check-config", "--config", file];
        self.place.run(before.iter().chain(role))
    }
}

#[track_caller]
fn assert_says(said: &Said, code: i32, words: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(flat.contains(word), "{word:?} is not in {said:?}");
    }
}

#[test]
fn a_laptop_is_set_up_and_is_afterwards_as_it_was() {
    let machine = Machine::laptop();
    let before = machine.tree();
    let said = machine.setup(&["--dry-run"]);
    let words = [
        "an end host whose own link may go away: wlan0 (Wi-Fi)",
        "a gateway with `hold` on wlan0",
        "write /etc/outlast/wlan0.toml (mode 0644)",
        "write /etc/NetworkManager/dispatcher.d/50-outlast (mode 0755)",
        "interface = \"wlan0\" mechanism = \"hold\"",
        "run systemctl enable --now outlast@wlan0.service",
    ];
    assert_says(&said, 0, &words);
    assert_eq!(machine.tree(), before, "nothing was to be changed");

    let said = machine.setup(&["--yes"]);
    assert_says(&said, 0, &["Set up.", "`outlast setup --remove` undoes"]);
    let hook = "etc/NetworkManager/dispatcher.d/50-outlast";
    let packaged =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/hooks/networkmanager");
    let packaged = fs::read_to_string(packaged).expect("it is there");
    assert_eq!(machine.read(hook), packaged);
    let checked = machine.check_config(&[], "etc/outlast/wlan0.toml");
    assert_says(&checked, 0, &["sound", "interface wlan0", "mechanism hold"]);
    let again = machine.setup(&["--yes"]);
    assert_says(&again, 0, &["Nothing is to be done"]);

    let said = machine.setup(&["--remove", "--dry-run"]);
    assert_says(&said, 0, &["remove /etc/outlast/wlan0.toml, unless"]);
    let said = machine.setup(&["--remove"]);
    let words = [
        "stopped outlast@wlan0.service",
        "removed /etc/outlast/wlan0.toml",
    ];
    assert_says(&said, 0, &words);
    assert_eq!(machine.tree(), before);
    let said = machine.setup(&["--remove"]);
    assert_says(&said, 0, &["Nothing is to be removed"]);
}

#[test]
fn every_configuration_that_is_written_is_sound() {
    let router = Machine::new();
    router.file("proc/sys/net/ipv4/ip_forward", "1\n");
    router.file("sys/class/net/eth0/device/there", "");
    router.interface("eth0", "", false);
    router.interface("wwan0", "DEVTYPE=wwan\n", true);
    router.interface("wlan0", "DEVTYPE=wlan\n", false);
    router.interface("wg0", "DEVTYPE=wireguard\n", false);
    router.file("run/hostapd/wlan0", "");
    router.file("usr/bin/wg", "");
    assert_says(&router.setup(&["--yes"]), 0, &["a router"]);
    for interface in ["wwan0", "wlan0", "wg0"] {
        let file = format!("etc/outlast/{interface}.toml");
        assert_says(&router.check_config(&[], &file), 0, &["sound", interface]);
    }
    let unit = router.read("etc/systemd/system/outlast-wireguard@.service");
    assert!(unit.contains("outlast/wireguard %i watch"), "{unit}");
    router.read("etc/systemd/system/outlast-hostapd@.service");

    let server = Machine::new();
    server.file("sys/class/net/ens3/device/there", "");
    server.interface("ens3", "", true);
    assert_says(&server.setup(&["--yes"]), 0, &["a server", "ens3"]);
    let checked = server.check_config(&["--role", "host"], "etc/outlast/host.toml");
    assert_says(&checked, 0, &["sound", "interfaces ens3"]);
}

#[test]
fn without_the_package_the_command_brings_its_unit_and_user() {
    let machine = Machine::laptop();
    fs::remove_dir_all(machine.root().join("lib")).expect("ours");
    machine.file("etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    let words = [
        "write /usr/local/bin/outlast (mode 0755), a copy of",
        "write /etc/systemd/system/outlast@.service",
        "ExecStart=/usr/local/bin/outlast run --interface %i",
        "run systemd-sysusers outlast.conf",
    ];
    assert_says(&machine.setup(&["--dry-run"]), 0, &words);
}

#[test]
fn without_systemd_the_command_to_start_is_said() {
    let machine = Machine::laptop();
    fs::remove_dir_all(machine.root().join("run/systemd")).expect("ours");
    let words = [
        "starts nothing",
        "Start it with `/usr/bin/outlast run --interface wlan0`",
    ];
    assert_says(&machine.setup(&["--yes"]), 0, &words);
    machine.read("etc/outlast/wlan0.toml");
}

#[test]
fn the_user_s_own_files_are_kept_or_put_back() {
    let machine = Machine::laptop();
    machine.file("etc/outlast/wlan0.toml", "mechanism = \"auto\"\n");
    machine.file("etc/NetworkManager/dispatcher.d/50-outlast", "#!/bin/sh\n");
    let before = machine.tree();
    let words = [
        "/etc/outlast/wlan0.toml is there and stays as it is",
        "/etc/NetworkManager/dispatcher.d/50-outlast is there and is replaced",
    ];
    assert_says(&machine.setup(&["--yes"]), 0, &words);
    assert_eq!(
        machine.read("etc/outlast/wlan0.toml"),
        "mechanism = \"auto\"\n"
    );
    let words = ["put /etc/NetworkManager/dispatcher.d/50-outlast back"];
    assert_says(&machine.setup(&["--remove"]), 0, &words);
    assert_eq!(machine.tree(), before);

    // A mistake in it would keep the daemon from starting.
    machine.file("etc/outlast/wlan0.toml", "mechanism = \"hodl\"\n");
    let before = machine.tree();
    let words = ["/etc/outlast/wlan0.toml is there and is replaced"];
    assert_says(&machine.setup(&["--yes"]), 0, &words);
    machine.file("etc/outlast/wlan0.toml", "mechanism = \"none\"\n");
    let said = machine.setup(&["--remove"]);
    assert_says(
        &said,
        0,
        &["kept /etc/outlast/wlan0.toml, which was changed since"],
    );
    assert_eq!(
        machine.read("etc/outlast/wlan0.toml"),
        "mechanism = \"none\"\n"
    );
    assert_ne!(
        machine.tree(),
        before,
        "the former file is kept beside the record"
    );
}

#[test]
fn nothing_happens_to_a_machine_without_an_answer() {
    let machine = Machine::laptop();
    let before = machine.tree();
    let said = machine.setup(&[]);
    assert_says(&said, 2, &["Proposed is a gateway"]);
    assert!(said.err.contains("`--yes`"), "{said:?}");
    assert_eq!(machine.tree(), before);
}

#[test]
fn machines_for_which_nothing_can_be_proposed_are_told_why() {
    let machine = Machine::new();
    machine
        .setup(&[])
        .refuses(2, &["no interface but the loopback"]);
    machine.file("sys/class/net/eth0/device/there", "");
    machine.interface("eth0", "", false);
    let words = ["no default route", "--interface eth0"];
    machine.setup(&[]).refuses(2, &words);
    let words = ["there is no interface eth7; there are eth0"];
    machine.setup(&["-i", "eth7"]).refuses(2, &words);
    machine.setup(&["-i", "a/b"]).refuses(2, &["`ip link`"]);
    machine.file(".dockerenv", "");
    machine.file("proc/self/status", "Name:\tsh\nCapBnd:\t00000000a80405fb\n");
    machine.setup(&[]).refuses(3, &["--cap-add NET_ADMIN"]);
    let place = Place::new();
    place
        .run(["setup", "--root", "nowhere"])
        .refuses(2, &["nowhere is no directory", "--root"]);
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let machine = Machine::laptop();
    machine.file("var/lib/outlast-setup/manifest.json", "{");
    for arguments in [&["--yes"][..], &["--remove"]] {
        let words = ["manifest.json is no record of `outlast setup`"];
        machine.setup(arguments).refuses(1, &words);
    }
}

#[test]
fn the_address_family_of_the_default_route_does_not_matter() {
    let machine = Machine::new();
    machine.interface("wlan0", "DEVTYPE=wlan\n", false);
    machine.file("proc/net/route", "Iface\tDestination\n");
    let zero = "0".repeat(32);
    let hop = format!("fe80{}1", "0".repeat(27));
    let line = format!("{zero} 00 {zero} 00 {hop} 00000400 00000003 00000000 00000003    wlan0\n");
    // The kernel's own route that refuses is no way out.
    let refuses =
        format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n");
    machine.file("proc/net/ipv6_route", &(refuses + &line));
    assert_says(&machine.setup(&["--dry-run"]), 0, &["`hold` on wlan0"]);
}
