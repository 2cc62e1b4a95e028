//! SunOS 5.6 (Solaris 2.6, 1997), table 3.5 of the thesis.
//!
//! It obeys premature zero windows (section 5.4.3). Its source is not public; what is, is that of its
//! descendant: `tcp.c` of OpenSolaris, whose table of parameters and whose estimator are taken over where
//! the thesis does not say otherwise. That they were the same in 2.6 is then an assumption.

use super::{
    BackOff, Congestion, DelayedAck, DuplicateReach, GiveUp, Growth, HandshakeErrors, HandshakeRto,
    IdleRestart, Keepalive, Offers, Persist, Profile, Push, ReceiveBuffer, Recovery, Reduction,
    RttModel, Segmentation, SendBuffer, Undo, WriteControl, ZeroWindow, assumed, published,
};
use crate::timer::TimerModel;
use outlast_base::time::Duration;

/// SunOS 5.6 (Solaris 2.6, 1997), table 3.5 of the thesis.
pub static SUNOS_5_6: Profile = Profile {
    name: "sunos-5.6",
    timer: assumed(
        TimerModel::Tick {
            period: Duration::from_millis(10),
        },
        "table 3.5 has no jitter of the size of the 200 ms granularity that section 3.2.2 suspects; 100 Hz clock of the SPARC",
    ),
    rtt: assumed(
        RttModel::Solaris {
            floor: Duration::from_millis(200),
        },
        "tcp.c of OpenSolaris: rtt_sa / 8 + rtt_sd + rtt_sa / 32; the floor is the granularity of the thesis, section 3.2.2",
    ),
    initial_rto: assumed(
        Duration::from_secs(3),
        "tcp.c of OpenSolaris: tcp_rexmit_interval_initial; the manual of Solaris 8 (806-6779) agrees",
    ),
    min_rto: published(
        Duration::from_millis(400),
        "the thesis, table 3.5: 389 to 403 ms; tcp_rexmit_interval_min in tcp.c of OpenSolaris is 400 ms",
    ),
    max_rto: assumed(
        Duration::from_secs(240),
        "four minutes as in RFC 793; tcp.c of OpenSolaris and the manual of Solaris 8 (806-6779) have 60 s, the manual of 2.6 could not be read",
    ),
    timer_from_head: published(
        true,
        "the thesis, table 3.5: the first timeout, counted from the transmission, is half the second",
    ),
    back_off: published(BackOff::Doubling, "the thesis, table 3.5"),
    give_up: assumed(
        GiveUp::Elapsed(Duration::from_secs(480)),
        "tcp.c of OpenSolaris: tcp_ip_abort_interval; the manual of Solaris 8 agrees",
    ),
    syn_retries: assumed(6, "tcp_ip_abort_cinterval of 180 s with doubling from 3 s"),
    syn_linear: assumed(0, "nothing is said of another back-off"),
    syn_ack_retries: assumed(6, "as for a SYN"),
    delayed_ack: assumed(
        DelayedAck::SecondSegment {
            delay: Duration::from_millis(50),
        },
        "tcp.c of OpenSolaris: tcp_local_dack_interval is 50 ms, tcp_deferred_ack_interval 100 ms since Solaris 8",
    ),
    initial_window: assumed(1, "RFC 2001; Solaris 8 has four"),
    recovery: assumed(
        Recovery::Reno,
        "RFC 2001; tcp.c of OpenSolaris: tcp_dupack_fast_retransmit is 3",
    ),
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
    congestion: assumed(Congestion::Reno, "RFC 2001"),
    congestion_choices: &[Congestion::Reno],
    growth: assumed(
        Growth::PerAck {
            extra_eighth: false,
        },
        "RFC 2001; the source of 2.6 is not public",
    ),
    idle_restart: assumed(IdleRestart::SlowStart, "RFC 2001"),
    zero_window: published(ZeroWindow::Obeyed, "the thesis, section 5.4.3"),
    persist: assumed(
        Persist {
            min: Duration::from_millis(400),
            max: Duration::from_secs(240),
            carries_data: true,
        },
        "probes run on the retransmission interval",
    ),
    keepalive: assumed(
        Keepalive {
            idle: Duration::from_secs(7200),
            interval: Duration::from_secs(60),
            count: 8,
        },
        "tcp.c of OpenSolaris: tcp_keepalive_interval of two hours, tcp_keepalive_abort_interval of eight minutes",
    ),
    offers: assumed(
        Offers {
            timestamps: false,
            window_scale: false,
            sack: false,
            dsack: false,
        },
        "table 3.5 fits one sample a round trip; tcp.c of OpenSolaris has them on, SACK came with Solaris 7",
    ),
    timestamp_clock: assumed(Duration::from_millis(10), "100 Hz clock"),
    receive_buffer: assumed(
        ReceiveBuffer {
            initial: 8_192,
            max: 8_192,
        },
        "tcp_recv_hiwat as tuning guides of the time give it",
    ),
    send_buffer: assumed(
        SendBuffer::Fixed(8_192),
        "tcp_xmit_hiwat as tuning guides of the time give it",
    ),
    segmentation: assumed(Segmentation::None, "RFC 1122, section 4.2.3.4"),
    time_wait: assumed(
        Duration::from_secs(240),
        "tcp.c of OpenSolaris: four minutes by its comment, before they became one",
    ),
    fin_wait_2: assumed(
        Duration::from_secs(675),
        "tcp.c of OpenSolaris: tcp_fin_wait_2_flush_interval",
    ),
    challenge_ack: assumed(None, "older than RFC 5961"),
    icmp_reverts_back_off: assumed(false, "older than RFC 6069"),
    handshake_rto: assumed(
        HandshakeRto::AtLeast(Duration::from_secs(3)),
        "older than RFC 6298, section 5.7: the back-off of the SYN stays until a sample",
    ),
    syn_after_reset: assumed(None, "older than the rule, which came with Linux 4.20"),
    icmp_in_handshake: assumed(HandshakeErrors::Tolerated, "RFC 1122, section 4.2.3.9"),
    early_timer_slack: assumed(Duration::ZERO, "without effect: no such timers"),
    duplicate_reach: assumed(
        DuplicateReach::FirstStretch,
        "without effect: no duplicates are told",
    ),
    unread_resets: assumed(false, "RFC 9293, section 3.6 leaves it open (SHLD-3)"),
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
