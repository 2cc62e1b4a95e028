//! Facts of a machine, read from sysfs, procfs and the presence of files below a root directory.
//!
//! Nothing is asked of a running program, so that any user may look, and tests can make a machine of files.

use crate::setup::machine::{Interface, Kind, Machine, Services};
use anyhow::Context;
use outlast_daemon::config::interface_name;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Directories of the system's programs.
const PROGRAM_DIRECTORIES: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];
/// Cases that are carried (SMBIOS, table 17): portable, laptop, notebook, sub-notebook, tablet, convertible, detachable.
const PORTABLE_CASES: [&str; 7] = ["8", "9", "10", "14", "30", "31", "32"];
/// Drivers of modems that call themselves Ethernet.
const MODEM_DRIVERS: [&str; 5] = [
    "qmi_wwan",
    "cdc_mbim",
    "huawei_cdc_ncm",
    "sierra_net",
    "hso",
];
/// Numbers of the capabilities that a gateway cannot do without: CAP_NET_ADMIN and CAP_NET_RAW.
const NEEDED_CAPABILITIES: [u32; 2] = [12, 13];

/// Reads the facts of the machine whose file system begins at `root`.
pub(crate) fn look(root: &Path) -> anyhow::Result<Machine> {
    let files = Files(root);
    Ok(Machine {
        kernel: files.line("proc/sys/kernel/osrelease")?.unwrap_or_default(),
        has_kernel_types: files.has("sys/kernel/btf/vmlinux"),
        memory: files.memory()?,
        is_portable: files.is_portable()?,
        is_container: files.is_container(),
        is_confined: files.is_confined()?,
        forwards: files.forwards()?,
        masquerades: files.masquerades()?,
        firewall: ["nft", "iptables"]
            .into_iter()
            .filter(|name| files.has_program(name))
            .collect(),
        services: files.services()?,
        interfaces: files.interfaces()?,
    })
}

/// Files below a root directory.
#[derive(Clone, Copy, Debug)]
struct Files<'a>(&'a Path);

