//! `outlast status`: how a running gateway is.

use crate::commands::notify::Whom;
use crate::failure::Failure;
use crate::terminal;
use anyhow::Context;
use outlast_daemon::control::{Request, ask};
use outlast_daemon::hip::HipStatus;
use outlast_daemon::host::HostStatus;
use outlast_daemon::mobility::MobileIpStatus;
use outlast_daemon::status::Status;
use serde_json::Value;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    whom: Whom,

    /// Print one JSON document (see docs/gateway.md).
    #[arg(long)]
    json: bool,

    /// List connections, those of which the most is kept first.
    #[arg(long)]
    flows: bool,

    /// How many connections to list: 1 to 1000.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, requires = "flows",
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = match arguments.flows {
        true => Request::Flows {
            limit: arguments.limit.into(),
        },
        false => Request::Status,
    };
    let answer = ask(&arguments.whom.control()?, request)?;
    if arguments.json {
        return terminal::print(&format!("{answer:#}\n"));
    }
    let of_another_version = "the daemon is of another version";
    if let Some(role) = answer.get("role").and_then(Value::as_str) {
        let width = terminal::table_width();
        let text = match role {
            "host" => {
                let status: HostStatus =
                    serde_json::from_value(answer).context(of_another_version)?;
                status.to_text(width)
            }
            _ if MobileIpStatus::is_of(role) => {
                let status: MobileIpStatus =
                    serde_json::from_value(answer).context(of_another_version)?;
                status.to_text(width)
            }
            _ => {
                let status: HipStatus =
                    serde_json::from_value(answer).context(of_another_version)?;
                status.to_text(width)
            }
        };
        return terminal::print(&text);
    }
    let status: Status = serde_json::from_value(answer).context(of_another_version)?;
    terminal::print(&status.to_text(terminal::table_width()))?;
    match status.flow_table() {
        Some(table) => {
            terminal::print("\n")?;
            terminal::print_table(&table)
        }
        None => Ok(()),
    }
}
