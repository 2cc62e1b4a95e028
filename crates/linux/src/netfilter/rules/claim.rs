//! Who looks after something is the only one who does.

use super::{Batch, NEW_TABLE, TABLE_OWNER, or_taken};
use crate::netfilter::{Conversation, NetfilterError};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

/// A table without rules, in the network namespace of the thread that made it. Nobody else can make
/// one of that name until this value is dropped, or the process ends, however it ends; no packet
/// sees it.
#[derive(Debug)]
pub struct Claim {
    /// The table goes with it.
    _owner: Conversation,
}

impl Claim {
    /// Makes the table.
    ///
    /// # Errors
    /// [`NetfilterError::TableTaken`] when another one has it; and without `CAP_NET_ADMIN`, or
    /// when the kernel lacks nftables.
    pub fn stake(table: &str) -> Result<Self, NetfilterError> {
        or_taken(table, Self::attempt(table))
    }

    fn attempt(table: &str) -> Result<Self, NetfilterError> {
        let owner = Conversation::open()?;
        let mut batch = Batch::default();
        batch.add(NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, |message| {
            message
                .with_text(1, table)
                .with(2, &TABLE_OWNER.to_be_bytes())
        });
        owner.ask(&batch.bytes(), batch.requests, "add a table to nftables")?;
        Ok(Self { _owner: owner })
    }
}
