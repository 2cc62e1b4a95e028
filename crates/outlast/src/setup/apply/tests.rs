//! Plans that are carried out, cut off and undone, with a systemd that only notes what it is asked.

use super::*;
use crate::setup::plan::Contents;
use anyhow::bail;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

/// Notes what it is asked, and refuses to start the units that it is told to.
#[derive(Debug, Default)]
struct Noting {
    asked: Vec<String>,
    refuses: Vec<&'static str>,
    running: Vec<&'static str>,
}

impl Services for Noting {
    fn make_account(&mut self) -> anyhow::Result<()> {
        self.asked.push("make account".into());
        Ok(())
    }

    fn remove_account(&mut self) -> anyhow::Result<()> {
        self.asked.push("remove account".into());
        Ok(())
    }

    fn read_units(&mut self) -> anyhow::Result<()> {
        self.asked.push("read units".into());
        Ok(())
    }

    fn is_enabled(&mut self, unit: &str) -> anyhow::Result<bool> {
        Ok(self.running.contains(&unit))
    }

    fn is_active(&mut self, unit: &str) -> anyhow::Result<bool> {
        Ok(self.running.contains(&unit))
    }

    fn start(&mut self, unit: &str) -> anyhow::Result<()> {
        self.asked.push(format!("start {unit}"));
        if self.refuses.contains(&unit) {
            bail!("{unit} does not start");
        }
        Ok(())
    }

    fn stop(&mut self, unit: &str, was_enabled: bool, was_active: bool) -> anyhow::Result<()> {
        self.asked
            .push(format!("stop {unit} {was_enabled} {was_active}"));
        Ok(())
    }
}

fn text(path: &str, text: &str, purpose: Purpose) -> NewFile {
    NewFile {
        path: PathBuf::from(path),
        contents: Contents::Text(text.into()),
        mode: 0o644,
        purpose,
    }
}

fn plan() -> Plan {
    Plan {
        files: vec![
            text("/etc/sysusers.d/outlast.conf", "u outlast\n", Purpose::Part),
            text(
                "/etc/outlast/wlan0.toml",
                "mechanism = \"hold\"\n",
                Purpose::Gateway,
            ),
        ],
        makes_account: true,
        units: vec!["outlast@wlan0.service".into()],
        by_hand: Vec::new(),
    }
}

/// Every file and directory below `root`.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut tree = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("ours") {
            let path = entry.expect("ours").path();
            let text = match path.is_dir() {
                true => None,
                false => Some(fs::read_to_string(&path).expect("text")),
            };
            if text.is_none() {
                open.push(path.clone());
            }
            tree.insert(path, text);
        }
    }
    tree
}

/// A machine's files: those of `etc/outlast` as given.
fn machine(configuration: Option<&str>) -> TempDir {
    let root = TempDir::new().expect("a temporary directory");
    fs::create_dir_all(root.path().join("var/lib")).expect("ours");
    if let Some(text) = configuration {
        fs::create_dir_all(root.path().join("etc/outlast")).expect("ours");
        fs::write(root.path().join("etc/outlast/wlan0.toml"), text).expect("ours");
    }
    root
}

fn carry_out(root: &Path, plan: &Plan, services: &mut Noting) -> Result<(), Failure> {
    let _lock = crate::setup::manifest::lock(root).expect("nobody else");
    let manifest = Manifest::load(root).expect("sound");
    let intents = intents(plan, root, manifest.as_ref()).expect("readable");
    apply(plan, &intents, root, services)
}

fn take_away(root: &Path, services: &mut Noting) -> Vec<String> {
    let mut manifest = Manifest::load(root).expect("sound").expect("set up");
    let lines = undo::undo(&mut manifest, root, services).expect("undone");
    forget(root).expect("ours");
    lines
}

