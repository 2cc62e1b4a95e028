//! AIX 4.3 (1997), table 3.3 of the thesis.
//!
//! It obeys premature zero windows (section 5.4.3), and its timer has half seconds (section
//! 3.2.2). Its source is not public. Where nothing is published of it, it is taken to be what its
//! tables look like: 4.4BSD-Lite, whose source was read (`tcp_timer.h` 8.1 and its neighbours).

use super::{
    BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors, HandshakeRto,
    IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery, Reduction,
    RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// AIX 4.3 (1997), table 3.3 of the thesis.
pub static AIX_4_3: Profile = Profile {
    name: "aix-4.3",
    timer: published(
        TimerModel::Heartbeat {
            slow: Duration::from_millis(500),
            fast: Duration::from_millis(200),
        },
        "the thesis, section 3.2.2",
    ),
    rtt: assumed(
        RttModel::Beats {
            deviations: 4,
            fraction: 0,
            headroom: Some(2),
        },
        "tcp_xmit_timer and TCP_REXMTVAL of 4.4BSD-Lite; they make the second column of table 3.3",
    ),
    initial_rto: published(
        Duration::from_secs(6),
        "TCP/IP Illustrated volume 1, section 21.2: TCPTV_SRTTBASE and twice the initial deviation",
    ),
    min_rto: assumed(
        Duration::from_secs(1),
        "rto_low of the no command as remembered; TCPTV_MIN of 4.4BSD-Lite is the same",
    ),
    max_rto: assumed(
        Duration::from_secs(64),
        "rto_high of the no command as remembered; TCPTV_REXMTMAX of 4.4BSD-Lite is the same",
    ),
    timer_from_head: assumed(false, "tcp_input.c of 4.4BSD-Lite"),
    back_off: assumed(
        BackOff::Table {
            halves: &[2, 4, 8, 16, 32, 64, 128],
        },
        "the second timeouts of table 3.3 are the BSD estimates themselves, not doubled; that it doubles from there on is assumed",
    ),
    give_up: assumed(
        GiveUp::Retransmissions(13),
        "rto_length of the no command as remembered; 4.4BSD-Lite has 12",
    ),
    syn_retries: assumed(
        12,
        "TCP_MAXRXTSHIFT of 4.4BSD-Lite; the 75 s connection timer ends it before",
    ),
    syn_linear: assumed(0, "tcp_backoff of 4.4BSD-Lite"),
    syn_ack_retries: assumed(
        12,
        "TCP_MAXRXTSHIFT of 4.4BSD-Lite; the 75 s connection timer ends it before",
    ),
    delayed_ack: assumed(
        DelayedAck::SecondSegment {
            delay: Duration::from_millis(200),
        },
        "tcp_fasttimo of 4.4BSD-Lite",
    ),
    initial_window: assumed(1, "tcp_mss of 4.4BSD-Lite"),
    recovery: assumed(Recovery::Reno, "tcp_input.c of 4.4BSD-Lite"),
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
    congestion: assumed(Congestion::Reno, "tcp_input.c of 4.4BSD-Lite"),
    congestion_choices: &[Congestion::Reno],
    growth: published(
        Growth::PerAck {
            extra_eighth: false,
        },
        "the thesis, section 3.3: a segment every second round trip and slower",
    ),
    idle_restart: assumed(
        IdleRestart::SlowStart,
        "tcp_output.c of 4.4BSD-Lite: t_idle >= t_rxtcur",
    ),
    zero_window: published(ZeroWindow::Obeyed, "the thesis, section 5.4.3"),
    persist: assumed(
        Persist {
            min: Duration::from_secs(5),
            max: Duration::from_secs(60),
            carries_data: true,
        },
        "tcp_timer.h 8.1 of 4.4BSD-Lite: TCPTV_PERSMIN, TCPTV_PERSMAX",
    ),
    keepalive: published(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(75),
            count: 8,
        },
        "TCP/IP Illustrated volume 1, appendix E.5 (AIX 3.2.2): tcp_keepidle, tcp_keepintvl",
    ),
    offers: assumed(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "rfc1323 of the no command is 0 by default, as manuals of later versions say",
    ),
    timestamp_clock: assumed(Duration::from_millis(500), "tcp_now of 4.4BSD-Lite"),
    receive_buffer: published(
        ReceiveBuffer {
            initial: 16_384,
            max: 16_384,
        },
        "TCP/IP Illustrated volume 1, appendix E.5 (AIX 3.2.2): tcp_recvspace",
    ),
    send_buffer: published(
        SendBuffer::Fixed(16_384),
        "TCP/IP Illustrated volume 1, appendix E.5 (AIX 3.2.2): tcp_sendspace",
    ),
    segmentation: assumed(
        Segmentation::None,
        "tcp_output of 4.3BSD, where it comes from",
    ),
    time_wait: assumed(Duration::from_secs(60), "twice TCPTV_MSL of 4.4BSD-Lite"),
    fin_wait_2: assumed(
        Duration::from_secs(675),
        "tcp_maxidle and once more tcp_keepintvl of 4.4BSD-Lite",
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
