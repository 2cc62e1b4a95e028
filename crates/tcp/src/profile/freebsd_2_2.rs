//! FreeBSD 2.2.7 (1998), table 3.4 of the thesis (paper 003).
//!
//! The table's odd second timeouts, three seconds for some round trips and two for others, follow
//! from its code: the first timeout is held at two beats above the latest sample, the second is
//! twice the unheld estimate.

use super::{
    BSD_BACK_OFF, BackOff, Congestion, DelayedAck, GiveUp, Growth, IdleRestart, Keepalive, Offers,
    Persist, Profile, ReceiveBuffer, Recovery, Reduction, RttModel, SendBuffer, Undo, ZeroWindow,
    assumed, code, published,
};
use crate::timer::TimerModel;
use outlast_core::time::Duration;

/// FreeBSD 2.2.7 (1998), table 3.4 of the thesis (paper 003).
pub static FREEBSD_2_2: Profile = Profile {
    name: "freebsd-2.2",
    timer: code(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "PR_SLOWHZ 2, PR_FASTHZ 5",
    ),
    rtt: code(
        RttModel::Beats {
            deviations: 4,
            fraction: 2,
        },
        "TCP_RTT_SHIFT 5, TCP_RTTVAR_SHIFT 4, TCP_DELTA_SHIFT 2; it explains the second column of table 3.4 of paper 003",
    ),
    initial_rto: published(
        Duration::from_secs(6),
        "TCP/IP Illustrated volume 2, section 25.7",
    ),
    min_rto: code(Duration::from_secs(1), "TCPTV_MIN, two beats"),
    max_rto: code(Duration::from_secs(64), "TCPTV_REXMTMAX"),
    timer_from_head: code(
        false,
        "tcp_input.c: t_timer[TCPT_REXMT] = t_rxtcur at each new ACK",
    ),
    back_off: code(
        BackOff::Table {
            halves: BSD_BACK_OFF,
        },
        "tcp_backoff",
    ),
    give_up: code(GiveUp::Retransmissions(12), "TCP_MAXRXTSHIFT"),
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
        Growth::PerAck { extra_eighth: true },
        "TCP/IP Illustrated volume 2, figure 29.7",
    ),
    idle_restart: code(
        IdleRestart::SlowStart,
        "tcp_output.c: idle for longer than t_rxtcur",
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
        "rc.conf: tcp_extensions=NO",
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
