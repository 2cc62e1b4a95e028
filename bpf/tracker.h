/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tracking of TCP connections, the same as crates/core/src/flow/tcp.rs: which sequence and
 * acknowledgement numbers an honest segment can carry, from what both hosts have shown so far,
 * and the round-trip time across the link (crates/core/src/flow/rtt.rs). The same packets leave
 * the same state in both; crates/linux/tests/tracker.rs feeds them.
 *
 * Function by function in the order of the Rust source. What only user space needs (the reason
 * why a segment is odd) is left out.
 */
#ifndef OUTLAST_TRACKER_H
#define OUTLAST_TRACKER_H

#include <linux/types.h>

#define inline_always static inline __attribute__((always_inline))
/* What is seldom needed does not take registers, stack and cache from the rest. */
#define apart static __attribute__((noinline))
/* The verifier looks at it once, and not for each caller again, which has to say that pointers are some. */
#define whole __attribute__((noinline))
#define seldom(condition) __builtin_expect(!!(condition), 0)

/* This machine's processors see each other's writes in the order in which they are made. */
const volatile __u8 IS_ORDERED = 0;

/* Writes what tells others of the writes before it, and of those behind it. */
inline_always void publish(__u32 *number, __u32 value)
{
    if (IS_ORDERED) {
        asm volatile("" ::: "memory");
        *(volatile __u32 *)number = value;
        asm volatile("" ::: "memory");
    } else {
        __sync_lock_test_and_set(number, value);
    }
}

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

/* Round-trip time from this end of the link to the far host and back, once there was a sample. */
struct rtt {
    __u64 smoothed;
    __u64 variation;
};

struct flow {
    struct half near;
    struct half far;
    /* When the segment that is timed was sent, in nanoseconds, and the number behind it. */
    __u64 sent_at;
    __u32 timed_end;
    __u8 is_timed;
    /* Whether `struct rtt` means something. */
    __u8 has_rtt;
    __u8 phase;
    __u8 padding;
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

/* What an honest segment meant; zero for an odd one. */
enum {
    HONEST = 1,
    /* It carries sequence numbers that were not seen before. */
    NEW_DATA = 2,
    /* It occupies sequence numbers, all of which were seen before. */
    REPEATED = 4,
    /* Its acknowledgement advanced the other host's. */
    NEWLY_ACKED = 8,
    /* It answers a reopening: what was alive so far is none of its connection's. */
    BEGINS_ANEW = 16,
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
    return (half->has & HAS_FIN) && half->fin == half->next && !before(half->acked, half->fin);
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
    __u64 sent_at;
    __u32 timed_end;
    __u8 is_timed, has_rtt;

