//! Linux 6 (6.18), the kernel under test.
//!
//! Its defaults, as `sysctl net.ipv4` prints them and as `include/net/tcp.h` and `net/ipv4` have them.

use super::{
    BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors, HandshakeRto,
    IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery, Reduction,
    RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, code, standard,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// Linux 6 (6.18), the kernel under test.
pub static LINUX_6: Profile = Profile {
    name: "linux-6",
    timer: code(
        TimerModel::Wheel {
            jiffy: Duration::from_millis(4),
        },
        "timer.c: calc_wheel_index; CONFIG_HZ = 250 as most distributions have it",
    ),
    rtt: code(
        RttModel::Linux {
            unit: Duration::from_micros(1),
        },
        "tcp_input.c: tcp_rtt_estimator; tcp.h: __tcp_set_rto",
    ),
    //= RFC 6298, section 2.1
    initial_rto: standard(
        Duration::from_secs(1),
        "RFC 6298, section 2.1; tcp.h: TCP_TIMEOUT_INIT",
    ),
    min_rto: code(Duration::from_millis(200), "sysctl tcp_rto_min_us"),
    max_rto: code(Duration::from_secs(120), "sysctl tcp_rto_max_ms"),
    timer_from_head: standard(false, "RFC 6298, section 5.3; tcp_input.c: tcp_rearm_rto"),
    back_off: code(BackOff::Doubling, "tcp_timer.c: tcp_retransmit_timer"),
    give_up: code(
        GiveUp::ModelledTime(15),
        "sysctl tcp_retries2; tcp_timer.c: retransmits_timed_out",
    ),
    syn_retries: code(6, "sysctl tcp_syn_retries"),
    syn_linear: code(4, "sysctl tcp_syn_linear_timeouts"),
    syn_ack_retries: code(5, "sysctl tcp_synack_retries"),
    delayed_ack: code(
        DelayedAck::Linux {
            min: Duration::from_millis(40),
            max: Duration::from_millis(200),
            compress: true,
            waits_for_answers: true,
        },
        "tcp.h: TCP_DELACK_MIN, TCP_DELACK_MAX; sysctl tcp_comp_sack_nr",
    ),
    initial_window: standard(10, "RFC 6928; tcp.h: TCP_INIT_CWND"),
    recovery: standard(Recovery::Rack, "RFC 8985; tcp_recovery = 1"),
    reduction: standard(
        Reduction::Proportional,
        "RFC 6937; tcp_input.c: tcp_cwnd_reduction",
    ),
    tail_loss_probe: standard(true, "RFC 8985, section 7; tcp_early_retrans = 3"),
    undo: code(
        Undo {
            timestamps: true,
            dsack: true,
            frto: true,
        },
        "tcp_input.c: tcp_may_undo; sysctl tcp_frto = 2",
    ),
    congestion: code(Congestion::Cubic, "sysctl tcp_congestion_control"),
    congestion_choices: &[Congestion::Cubic, Congestion::Reno, Congestion::Bbr],
    growth: standard(
        Growth::PerSegment,
        "RFC 3465; tcp_slow_start, tcp_cong_avoid_ai",
    ),
    idle_restart: code(IdleRestart::Decay, "tcp_output.c: tcp_cwnd_restart"),
    zero_window: code(
        ZeroWindow::Ignored,
        "tcp_timer.c: tcp_retransmit_timer, a window that was shrunk",
    ),
    persist: code(
        Persist {
            min: Duration::from_millis(200),
            max: Duration::from_secs(120),
            carries_data: false,
        },
        "tcp_output.c: tcp_send_probe0, tcp_xmit_probe_skb",
    ),
    keepalive: code(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 9,
        },
        "sysctl tcp_keepalive_time, _intvl, _probes",
    ),
    offers: code(
        Offers {
            timestamps: true,
            window_scale: true,
            sack: true,
            dsack: true,
        },
        "sysctl tcp_timestamps, tcp_window_scaling, tcp_sack, tcp_dsack",
    ),
    timestamp_clock: code(Duration::from_millis(1), "tcp.h: TCP_TS_HZ"),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 80_896,
            max: 20_709_376,
        },
        "sysctl tcp_rmem: 131072 and 33554432, of which 158/256 are payload (`scaling_ratio`) at the \
         lab's interfaces",
    ),
    send_buffer: code(
        SendBuffer::FollowsWindow {
            segment: 2_304,
            overhead: 832,
            least: 4_608,
            most: 4_194_304,
        },
        "tcp_input.c: tcp_sndbuf_expand; sizes of buffers as `ss --memory` shows them; sock.h: \
         SOCK_MIN_SNDBUF; sysctl net.core.wmem_max",
    ),
    segmentation: code(
        Segmentation::Buffers { most: 65_216 },
        "tcp_output.c: tcp_mss_split_point, tcp_tso_autosize; tcp.h: tcp_bound_to_half_wnd; \
         GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER",
    ),
    time_wait: code(Duration::from_secs(60), "tcp.h: TCP_TIMEWAIT_LEN"),
    fin_wait_2: code(Duration::from_secs(60), "sysctl tcp_fin_timeout"),
    challenge_ack: standard(
        Some(Duration::from_millis(500)),
        "RFC 5961; sysctl tcp_invalid_ratelimit",
    ),
    icmp_reverts_back_off: standard(true, "RFC 6069; tcp_ipv4.c: tcp_ld_RTO_revert"),
    handshake_rto: standard(
        HandshakeRto::Exactly(Duration::from_secs(3)),
        "RFC 6298, section 5.7; tcp_metrics.c: tcp_init_metrics, TCP_TIMEOUT_FALLBACK",
    ),
    syn_after_reset: code(
        Some(Duration::from_millis(8)),
        "tcp_input.c: tcp_rcv_synsent_state_process; tcp.h: TCP_TIMEOUT_MIN, two jiffies",
    ),
    icmp_in_handshake: code(
        HandshakeErrors::Fatal {
            spares_requests: true,
        },
        "tcp_ipv4.c: tcp_v4_err, tcp_req_err; icmp.c (IPv6): icmpv6_err_convert",
    ),
    early_timer_slack: code(Duration::from_millis(2), "tcp.h: TCP_TIMEOUT_MIN_US"),
    duplicate_reach: code(DuplicateReach::FirstStretch, "tcp_input.c: tcp_ofo_queue"),
    unread_resets: code(true, "tcp.c: __tcp_close, data_was_unread"),
    write_control: code(
        WriteControl {
            cork: true,
            more: true,
            records: true,
            no_delay_pushes: true,
        },
        "tcp.c: tcp_sendmsg_locked, tcp_push, __tcp_sock_set_cork, __tcp_sock_set_nodelay",
    ),
    push: code(
        Push::OfSegment { on_buffers: true },
        "tcp.c: tcp_mark_push; tcp_output.c: __tcp_transmit_skb, tcp_fragment",
    ),
};
