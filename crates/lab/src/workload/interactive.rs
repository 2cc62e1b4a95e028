//! Remote desktop, after Scott and Mapp, section 6.2: the fixed host's display changes every so
//! often. It sends an update when the display differs from what the mobile has and an update
//! request is outstanding; the mobile asks for the next update when it has received one.

use super::connection::{self, Connection, Interrupted, Sockets};
use super::message::{Sizes, Stream};
use super::request_response::Served;
use super::{Context, Outcome, SenderAccount};
use crate::delivery::DeliveryLog;
use crate::error::LabError;
use crate::stop::StopReason;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::timer::Timer;
use std::thread;

pub(super) fn run(
    cx: &Context<'_>,
    sockets: Sockets,
    interval: Duration,
    duration: Duration,
    sizes: Sizes,
) -> Result<Outcome, LabError> {
    let ends = match connection::open(cx, sockets)? {
        Ok(ends) => ends,
        Err(interrupted) => return Ok(Outcome::not_begun(&interrupted)),
    };
    let action = "start a thread or a timer";
    let timer = || Timer::new().map_err(|source| LabError::Socket { action, source });
    let (ticks, end) = (timer()?, timer()?);
    thread::scope(|scope| {
        let mut desktop = Desktop::new(cx, ends.fixed, ticks, interval, sizes);
        let server = thread::Builder::new()
            .name("server".into())
            .spawn_scoped(scope, move || desktop.serve(cx))
            .map_err(|source| LabError::Socket { action, source })?;
        let mut viewer = Viewer::new(cx, ends.mobile, end, sizes);
        let interrupted = viewer.watch(cx, duration).err();
        let ended = clock::now();
        cx.stop.pull(StopReason::Over);
        let served = server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let interruptions = || {
            interrupted
                .as_ref()
                .into_iter()
                .chain([&served.interrupted])
        };
        let intact = viewer.intact && served.intact;
        let completed = interrupted.is_none();
        Ok(Outcome {
            completed,
            intact: if completed || !intact {
                Some(intact)
            } else {
                None
            },
            ended: viewer.end_at.filter(|_| completed).unwrap_or(ended),
            deliveries: Some(viewer.deliveries),
            sender: Some(served.account),
            timed_out: interruptions().any(Interrupted::is_timeout),
            failure: match completed {
                true => None,
                false => interruptions().find_map(Interrupted::failure),
            },
            updates: Some(viewer.updates),
        })
    })
}

/// The mobile's side.
struct Viewer<'a> {
    connection: Connection<'a>,
    end: Timer,
    end_at: Option<Instant>,
    asking: Stream,
    seeing: Stream,
    sizes: Sizes,
    deliveries: DeliveryLog,
    updates: u32,
    intact: bool,
}

impl<'a> Viewer<'a> {
    fn new(cx: &Context<'_>, connection: Connection<'a>, end: Timer, sizes: Sizes) -> Self {
        Self {
            connection,
            end,
            end_at: None,
            asking: Stream::requests(cx.seed),
            seeing: Stream::responses(cx.seed),
            sizes,
            deliveries: DeliveryLog::default(),
            updates: 0,
            intact: true,
        }
    }

    /// Asks and looks for `duration`.
    fn watch(&mut self, cx: &Context<'_>, duration: Duration) -> Result<(), Interrupted> {
        let end_at = clock::now() + duration;
        self.end_at = Some(end_at);
        self.end.set(Some(end_at))?;
        loop {
            self.asking.send(&mut self.connection, self.sizes.request)?;
            let mut missing = self.sizes.response;
            while missing > 0 {
                if self.connection.wait_or_timer(&self.end)? || clock::now() >= end_at {
                    return Ok(());
                }
                let before = self.deliveries.total();
                self.intact &= self.seeing.receive_some(
                    &mut self.connection,
                    missing,
                    &mut self.deliveries,
                )?;
                missing -= self.deliveries.total() - before;
            }
            self.updates += 1;
            cx.note_received(self.deliveries.total());
            cx.note_update();
        }
    }
}

/// The fixed host's side.
struct Desktop<'a> {
    connection: Connection<'a>,
    ticks: Timer,
    interval: Duration,
    sizes: Sizes,
    hearing: Stream,
    showing: Stream,
    /// When the display last changed, or was first looked at.
    changed_at: Instant,
    /// Whether the display differs from what the mobile has.
    differs: bool,
    /// Bytes that are missing of the request that is on its way.
    awaited: u64,
    intact: bool,
}

impl<'a> Desktop<'a> {
    fn new(
        cx: &Context<'_>,
        connection: Connection<'a>,
        ticks: Timer,
        interval: Duration,
        sizes: Sizes,
    ) -> Self {
        Self {
            connection,
            ticks,
            interval,
            sizes,
            hearing: Stream::requests(cx.seed),
            showing: Stream::responses(cx.seed),
            changed_at: clock::now(),
            differs: false,
            awaited: sizes.request,
            intact: true,
        }
    }

    /// Serves until the run is stopped.
    fn serve(&mut self, cx: &Context<'_>) -> Result<Served, LabError> {
        let interrupted = loop {
            if let Err(interrupted) = self.step() {
                break interrupted;
            }
        };
        if matches!(interrupted, Interrupted::Failed(_)) {
            // The mobile may never hear of it.
            cx.stop.pull(StopReason::Over);
        }
        let account = SenderAccount::of(&self.connection.info()?);
        Ok(Served {
            intact: self.intact,
            account,
            interrupted,
        })
    }

    /// Waits for the next change of the display or of what is asked, and reacts to it.
    fn step(&mut self) -> Result<(), Interrupted> {
        self.ticks.set(Some(self.changed_at + self.interval))?;
        if self.awaited == 0 {
            // Asked already: only the display can change.
            self.connection.wait_for_tick(&self.ticks)?;
            self.tick()?;
        } else if self.connection.wait_or_timer(&self.ticks)? {
            self.tick()?;
        } else {
            let mut log = DeliveryLog::default();
            self.intact &=
                self.hearing
                    .receive_some(&mut self.connection, self.awaited, &mut log)?;
            self.awaited -= log.total();
        }
        if self.differs && self.awaited == 0 {
            self.showing
                .send(&mut self.connection, self.sizes.response)?;
            self.differs = false;
            self.awaited = self.sizes.request;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Interrupted> {
        if self.ticks.consume()? {
            self.differs = true;
            // A late wake-up may have missed changes, which then are one.
            while self.changed_at + self.interval <= clock::now() {
                self.changed_at += self.interval;
            }
        }
        Ok(())
    }
}
