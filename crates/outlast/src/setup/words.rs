//! The words of `outlast setup`: three sentences, and every step.

use crate::setup::apply::{Fate, Intent};
use crate::setup::machine::{Kind, Machine};
use crate::setup::plan::{Contents, Plan};
use crate::setup::proposal::{Hook, Proposal, Refusal, Situation};
use std::fmt::Write as _;

/// Findings, proposal and consequences, a sentence each.
pub(crate) fn sentences(
    machine: &Machine,
    proposal: &Proposal,
    plan: &Plan,
    intents: &[Intent],
) -> [String; 3] {
    [
        found(machine, proposal),
        proposed(proposal),
        consequences(plan, intents),
    ]
}

fn found(machine: &Machine, proposal: &Proposal) -> String {
    let names = proposal.gateways.iter().map(|gateway| &gateway.interface);
    let links: Vec<_> = names
        .chain(&proposal.agent)
        .filter_map(|name| machine.interface(name))
        .map(|found| format!("{} ({})", found.name, found.kind.name()))
        .collect();
    let links = list(&links);
    let part = match proposal.situation {
        Situation::EndHost => format!("an end host whose own link may go away: {links}"),
        Situation::Server => format!("a server whose clients come in by {links}"),
        Situation::Router => format!("a router whose links may go away: {links}"),
        Situation::Tunnel => format!("the end of a tunnel whose peers may go away: {links}"),
        Situation::Named => format!("the interfaces that you have named: {links}"),
    };
    let services = &machine.services;
    let has_modem = machine
        .interfaces
        .iter()
        .any(|interface| interface.kind == Kind::Modem);
    let others = [
        (services.network_manager, "NetworkManager"),
        (services.networkd, "systemd-networkd"),
        (services.modem_manager && has_modem, "ModemManager"),
        (!services.access_points.is_empty(), "hostapd"),
        (machine.forwards, "forwarding"),
        (machine.masquerades, "masquerading"),
        (machine.firewall.contains(&"nft"), "nftables"),
        (machine.firewall.contains(&"iptables"), "iptables"),
        (machine.is_container, "a container"),
    ];
    let others = others.into_iter().filter(|(is_there, _)| *is_there);
    let others: Vec<_> = others.map(|(_, name)| name.to_owned()).collect();
    let kernel = match machine.kernel.is_empty() {
        true => "Linux".to_owned(),
        false => format!("Linux {}", machine.kernel),
    };
    match others.is_empty() {
        true => format!("Found {part}; {kernel}."),
        false => format!("Found {part}; {kernel}, with {}.", list(&others)),
    }
}

fn proposed(proposal: &Proposal) -> String {
    if !proposal.agent.is_empty() {
        return format!(
            "Proposed is the agent beside this machine's own TCP on {}, so that what it sends goes on at once when a \
             client is back.",
            list(&proposal.agent)
        );
    }
    let names = proposal.gateways.iter();
    let names: Vec<_> = names.map(|gateway| gateway.interface.clone()).collect();
    let effect = match proposal.situation {
        Situation::Router => {
            "so that uploads and downloads of all behind it go on at once when the link is back"
        }
        Situation::Tunnel => {
            "where the connections are seen as TCP, so that those of a peer go on at once when it is back"
        }
        Situation::EndHost | Situation::Named | Situation::Server => {
            "so that uploads and downloads go on at once when the link is back"
        }
    };
    format!(
        "Proposed is a gateway with `hold` on {}, {effect}.",
        list(&names)
    )
}

fn consequences(plan: &Plan, intents: &[Intent]) -> String {
    let written = intents.iter().filter(|intent| intent.fate.writes()).count();
    let files = match written {
        0 => "no file".to_owned(),
        1 => "one file".to_owned(),
        n => format!("{n} files"),
    };
    let units = plan.units.iter();
    let units: Vec<_> = units
        .map(|unit| unit.trim_end_matches(".service").to_owned())
        .collect();
    let start = match units.is_empty() {
        true => "starts nothing, for systemd does not run here".to_owned(),
        false => format!("starts {} now and at each boot", list(&units)),
    };
    format!("This writes {files}, {start}, and `outlast setup --remove` undoes it.")
}

/// Files of the user's that are kept or replaced, for the notes.
pub(crate) fn about_files(intents: &[Intent]) -> Vec<String> {
    let notes = intents.iter().filter_map(|Intent { file, fate }| {
        let path = file.path.display();
        match fate {
            Fate::Kept => Some(format!("{path} is there and stays as it is")),
            Fate::Replaced => Some(format!(
                "{path} is there and is replaced; `--remove` puts it back"
            )),
            Fate::New | Fate::Same | Fate::Renewed => None,
        }
    });
    notes.collect()
}

/// Every step, with all that would be written.
pub(crate) fn steps(plan: &Plan, intents: &[Intent]) -> String {
    let mut text = String::new();
    for Intent { file, fate } in intents {
        let path = file.path.display();
        let verb = match fate {
            Fate::Same => {
                let _ = writeln!(text, "leave {path} (it is so already)");
                continue;
            }
            Fate::Kept => {
                let _ = writeln!(text, "leave {path} (it is yours)");
                continue;
            }
            Fate::New => "write",
            Fate::Renewed => "write again",
            Fate::Replaced => "replace, and keep a copy of,",
        };
        let mode = file.mode;
        match &file.contents {
            Contents::CopyOf(from) => {
                let _ = writeln!(
                    text,
                    "{verb} {path} (mode {mode:04o}), a copy of {}",
                    from.display()
                );
            }
            Contents::Text(contents) => {
                let _ = writeln!(text, "{verb} {path} (mode {mode:04o}):");
                for line in contents.lines() {
                    let _ = writeln!(text, "{}", format!("    {line}").trim_end());
                }
            }
        }
    }
    if plan.makes_account {
        text.push_str("run systemd-sysusers outlast.conf\n");
    }
    if !plan.units.is_empty() {
        text.push_str("run systemctl daemon-reload\n");
    }
    for unit in &plan.units {
        let _ = writeln!(text, "run systemctl enable --now {unit}");
    }
    for command in &plan.by_hand {
        let _ = writeln!(text, "left to you: {command}");
    }
    text
}

/// The message for a machine for which nothing can be proposed.
pub(crate) fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Confined { is_container: true } => {
            "this container may not configure networks; start it with `--network host --cap-add NET_ADMIN --cap-add \
             NET_RAW`, or set up its host instead"
                .into()
        }
        Refusal::Confined { is_container: false } => {
            "not even the superuser may configure networks here: CAP_NET_ADMIN or CAP_NET_RAW is taken away".into()
        }
        Refusal::NoInterface => {
            "there is no interface but the loopback: connect this machine, and try again".into()
        }
        Refusal::NoUplink { there } => format!(
            "no default route, modem or tunnel shows which link goes away; name its interface, such as `outlast setup \
             --interface {}`; there are {}",
            there.first().map_or("eth0", String::as_str),
            list(there)
        ),
        Refusal::Unknown { name, there } => format!(
            "there is no interface {name}; there are {}",
            list(there)
        ),
    }
}

/// The hooks that are installed, in words.
pub(crate) fn hooks(proposal: &Proposal) -> Vec<String> {
    let names = proposal.hooks.iter().map(|hook| match hook {
        Hook::NetworkManager => "NetworkManager".to_owned(),
        Hook::ModemManager => "ModemManager".to_owned(),
        Hook::Hostapd(point) => format!("hostapd on {point}"),
        Hook::WireGuard(tunnel) => format!("WireGuard on {tunnel}"),
    });
    names.collect()
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}
