//! One side sends a stream of bytes, hashed at both ends.

use super::connection::{self, Connection, Interrupted, Sockets};
use super::{Context, Outcome, SenderAccount};
use crate::delivery::DeliveryLog;
use crate::error::LabError;
use crate::stop::StopReason;
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;
use outlast_linux::clock;
use outlast_scenario::Direction;
use outlast_wire::pattern;
use std::thread;

const SEND_BUFFER: usize = 64 << 10;
const RECEIVE_BUFFER: usize = 256 << 10;

/// What the sender knows at the end.
struct Sent {
    hash: blake3::Hash,
    account: SenderAccount,
    interrupted: Interrupted,
}

/// What the receiver knows at the end.
struct Received {
    hash: blake3::Hash,
    deliveries: DeliveryLog,
    ended: Instant,
    /// Why not everything came; `None` if it did.
    interrupted: Option<Interrupted>,
}

pub(super) fn run(
    cx: &Context<'_>,
    sockets: Sockets,
    bytes: ByteCount,
    direction: Direction,
) -> Result<Outcome, LabError> {
    let ends = match connection::open(cx, sockets)? {
        Ok(ends) => ends,
        Err(interrupted) => return Ok(Outcome::not_begun(&interrupted)),
    };
    let (sender, receiver) = match direction {
        Direction::Download => (ends.fixed, ends.mobile),
        Direction::Upload => (ends.mobile, ends.fixed),
    };
    let (sent, received) = thread::scope(|scope| {
        let sender = thread::Builder::new()
            .name("sender".into())
            .spawn_scoped(scope, || send(cx, sender, bytes.0))
            .map_err(|source| LabError::Socket {
                action: "start a thread",
                source,
            })?;
        let received = receive(cx, receiver, bytes.0);
        let sent = sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, LabError>((sent?, received))
    })?;
    let completed = received.interrupted.is_none();
    let interruptions = || [Some(&sent.interrupted), received.interrupted.as_ref()].into_iter();
    Ok(Outcome {
        completed,
        intact: if completed {
            Some(received.hash == sent.hash)
        } else {
            // What is missing shows in `completed`; what arrived must be right all the same.
            let right = received.hash == hash_of(cx.seed, received.deliveries.total());
            if right { None } else { Some(false) }
        },
        ended: received.ended,
        deliveries: Some(received.deliveries),
        sender: Some(sent.account),
        timed_out: interruptions().flatten().any(Interrupted::is_timeout),
        failure: match completed {
            true => None,
            false => interruptions().flatten().find_map(Interrupted::failure),
        },
        updates: None,
    })
}

/// Sends, and stays until the receiver has everything or the run is stopped.
fn send(cx: &Context<'_>, mut connection: Connection<'_>, bytes: u64) -> Result<Sent, LabError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; SEND_BUFFER];
    let mut write = || {
        let mut offset = 0;
        while offset < bytes {
            let length = (bytes - offset).min(SEND_BUFFER as u64);
            let chunk = &mut buffer[..length as usize];
            pattern::fill(cx.seed, offset, chunk);
            hasher.update(chunk);
            connection.write_all(chunk)?;
            offset += length;
        }
        Ok(())
    };
    let interrupted = match write() {
        Ok(()) => connection.wait_for_end(),
        Err(interrupted) => interrupted,
    };
    let account = SenderAccount::of(&connection.info()?);
    if matches!(interrupted, Interrupted::Failed(_)) {
        // The receiver may never hear of it.
        cx.stop.pull(StopReason::Over);
    }
    Ok(Sent {
        hash: hasher.finalize(),
        account,
        interrupted,
    })
}

fn receive(cx: &Context<'_>, mut connection: Connection<'_>, bytes: u64) -> Received {
    let mut hasher = blake3::Hasher::new();
    let mut deliveries = DeliveryLog::default();
    let mut buffer = vec![0; RECEIVE_BUFFER];
    let mut interrupted = None;
    while deliveries.total() < bytes && interrupted.is_none() {
        match connection.read(&mut buffer) {
            Ok(0) => {
                let early = std::io::ErrorKind::UnexpectedEof;
                interrupted = Some(Interrupted::Failed(early.into()));
            }
            Ok(length) => {
                deliveries.record(clock::now(), length as u64);
                hasher.update(&buffer[..length]);
                cx.note_received(deliveries.total());
            }
            Err(error) => interrupted = Some(error),
        }
    }
    let completed = interrupted.is_none();
    let ended = deliveries
        .last()
        .filter(|_| completed)
        .unwrap_or_else(clock::now);
    cx.stop.pull(StopReason::Over);
    Received {
        hash: hasher.finalize(),
        deliveries,
        ended,
        interrupted,
    }
}

/// The hash of the first `bytes` of stream `seed`.
fn hash_of(seed: u64, bytes: u64) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; SEND_BUFFER];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(SEND_BUFFER as u64);
        let chunk = &mut buffer[..length as usize];
        pattern::fill(seed, offset, chunk);
        hasher.update(chunk);
        offset += length;
    }
    hasher.finalize()
}
