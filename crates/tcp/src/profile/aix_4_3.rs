//! AIX 4.3 (1997), table 3.3 of the thesis (paper 003).
//!
//! It obeys premature zero windows (section 5.4.3), and its timer has half seconds (section
//! 3.2.2).

use super::{
    BackOff, Congestion, DelayedAck, GiveUp, Growth, IdleRestart, Keepalive, Offers, Persist,
    Profile, ReceiveBuffer, Recovery, Reduction, RttModel, SendBuffer, Undo, ZeroWindow, assumed,
    code, published,
};
use crate::timer::TimerModel;
use outlast_core::time::Duration;

/// AIX 4.3 (1997), table 3.3 of the thesis (paper 003).
pub static AIX_4_3: Profile = Profile {
    name: "aix-4.3",
    timer: published(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "paper 003, section 3.2.2",
    ),
    rtt: code(
        RttModel::Beats {
            deviations: 4,
            fraction: 0,
        },
        "tcp_xmit_timer, TCP_REXMTVAL",
    ),
    initial_rto: published(
        Duration::from_secs(6),
        "TCP/IP Illustrated volume 1, section 21.2: TCPTV_SRTTBASE and twice the initial deviation",
    ),
    min_rto: code(Duration::from_secs(1), "no: rto_low"),
    max_rto: code(Duration::from_secs(64), "no: rto_high"),
    timer_from_head: code(
        false,
        "tcp_input.c: t_timer[TCPT_REXMT] = t_rxtcur at each new ACK",
    ),
    back_off: assumed(
        BackOff::Table {
            halves: &[2, 4, 8, 16, 32, 64, 128],
        },
        "the second timeouts of table 3.3 are the BSD estimates themselves, not doubled; that it doubles from there on is assumed",
    ),
    give_up: code(GiveUp::Retransmissions(13), "no: rto_length"),
    syn_retries: code(
        12,
        "TCP_MAXRXTSHIFT; the 75 s connection timer ends it before",
    ),
    syn_linear: code(0, "tcp_backoff"),
    syn_ack_retries: code(
        12,
        "TCP_MAXRXTSHIFT; the 75 s connection timer ends it before",
    ),
    delayed_ack: code(
        DelayedAck::SecondSegment {
            delay: Duration::from_millis(200),
        },
        "tcp_fasttimo",
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
    growth: published(
        Growth::PerAck {
            extra_eighth: false,
        },
        "paper 003, section 3.3: a segment every second round trip and slower",
    ),
    idle_restart: code(
        IdleRestart::SlowStart,
        "tcp_output.c: idle for longer than t_rxtcur",
    ),
    zero_window: published(ZeroWindow::Obeyed, "paper 003, section 5.4.3"),
    persist: code(
        Persist {
            min: Duration::from_secs(5),
            max: Duration::from_secs(60),
            carries_data: true,
        },
        "TCPTV_PERSMIN, TCPTV_PERSMAX",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        "TCPTV_KEEP_IDLE, TCPTV_KEEPINTVL, TCPTV_KEEPCNT",
    ),
    offers: code(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "no: rfc1323 = 0",
    ),
    timestamp_clock: code(Duration::from_millis(500), "tcp_now"),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 16_384,
            max: 16_384,
        },
        "tcp_recvspace",
    ),
    send_buffer: code(SendBuffer::Fixed(16_384), "tcp_sendspace"),
    time_wait: code(Duration::from_secs(60), "twice TCPTV_MSL"),
    fin_wait_2: code(
        Duration::from_secs(675),
        "tcp_usrreq.c: tcp_maxidle and TCPTV_KEEPINTVL",
    ),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
};
