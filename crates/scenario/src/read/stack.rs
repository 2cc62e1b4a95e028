//! `[stack]` and `[outlast]`.

use super::duration;
use crate::keys;
use crate::keys::Key;
use crate::mechanism::Mechanism;
use crate::quantity::format_duration;
use crate::reader::Reader;
use crate::scenario::{Congestion, HostStack, Indicators, IpVersion, Outlast, Profile, Stack};
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::ConfiguredRate;

pub(super) fn stack(stack: &Reader<'_>) -> Stack {
    let retries = stack.integer(&keys::stack::RETRIES);
    let mobile = stack.table(&keys::stack::MOBILE, &keys::STACK_MOBILE);
    let fixed = stack.table(&keys::stack::FIXED, &keys::STACK_FIXED);
    Stack {
        profile: stack
            .choice(&keys::stack::PROFILE)
            .and_then(Profile::from_name)
            .unwrap_or_default(),
        retries: retries.map(|retries| u32::try_from(retries).expect("the key's range fits")),
        max_rto: duration(stack, &keys::stack::MAX_RTO),
        congestion: stack
            .choice(&keys::stack::CONGESTION)
            .and_then(Congestion::from_name),
        sack: stack.switch(&keys::stack::SACK),
        timestamps: stack.switch(&keys::stack::TIMESTAMPS),
        timer_phase: duration(stack, &keys::stack::TIMER_PHASE),
        host_latency: duration(stack, &keys::stack::HOST_LATENCY).unwrap_or_default(),
        receive_buffer: stack.quantity(&keys::stack::RECEIVE_BUFFER).map(ByteCount),
        ip: stack
            .choice(&keys::stack::IP)
            .and_then(IpVersion::from_name)
            .unwrap_or_default(),
        mobile: host(&mobile),
        fixed: host(&fixed),
    }
}

fn host(host: &Reader<'_>) -> HostStack {
    HostStack {
        profile: host
            .choice(&keys::stack::PROFILE_OF_HOST)
            .and_then(Profile::from_name),
        max_rto: duration(host, &keys::stack::MAX_RTO_OF_HOST),
        receive_buffer: host
            .quantity(&keys::stack::RECEIVE_BUFFER_OF_HOST)
            .map(ByteCount),
    }
}

/// The TCP of one of `[[flows]]`: with a `profile`, that one's; else what `[stack]` says.
pub(super) fn of_flow(flow: &Reader<'_>, general: &Stack) -> Stack {
    let own = stack(flow);
    let base = match flow.has(&keys::stack::PROFILE) {
        true => own,
        false => *general,
    };
    // What the connection says holds at both hosts.
    let host = |host: HostStack| HostStack {
        receive_buffer: host.receive_buffer.filter(|_| own.receive_buffer.is_none()),
        max_rto: host.max_rto.filter(|_| own.max_rto.is_none()),
        ..host
    };
    Stack {
        retries: own.retries.or(base.retries),
        max_rto: own.max_rto.or(base.max_rto),
        congestion: own.congestion.or(base.congestion),
        sack: own.sack.or(base.sack),
        timestamps: own.timestamps.or(base.timestamps),
        receive_buffer: own.receive_buffer.or(base.receive_buffer),
        profile: base.profile,
        timer_phase: general.timer_phase,
        host_latency: general.host_latency,
        ip: general.ip,
        mobile: host(base.mobile),
        fixed: host(base.fixed),
    }
}

pub(super) fn outlast(outlast: &Reader<'_>) -> Outlast {
    let mechanism = |key: &'static Key| {
        outlast
            .choice(key)
            .and_then(Mechanism::from_name)
            .unwrap_or_default()
    };
    Outlast {
        gateway: mechanism(&keys::outlast::GATEWAY),
        mobile: mechanism(&keys::outlast::MOBILE),
        fixed: mechanism(&keys::outlast::FIXED),
        home_agent: mechanism(&keys::outlast::HOME_AGENT),
        indicators: outlast
            .choice(&keys::outlast::INDICATORS)
            .and_then(Indicators::from_name)
            .unwrap_or_default(),
        rate: configured_rate(outlast),
        shares_rate: shares_rate(outlast),
        compresses: compresses(outlast),
        user_timeout: user_timeout(outlast),
    }
}

/// What gateways are told of the rates of their links.
fn configured_rate(outlast: &Reader<'_>) -> ConfiguredRate {
    let key = &keys::outlast::RATE;
    if outlast.is_word(key, "link") {
        return ConfiguredRate::Link;
    }
    if outlast.is_word(key, "unknown") {
        return ConfiguredRate::Unknown;
    }
    let stated = outlast.quantity(key);
    let stated = stated.and_then(BitRate::from_bits_per_second);
    stated.map_or_else(ConfiguredRate::default, ConfiguredRate::Stated)
}

/// Whether supervisor hosts share their links' rates out.
fn shares_rate(outlast: &Reader<'_>) -> bool {
    let key = &keys::outlast::SHARE_RATE;
    let shares_rate = outlast.switch(key).unwrap_or_default();
    if shares_rate
        && outlast.is_word(&keys::outlast::RATE, "unknown")
        && let Some(span) = outlast.span_of(key)
    {
        outlast.note(
            span,
            "a rate that gateways do not know cannot be shared out",
            "needs the link's rate",
            "write `rate = \"link\"`, or the rate itself",
        );
    }
    shares_rate
}

/// Whether payload is compressed, for which there must be a supervisor host.
fn compresses(outlast: &Reader<'_>) -> bool {
    let key = &keys::outlast::COMPRESSION;
    let compresses = outlast.switch(key).unwrap_or_default();
    let supervises = [Mechanism::MTcp, Mechanism::MTcpAdaptive]
        .iter()
        .any(|mechanism| outlast.is_word(&keys::outlast::GATEWAY, mechanism.name()));
    if compresses
        && !supervises
        && let Some(span) = outlast.span_of(key)
    {
        outlast.note(
            span,
            "only a supervisor host offers compression",
            "needs a supervisor host",
            "write `gateway = \"m-tcp-adaptive\"`",
        );
    }
    compresses
}

/// The option counts whole seconds in 15 bits, or whole minutes (RFC 5482, section 2).
fn user_timeout(outlast: &Reader<'_>) -> Option<Duration> {
    const MOST_SECONDS: u64 = 32_767;
    let key = &keys::outlast::USER_TIMEOUT;
    if outlast.is_word(key, "off") {
        return None;
    }
    let timeout = duration(outlast, key)?;
    let seconds = timeout.as_secs();
    let (granule, unit) = if seconds > MOST_SECONDS {
        (60, "min")
    } else {
        (1, "s")
    };
    if timeout.subsec_nanos() != 0 || !seconds.is_multiple_of(granule) {
        outlast.note(
            outlast.span_of(key)?,
            format!(
                "`user_timeout = \"{}\"` cannot be told to the peer",
                format_duration(timeout)
            ),
            "not whole seconds (above 32767 s, minutes)",
            format!("write `user_timeout = \"{} {unit}\"`", seconds / granule),
        );
    }
    Some(timeout)
}
