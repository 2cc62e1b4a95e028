//! Kernel modules: those that an image has, and how the guest loads them.

use crate::{GuestError, Kernel};
use object::{Object, ObjectSection};
use rustix::system::finit_module;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The guest's directory of modules, with the list of them.
pub(crate) const DIRECTORY: &str = "/lib/outlast-modules";
const INDEX: &str = "index.json";
/// The list of modules that the guest loads before its state is saved, one a line.
pub(crate) const LOADED: &str = "loaded";

/// Everything that the lab, the daemon, and the links of guests are made of. Some are built in, some no kernel has
/// any more: what is not found is left out.
pub(crate) const ALL: &[&str] = &[
    // Links.
    "tun",
    "veth",
    "dummy",
    "ifb",
    "bridge",
    "br_netfilter",
    "8021q",
    "macvlan",
    "ipvlan",
    "vrf",
    "bonding",
    "ppp_generic",
    "ppp_async",
    "ppp_synctty",
    "pppoe",
    "wireguard",
    "ipip",
    "sit",
    "ip_gre",
    "ip6_gre",
    "ip6_tunnel",
    "ip_vti",
    "xfrm_interface",
    "geneve",
    "vxlan",
    "mac80211_hwsim",
    "nlmon",
    "af_packet_diag",
    "fou",
    "fou6",
    // IPsec and Mobile IPv6.
    "esp4",
    "esp6",
    "ah4",
    "xfrm_user",
    "xfrm4_tunnel",
    "xfrm6_tunnel",
    "mip6",
    "tunnel4",
    "tunnel6",
    "gcm",
    "ctr",
    "ghash_generic",
    "crypto_null",
    "cbc",
    "hmac",
    "sha1_generic",
    "sha256_generic",
    "authenc",
    "echainiv",
    "seqiv",
    "aes_generic",
    "aesni_intel",
    // Queues and classifiers.
    "sch_fq",
    "sch_fq_codel",
    "sch_cake",
    "sch_netem",
    "sch_tbf",
    "sch_htb",
    "sch_prio",
    "sch_ingress",
    "sch_codel",
    "cls_bpf",
    "cls_u32",
    "cls_matchall",
    "cls_flower",
    "act_bpf",
    "act_mirred",
    "act_police",
    // Congestion controls, and lists of sockets.
    "tcp_bbr",
    "tcp_htcp",
    "tcp_vegas",
    "tcp_westwood",
    "tcp_dctcp",
    "tcp_diag",
    "udp_diag",
    "raw_diag",
    "unix_diag",
    "inet_diag",
    "netlink_diag",
    // Firewalls.
    "nf_tables",
    "nf_conntrack",
    "nf_conntrack_netlink",
    "nfnetlink",
    "nfnetlink_queue",
    "nfnetlink_log",
    "nft_queue",
    "nft_ct",
    "nft_masq",
    "nft_nat",
    "nft_chain_nat",
    "nft_redir",
    "nft_reject",
    "nft_reject_inet",
    "nft_reject_ipv4",
    "nft_reject_ipv6",
    "nft_limit",
    "nft_log",
    "nft_fib",
    "nft_fib_inet",
    "nft_fib_ipv4",
    "nft_fib_ipv6",
    "nft_compat",
    "nft_hash",
    "nft_numgen",
    "nft_socket",
    "nft_tproxy",
    "nft_flow_offload",
    "nf_flow_table",
    "nf_flow_table_inet",
    "nf_log_syslog",
    "x_tables",
    "ip_tables",
    "iptable_filter",
    "iptable_nat",
    "xt_conntrack",
    "xt_MASQUERADE",
    "xt_nat",
    "xt_tcpudp",
    "xt_state",
    "xt_comment",
    "xt_mark",
    "ip6_tables",
    "ip6table_filter",
    "sctp",
    "sctp_diag",
    "vmw_vsock_virtio_transport_common",
    "qemu_fw_cfg",
];

/// A module, ready to be loaded.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) about: About,
    /// The module itself, decompressed.
    pub(crate) data: Vec<u8>,
}

/// Entry of the guest's list of modules.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct About {
    pub(crate) name: String,
    /// Modules that come first.
    pub(crate) needs: Vec<String>,
    /// Other names that the kernel asks by; they may end with `*`.
    aliases: Vec<String>,
}

