//! `outlast hip`: the identity of a host that speaks HIP.

use crate::failure::Failure;
use crate::terminal;
use outlast_daemon::hip::key;
use outlast_hip::identity::Algorithm;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a host identity, and print its tag.
    ///
    /// Writes a private key to a file that only its owner can read. Name it as `key` in `[hip]` of the
    /// configuration. The tag is what peers know the host by: an IPv6 address that stays.
    Key {
        /// Where to write it; nothing may be there yet.
        #[arg(value_name = "FILE")]
        path: PathBuf,
        /// The kind of key.
        #[arg(long, value_name = "NAME", value_enum, default_value_t = KeyKind::EcdsaP256)]
        algorithm: KeyKind,
    },
    /// Print the tag of a host identity.
    Tag {
        /// The private key.
        #[arg(value_name = "FILE")]
        path: PathBuf,
    },
    /// Print the peers' names for /etc/hosts.
    ///
    /// Each name comes with the peer's tag and with the IPv4 address (LSI) that stands for it on this host, for
    /// applications without IPv6.
    Hosts {
        /// The configuration of the role `hip`.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// Kinds of keys.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum KeyKind {
    /// ECDSA on NIST P-256.
    EcdsaP256,
    /// ECDSA on NIST P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let tag = match &arguments.command {
        Command::Key { path, algorithm } => {
            let algorithm = match algorithm {
                KeyKind::EcdsaP256 => Algorithm::EcdsaP256,
                KeyKind::EcdsaP384 => Algorithm::EcdsaP384,
                KeyKind::Rsa2048 => Algorithm::Rsa2048,
                KeyKind::Rsa3072 => Algorithm::Rsa3072,
            };
            key::make(path, algorithm)?
        }
        Command::Tag { path } => key::load(path)?.hit().to_string(),
        Command::Hosts { config } => return terminal::print(&outlast_daemon::hip::hosts(config)?),
    };
    terminal::print(&format!("{tag}\n"))
}
