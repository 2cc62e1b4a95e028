//! QEMU's machine protocol (QMP): commands, answers and events, a JSON document a line.

use crate::GuestError;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Longest time in which the emulator answers a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// The emulator's end of the protocol.
#[derive(Debug)]
pub(crate) struct Monitor {
    commands: ChildStdin,
    lines: Receiver<String>,
    events: VecDeque<String>,
}

/// Reason why no line came from the emulator.
#[derive(Debug)]
pub(crate) enum Silence {
    /// It has ended.
    Ended,
    /// It said nothing for as long as one waited.
    Long,
}

impl Monitor {
    pub(crate) fn new(commands: ChildStdin, answers: ChildStdout) -> std::io::Result<Self> {
        let (tell, lines) = mpsc::channel();
        thread::Builder::new()
            .name("monitor".into())
            .spawn(move || {
                for line in BufReader::new(answers).lines().map_while(Result::ok) {
                    if tell.send(line).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            commands,
            lines,
            events: VecDeque::new(),
        })
    }

    /// Gives a command, and waits for its answer.
    pub(crate) fn ask(&mut self, command: &str, arguments: Value) -> Result<Value, GuestError> {
        let mut text = json!({"execute": command, "arguments": arguments}).to_string();
        text.push('\n');
        let said = self.commands.write_all(text.as_bytes());
        said.map_err(|error| GuestError::Emulator(format!("{command}: {error}")))?;
        loop {
            let line = self.next(PATIENCE).map_err(|silence| {
                GuestError::Emulator(match silence {
                    Silence::Ended => format!("{command}: it has ended"),
                    Silence::Long => format!("{command}: no answer"),
                })
            })?;
            if let Some(event) = line.get("event").and_then(Value::as_str) {
                self.note(event, &line);
            } else if let Some(answer) = line.get("return") {
                return Ok(answer.clone());
            } else if let Some(error) = line.pointer("/error/desc") {
                return Err(GuestError::Emulator(format!("{command}: {error}")));
            }
        }
    }

    /// Waits until one of the events `wanted` has come; which one. An event of a migration is known by its status:
    /// `MIGRATION completed`.
    pub(crate) fn wait_for<'a>(
        &mut self,
        wanted: &[&'a str],
        patience: Duration,
    ) -> Result<&'a str, Silence> {
        loop {
            while let Some(event) = self.events.pop_front() {
                if let Some(wanted) = wanted.iter().find(|wanted| **wanted == event) {
                    return Ok(wanted);
                }
            }
            let line = self.next(patience)?;
            if let Some(event) = line.get("event").and_then(Value::as_str) {
                self.note(event, &line);
            }
        }
    }

    fn note(&mut self, event: &str, line: &Value) {
        let status = line.pointer("/data/status").and_then(Value::as_str);
        self.events.push_back(match status {
            Some(status) => format!("{event} {status}"),
            None => event.to_owned(),
        });
    }

    fn next(&mut self, patience: Duration) -> Result<Value, Silence> {
        loop {
            let line = self
                .lines
                .recv_timeout(patience)
                .map_err(|error| match error {
                    RecvTimeoutError::Timeout => Silence::Long,
                    RecvTimeoutError::Disconnected => Silence::Ended,
                })?;
            // The greeting is a document, too; anything else would be no answer either.
            if let Ok(line) = serde_json::from_str(&line) {
                return Ok(line);
            }
        }
    }
}
