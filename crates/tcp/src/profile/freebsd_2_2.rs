//! FreeBSD 2.2.7 (1998), table 3.4 of the thesis.
//!
//! The table's odd second timeouts, three seconds for some round trips and two for others, follow
//! from its code: the first timeout is held at two beats above the latest sample, the second is
//! twice the unheld estimate.

use super::{
    BSD_BACK_OFF, BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors,
    HandshakeRto, IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery,
    Reduction, RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, code,
    published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// FreeBSD 2.2.7 (1998), table 3.4 of the thesis.
pub static FREEBSD_2_2: Profile = Profile {
    name: "freebsd-2.2",
    timer: code(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "protosw.h: PR_SLOWHZ 2, PR_FASTHZ 5",
    ),
    rtt: code(
        RttModel::Beats {
            deviations: 4,
            fraction: 2,
            headroom: Some(2),
        },
        "tcp_var.h: TCP_RTT_SHIFT 5, TCP_RTTVAR_SHIFT 4, TCP_DELTA_SHIFT 2; it explains the second column of table 3.4 of the thesis",
    ),
    initial_rto: published(
        Duration::from_secs(6),
        "TCP/IP Illustrated volume 2, section 25.7",
    ),
    min_rto: code(
        Duration::from_secs(1),
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_MIN, two beats",
    ),
    max_rto: code(
        Duration::from_secs(64),
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_REXMTMAX",
    ),
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
    offers: code(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "rc.conf: tcp_extensions=NO",
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
        "tcp_usrreq.c: tcp_recvspace, 16 kB",
    ),
    send_buffer: code(
        SendBuffer::Fixed(16_384),
        "tcp_usrreq.c: tcp_sendspace, 16 kB",
    ),
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