impl Files<'_> {
    fn at(self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn has(self, path: &str) -> bool {
        self.at(path).exists()
    }

    fn has_program(self, name: &str) -> bool {
        let mut directories = PROGRAM_DIRECTORIES.iter();
        directories.any(|directory| self.has(&format!("{directory}/{name}")))
    }

    /// The text of a file; `None` if there is no such file, or the interface behind it has no such property.
    fn text(self, path: &str) -> anyhow::Result<Option<String>> {
        let at = self.at(path);
        match fs::read_to_string(&at) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", at.display())),
        }
    }

    fn line(self, path: &str) -> anyhow::Result<Option<String>> {
        let text = self.text(path)?;
        Ok(text.map(|text| text.trim().to_owned()))
    }

    /// The names in a directory, sorted; none if there is no such directory.
    fn names(self, path: &str) -> anyhow::Result<Vec<String>> {
        let at = self.at(path);
        let failed = || format!("cannot list {}", at.display());
        let entries = match fs::read_dir(&at) {
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            entries => entries.with_context(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // A name that is no text is none that Outlast takes.
            if let Ok(name) = entry.with_context(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The last part of what a symbolic link leads to.
    fn target(self, path: &str) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    fn memory(self) -> anyhow::Result<Option<u64>> {
        let text = self.text("proc/meminfo")?.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number
            .and_then(|number| number.parse::<u64>().ok())
            .map(|kib| kib.saturating_mul(1024)))
    }

    fn is_portable(self) -> anyhow::Result<bool> {
        let case = self.line("sys/class/dmi/id/chassis_type")?;
        if case.is_some_and(|case| PORTABLE_CASES.contains(&&*case)) {
            return Ok(true);
        }
        let directory = "sys/class/power_supply";
        for name in self.names(directory)? {
            let is = |property: &str, value: &str| -> anyhow::Result<bool> {
                let read = self.line(&format!("{directory}/{name}/{property}"))?;
                Ok(read.as_deref() == Some(value))
            };
            // A mouse's battery is one of a device.
            if is("type", "Battery")? && !is("scope", "Device")? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_container(self) -> bool {
        let marks = [".dockerenv", "run/.containerenv", "run/systemd/container"];
        marks.iter().any(|mark| self.has(mark))
    }

    /// True if the bounding set lacks a capability: then no program of this machine can have it.
    fn is_confined(self) -> anyhow::Result<bool> {
        let status = self.text("proc/self/status")?.unwrap_or_default();
        let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
        let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        Ok(set.is_some_and(|set| {
            let mut needed = NEEDED_CAPABILITIES.iter();
            needed.any(|number| set & (1 << number) == 0)
        }))
    }

    fn forwards(self) -> anyhow::Result<bool> {
        for path in [
            "proc/sys/net/ipv4/ip_forward",
            "proc/sys/net/ipv6/conf/all/forwarding",
        ] {
            if self.line(path)?.is_some_and(|value| value != "0") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if a module of masquerading is in use.
    fn masquerades(self) -> anyhow::Result<bool> {
        let modules = self.text("proc/modules")?.unwrap_or_default();
        let mut names = modules.lines().filter_map(|line| line.split(' ').next());
        Ok(names.any(|name| ["nft_masq", "xt_MASQUERADE", "ipt_MASQUERADE"].contains(&name)))
    }

    fn services(self) -> anyhow::Result<Services> {
        Ok(Services {
            systemd: self.has("run/systemd/system"),
            network_manager: self.has("run/NetworkManager"),
            networkd: self.has("run/systemd/netif"),
            modem_manager: self.has_program("ModemManager"),
            wireguard_tools: self.has_program("wg"),
            access_points: self.names("run/hostapd")?,
        })
    }

    fn interfaces(self) -> anyhow::Result<Vec<Interface>> {
        let routes = self.routes()?;
        let mut interfaces = Vec::new();
        for name in self.names("sys/class/net")? {
            // Files beside the interfaces, such as `bonding_masters`, have no type; one whose name Outlast
            // does not take cannot be watched.
            let number = self.line(&format!("sys/class/net/{name}/type"))?;
            let Some(number) = number.filter(|_| interface_name(&name).is_ok()) else {
                continue;
            };
            let Some(kind) = self.kind(&name, &number)? else {
                continue;
            };
            interfaces.push(Interface {
                is_default: routes.default.contains(&name),
                has_network: routes.networks.contains(&name),
                master: self.target(&format!("sys/class/net/{name}/master")),
                ports: self.names(&format!("sys/class/net/{name}/brif"))?,
                kind,
                name,
            });
        }
        Ok(interfaces)
    }

    /// An interface's kind, by the number of its hardware (ARPHRD_*) and its properties; `None` for the loopback.
    fn kind(self, name: &str, number: &str) -> anyhow::Result<Option<Kind>> {
        const LOOPBACK: &str = "772";
        const PPP: &str = "512";
        const ETHERNET: &str = "1";
        let directory = format!("sys/class/net/{name}");
        let has = |property: &str| self.has(&format!("{directory}/{property}"));
        let properties = self.text(&format!("{directory}/uevent"))?;
        let properties = properties.unwrap_or_default();
        let device = properties
            .lines()
            .find_map(|line| line.strip_prefix("DEVTYPE="));
        let driver = self.target(&format!("{directory}/device/driver"));
        let is_modem = number == PPP
            || device == Some("wwan")
            || ["wwan", "ppp", "rmnet"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
            || driver.is_some_and(|driver| MODEM_DRIVERS.contains(&&*driver));
        Ok(Some(match device {
            _ if number == LOOPBACK => return Ok(None),
            Some("wireguard") => Kind::WireGuard,
            Some("bridge") => Kind::Bridge,
            Some("wlan") => Kind::WiFi,
            _ if has("bridge") => Kind::Bridge,
            _ if has("wireless") || has("phy80211") => Kind::WiFi,
            _ if is_modem => Kind::Modem,
            _ if has("tun_flags") && number != ETHERNET => Kind::Tunnel,
            _ if number != ETHERNET => Kind::Tunnel,
            _ if has("device") => Kind::Ethernet,
            _ => Kind::Virtual,
        }))
    }

    fn routes(self) -> anyhow::Result<Routes> {
        let mut routes = Routes::default();
        let text = self.text("proc/net/route")?.unwrap_or_default();
        for line in text.lines().skip(1) {
            routes.read_v4(line);
        }
        let text = self.text("proc/net/ipv6_route")?.unwrap_or_default();
        for line in text.lines() {
            routes.read_v6(line);
        }
        Ok(routes)
    }
}

/// True for an error that says that there is nothing to read.
fn is_absence(error: &io::Error) -> bool {
    // Some properties of an interface that is down are there and cannot be read (EINVAL).
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput
    )
}

/// Names of interfaces through which routes lead.
#[derive(Debug, Default)]
struct Routes {
    default: BTreeSet<String>,
    networks: BTreeSet<String>,
}

impl Routes {
    /// Routes that refuse (`RTF_REJECT`).
    const REJECT: u32 = 0x200;

    fn add(&mut self, name: &str, flags: u32, is_default: bool) {
        if flags & Self::REJECT == 0 {
            let routes = match is_default {
                true => &mut self.default,
                false => &mut self.networks,
            };
            routes.insert(name.to_owned());
        }
    }

    /// A line of `/proc/net/route`: interface, destination, gateway, flags, three counters, mask.
    fn read_v4(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [name, destination, _, flags, _, _, _, mask, ..] = words[..]
            && let Ok(flags) = u32::from_str_radix(flags, 16)
        {
            let is_default = destination == "00000000" && mask == "00000000";
            self.add(name, flags, is_default);
        }
    }

    /// A line of `/proc/net/ipv6_route`: destination and its length, source and its length, next hop, three
    /// counters, flags, interface.
    fn read_v6(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [destination, length, .., flags, name] = words[..] else {
            return;
        };
        let is_zero = destination.bytes().all(|digit| digit == b'0');
        // Every interface has link-local addresses and groups, and every address a route of its own.
        let is_own = destination.starts_with("fe80") || destination.starts_with("ff");
        if let Ok(flags) = u32::from_str_radix(flags, 16)
            && length != "80"
            && !is_own
        {
            self.add(name, flags, is_zero && length == "00");
        }
    }
}
