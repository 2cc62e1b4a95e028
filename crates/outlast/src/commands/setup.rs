//! `outlast setup`: looks at the machine, proposes role and place, and sets that up or takes it away.

use crate::failure::Failure;
use crate::setup::apply::{self, Intent};
use crate::setup::check::{self, Checked};
use crate::setup::ground::Ground;
use crate::setup::look::look;
use crate::setup::manifest::{self, Manifest};
use crate::setup::plan::Plan;
use crate::setup::proposal::{Proposal, Refusal, decide};
use crate::setup::services::{Elsewhere, Services, Systemd};
use crate::setup::{undo, words};
use crate::terminal;
use anyhow::Context;
use outlast_daemon::config::interface_name;
use rustix::process::geteuid;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

/// Look at this machine, propose what helps it, and set that up.
///
/// It says what it has found and what it proposes, and asks before it changes anything. On yes it writes the
/// configuration, installs the hooks that apply, starts the daemon now and at each boot, and makes a check on a link
/// of its own. All that it makes is recorded, and `--remove` undoes it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Do it without asking.
    #[arg(short, long)]
    yes: bool,

    /// Print all that would be written and run, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Undo what an earlier `outlast setup` has done; files that were changed since are kept.
    #[arg(long, conflicts_with = "interface")]
    remove: bool,

    /// A link that goes away, by its interface; may be repeated [default: all that seem to].
    #[arg(short, long, value_name = "NAME", value_parser = interface_name)]
    interface: Vec<String>,

    /// Only make the check: a download, in network namespaces, whose link is away for one second.
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "remove", "interface", "root"])]
    check: bool,

    /// Set up the machine whose file system begins here; nothing is started, and nothing checked.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Arguments {
    fn root(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("/"))
    }

    fn services(&self) -> Box<dyn Services> {
        match self.root {
            Some(_) => Box::new(Elsewhere),
            None => Box::new(Systemd),
        }
    }

    /// Refuses to change this machine's files for anybody but the superuser.
    fn may_change(&self) -> Result<(), Failure> {
        if self.root.is_some() || geteuid().is_root() {
            return Ok(());
        }
        let again = match self.remove {
            true => "sudo outlast setup --remove",
            false => "sudo outlast setup",
        };
        let message = format!("only the superuser may set this machine up: `{again}`");
        Err(Failure::Shown(message))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.check {
        return terminal::print(&format!("{}\n", check::run()?));
    }
    if let Some(root) = &arguments.root
        && !root.is_dir()
    {
        let message = format!("{} is no directory; name one with --root", root.display());
        return Err(Failure::Usage(message));
    }
    match arguments.remove {
        true => remove(arguments),
        false => set_up(arguments),
    }
}

fn set_up(arguments: &Arguments) -> Result<(), Failure> {
    let root = arguments.root();
    let machine = look(root)?;
    let proposal = decide(&machine, &arguments.interface).map_err(|refusal| {
        let message = words::refused(&refusal);
        match refusal {
            Refusal::Confined { .. } => Failure::Capability(message),
            Refusal::NoInterface | Refusal::NoUplink { .. } | Refusal::Unknown { .. } => {
                Failure::Usage(message)
            }
        }
    })?;
    let earlier = load(arguments)?;
    let ours = earlier.as_ref().map(Manifest::files).unwrap_or_default();
    let ground = Ground::below(root, &ours)?;
    let plan = Plan::new(&proposal, &machine, &ground);
    let intents = apply::intents(&plan, root, earlier.as_ref())?;
    let was_cut_off = earlier.as_ref().is_some_and(|found| !found.is_complete);
    let sentences = words::sentences(&machine, &proposal, &plan, &intents);
    terminal::print(&introduction(&sentences, &proposal, &intents, was_cut_off))?;
    if arguments.dry_run {
        return terminal::print(&format!("\n{}", words::steps(&plan, &intents)));
    }
    let is_done = earlier.is_some_and(|found| found.is_complete && found.starts(&plan.units));
    if is_done && !intents.iter().any(|intent| intent.fate.writes()) {
        return terminal::print("\nNothing is to be done: this machine is set up so already.\n");
    }
    arguments.may_change()?;
    if !arguments.yes && !agrees()? {
        return terminal::print("Nothing was changed.\n");
    }
    let _lock = manifest::lock(root)?;
    apply::apply(&plan, &intents, root, &mut *arguments.services())?;
    finish(arguments, &plan)
}

