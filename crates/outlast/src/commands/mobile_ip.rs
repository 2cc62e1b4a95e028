//! `outlast mobile-ip`: the key of a mobile node and its home agent.

use crate::failure::Failure;
use crate::terminal;
use outlast_daemon::mobility::key::{self, Authenticator};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a key, and print its security parameter index.
    ///
    /// Writes a file that only its owner can read. Copy it to the other host over a safe way, and name
    /// it as `key` in both configurations. Each mobile node has a key of its own.
    Key {
        /// Where to write it; nothing may be there yet.
        #[arg(value_name = "FILE")]
        path: PathBuf,
        /// How messages are authenticated; home agents other than Outlast's need hmac-md5, those of
        /// Mobile IPv6 hmac-sha-1.
        #[arg(long, value_name = "NAME", value_enum, default_value_t = Algorithm::HmacSha256)]
        algorithm: Algorithm,
        /// The security parameter index, from 256 on [default: a random one].
        #[arg(long, value_name = "NUMBER")]
        spi: Option<u32>,
    },
}

/// How messages are authenticated.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Algorithm {
    /// HMAC-MD5, which every implementation has.
    HmacMd5,
    /// HMAC-SHA-1, which implementations of Mobile IPv6 have.
    #[value(name = "hmac-sha-1")]
    HmacSha1,
    /// HMAC-SHA-256, which only Outlast has.
    #[value(name = "hmac-sha-256")]
    HmacSha256,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Command::Key {
        path,
        algorithm,
        spi,
    } = &arguments.command;
    let algorithm = match algorithm {
        Algorithm::HmacMd5 => Authenticator::HmacMd5,
        Algorithm::HmacSha1 => Authenticator::HmacSha1,
        Algorithm::HmacSha256 => Authenticator::HmacSha256,
    };
    let spi = key::make(path, algorithm, *spi)?;
    terminal::print(&format!("{spi}\n"))
}
