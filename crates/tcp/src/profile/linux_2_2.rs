//! Linux 2.2 (1999), table 3.2 and sections 3.3.1, 5.4.3 of the thesis (paper 003).
//!
//! What it does not give is from net/ipv4 of that kernel.

use super::{
    BackOff, Congestion, DelayedAck, GiveUp, Growth, IdleRestart, Keepalive, Offers, Persist,
    Profile, ReceiveBuffer, Recovery, Reduction, RttModel, SendBuffer, Undo, ZeroWindow, assumed,
    code, published,
};
use crate::timer::TimerModel;
use outlast_core::time::Duration;

/// Linux 2.2 (1999), table 3.2 and sections 3.3.1, 5.4.3 of the thesis (paper 003).
pub static LINUX_2_2: Profile = Profile {
    name: "linux-2.2",
    timer: published(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "paper 003, section 3.2.2: heartbeat of 10 ms",
    ),
    rtt: code(
        RttModel::Linux22,
        "tcp_rtt_estimator, tcp_set_rto; they count jiffies, and begin with a deviation of the whole round trip",
    ),
    initial_rto: published(
        Duration::from_secs(3),
        "RFC 2988 as quoted by paper 003, section 3.3.1; TCP_TIMEOUT_INIT",
    ),
    min_rto: published(Duration::from_millis(200), "paper 003, section 3.2.2"),
    max_rto: code(Duration::from_secs(120), "tcp_bound_rto"),
    timer_from_head: published(
        true,
        "paper 003, table 3.2: the first timeout, counted from the transmission, is half the second; tcp_ack_packets_out",
    ),
    back_off: code(BackOff::Doubling, "tcp_retransmit_timer"),
    give_up: code(GiveUp::Retransmissions(15), "tcp_retries2"),
    syn_retries: assumed(
        10,
        "tcp_syn_retries as remembered; no experiment of the papers depends on it",
    ),
    syn_linear: code(0, "tcp_retransmit_timer"),
    syn_ack_retries: assumed(
        7,
        "as remembered; no experiment of the papers depends on it",
    ),
    delayed_ack: code(
        DelayedAck::Linux {
            min: Duration::from_millis(40),
            max: Duration::from_millis(200),
            compress: false,
        },
        "TCP_DELACK_MIN, TCP_DELACK_MAX",
    ),
    initial_window: code(2, "tcp_init_cwnd for an MSS above 1095"),
    recovery: code(Recovery::Sack, "tcp_update_scoreboard; FACK is left out"),
    reduction: code(Reduction::RateHalving, "tcp_cwnd_down"),
    tail_loss_probe: assumed(false, "older than the mechanism"),
    undo: assumed(
        Undo {
            timestamps: false,
            dsack: false,
            frto: false,
        },
        "older than the mechanisms: they came with 2.4",
    ),
    congestion: code(Congestion::Reno, "tcp_input.c"),
    congestion_choices: &[Congestion::Reno],
    growth: code(
        Growth::PerAck {
            extra_eighth: false,
        },
        "tcp_ack: only if prior_in_flight filled the window; tcp_reno_cong_avoid",
    ),
    idle_restart: code(
        IdleRestart::SlowStart,
        "tcp_output.c: idle for longer than RTO",
    ),
    zero_window: published(
        ZeroWindow::Ignored,
        "paper 003, section 5.4.3: disregards premature ones",
    ),
    persist: code(
        Persist {
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            carries_data: false,
        },
        "tcp_send_probe0",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 9,
        },
        "tcp_keepalive_time, _intvl, _probes",
    ),
    offers: code(
        Offers {
            timestamps: true,
            window_scale: true,
            sack: true,
            dsack: false,
        },
        "tcp_timestamps, tcp_window_scaling, tcp_sack",
    ),
    timestamp_clock: code(Duration::from_millis(10), "jiffies"),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 32_120,
            max: 32_120,
        },
        "rmem_default of 65535, half of it overhead",
    ),
    send_buffer: code(
        SendBuffer::Fixed(u64::MAX),
        "tcp_wmem grows with the window",
    ),
    time_wait: code(Duration::from_secs(60), "TCP_TIMEWAIT_LEN"),
    fin_wait_2: code(Duration::from_secs(60), "tcp_fin_timeout"),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
};
