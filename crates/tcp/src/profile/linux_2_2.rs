//! Linux 2.2 (1999), table 3.2 and sections 3.3.1, 5.4.3 of the thesis.
//!
//! What it does not give was read in the source of 2.2.1: `include/net/tcp.h`, `net/core/sock.c`, and `tcp.c`,
//! `tcp_input.c`, `tcp_ipv4.c`, `tcp_output.c` and `tcp_timer.c` of `net/ipv4`. Where 2.2.1 does what the
//! model has no means for, or what the thesis's machines did not show, the constant is that of 2.4 and marked
//! as assumed.

use super::{
    BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors, HandshakeRto,
    IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery, Reduction,
    RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, code, published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// Linux 2.2 (1999), table 3.2 and sections 3.3.1, 5.4.3 of the thesis.
pub static LINUX_2_2: Profile = Profile {
    name: "linux-2.2",
    timer: published(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "the thesis, section 3.2.2: heartbeat of 10 ms",
    ),
    rtt: code(
        RttModel::Linux22,
        "tcp_input.c: tcp_rtt_estimator, tcp_set_rto, in jiffies",
    ),
    initial_rto: published(
        Duration::from_secs(3),
        "RFC 2988 as quoted by the thesis, section 3.3.1; tcp.h: TCP_TIMEOUT_INIT",
    ),
    min_rto: published(Duration::from_millis(200), "the thesis, section 3.2.2"),
    max_rto: code(
        Duration::from_secs(120),
        "tcp_input.c: tcp_bound_rto, 120 * HZ",
    ),
    timer_from_head: published(
        true,
        "the thesis, table 3.2: the first timeout, counted from the transmission, is half the second; tcp_ack_packets_out",
    ),
    back_off: code(
        BackOff::Doubling,
        "tcp_timer.c: tcp_retransmit_timer, rto << 1",
    ),
    give_up: code(
        GiveUp::Retransmissions(15),
        "tcp.h: TCP_RETR2; tcp_timer.c: more than that end it",
    ),
    syn_retries: code(10, "tcp.h: TCP_SYN_RETRIES"),
    syn_linear: code(0, "tcp_timer.c: tcp_retransmit_timer, rto << 1"),
    syn_ack_retries: code(7, "tcp.h: TCP_RETR1; tcp_timer.c: tcp_syn_recv_timer"),
    delayed_ack: assumed(
        DelayedAck::Linux {
            min: Duration::from_millis(40),
            max: Duration::from_millis(200),
            compress: false,
            waits_for_answers: false,
        },
        "as 2.4; tcp_input.c of 2.2.1 is quick for one segment only (tcp_delack_estimator) and waits for half a second at most (__tcp_ack_snd_check), with which tables 3.3, 3.4 and 3.6 of the thesis come out worse",
    ),
    initial_window: code(2, "tcp_ipv4.c: tcp_v4_init_sock"),
    recovery: assumed(
        Recovery::Sack,
        "by counting; tcp_input.c of 2.2.1 takes all below the highest block for lost (tcp_fast_retrans, fackets_out > 3)",
    ),
    reduction: assumed(
        Reduction::RateHalving,
        "as 2.4; tcp_input.c of 2.2.1 sets the threshold and three at once (tcp_fast_retrans)",
    ),
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
        "tcp_input.c: tcp_cong_avoid, a segment for each ACK up to ssthresh, then for each window of them",
    ),
    idle_restart: code(
        IdleRestart::Keep,
        "tcp_output.c: tcp_send_skb and tcp_write_xmit look at no pause; tcp_cwnd_restart came with 2.4",
    ),
    zero_window: published(
        ZeroWindow::Ignored,
        "the thesis, section 5.4.3: disregards premature ones",
    ),
    persist: code(
        Persist {
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            carries_data: false,
        },
        "tcp_input.c: tcp_ack_probe, rto << backoff up to 120 * HZ; tcp_output.c: tcp_write_wakeup, an old number",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 9,
        },
        "tcp.h: TCP_KEEPALIVE_TIME, TCP_KEEPALIVE_PERIOD in four parts, TCP_KEEPALIVE_PROBES",
    ),
    offers: code(
        Offers {
            timestamps: true,
            window_scale: true,
            sack: true,
            dsack: false,
        },
        "tcp_input.c: sysctl_tcp_timestamps, _window_scaling, _sack",
    ),
    timestamp_clock: code(
        Duration::from_millis(10),
        "tcp.h: tcp_time_stamp is jiffies",
    ),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 32_120,
            max: 32_120,
        },
        "sock.c: sysctl_rmem_default of 65535; tcp_output.c: tcp_connect offers half of it, in whole segments",
    ),
    send_buffer: assumed(
        SendBuffer::Fixed(u64::MAX),
        "sock.c: sysctl_wmem_default of 65535, twice what such a peer offers; figure 3.7 of the thesis has windows of up to 256 KB",
    ),
    segmentation: code(
        Segmentation::None,
        "tcp.c: tcp_do_sendmsg, max_window >> 1; tcp.h: tcp_snd_test",
    ),
    time_wait: code(Duration::from_secs(60), "tcp.h: TCP_TIMEWAIT_LEN"),
    fin_wait_2: code(Duration::from_secs(180), "tcp.h: TCP_FIN_TIMEOUT"),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
    handshake_rto: assumed(
        HandshakeRto::AtLeast(Duration::from_secs(3)),
        "older than RFC 6298, section 5.7: the back-off of the SYN stays until a sample",
    ),
    syn_after_reset: assumed(None, "older than the rule, which came with Linux 4.20"),
    icmp_in_handshake: code(
        HandshakeErrors::Fatal {
            spares_requests: false,
        },
        "tcp_ipv4.c: tcp_v4_err",
    ),
    early_timer_slack: assumed(Duration::ZERO, "without effect: no such timers"),
    duplicate_reach: assumed(
        DuplicateReach::FirstStretch,
        "without effect: no duplicates are told",
    ),
    unread_resets: code(true, "tcp.c: tcp_close, data_was_unread"),
    write_control: assumed(
        WriteControl {
            cork: true,
            more: false,
            records: false,
            no_delay_pushes: false,
        },
        "tcp.c: tcp_setsockopt; MSG_MORE came with 2.4",
    ),
    push: code(
        Push::OfSegment { on_buffers: false },
        "tcp.c: tcp_do_sendmsg; tcp_output.c: tcp_fragment",
    ),
};
