//! 4.3BSD-Tahoe (1988), the stack of Cáceres and Iftode 1995.
//!
//! 500 ms timer and a minimum of twice that: section IV.B of the paper. What it does not say was read
//! in the source of 4.3BSD-Tahoe, sys/netinet of 29 June 1988: `tcp_timer.h` 7.6, `tcp_output.c` 7.17,
//! `tcp_subr.c` 7.14, `tcp_usrreq.c` 7.10 and `tcp_input.c` 7.19.

use super::{
    BSD_BACK_OFF, BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors,
    HandshakeRto, IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery,
    Reduction, RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, code,
    published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// 4.3BSD-Tahoe (1988), the stack of Cáceres and Iftode 1995.
pub static BSD_4_3_TAHOE: Profile = Profile {
    name: "bsd-4.3-tahoe",
    timer: published(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "Cáceres and Iftode 1995, section IV.B: 500 ms resolution",
    ),
    rtt: code(
        RttModel::Beats {
            deviations: 2,
            fraction: 0,
            headroom: None,
        },
        "tcp_subr.c 7.14, tcp_input.c 7.19: ((t_srtt >> 2) + t_rttvar) >> 1, TCPT_RANGESET to \
         TCPTV_MIN alone",
    ),
    initial_rto: code(
        Duration::from_secs(6),
        "tcp_subr.c 7.14: TCPTV_SRTTDFLT of 3 s as deviation, doubled",
    ),
    min_rto: published(
        Duration::from_secs(1),
        "Cáceres and Iftode 1995, section IV.B: twice the resolution",
    ),
    max_rto: code(Duration::from_secs(64), "tcp_timer.h 7.6: TCPTV_REXMTMAX"),
    timer_from_head: code(
        false,
        "tcp_input.c 7.19: t_timer[TCPT_REXMT] = t_rxtcur at each new ACK",
    ),
    back_off: code(
        BackOff::Table {
            halves: BSD_BACK_OFF,
        },
        "tcp_timer.c: tcp_backoff",
    ),
    give_up: code(
        GiveUp::Retransmissions(12),
        "tcp_timer.h 7.6: TCP_MAXRXTSHIFT",
    ),
    syn_retries: code(
        12,
        "tcp_timer.h: TCP_MAXRXTSHIFT; the 75 s connection timer ends it before",
    ),
    syn_linear: code(0, "tcp_timer.c: tcp_backoff"),
    syn_ack_retries: code(
        12,
        "tcp_timer.h: TCP_MAXRXTSHIFT; the 75 s connection timer ends it before",
    ),
    delayed_ack: code(
        DelayedAck::SecondSegment {
            delay: Duration::from_millis(200),
        },
        "tcp_timer.c: tcp_fasttimo, five times a second",
    ),
    initial_window: code(1, "tcp_input.c: tcp_mss, snd_cwnd = maxseg"),
    recovery: published(
        Recovery::Tahoe,
        "Cáceres and Iftode 1995, section IV: fast retransmission, then slow start",
    ),
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
    growth: code(
        Growth::PerAck {
            extra_eighth: false,
        },
        "tcp_input.c 7.19: maxseg squared over cwnd; the eighth came later",
    ),
    idle_restart: code(
        IdleRestart::Keep,
        "tcp_output.c 7.17: idle only matters to silly windows; the restart came later",
    ),
    zero_window: code(
        ZeroWindow::Obeyed,
        "tcp_output.c 7.17: a window of zero stops TCPT_REXMT and pulls snd_nxt back",
    ),
    persist: code(
        Persist {
            min: Duration::from_secs(5),
            max: Duration::from_secs(60),
            carries_data: true,
        },
        "tcp_timer.h 7.6: TCPTV_PERSMIN, TCPTV_PERSMAX; tcp_output.c: a byte when t_force",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        "tcp_timer.h 7.6: TCPTV_KEEP_IDLE, TCPTV_KEEPINTVL, TCPTV_KEEPCNT",
    ),
    offers: code(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "tcp_output.c 7.17: the maximum segment size is the only option",
    ),
    timestamp_clock: assumed(Duration::from_millis(500), "without effect: no timestamps"),
    receive_buffer: assumed(
        ReceiveBuffer {
            initial: 16_384,
            max: 16_384,
        },
        "the paper does not give it; tcp_usrreq.c 7.10 has 4096, which would limit its throughput",
    ),
    send_buffer: assumed(SendBuffer::Fixed(16_384), "as large as the receive buffer"),
    segmentation: code(Segmentation::None, "tcp_output.c: max_sndwnd / 2"),
    time_wait: code(Duration::from_secs(60), "tcp_timer.h 7.6: twice TCPTV_MSL"),
    fin_wait_2: code(
        Duration::from_secs(675),
        "tcp_timer.h 7.6: TCPTV_KEEPCNT and once more TCPTV_KEEPINTVL",
    ),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
    handshake_rto: assumed(
        HandshakeRto::AtLeast(Duration::from_secs(3)),
        "older than RFC 6298, section 5.7: the back-off of the SYN stays until a sample",
    ),
    syn_after_reset: assumed(None, "older than the rule, which came with Linux 4.20"),
    icmp_in_handshake: assumed(
        HandshakeErrors::Tolerated,
        "tcp_subr.c: tcp_notify wakes the application only",
    ),
    early_timer_slack: assumed(Duration::ZERO, "without effect: no such timers"),
    duplicate_reach: assumed(
        DuplicateReach::FirstStretch,
        "without effect: no duplicates are told",
    ),
    unread_resets: assumed(
        false,
        "tcp_usrreq.c of 4.4BSD-Lite: tcp_disconnect flushes the buffer and sends a FIN",
    ),
    write_control: assumed(
        WriteControl {
            cork: false,
            more: false,
            records: false,
            no_delay_pushes: false,
        },
        "tcp_usrreq.c of 4.4BSD-Lite: TCP_NODELAY is a flag, and records are not kept",
    ),
    push: assumed(
        Push::EndOfWritten,
        "tcp_output.c of 4.4BSD-Lite: all there is to be sent",
    ),
};
