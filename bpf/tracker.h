/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tracking of TCP connections, the same as crates/core/src/flow/tcp.rs: which sequence and
 * acknowledgement numbers an honest segment can carry, from what both hosts have shown so far.
 * The same packets leave the same state in both; crates/linux/tests/tracker.rs feeds them.
 *
 * Function by function in the order of the Rust source. What only user space needs (round-trip
 * times, the reason why a segment is odd) is left out.
 */
#ifndef OUTLAST_TRACKER_H
#define OUTLAST_TRACKER_H

#include <linux/types.h>

#define inline_always static inline __attribute__((always_inline))

enum {
    FIN = 0x01,
    SYN = 0x02,
    RST = 0x04,
    ACK = 0x10,
};

/* The largest shift of RFC 7323, section 2.3; assumed where the SYN was not seen. */
#define MAX_WINDOW_SCALE 14
/* A segment may lag this far behind the newest one whatever the window is. */
#define MIN_TOLERANCE 66000

/* Where the numbers of a half come from. */
enum acquaintance {
    UNKNOWN = 0,
    BY_PEER = 1,
    SEEN = 2,
};

enum phase {
    OPENING = 0,
    ESTABLISHED = 1,
    CLOSED = 2,
};

/* Which of a half's fields mean something. */
enum {
    HAS_ALLOWED = 1,
    HAS_WINDOW_SCALE = 2,
    HAS_FIN = 4,
};

/* One host's side of a connection. */
struct half {
    __u32 next;
    __u32 acked;
    __u32 allowed;
    __u32 largest_window;
    __u32 fin;
    __u8 window_scale;
    __u8 acquaintance;
    __u8 has;
    __u8 padding;
};

struct flow {
    struct half near;
    struct half far;
    __u32 phase;
};

/* What a segment says. */
struct segment {
    __u32 seq;
    __u32 ack;
    __u32 payload_len;
    __u16 window;
    __u8 flags;
    /* As on the wire, and whether there is one. */
    __u8 window_scale;
    __u8 has_window_scale;
};

enum direction {
    TO_LINK,
    FROM_LINK,
};

/* Sequence numbers are compared modulo 2^32 (RFC 9293, section 3.4). */
inline_always __s32 distance(__u32 a, __u32 earlier)
{
    return (__s32)(a - earlier);
}

inline_always int after(__u32 a, __u32 b)
{
    return distance(a, b) > 0;
}

inline_always int before(__u32 a, __u32 b)
{
    return distance(a, b) < 0;
}

inline_always __u32 later(__u32 a, __u32 b)
{
    return after(a, b) ? a : b;
}

inline_always __u32 larger(__u32 a, __u32 b)
{
    return a > b ? a : b;
}

inline_always __u32 control_len(const struct segment *tcp)
{
    return !!(tcp->flags & SYN) + !!(tcp->flags & FIN);
}

inline_always int are_flags_honest(const struct segment *tcp)
{
    int syn = !!(tcp->flags & SYN), fin = !!(tcp->flags & FIN);
    int rst = !!(tcp->flags & RST), ack = !!(tcp->flags & ACK);

    if (syn)
        return !fin && !rst;
    if (ack && !(fin && rst))
        return 1;
    return rst && !fin && tcp->payload_len == 0;
}

inline_always int is_finished(const struct half *half)
{
    return (half->has & HAS_FIN) && !before(half->acked, half->fin);
}

inline_always void forget(struct flow *flow)
{
    __builtin_memset(flow, 0, sizeof(*flow));
}

/*
 * A SYN begins a connection where none is alive; where one is, only its own retransmission or
 * answer is honest.
 */
inline_always int restart_if_new(struct flow *flow, const struct half *sender,
                 const struct segment *tcp)
{
    int is_answer = !!(tcp->flags & ACK);

    switch (flow->phase) {
    case CLOSED:
        if (is_answer)
            return 0;
        forget(flow);
        return 1;
    case ESTABLISHED:
        return is_answer && before(tcp->seq, sender->next) &&
               !after(tcp->seq, sender->acked);
    default:
        if (!is_answer && sender->acquaintance == SEEN && tcp->seq != sender->acked)
            forget(flow);
        return 1;
    }
}

/*
 * First sight of a host: its numbers are taken from its own segment, and its peer's from its
 * acknowledgement, if there is one.
 */
