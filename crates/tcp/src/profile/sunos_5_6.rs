//! SunOS 5.6 (Solaris 2.6, 1997), table 3.5 of the thesis (paper 003).
//!
//! It obeys premature zero windows (section 5.4.3).

use super::{
    BackOff, Congestion, DelayedAck, GiveUp, Growth, IdleRestart, Keepalive, Offers, Persist,
    Profile, ReceiveBuffer, Recovery, Reduction, RttModel, SendBuffer, Undo, ZeroWindow, assumed,
    code, published,
};
use crate::timer::TimerModel;
use outlast_core::time::Duration;

/// SunOS 5.6 (Solaris 2.6, 1997), table 3.5 of the thesis (paper 003).
pub static SUNOS_5_6: Profile = Profile {
    name: "sunos-5.6",
    timer: assumed(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "table 3.5 has no jitter of the size of the 200 ms granularity that section 3.2.2 suspects; 100 Hz clock of the SPARC",
    ),
    rtt: code(
        RttModel::Solaris {
            floor: Duration::from_millis(200),
        },
        "tcp.c: rtt_sa / 8 + rtt_sd + rtt_sa / 32; the floor is the granularity of paper 003, section 3.2.2",
    ),
    initial_rto: assumed(
        Duration::from_secs(3),
        "ndd: tcp_rexmit_interval_initial of later manuals",
    ),
    min_rto: published(
        Duration::from_millis(400),
        "paper 003, table 3.5: 389 to 403 ms; tcp_rexmit_interval_min of the tunables manual",
    ),
    max_rto: assumed(
        Duration::from_secs(240),
        "ndd: tcp_rexmit_interval_max, as four times the 60 s of later manuals; the manual of 2.6 could not be read",
    ),
    timer_from_head: published(
        true,
        "paper 003, table 3.5: the first timeout, counted from the transmission, is half the second",
    ),
    back_off: published(BackOff::Doubling, "paper 003, table 3.5"),
    give_up: code(
        GiveUp::Elapsed(Duration::from_secs(480)),
        "ndd: tcp_ip_abort_interval",
    ),
    syn_retries: assumed(6, "tcp_ip_abort_cinterval of 180 s with doubling from 3 s"),
    syn_linear: code(0, "tcp_backoff"),
    syn_ack_retries: assumed(6, "as for a SYN"),
    delayed_ack: assumed(
        DelayedAck::SecondSegment {
            delay: Duration::from_millis(50),
        },
        "ndd: tcp_deferred_ack_interval, as remembered",
    ),
    initial_window: code(1, "tcp_mss: snd_cwnd = maxseg"),
    recovery: code(Recovery::Reno, "tcp_input.c, tcprexmtthresh"),
    reduction: assumed(Reduction::Proportional, "without effect: no scoreboard"),
    tail_loss_probe: assumed(false, "older than the mechanism"),
    undo: assumed(
        Undo {
            timestamps: false,
            dsack: false,
            frto: false,
        },
        "older than the mechanisms",
    ),
    congestion: code(Congestion::Reno, "tcp_input.c"),
    congestion_choices: &[Congestion::Reno],
    growth: assumed(
        Growth::PerAck {
            extra_eighth: false,
        },
        "RFC 2001; the source of 2.6 is not public",
    ),
    idle_restart: assumed(IdleRestart::SlowStart, "RFC 2001"),
    zero_window: published(ZeroWindow::Obeyed, "paper 003, section 5.4.3"),
    persist: assumed(
        Persist {
            min: Duration::from_millis(400),
            max: Duration::from_secs(240),
            carries_data: true,
        },
        "probes run on the retransmission interval",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(60),
            count: 8,
        },
        "ndd: tcp_keepalive_interval; probes back off within tcp_ip_abort_interval",
    ),
    offers: code(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "ndd: tcp_tstamp_if_wscale 0, tcp_wscale_always 0, SACK since Solaris 7",
    ),
    timestamp_clock: assumed(Duration::from_millis(10), "100 Hz clock"),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 8_192,
            max: 8_192,
        },
        "ndd: tcp_recv_hiwat",
    ),
    send_buffer: code(SendBuffer::Fixed(8_192), "ndd: tcp_xmit_hiwat"),
    time_wait: code(Duration::from_secs(240), "ndd: tcp_close_wait_interval"),
    fin_wait_2: code(
        Duration::from_secs(675),
        "tcp_usrreq.c: tcp_maxidle and TCPTV_KEEPINTVL",
    ),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
};
