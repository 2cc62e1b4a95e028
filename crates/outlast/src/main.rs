//! The command: TCP that outlasts outages, tried, measured and explained.

mod cli;
mod commands;
mod failure;
mod guests;
mod inputs;
mod labs;
mod markdown;
mod page;
mod progress;
mod setup;
mod shown;
mod terminal;
mod top;
mod trace;
mod virtual_time;

use clap::Parser;
use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // In a guest, this program is the init process.
    outlast_guest::init::run();
    let cli = Cli::parse();
    if !matches!(cli.command, Command::Run(_)) {
        terminal::log_to_stderr(cli.verbose);
    }
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Lab(arguments) => commands::lab::run(&arguments),
        Command::Sim(arguments) => commands::sim::run(&arguments),
        Command::Sweep(arguments) => commands::sweep::run(&arguments),
        Command::Papers(arguments) => commands::papers::run(&arguments),
        Command::Kernels(arguments) => commands::kernels::run(&arguments),
        Command::Trace(arguments) => commands::trace::run(&arguments),
        Command::Trials(arguments) => commands::trials::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments, cli.verbose),
        Command::Setup(arguments) => commands::setup::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::Top(arguments) => commands::top::run(&arguments),
        Command::Reload(arguments) => commands::reload::run(&arguments),
        Command::Agents(arguments) => commands::agents::run(&arguments),
        Command::Hip(arguments) => commands::hip::run(&arguments),
        Command::MobileIp(arguments) => commands::mobile_ip::run(&arguments),
        Command::Notify(arguments) => commands::notify::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
        Command::GuestRun(arguments) => commands::guest_run::run(&arguments),
        Command::Man(arguments) => commands::man::run(&arguments),
    }
}
