//! Linux 2.4 (2.4.20), the stack of Schuetz et al. (paper 000).
//!
//! What the paper does not give is from net/ipv4 of that kernel.

use super::{
    BackOff, Congestion, DelayedAck, GiveUp, Growth, IdleRestart, Keepalive, Offers, Persist,
    Profile, ReceiveBuffer, Recovery, Reduction, RttModel, SendBuffer, Undo, ZeroWindow, assumed,
    code, published,
};
use crate::timer::TimerModel;
use outlast_core::time::Duration;

/// Linux 2.4 (2.4.20), the stack of Schuetz et al. (paper 000).
pub static LINUX_2_4: Profile = Profile {
    name: "linux-2.4",
    timer: published(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "paper 003, section 3.2.2, for 2.2: 10 ms; HZ was 100 in 2.4 too",
    ),
    rtt: code(
        RttModel::Linux {
            unit: Duration::from_millis(10),
        },
        "tcp_rtt_estimator, tcp_set_rto; jiffies",
    ),
    //= RFC 2988, section 2.1
    initial_rto: code(Duration::from_secs(3), "TCP_TIMEOUT_INIT"),
    min_rto: code(Duration::from_millis(200), "TCP_RTO_MIN"),
    max_rto: published(Duration::from_secs(120), "paper 000, section 4: 120 s"),
    timer_from_head: code(false, "tcp_ack_packets_out: RTO from now"),
    back_off: code(BackOff::Doubling, "tcp_retransmit_timer"),
    give_up: code(
        GiveUp::Retransmissions(15),
        "tcp_retries2; the experiments of paper 000 set it to 9",
    ),
    syn_retries: code(5, "tcp_syn_retries"),
    syn_linear: code(0, "tcp_retransmit_timer"),
    syn_ack_retries: code(5, "tcp_synack_retries"),
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
    undo: code(
        Undo {
            timestamps: true,
            dsack: true,
            frto: false,
        },
        "tcp_may_undo; tcp_frto = 0",
    ),
    congestion: code(Congestion::Reno, "tcp_input.c"),
    congestion_choices: &[Congestion::Reno],
    growth: code(
        Growth::PerAck {
            extra_eighth: false,
        },
        "tcp_ack: only if prior_in_flight filled the window; tcp_reno_cong_avoid",
    ),
    idle_restart: code(IdleRestart::Decay, "tcp_cwnd_restart"),
    zero_window: code(
        ZeroWindow::Ignored,
        "tcp_retransmit_timer: a window that was shrunk",
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
            dsack: true,
        },
        "tcp_timestamps, tcp_window_scaling, tcp_sack, tcp_dsack",
    ),
    timestamp_clock: code(Duration::from_millis(10), "jiffies"),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 65_535,
            max: 65_535,
        },
        "tcp_rmem: 87380, a quarter of it overhead",
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
