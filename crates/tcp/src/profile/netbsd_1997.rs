//! NetBSD of 1997 (1.2), the stack under M-TCP (Brown and Singh 1997).
//!
//! The cap of 64 s is stated in section 1.1 of the paper, the timer's half seconds too; 12
//! retransmissions are TCP_MAXRXTSHIFT of its 4.4BSD-Lite code, and section 4.1 has them, too.

use super::{
    BSD_BACK_OFF, BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors,
    HandshakeRto, IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery,
    Reduction, RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, code,
    published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// NetBSD of 1997 (1.2), the stack under M-TCP (Brown and Singh 1997).
pub static NETBSD_1997: Profile = Profile {
    name: "netbsd-1997",
    timer: published(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "Brown and Singh 1997, section 1.1: multiples of half a second",
    ),
    rtt: code(
        RttModel::Beats {
            deviations: 4,
            fraction: 0,
            headroom: Some(2),
        },
        "tcp_input.c: tcp_xmit_timer; tcp_var.h: TCP_REXMTVAL",
    ),
    initial_rto: published(
        Duration::from_secs(6),
        "TCP/IP Illustrated volume 1, section 21.2: TCPTV_SRTTBASE and twice the initial deviation",
    ),
    min_rto: code(
        Duration::from_secs(1),
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_MIN, two beats",
    ),
    max_rto: published(Duration::from_secs(64), "Brown and Singh 1997, section 1.1"),
    timer_from_head: code(
        false,
        "tcp_input.c of 4.4BSD-Lite: t_timer[TCPT_REXMT] = t_rxtcur at each new ACK",
    ),
    back_off: code(
        BackOff::Table {
            halves: BSD_BACK_OFF,
        },
        "tcp_timer.c of 4.4BSD-Lite: tcp_backoff, 1 to 64",
    ),
    give_up: code(
        GiveUp::Retransmissions(12),
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCP_MAXRXTSHIFT",
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
        "tcp_timer.c: tcp_fasttimo",
    ),
    initial_window: code(1, "tcp_input.c: tcp_mss, snd_cwnd = maxseg"),
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
    growth: code(
        Growth::PerAck { extra_eighth: true },
        "tcp_input.c of 4.4BSD-Lite: incr * incr / cw + incr / 8",
    ),
    idle_restart: code(
        IdleRestart::SlowStart,
        "tcp_output.c of 4.4BSD-Lite: t_idle >= t_rxtcur",
    ),
    zero_window: code(
        ZeroWindow::Obeyed,
        "tcp_output.c: a window of zero stops TCPT_REXMT",
    ),
    persist: code(
        Persist {
            min: Duration::from_secs(5),
            max: Duration::from_secs(60),
            carries_data: true,
        },
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_PERSMIN, TCPTV_PERSMAX",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_KEEP_IDLE, TCPTV_KEEPINTVL, TCPTV_KEEPCNT",
    ),
    offers: assumed(
        Offers {
            timestamps: true,
            window_scale: true,
            sack: false,
            dsack: false,
        },
        "tcp_do_rfc1323 of its 4.4BSD-Lite code; the paper does not say whether it was on",
    ),
    timestamp_clock: code(
        Duration::from_millis(500),
        "tcp_timer.c: tcp_slowtimo counts tcp_now",
    ),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 16_384,
            max: 16_384,
        },
        "tcp_usrreq.c: tcp_recvspace",
    ),
    send_buffer: code(SendBuffer::Fixed(16_384), "tcp_usrreq.c: tcp_sendspace"),
    segmentation: code(Segmentation::None, "tcp_output.c: max_sndwnd / 2"),
    time_wait: code(
        Duration::from_secs(60),
        "tcp_timer.h 8.1 of 4.4BSD-Lite: twice TCPTV_MSL",
    ),
    fin_wait_2: code(
        Duration::from_secs(675),
        "tcp_timer.c of 4.4BSD-Lite: tcp_maxidle and once more tcp_keepintvl",
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
        "tcp_subr.c of 4.4BSD-Lite: tcp_notify, only a second error after four retransmissions",
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
