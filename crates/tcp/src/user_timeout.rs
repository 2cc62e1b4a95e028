//! How long sent data may stay unacknowledged (RFC 9293, section 3.9.1.2), and the option by which
//! two ends tell each other (RFC 5482).
//!
//! Without the option the timeout is this end's own affair, and none but the profile's limits hold
//! unless the application sets one.

use crate::endpoint::{Endpoint, Out};
use outlast_base::time::Duration;
use outlast_host::user_timeout::UserTimeoutOption;
use outlast_wire::tcp::UserTimeout;
use outlast_wire::{TcpFlags, TcpHeader};

/// Bytes of the option.
const OPTION_LEN: u32 = 4;

/// State of the user timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserTimeouts {
    option: Option<UserTimeoutOption>,
    /// What the application has set; then the peer cannot change it (`CHANGEABLE` is false).
    own: Option<Duration>,
    /// What the peer has told last (`REMOTE_UTO`).
    remote: Option<Duration>,
    /// The peer is to be told in the next segment that has room.
    is_due: bool,
}

impl UserTimeouts {
    pub(crate) fn new(option: Option<UserTimeoutOption>, own: Option<Duration>) -> Self {
        Self {
            option,
            own,
            remote: None,
            is_due: false,
        }
    }

    /// The peer is to be told.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.option.is_some()
    }

    /// Whether the application has set just that.
    pub(crate) fn is_own(&self, timeout: Option<Duration>) -> bool {
        self.own == timeout
    }

    fn set(&mut self, own: Option<Duration>) {
        self.own = own;
        if let (Some(option), Some(own)) = (&mut self.option, own) {
            option.advertise = own;
            self.is_due = true;
        }
    }

    /// USER_TIMEOUT; `None` until there is one.
    //= RFC 5482, section 3.1
    fn current(&self, rto: Duration) -> Option<Duration> {
        if self.own.is_some() {
            return self.own;
        }
        let (option, remote) = (self.option?, self.remote?);
        Some(option.adopt(remote, rto))
    }

    /// What a SYN tells.
    pub(crate) fn option(&self) -> Option<UserTimeout> {
        self.option.map(|option| to_option(option.advertise))
    }

    /// The first segment after the handshake tells it again: some peers answer a SYN without
    /// keeping anything.
    //= RFC 5482, section 3
    pub(crate) fn repeat(&mut self) {
        self.is_due = self.option.is_some();
    }

    /// A valid segment of the peer's.
    //= RFC 5482, section 3.1
    pub(crate) fn hear(&mut self, header: &TcpHeader) {
        if let Some(told) = header.options.user_timeout
            && self.option.is_some()
        {
            self.remote = Some(told.as_duration());
        }
    }
}

impl Endpoint {
    /// The user timeout in force; `None` where the profile's own limits hold.
    #[must_use]
    pub fn user_timeout(&self) -> Option<Duration> {
        self.user_timeouts.current(self.snd.rto.current())
    }

    /// Sets the user timeout as an application does; `None` leaves it to the option, if that is
    /// enabled, and else to the profile's limits. With the option the peer is told.
    //= RFC 9293, section 3.9.1.2
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeouts.set(timeout);
    }

    /// The option for a segment that is not a SYN, if it is due and there is room.
    pub(crate) fn due_user_timeout(&mut self, out: &Out) -> Option<UserTimeout> {
        //= RFC 9293, section 3.7.1: options count, too
        let fits = out.len + OPTION_LEN <= self.snd.mss;
        if !self.user_timeouts.is_due() || !fits || out.flags.contains(TcpFlags::RST) {
            return None;
        }
        self.user_timeouts.is_due = false;
        self.user_timeouts.option()
    }
}

/// `timeout` as the option says it, rounded up.
//= RFC 5482, section 3.3
fn to_option(timeout: Duration) -> UserTimeout {
    //= RFC 5482, section 3.4
    UserTimeout::rounded_up(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_up_to_nine_hours_then_minutes() {
        //= RFC 5482, section 3.3
        //= RFC 5482, section 3.4
        let said = |timeout: Duration| {
            let option = to_option(timeout);
            (option.minutes, option.value)
        };
        assert_eq!(said(Duration::ZERO), (false, 1), "zero is reserved");
        assert_eq!(said(Duration::from_millis(1_001)), (false, 2));
        assert_eq!(said(Duration::from_secs(32_767)), (false, 32_767));
        assert_eq!(said(Duration::from_secs(32_768)), (true, 547));
        assert_eq!(said(Duration::MAX), (true, 32_767));
    }
}