/// The record of an earlier run; one that this user may not read is one of the superuser's.
fn load(arguments: &Arguments) -> Result<Option<Manifest>, Failure> {
    let is_unreadable = |error: &anyhow::Error| {
        let cause = error.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
    };
    match Manifest::load(arguments.root()) {
        Err(error) if is_unreadable(&error) => {
            arguments.may_change()?;
            Err(error.into())
        }
        loaded => Ok(loaded?),
    }
}

/// Three sentences, and notes.
fn introduction(
    sentences: &[String; 3],
    proposal: &Proposal,
    intents: &[Intent],
    was_cut_off: bool,
) -> String {
    let mut text = terminal::wrap(&sentences.join(" ")) + "\n";
    let mut notes = proposal.notes.clone();
    let hooks = words::hooks(proposal);
    if !hooks.is_empty() {
        notes.push(format!(
            "hooks for {} tell of links, too",
            words::list(&hooks)
        ));
    }
    notes.extend(words::about_files(intents));
    if was_cut_off {
        notes.push("an earlier run was cut off; this one goes on where that one ended".into());
    }
    for note in notes {
        let _ = writeln!(text, "\n{}", terminal::wrap(&format!("Note: {note}.")));
    }
    text
}

/// Asks the user; without a terminal nobody can answer.
fn agrees() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "nothing was changed: without a terminal nobody can agree; `--yes` does it without asking, `--dry-run` \
             shows every step"
                .into(),
        ));
    }
    terminal::print("\nSet this up? [y/N] ")?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.context("cannot read the answer")?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == "y" || answer == "yes")
}

/// Makes the check, and says how things stand.
fn finish(arguments: &Arguments, plan: &Plan) -> Result<(), Failure> {
    let mut text = String::from("\nSet up.");
    let mut failed = None;
    if arguments.root.is_some() {
        text.push_str(" Nothing was started, and nothing checked, below another root.");
    } else {
        match check::run_apart()? {
            Checked::Passed(line) => {
                let _ = write!(text, " Check passed: {line}.");
            }
            Checked::Unable(line) => {
                let _ = write!(text, " The check could not be made: {line}.");
            }
            Checked::Failed(line) => failed = Some(line),
        }
    }
    for command in &plan.by_hand {
        let _ = write!(text, " Start it with `{command}`.");
    }
    text.push_str(
        " `outlast status` shows it at work, and `outlast setup --remove` undoes all of it.",
    );
    terminal::print(&format!("{}\n", terminal::wrap(&text)))?;
    match failed {
        None => Ok(()),
        Some(line) => Err(Failure::Run(anyhow::anyhow!(
            "{line}; it is set up all the same, and `outlast doctor` may say why"
        ))),
    }
}

fn remove(arguments: &Arguments) -> Result<(), Failure> {
    let root = arguments.root();
    let Some(found) = load(arguments)? else {
        return terminal::print(
            "Nothing is to be removed: `outlast setup` has set nothing up here.\n",
        );
    };
    if arguments.dry_run {
        return terminal::print(&undo::steps(&found));
    }
    arguments.may_change()?;
    let lock = manifest::lock(root)?;
    let mut found = Manifest::load(root)?.unwrap_or(found);
    let undone = undo::undo(&mut found, root, &mut *arguments.services());
    match undone {
        Ok(lines) => {
            manifest::forget(root)?;
            drop(lock);
            terminal::print(&format!("{}\n", lines.join("\n")))
        }
        Err(error) => {
            found.is_complete = false;
            found.save(root)?;
            let error = error.context("not all was removed; `outlast setup --remove` goes on");
            Err(Failure::Run(error))
        }
    }
}
