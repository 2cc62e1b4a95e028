//! The mobile asks, the fixed host answers, one exchange after the other on one connection.

use super::connection::{self, Connection, Interrupted, Sockets, wait_for_timer};
use super::message::{Sizes, Stream};
use super::{Context, Outcome, SenderAccount};
use crate::delivery::DeliveryLog;
use crate::error::LabError;
use crate::stop::StopReason;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::timer::Timer;
use std::thread;

pub(super) fn run(
    cx: &Context<'_>,
    sockets: Sockets,
    requests: u32,
    think: Duration,
    sizes: Sizes,
) -> Result<Outcome, LabError> {
    let ends = match connection::open(cx, sockets)? {
        Ok(ends) => ends,
        Err(interrupted) => return Ok(Outcome::not_begun(&interrupted)),
    };
    let action = "start a thread or a timer";
    let mut timer = Timer::new().map_err(|source| LabError::Socket { action, source })?;
    thread::scope(|scope| {
        let server = thread::Builder::new()
            .name("server".into())
            .spawn_scoped(scope, || serve(cx, ends.fixed, sizes))
            .map_err(|source| LabError::Socket { action, source })?;
        let mut client = Client {
            connection: ends.mobile,
            asking: Stream::requests(cx.seed),
            hearing: Stream::responses(cx.seed),
            deliveries: DeliveryLog::default(),
            intact: true,
        };
        let outcome = client.ask(cx, requests, think, sizes, &mut timer);
        let ended = clock::now();
        cx.stop.pull(StopReason::Over);
        let server = server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let interruptions = || {
            outcome
                .as_ref()
                .err()
                .into_iter()
                .chain([&server.interrupted])
        };
        let completed = outcome.is_ok();
        Ok(Outcome {
            completed,
            intact: match completed {
                true => Some(client.intact && server.intact),
                false => Some(false).filter(|_| !(client.intact && server.intact)),
            },
            ended,
            deliveries: Some(client.deliveries),
            sender: Some(server.account),
            timed_out: interruptions().any(Interrupted::is_timeout),
            failure: match completed {
                true => None,
                false => interruptions().find_map(Interrupted::failure),
            },
            updates: None,
        })
    })
}

struct Client<'a> {
    connection: Connection<'a>,
    asking: Stream,
    hearing: Stream,
    deliveries: DeliveryLog,
    intact: bool,
}

impl Client<'_> {
    fn ask(
        &mut self,
        cx: &Context<'_>,
        requests: u32,
        think: Duration,
        sizes: Sizes,
        timer: &mut Timer,
    ) -> Result<(), Interrupted> {
        for exchange in 0..requests {
            if exchange > 0 && !think.is_zero() {
                timer.set(Some(clock::now() + think))?;
                wait_for_timer(cx.stop, timer)?;
            }
            self.asking.send(&mut self.connection, sizes.request)?;
            let log = &mut self.deliveries;
            self.intact &= self
                .hearing
                .receive(&mut self.connection, sizes.response, log)?;
            cx.note_received(self.deliveries.total());
        }
        Ok(())
    }
}

/// What the server knows at the end.
pub(super) struct Served {
    pub(super) intact: bool,
    pub(super) account: SenderAccount,
    pub(super) interrupted: Interrupted,
}

/// Answers until the run is stopped.
fn serve(
    cx: &Context<'_>,
    mut connection: Connection<'_>,
    sizes: Sizes,
) -> Result<Served, LabError> {
    let (mut hearing, mut answering) = (Stream::requests(cx.seed), Stream::responses(cx.seed));
    let mut intact = true;
    let mut exchange = || {
        intact &= hearing.receive(&mut connection, sizes.request, &mut DeliveryLog::default())?;
        answering.send(&mut connection, sizes.response)
    };
    let interrupted = loop {
        if let Err(interrupted) = exchange() {
            break interrupted;
        }
    };
    if matches!(interrupted, Interrupted::Failed(_)) {
        // The mobile may never hear of it.
        cx.stop.pull(StopReason::Over);
    }
    Ok(Served {
        intact,
        account: SenderAccount::of(&connection.info()?),
        interrupted,
    })
}