#[test]
fn an_undone_plan_leaves_every_file_as_it_was() {
    for configuration in [None, Some("mechanism = \"gone\"\n")] {
        let root = machine(configuration);
        let before = tree(root.path());
        let mut services = Noting::default();
        carry_out(root.path(), &plan(), &mut services).expect("carried out");
        assert_ne!(tree(root.path()), before);
        take_away(root.path(), &mut services);
        assert_eq!(tree(root.path()), before);
        assert_eq!(
            services.asked,
            [
                "make account",
                "read units",
                "start outlast@wlan0.service",
                "stop outlast@wlan0.service false false",
                "remove account",
                "read units",
            ]
        );
    }
}

#[test]
fn a_unit_that_does_not_start_takes_all_back() {
    let root = machine(Some("mechanism = \"gone\"\n"));
    let before = tree(root.path());
    let mut services = Noting {
        refuses: vec!["outlast@wlan0.service"],
        ..Noting::default()
    };
    let failure = carry_out(root.path(), &plan(), &mut services).expect_err("it does not start");
    let said = format!("{failure:?}");
    assert!(said.contains("all is as it was before"), "{said}");
    assert_eq!(tree(root.path()), before);
}

#[test]
fn a_run_that_was_cut_off_is_gone_on_with_and_undone_like_any_other() {
    let root = machine(None);
    let before = tree(root.path());
    let mut services = Noting::default();
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    // It ended after it had recorded a file, and before it wrote it.
    let mut manifest = Manifest::load(root.path()).expect("sound").expect("set up");
    manifest.is_complete = false;
    manifest
        .entries
        .retain(|entry| !matches!(entry, Entry::Unit { .. } | Entry::Account));
    manifest.save(root.path()).expect("ours");
    fs::remove_file(root.path().join("etc/outlast/wlan0.toml")).expect("ours");
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    let manifest = Manifest::load(root.path()).expect("sound").expect("set up");
    assert!(manifest.is_complete && manifest.starts(&plan().units));
    take_away(root.path(), &mut services);
    assert_eq!(tree(root.path()), before);
}

#[test]
fn changes_of_the_user_s_are_kept_and_told_of() {
    let root = machine(Some("mechanism = \"gone\"\n"));
    let mut services = Noting::default();
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    let file = root.path().join("etc/outlast/wlan0.toml");
    fs::write(&file, "mechanism = \"auto\"\n").expect("ours");
    // Nor does another run touch it.
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    let lines = take_away(root.path(), &mut services).join("\n");
    assert!(lines.contains("kept /etc/outlast/wlan0.toml"), "{lines}");
    let now = fs::read_to_string(&file).expect("kept");
    assert_eq!(now, "mechanism = \"auto\"\n");
    let copy = root.path().join("var/lib/outlast-setup/replaced-1");
    assert!(copy.exists(), "{:#?}", tree(root.path()));
    // Nor does a later run write over that copy.
    fs::write(&file, "mechanism = \"lost\"\n").expect("ours");
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    let kept = fs::read_to_string(copy).expect("kept");
    assert_eq!(kept, "mechanism = \"gone\"\n");
}

#[test]
fn a_sound_configuration_and_a_running_unit_of_the_user_s_are_kept() {
    let mine = "mechanism = \"auto\"\n";
    let root = machine(Some(mine));
    let before = tree(root.path());
    let mut services = Noting {
        running: vec!["outlast@wlan0.service"],
        ..Noting::default()
    };
    carry_out(root.path(), &plan(), &mut services).expect("carried out");
    let file = root.path().join("etc/outlast/wlan0.toml");
    assert_eq!(fs::read_to_string(file).expect("kept"), mine);
    take_away(root.path(), &mut services);
    assert_eq!(tree(root.path()), before);
    assert_eq!(
        services.asked.last().map(String::as_str),
        Some("stop outlast@wlan0.service true true")
    );
}

#[test]
fn something_else_than_a_file_is_in_the_way() {
    let root = machine(None);
    fs::create_dir_all(root.path().join("etc/outlast/wlan0.toml")).expect("ours");
    let error = intents(&plan(), root.path(), None).expect_err("a directory");
    assert!(
        format!("{error:#}").contains("no regular file"),
        "{error:#}"
    );
}
