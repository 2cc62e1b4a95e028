//! The command line.

use crate::commands::{
    agents, completions, demo, doctor, guest_run, hip, kernels, lab, man, mobile_ip, notify,
    papers, reload, run, setup, sim, status, sweep, top, trace, trials,
};
use clap::{Parser, Subcommand};

/// TCP that outlasts outages: try it, measure it, compare the published ways.
///
/// Exit codes: 0 done; 1 the run itself failed; 2 bad input or usage; 3 this machine lacks a
/// needed capability.
#[derive(Debug, Parser)]
#[command(
    version,
    name = "outlast",
    arg_required_else_help = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Log more: information, debugging, everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download the same file twice over a link that is up a fifth of the time.
    Demo(demo::Arguments),
    /// Run a scenario on this machine's kernel TCP, in network namespaces.
    Lab(lab::Arguments),
    /// Run a scenario in virtual time, on a model of the TCP that it names.
    Sim(sim::Arguments),
    /// Run a grid of scenarios in virtual time, each cell many times, on all cores.
    Sweep(sweep::Arguments),
    /// List the packaged kernels that can be had for `--kernel`, and unpack one.
    Kernels(kernels::Arguments),
    /// Find outages in captures, and why each connection stood still.
    Trace(trace::Arguments),
    /// Run published experiments and judge their claims.
    Papers(papers::Arguments),
    /// Run Outlast's own experiments: resume times, cost, crowds, sieges.
    Trials(trials::Arguments),
    Setup(setup::Arguments),
    /// Keep the connections that cross an interface alive, and resume them when its link is back.
    Run(run::Arguments),
    /// Show the state of a running daemon.
    Status(status::Arguments),
    /// Watch a running daemon: its links, outages, what they saved, and connections.
    Top(top::Arguments),
    /// Tell a running daemon that its link, or a peer's, is gone or back.
    Notify(notify::Arguments),
    /// Make a running daemon read its configuration file again.
    Reload(reload::Arguments),
    /// Make the key of gateways that hand frozen connections to each other.
    Agents(agents::Arguments),
    /// Make the identity of a host that speaks HIP, or show its tag.
    Hip(hip::Arguments),
    /// Make the key of a mobile node and its home agent (Mobile IP).
    MobileIp(mobile_ip::Arguments),
    Doctor(doctor::Arguments),
    /// Print the completion script of a shell.
    Completions(completions::Arguments),
    /// Carry out one run of a sweep in a guest.
    #[command(hide = true)]
    GuestRun(guest_run::Arguments),
    /// Write the manual pages into a directory.
    #[command(hide = true)]
    Man(man::Arguments),
}