    switch (flow->phase) {
    case CLOSED:
        if (is_answer)
            return 0;
        /* The way is the same: so is its round-trip time. */
        sent_at = flow->sent_at;
        timed_end = flow->timed_end;
        is_timed = flow->is_timed;
        has_rtt = flow->has_rtt;
        forget(flow);
        flow->sent_at = sent_at;
        flow->timed_end = timed_end;
        flow->is_timed = is_timed;
        flow->has_rtt = has_rtt;
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

/* The shift of the windows that a SYN announces. */
inline_always __u8 offered_scale(const struct segment *tcp)
{
    __u8 scale = tcp->has_window_scale ? tcp->window_scale : 0;

    return scale > MAX_WINDOW_SCALE ? MAX_WINDOW_SCALE : scale;
}

/*
 * First sight of a host: its numbers are taken from its own segment, and its peer's from its
 * acknowledgement, if there is one.
 */
inline_always void introduce(struct half *sender, struct half *receiver,
                 const struct segment *tcp, __u32 len)
{
    /* A SYN-ACK that comes again says nothing new. */
    if ((tcp->flags & SYN) && (sender->acquaintance != SEEN || receiver->acquaintance != SEEN)) {
        sender->window_scale = offered_scale(tcp);
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

/*
 * Whether the receiver may obey a RST: one that has just the number that it expects next, or the first
 * thing that is heard of a host, which acknowledges what it answers.
 */
inline_always int is_expected_reset(const struct half *sender, const struct half *receiver,
                    const struct segment *tcp)
{
    int has_finished = (sender->has & HAS_FIN) && sender->fin == sender->next;

    if (sender->acquaintance != UNKNOWN)
        return tcp->seq == sender->acked || tcp->seq == sender->next ||
               (has_finished && tcp->seq + 1 == sender->next);
    return receiver->acquaintance != SEEN ||
           ((tcp->flags & ACK) && after(tcp->ack, receiver->acked));
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
    if ((tcp->flags & RST) && !is_expected_reset(sender, receiver, tcp))
        return 0;
    if (!(tcp->flags & ACK))
        return 1;
    if (after(tcp->ack, receiver->next))
        return 0;
    reach_back = larger(sender->largest_window, scaled_window(sender, tcp));
    return !before(tcp->ack, receiver->next - larger(reach_back, MIN_TOLERANCE));
}

inline_always int advance(struct half *sender, struct half *receiver,
              const struct segment *tcp, __u32 len)
{
    __u32 end = tcp->seq + len;
    int first_sight = sender->acquaintance != SEEN;
    int meant = HONEST;

    if (len)
        meant |= first_sight || after(end, sender->next) ? NEW_DATA : REPEATED;
    sender->acquaintance = SEEN;
    sender->next = later(sender->next, end);
    if ((tcp->flags & FIN) && end == sender->next) {
        sender->fin = end;
        sender->has |= HAS_FIN;
    }
    if (tcp->flags & ACK) {
        __u32 window = scaled_window(sender, tcp);
        __u32 offered = tcp->ack + window;

        sender->largest_window = larger(sender->largest_window, window);
        if (after(tcp->ack, receiver->acked))
            meant |= NEWLY_ACKED;
        receiver->acked = later(receiver->acked, tcp->ack);
        receiver->allowed = receiver->has & HAS_ALLOWED ?
                        later(receiver->allowed, offered) : offered;
        receiver->has |= HAS_ALLOWED;
    }
    return meant;
}

/* Most connections are in their midst, where one look at both halves says so. */
apart int are_finished(const struct flow *flow)
{
    return is_finished(&flow->near) && is_finished(&flow->far);
}

inline_always void settle_phase(struct flow *flow, const struct segment *tcp)
{
    int both_seen = flow->near.acquaintance == SEEN && flow->far.acquaintance == SEEN;
    int have_fins = flow->near.has & flow->far.has & HAS_FIN;

    if ((tcp->flags & RST) || (seldom(have_fins) && are_finished(flow)))
        flow->phase = CLOSED;
    else if (both_seen && flow->phase == OPENING)
        flow->phase = ESTABLISHED;
}

/* Whether the segment may be timed, or acknowledges one that is: then `observe` must know the time. */
inline_always int is_time_needed(const struct flow *flow, enum direction direction,
                 const struct segment *tcp)
{
    if (direction == TO_LINK)
        return !flow->is_timed && (tcp->payload_len || control_len(tcp));
    return flow->is_timed && !before(tcp->ack, flow->timed_end);
}

inline_always void acknowledged(struct flow *flow, struct rtt *rtt, __u64 now, __u32 ack)
{
    __u64 sample, differs;

    if (!flow->is_timed || before(ack, flow->timed_end))
        return;
    flow->is_timed = 0;
    sample = now > flow->sent_at ? now - flow->sent_at : 0;
    if (!flow->has_rtt) {
        flow->has_rtt = 1;
        rtt->smoothed = sample;
        rtt->variation = sample / 2;
        return;
    }
    differs = rtt->smoothed > sample ? rtt->smoothed - sample : sample - rtt->smoothed;
    rtt->variation = (3 * rtt->variation + differs) / 4;
    rtt->smoothed = (7 * rtt->smoothed + sample) / 8;
}

inline_always void measure(struct flow *flow, struct rtt *rtt, __u64 now, enum direction direction,
               const struct segment *tcp, __u32 len, int meant)
{
    if (direction == FROM_LINK) {
        if (meant & NEWLY_ACKED)
            acknowledged(flow, rtt, now, tcp->ack);
    } else if (meant & REPEATED) {
        flow->is_timed = 0;
    } else if ((meant & NEW_DATA) && !flow->is_timed) {
        flow->is_timed = 1;
        flow->timed_end = tcp->seq + len;
        flow->sent_at = now;
    }
}

/* `observe` where a host is not known yet, or gives its numbers: what is odd must change nothing. */
inline_always int observe_beginning(struct flow *flow, struct rtt *rtt, __u64 now,
                    enum direction direction, const struct segment *tcp)
{
    const struct flow before = *flow;
    struct half *sender = direction == TO_LINK ? &flow->near : &flow->far;
    struct half *receiver = direction == TO_LINK ? &flow->far : &flow->near;
    __u32 len = tcp->payload_len + control_len(tcp);
    int meant;

    if ((tcp->flags & SYN) && !restart_if_new(flow, sender, tcp))
        return 0;
    introduce(sender, receiver, tcp, len);
    if (!is_within_bounds(sender, receiver, tcp, len)) {
        *flow = before;
        return 0;
    }
    meant = advance(sender, receiver, tcp, len);
    settle_phase(flow, tcp);
    measure(flow, rtt, now, direction, tcp, len, meant);
    return meant;
}

/* A SYN amid a connection that is alive: what it begins, if anything, its receiver says. */
struct reopening {
    __u32 isn;
    __u32 next;
    __u8 window_scale;
    __u8 direction;
    __u16 padding;
};

inline_always struct reopening reopening_of(enum direction direction, const struct segment *tcp)
{
    struct reopening reopening = {
        .isn = tcp->seq,
        .next = tcp->seq + tcp->payload_len + control_len(tcp),
        .window_scale = offered_scale(tcp),
        .direction = direction,
    };

    return reopening;
}

/* Whether its receiver answers: it begins another connection, or knows of none. */
inline_always int is_answered(const struct reopening *reopening, enum direction direction,
                  const struct segment *tcp)
{
    return reopening->direction != direction && (tcp->flags & ACK) && (tcp->flags & (SYN | RST)) &&
           after(tcp->ack, reopening->isn) && !after(tcp->ack, reopening->next);
}

/* The connection that a reopening has begun, as its answer leaves it, which cannot be odd. */
inline_always int observe_answer(struct flow *flow, struct rtt *rtt, __u64 now,
                 const struct reopening *reopening, const struct segment *tcp)
{
    enum direction from = reopening->direction == TO_LINK ? TO_LINK : FROM_LINK;
    struct half *client = from == TO_LINK ? &flow->near : &flow->far;
    __u8 has_rtt = flow->has_rtt;

    forget(flow);
    flow->has_rtt = has_rtt;
    client->next = reopening->next;
    client->acked = reopening->isn;
    client->window_scale = reopening->window_scale;
    client->has = HAS_WINDOW_SCALE;
    client->acquaintance = SEEN;
    return BEGINS_ANEW |
           observe_beginning(flow, rtt, now, from == TO_LINK ? FROM_LINK : TO_LINK, tcp);
}

/*
 * Whether the segment is data that follows on what its sender sent last, as most are, and says
 * nothing else: then `observe_known` would only move the sender's `next` to its end, and measure. A
 * window that is within what was allowed is no larger than the largest, and what is behind a FIN
 * does not close.
 */
inline_always int continues(const struct flow *flow, enum direction direction,
                const struct segment *tcp)
{
    const struct half *sender = direction == TO_LINK ? &flow->near : &flow->far;
    const struct half *receiver = direction == TO_LINK ? &flow->far : &flow->near;

    return tcp->seq == sender->next && tcp->ack == receiver->acked && tcp->payload_len &&
           receiver->next - tcp->ack <= MIN_TOLERANCE && (receiver->has & HAS_ALLOWED) &&
           (sender->has & HAS_ALLOWED) && !after(tcp->seq, sender->allowed + 1) &&
           !after(tcp->ack + scaled_window(sender, tcp), receiver->allowed);
}

/* `observe` where both hosts are known: there is nothing to take back if the segment is odd. */
inline_always int observe_known(struct flow *flow, struct rtt *rtt, __u64 now,
                enum direction direction, const struct segment *tcp)
{
    struct half *sender = direction == TO_LINK ? &flow->near : &flow->far;
    struct half *receiver = direction == TO_LINK ? &flow->far : &flow->near;
    __u32 len = tcp->payload_len + control_len(tcp);
    int meant;

    if (!is_within_bounds(sender, receiver, tcp, len))
        return 0;
    meant = advance(sender, receiver, tcp, len);
    settle_phase(flow, tcp);
    measure(flow, rtt, now, direction, tcp, len, meant);
    return meant;
}

/*
 * Takes in a segment; what it meant. Zero if no honest host would send it now: then nothing has
 * changed. A reopening and its answer are odd here.
 */
whole int observe(struct flow *flow, struct rtt *rtt, __u64 now, enum direction direction,
          const struct segment *tcp)
{
    const struct half *sender, *receiver;

    if (!flow || !rtt || !tcp || !are_flags_honest(tcp))
        return 0;
    sender = direction == TO_LINK ? &flow->near : &flow->far;
    receiver = direction == TO_LINK ? &flow->far : &flow->near;
    if ((tcp->flags & (SYN | RST)) || sender->acquaintance != SEEN || receiver->acquaintance != SEEN)
        return observe_beginning(flow, rtt, now, direction, tcp);
    return observe_known(flow, rtt, now, direction, tcp);
}

#endif
