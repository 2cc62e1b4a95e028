//! The daemon's log: lines on standard error, for people, for systemd's journal, or as JSON.

use super::config::{Log, LogFormat, LogLevel};
use std::fmt;
use std::io;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Compact, Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// What is told can be changed while the daemon runs.
#[derive(Debug)]
pub struct Logging {
    filter: reload::Handle<Targets, Registry>,
}

impl Logging {
    /// Begins to tell. Called once, before anything is told.
    pub fn begin(log: Log) -> Self {
        let (filter, handle) = reload::Layer::new(filter(log.level));
        let registry = tracing_subscriber::registry().with(filter);
        let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
        match log.format {
            LogFormat::Json => {
                let lines = lines.json().flatten_event(true).with_current_span(false);
                registry
                    .with(lines.with_span_list(false).with_target(false))
                    .init();
            }
            LogFormat::Text if is_systemd_journal() => {
                let lines = lines.with_ansi(false).event_format(Prioritised::new());
                registry.with(lines).init();
            }
            LogFormat::Text => {
                let lines = lines.with_ansi(console::colors_enabled_stderr());
                registry.with(lines.with_target(false)).init();
            }
        }
        Self { filter: handle }
    }

    /// Sets the level of the log.
    pub(super) fn set_level(&self, level: LogLevel) {
        // It fails only once the log has no subscriber any more.
        let _ = self.filter.reload(filter(level));
    }
}

/// What this project's crates tell at `level`. Others tell what somebody should look at, and no more:
/// the loader of eBPF programs has hundreds of lines to say.
fn filter(level: LogLevel) -> Targets {
    let level = LevelFilter::from(level);
    Targets::new()
        .with_target("outlast", level)
        .with_default(level.min(LevelFilter::WARN))
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// Whether standard error goes to systemd's journal: `JOURNAL_STREAM` names its device and inode
/// (systemd.exec(5)).
fn is_systemd_journal() -> bool {
    let Some(stream) = std::env::var("JOURNAL_STREAM").ok() else {
        return false;
    };
    rustix::fs::fstat(io::stderr())
        .is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Lines that begin with a priority (sd-daemon(3)) instead of a time, which the journal has itself.
struct Prioritised(Format<Compact, ()>);

impl Prioritised {
    fn new() -> Self {
        Self(
            Format::default()
                .compact()
                .without_time()
                .with_level(false)
                .with_target(false),
        )
    }
}

impl<S, N> FormatEvent<S, N> for Prioritised
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // As syslog(3) numbers them.
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(context, writer, event)
    }
}