/// The modules of `names` that `kernel` has, with all that they need.
pub(crate) fn closure(kernel: &Kernel, names: &[&str]) -> Result<Vec<Module>, GuestError> {
    let mut files = BTreeMap::new();
    find(kernel.modules(), &mut files).map_err(GuestError::file("read", kernel.modules()))?;
    let mut waiting: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let mut taken = BTreeSet::new();
    let mut modules = Vec::new();
    while let Some(name) = waiting.pop() {
        let Some(file) = files.get(&name) else {
            continue;
        };
        if !taken.insert(name.clone()) {
            continue;
        }
        let data = read(file).map_err(GuestError::file("read the module", file))?;
        let about = describe(name, &data).map_err(|error| GuestError::Unpackable {
            program: file.clone(),
            problem: error.to_string(),
        })?;
        waiting.extend(about.needs.iter().cloned());
        modules.push(Module { about, data });
    }
    modules.sort_by(|one, other| one.about.name.cmp(&other.about.name));
    Ok(modules)
}

/// The guest's list of modules: its place, and the list.
pub(crate) fn index(modules: &[Module]) -> (PathBuf, Vec<u8>) {
    let list: Vec<&About> = modules.iter().map(|module| &module.about).collect();
    let list = serde_json::to_vec(&list).expect("names are text");
    (Path::new(DIRECTORY).join(INDEX), list)
}

/// The place of a module in the guest.
pub(crate) fn place(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Names of modules mean the same with dashes and with underscores.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// The files of all modules below `directory`, by name.
fn find(directory: &Path, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find(&path, files)?;
        } else if let Some((name, "ko" | "ko.xz")) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.split_once('.'))
        {
            files.insert(plain(name), path);
        }
    }
    Ok(())
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let data = fs::read(file)?;
    if file.extension().is_none_or(|extension| extension != "xz") {
        return Ok(data);
    }
    let mut whole = Vec::new();
    lzma_rust2::XzReader::new(data.as_slice(), true).read_to_end(&mut whole)?;
    Ok(whole)
}

/// Reads a module's own description, `KEY=VALUE` strings in its section `.modinfo`.
fn describe(name: String, data: &[u8]) -> object::Result<About> {
    let file = object::File::parse(data)?;
    let mut about = About {
        name,
        needs: Vec::new(),
        aliases: Vec::new(),
    };
    let Some(section) = file.section_by_name(".modinfo") else {
        return Ok(about);
    };
    for line in section.data()?.split(|byte| *byte == 0) {
        match String::from_utf8_lossy(line).split_once('=') {
            Some(("depends", names)) => {
                let names = names.split(',').filter(|name| !name.is_empty());
                about.needs.extend(names.map(plain));
            }
            Some(("alias", alias)) => about.aliases.push(plain(alias)),
            _ => {}
        }
    }
    Ok(about)
}

/// Loads a module by its name, or by a name that the kernel asks by, with all that it needs first. In the guest.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if the image has no such module, or what the kernel says of it.
pub(crate) fn load(wanted: &str) -> io::Result<()> {
    let index = fs::read(Path::new(DIRECTORY).join(INDEX))?;
    let all: Vec<About> = serde_json::from_slice(&index)?;
    let wanted = plain(wanted);
    let mut done = BTreeSet::new();
    let fitting: Vec<&About> = all
        .iter()
        .filter(|module| module.is_called(&wanted))
        .collect();
    if fitting.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    fitting
        .iter()
        .try_for_each(|module| load_with_needs(module, &all, &mut done))
}

fn load_with_needs<'a>(
    module: &'a About,
    all: &'a [About],
    done: &mut BTreeSet<&'a str>,
) -> io::Result<()> {
    if !done.insert(&module.name) {
        return Ok(());
    }
    for need in all
        .iter()
        .filter(|other| module.needs.contains(&other.name))
    {
        load_with_needs(need, all, done)?;
    }
    let file = File::open(place(&module.name))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl About {
    fn is_called(&self, wanted: &str) -> bool {
        let fits = |alias: &String| match alias.strip_suffix('*') {
            Some(start) => wanted.starts_with(start),
            None => alias == wanted,
        };
        self.name == wanted || self.aliases.iter().any(fits)
    }
}
