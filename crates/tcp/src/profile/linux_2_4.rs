//! Linux 2.4 (2.4.20), the stack of Schütz and others 2005.
//!
//! What the paper does not give was read in `include/net/tcp.h`, and in `tcp.c`, `tcp_input.c`, `tcp_output.c` and
//! `tcp_timer.c` of `net/ipv4`, in 2.4.20 to 2.4.27.

use super::{
    BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors, HandshakeRto,
    IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery, Reduction,
    RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, code, published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// Linux 2.4 (2.4.20), the stack of Schütz and others 2005.
pub static LINUX_2_4: Profile = Profile {
    name: "linux-2.4",
    timer: published(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "the thesis, section 3.2.2, for 2.2: 10 ms; HZ was 100 in 2.4 too",
    ),
    rtt: code(
        RttModel::Linux {
            unit: Duration::from_millis(10),
        },
        "tcp_input.c: tcp_rtt_estimator, tcp_set_rto; jiffies",
    ),
    //= RFC 2988, section 2.1
    initial_rto: code(Duration::from_secs(3), "tcp.h: TCP_TIMEOUT_INIT"),
    min_rto: code(Duration::from_millis(200), "tcp.h: TCP_RTO_MIN"),
    max_rto: published(
        Duration::from_secs(120),
        "Schütz and others 2005, section 4: 120 s",
    ),
    timer_from_head: code(false, "tcp_input.c: tcp_ack_packets_out, RTO from now"),
    back_off: code(BackOff::Doubling, "tcp_timer.c: tcp_retransmit_timer"),
    give_up: code(
        GiveUp::Retransmissions(15),
        "tcp.h: TCP_RETR2; the experiments of Schütz and others 2005 set it to 9",
    ),
    syn_retries: code(5, "tcp.h: TCP_SYN_RETRIES"),
    syn_linear: code(0, "tcp_timer.c: tcp_retransmit_timer"),
    syn_ack_retries: code(5, "tcp.h: TCP_SYNACK_RETRIES"),
    delayed_ack: code(
        DelayedAck::Linux {
            min: Duration::from_millis(40),
            max: Duration::from_millis(200),
            compress: false,
            waits_for_answers: true,
        },
        "tcp.h: TCP_DELACK_MIN, TCP_DELACK_MAX",
    ),
    initial_window: code(
        2,
        "tcp_input.c: tcp_init_cwnd, where the round trip is above 20 ms",
    ),
    recovery: code(
        Recovery::Sack,
        "tcp_input.c: tcp_update_scoreboard; FACK is left out",
    ),
    reduction: code(Reduction::RateHalving, "tcp_input.c: tcp_cwnd_down"),
    tail_loss_probe: assumed(false, "older than the mechanism"),
    undo: code(
        Undo {
            timestamps: true,
            dsack: true,
            frto: false,
        },
        "tcp_input.c: tcp_may_undo; sysctl_tcp_frto is 0",
    ),
    congestion: code(Congestion::Reno, "tcp_input.c"),
    congestion_choices: &[Congestion::Reno],
    growth: code(
        Growth::PerAck {
            extra_eighth: false,
        },
        "tcp_input.c: tcp_ack calls tcp_cong_avoid only if prior_in_flight filled the window",
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
        "tcp_timer.c: sysctl_tcp_keepalive_time, _intvl, _probes",
    ),
    offers: code(
        Offers {
            timestamps: true,
            window_scale: true,
            sack: true,
            dsack: true,
        },
        "tcp_input.c: sysctl_tcp_timestamps, _window_scaling, _sack, _dsack",
    ),
    timestamp_clock: code(
        Duration::from_millis(10),
        "tcp.h: tcp_time_stamp is jiffies",
    ),
    receive_buffer: code(
        ReceiveBuffer {
            initial: 65_535,
            max: 65_535,
        },
        "tcp.c: sysctl_tcp_rmem, 87380; tcp.h: tcp_win_from_space takes a quarter for overhead",
    ),
    send_buffer: assumed(
        SendBuffer::Fixed(u64::MAX),
        "tcp_input.c: tcp_new_space makes room for two windows, up to 128 kB (tcp.c: sysctl_tcp_wmem), which a peer that offers 64 kB does not fill",
    ),
    segmentation: code(
        Segmentation::None,
        "tcp_output.c: tcp_sync_mss, max_window >> 1; tcp.h: tcp_snd_test",
    ),
    time_wait: code(Duration::from_secs(60), "tcp.h: TCP_TIMEWAIT_LEN"),
    fin_wait_2: code(
        Duration::from_secs(60),
        "tcp.h: TCP_FIN_TIMEOUT, as long as TIME-WAIT",
    ),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
    handshake_rto: code(
        HandshakeRto::AtLeast(Duration::from_secs(3)),
        "tcp_input.c: tcp_init_metrics resets only what a sample has made",
    ),
    syn_after_reset: code(None, "tcp_input.c: tcp_rcv_synsent_state_process"),
    icmp_in_handshake: code(
        HandshakeErrors::Fatal {
            spares_requests: false,
        },
        "tcp_ipv4.c: tcp_v4_err",
    ),
    early_timer_slack: assumed(Duration::ZERO, "without effect: no such timers"),
    duplicate_reach: code(
        DuplicateReach::ToTheEnd,
        "tcp_input.c: tcp_ofo_queue, as it was until 6.15",
    ),
    unread_resets: code(true, "tcp.c: tcp_close, data_was_unread"),
    write_control: code(
        WriteControl {
            cork: true,
            more: true,
            records: false,
            no_delay_pushes: true,
        },
        "tcp.c: tcp_sendmsg, tcp_setsockopt",
    ),
    push: code(
        Push::OfSegment { on_buffers: false },
        "tcp.c: tcp_sendmsg; tcp_output.c: tcp_fragment",
    ),
};