inline_always void introduce(struct half *sender, struct half *receiver,
                 const struct segment *tcp, __u32 len)
{
    if (tcp->flags & SYN) {
        __u8 scale = tcp->has_window_scale ? tcp->window_scale : 0;

        sender->window_scale = scale > MAX_WINDOW_SCALE ? MAX_WINDOW_SCALE : scale;
        sender->has |= HAS_WINDOW_SCALE;
    }
    if (sender->acquaintance == UNKNOWN) {
        sender->next = tcp->seq + len;
        sender->acked = tcp->seq;
    }
    if (receiver->acquaintance != SEEN && (tcp->flags & ACK)) {
        if (receiver->acquaintance == UNKNOWN || after(tcp->ack, receiver->next)) {
            receiver->acquaintance = BY_PEER;
            receiver->next = tcp->ack;
            receiver->acked = tcp->ack;
        }
    }
}

/* SEG.WND in bytes; that of a SYN is never scaled (RFC 7323, section 2.2). */
inline_always __u32 scaled_window(const struct half *sender, const struct segment *tcp)
{
    __u32 scale = MAX_WINDOW_SCALE;

    if (tcp->flags & SYN)
        scale = 0;
    else if (sender->has & HAS_WINDOW_SCALE)
        scale = sender->window_scale & 15;
    return (__u32)tcp->window << scale;
}

inline_always int is_within_bounds(const struct half *sender, const struct half *receiver,
                   const struct segment *tcp, __u32 len)
{
    __u32 reach_back = larger(receiver->largest_window, MIN_TOLERANCE);

    /* A zero-window probe carries one byte beyond a closed window. */
    if ((sender->has & HAS_ALLOWED) && after(tcp->seq, sender->allowed + 1))
        return 0;
    if (before(tcp->seq + len, sender->next - reach_back))
        return 0;
    if ((tcp->flags & RST) && sender->acquaintance == SEEN &&
        (before(tcp->seq, sender->acked) || after(tcp->seq, sender->next)))
        return 0;
    if (!(tcp->flags & ACK))
        return 1;
    if (after(tcp->ack, receiver->next))
        return 0;
    reach_back = larger(sender->largest_window, scaled_window(sender, tcp));
    return !before(tcp->ack, receiver->next - larger(reach_back, MIN_TOLERANCE));
}

inline_always void advance(struct half *sender, struct half *receiver,
               const struct segment *tcp, __u32 len)
{
    __u32 end = tcp->seq + len;

    sender->acquaintance = SEEN;
    sender->next = later(sender->next, end);
    if (tcp->flags & FIN) {
        sender->fin = end;
        sender->has |= HAS_FIN;
    }
    if (tcp->flags & ACK) {
        __u32 window = scaled_window(sender, tcp);
        __u32 offered = tcp->ack + window;

        sender->largest_window = larger(sender->largest_window, window);
        receiver->acked = later(receiver->acked, tcp->ack);
        receiver->allowed = receiver->has & HAS_ALLOWED ?
                        later(receiver->allowed, offered) : offered;
        receiver->has |= HAS_ALLOWED;
    }
}

inline_always void settle_phase(struct flow *flow, const struct segment *tcp)
{
    int both_seen = flow->near.acquaintance == SEEN && flow->far.acquaintance == SEEN;

    if ((tcp->flags & RST) || (is_finished(&flow->near) && is_finished(&flow->far)))
        flow->phase = CLOSED;
    else if (both_seen && flow->phase == OPENING)
        flow->phase = ESTABLISHED;
}

/*
 * Takes in a segment. Whether an honest host would send it now; if not, nothing has changed.
 */
inline_always int observe(struct flow *flow, enum direction direction, const struct segment *tcp)
{
    struct flow now = *flow;
    struct half *sender = direction == TO_LINK ? &now.near : &now.far;
    struct half *receiver = direction == TO_LINK ? &now.far : &now.near;
    __u32 len = tcp->payload_len + control_len(tcp);

    if (!are_flags_honest(tcp))
        return 0;
    if ((tcp->flags & SYN) && !restart_if_new(&now, sender, tcp))
        return 0;
    introduce(sender, receiver, tcp, len);
    if (!is_within_bounds(sender, receiver, tcp, len))
        return 0;
    advance(sender, receiver, tcp, len);
    settle_phase(&now, tcp);
    *flow = now;
    return 1;
}

#endif
