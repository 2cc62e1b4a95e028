//! The Immediate Retransmission Option, from the beginning of the agent to its end.
//!
//! Its programs are loaded when the agent begins, whether or not the configuration asks for them: what
//! loading takes (`CAP_BPF`, `CAP_PERFMON`) is given up afterwards. While the option is in use the stack
//! has them.

use super::lacking::Lacking;
use crate::failure::Failure;
use outlast_linux::immediate_retransmission::{
    ImmediateCounters, ImmediateError, ImmediateRetransmission,
};
use outlast_linux::lack::Lack;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::stack::TcpStack;
use std::io;

/// What does not work without the programs.
const WITHOUT: &str =
    "peers with the agent are neither asked to send again nor heard when they ask";

/// The programs while they are not in use, or why this kernel does not take them.
pub(super) struct Immediate {
    spare: Result<Option<ImmediateRetransmission>, ImmediateError>,
    /// What is lacking, where they are wanted and cannot be had.
    lacking: Option<Lacking>,
}

impl Immediate {
    pub(super) fn load() -> Self {
        Self {
            spare: ImmediateRetransmission::load().map(Some),
            lacking: None,
        }
    }

    /// Has the poller tell of requests, if there can be any.
    pub(super) fn watch(&self, poller: &Poller, token: Token) -> io::Result<()> {
        match &self.spare {
            Ok(Some(programs)) => poller.add(programs, token, Interest::Readable),
            _ => Ok(()),
        }
    }

    /// Uses the option, or no longer; `None`: where the kernel takes it. The user timeout option
    /// `else_hears` for options, too.
    pub(super) fn set(
        &mut self,
        wanted: Option<bool>,
        stack: &mut TcpStack,
        else_hears: bool,
    ) -> Result<(), Failure> {
        let before = self.lacking.take();
        if wanted == Some(false) {
            self.end(stack, else_hears);
            return Ok(());
        }
        let Err(lack) = self.begin(stack) else {
            return Ok(());
        };
        let lacking = Lacking::of(WITHOUT, lack);
        if wanted == Some(true) {
            return Err(Failure::Capability(format!(
                "cannot use the immediate retransmission option: {}; {}; without `immediate_retransmission = true` the \
                 agent runs",
                lacking.what, lacking.remedy
            )));
        }
        // A reload changes nothing of it.
        if before.as_ref() != Some(&lacking) {
            lacking.warn();
        }
        self.lacking = Some(lacking);
        Ok(())
    }

    /// What is lacking, where the option is wanted.
    pub(super) const fn lacking(&self) -> Option<&Lacking> {
        self.lacking.as_ref()
    }

    /// Begins, or takes over the connections that were there before once more.
    fn begin(&mut self, stack: &mut TcpStack) -> Result<(), Lack> {
        if stack.immediate().is_none() {
            let spare = self.spare.as_mut().map_err(|error| error.lack())?;
            stack.set_immediate(spare.take());
        }
        let Some(programs) = stack.immediate_mut() else {
            return Err(Lack {
                what: "its programs are lost".into(),
                remedy: "start the agent again",
            });
        };
        match programs.begin() {
            Ok(0) => Ok(()),
            Ok(refused) => {
                tracing::debug!(
                    refused,
                    "connections that were there before hear no requests: that needs Linux 6.12 or later"
                );
                Ok(())
            }
            Err(error) => {
                self.end(stack, false);
                Err(error.lack())
            }
        }
    }

    /// Ends the option.
    pub(super) fn end(&mut self, stack: &mut TcpStack, else_hears: bool) {
        let Some(mut programs) = stack.set_immediate(None) else {
            return;
        };
        if let Err(error) = programs.end(else_hears) {
            let why = error.with_causes();
            tracing::warn!("the kernel goes on looking for requests of peers: {why}");
        }
        // What nobody reads would wake the daemon for ever.
        while programs.poll_request().is_some() {}
        self.spare = Ok(Some(programs));
    }
}

/// What the option has done so far; `None` if it is not in use.
pub(super) fn counters(stack: &TcpStack) -> Option<ImmediateCounters> {
    let counters = stack.immediate()?.counters();
    let told = counters.inspect_err(|error| tracing::warn!("{}", error.with_causes()));
    told.ok()
}
