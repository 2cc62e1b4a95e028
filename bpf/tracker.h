/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tracking of TCP connections, the same as crates/gateway/src/flow/ (half.rs, meeting.rs, tcp.rs): which
 * sequence and acknowledgement numbers an honest segment can carry, from what both hosts have shown so
 * far, and the round-trip time across the link (rtt.rs). The same packets leave the same state in
 * both; crates/linux/tests/tracker.rs feeds them.
 *
 * Function by function in the order of the Rust source. What only user space needs (the reason
 * why a segment is odd) is left out.
 */
#ifndef OUTLAST_TRACKER_H
#define OUTLAST_TRACKER_H

#include <linux/types.h>

#define inline_always static inline __attribute__((always_inline))
/* What is seldom needed does not take registers, stack and cache from the rest. */
#define out_of_line static __attribute__((noinline))
/* The verifier looks at it once, and not for each caller again, which has to say that pointers are some. */
#define verified_once __attribute__((noinline))
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/*
 * Checks that `*len` is one of 1 to `most`, so that every verifier sees it: both comparisons are of the 64-bit register
 * that is the helper's argument. Left alone, the compiler makes one comparison of `*len - 1` in another register, and
 * the verifiers of Linux 6.1 and 6.12 do not relate the two.
 */
inline_always int is_length(__s64 *len, __s64 most)
{
    asm volatile("" : "+r"(*len));
    if (*len < 1)
        return 0;
    asm volatile("" : "+r"(*len));
    return *len <= most;
}

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

/* The largest shift of RFC 7323, section 2.3, and the largest window. */
#define MAX_WINDOW_SCALE 14
#define LARGEST_WINDOW (1U << 30)
/* A segment may lag this far behind the newest one whatever the window is. */
#define MIN_TOLERANCE 66000
/* What two hosts that were not seen to begin may have in flight one way. */
#define MOST_IN_FLIGHT (1U << 24)

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
    /* So its SYN says, as far as there is a window scale. */
    PERMITS_SACK = 8,
};

/* One host's side of a connection; until both were seen to fit each other, the newest word of each. */
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
    /* There is a `struct contest` of it. */
    __u8 is_contested;
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
    __u8 permits_sack;
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
    /* It is of the connection that had the addresses and ports before, which goes on. */
    BEGINS_ANEW = 16,
    /* The connection has given its place to another one; the segment itself is odd. */
    YIELDED = 32,
    /* Its round trip is timed from now on. */
    TIMED = 256,
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

inline_always __u32 earlier(__u32 a, __u32 b)
{
    return before(a, b) ? a : b;
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

/* A SYN begins a connection where none is alive; where one is, only a SYN-ACK that comes again is honest. */
inline_always int is_syn_honest(struct flow *flow, const struct half *sender, const struct segment *tcp)
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
 * SEG.WND in bytes; that of a SYN is never scaled (RFC 7323, section 2.2), and that of a host whose SYN
 * was not seen is at least as large as it stands there.
 */
inline_always __u32 scaled_window(const struct half *sender, const struct segment *tcp)
{
    __u32 scale = 0;

    if (!(tcp->flags & SYN) && (sender->has & HAS_WINDOW_SCALE))
        scale = sender->window_scale & 15;
    return (__u32)tcp->window << scale;
}

/* How far a segment of its peer may reach beyond, or lag behind, what the peer has sent. */
inline_always __u32 reach(const struct half *half)
{
    return larger(half->largest_window, MIN_TOLERANCE);
}

/* Whether a segment of the sender's may begin there. */
inline_always int is_beyond_window(const struct half *sender, const struct half *receiver, __u32 seq)
{
    /* A zero-window probe carries one byte beyond a closed window. */
    __u32 allowed = sender->allowed + 1;
    __u32 near_next;

    if ((sender->has & HAS_ALLOWED) && (receiver->has & HAS_WINDOW_SCALE))
        return after(seq, allowed);
    near_next = sender->next + reach(receiver);
    return after(seq, sender->has & HAS_ALLOWED ? later(near_next, allowed) : near_next);
}

/* Whether the receiver may obey a RST: one that has just the number that it expects next. */
inline_always int is_expected_reset(const struct half *sender, const struct segment *tcp)
{
    int has_finished = (sender->has & HAS_FIN) && sender->fin == sender->next;

    return tcp->seq == sender->acked || tcp->seq == sender->next ||
           (has_finished && tcp->seq + 1 == sender->next);
}

inline_always int is_within_bounds(const struct half *sender, const struct half *receiver,
                   const struct segment *tcp, __u32 len)
{
    if (is_beyond_window(sender, receiver, tcp->seq))
        return 0;
    /* What is not acknowledged may come again, however much that is. */
    if (before(tcp->seq + len, earlier(sender->next - reach(receiver), sender->acked)))
        return 0;
    if ((tcp->flags & RST) && !is_expected_reset(sender, tcp))
        return 0;
    if (!(tcp->flags & ACK))
        return 1;
    return !after(tcp->ack, receiver->next) && !before(tcp->ack, receiver->acked - MIN_TOLERANCE);
}

/* The window of a host that lets its peer have so much in flight. */
inline_always __u32 demonstrated(const struct half *half, __u32 in_flight)
{
    __u32 window = in_flight < LARGEST_WINDOW - MIN_TOLERANCE ? in_flight + MIN_TOLERANCE : LARGEST_WINDOW;

    return larger(half->largest_window, window);
}

inline_always int advance(struct half *sender, struct half *receiver,
              const struct segment *tcp, __u32 len)
{
    __u32 end = tcp->seq + len;
    int meant = HONEST;

    if (len)
        meant |= after(end, sender->next) ? NEW_DATA : REPEATED;
    sender->next = later(sender->next, end);
    if ((tcp->flags & FIN) && end == sender->next) {
        sender->fin = end;
        sender->has |= HAS_FIN;
    }
    if (tcp->flags & ACK) {
        __u32 window = scaled_window(sender, tcp);
        __u32 offered = tcp->ack + window;

        sender->largest_window = larger(sender->largest_window, window);
        if (after(tcp->ack, receiver->acked)) {
            meant |= NEWLY_ACKED;
            /* All of it was in flight: the sender of this had offered as much. */
            if (!(sender->has & HAS_WINDOW_SCALE))
                sender->largest_window = demonstrated(sender, receiver->next - receiver->acked);
        }
        receiver->acked = later(receiver->acked, tcp->ack);
        receiver->allowed = receiver->has & HAS_ALLOWED ?
                        later(receiver->allowed, offered) : offered;
        receiver->has |= HAS_ALLOWED;
    }
    return meant;
}

/* Most connections are in their midst, where one look at both halves says so. */
inline_always int are_finished(const struct flow *flow)
{
    return is_finished(&flow->near) && is_finished(&flow->far);
}

inline_always void settle_phase(struct flow *flow, const struct segment *tcp)
{
    int have_fins = flow->near.has & flow->far.has & HAS_FIN;

    if ((tcp->flags & RST) || (unlikely(have_fins) && are_finished(flow)))
        flow->phase = CLOSED;
}

/* Whether the segment may be timed, or acknowledges one that is: then `observe` must know the time. */
inline_always int is_time_needed(const struct flow *flow, enum direction direction,
                 const struct segment *tcp)
{
    if (direction == TO_LINK)
        return (!flow->is_timed || flow->phase == OPENING) && (tcp->payload_len || control_len(tcp));
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

/* Times the round trip of a segment, or of what it acknowledges; what the segment `meant`, with that. */
inline_always int measure(struct flow *flow, struct rtt *rtt, __u64 now, enum direction direction,
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
        meant |= TIMED;
    }
    return meant;
}

/*
 * Keeps what is known of a host's own numbers if the segment goes on from there; or else only the
 * segment counts. Says which.
 */
inline_always int keep_or_replace(struct half *sender, const struct segment *tcp, __u32 len)
{
    __u32 apart_by = tcp->seq - sender->next;
    int is_known = sender->acquaintance == SEEN;

    if (tcp->flags & SYN)
        is_known = is_known && (sender->has & HAS_WINDOW_SCALE) && tcp->seq == sender->acked;
    else
        is_known = is_known && apart_by + MIN_TOLERANCE <= 2 * MIN_TOLERANCE;
    if (!is_known) {
        sender->next = tcp->seq + len;
        sender->acked = tcp->seq;
        sender->largest_window = 0;
        sender->fin = 0;
        sender->window_scale = 0;
        sender->acquaintance = SEEN;
        sender->has &= HAS_ALLOWED;
    }
    if (tcp->flags & SYN) {
        sender->window_scale = offered_scale(tcp);
        sender->has = (sender->has & ~PERMITS_SACK) | HAS_WINDOW_SCALE | (tcp->permits_sack ? PERMITS_SACK : 0);
    }
    return is_known;
}

/* Whether a segment that begins there follows on what was acknowledged, give or take `most`. */
inline_always int begins_there(__s32 ahead, __u32 most)
{
    return ahead < 0 ? (__u32)-ahead <= MIN_TOLERANCE : (__u32)ahead <= most;
}

/*
 * Whether the segment acknowledges what its receiver was seen to send, and begins where the receiver
 * has acknowledged, as far as these may differ.
 */
inline_always int fits(const struct half *sender, const struct half *receiver, const struct segment *tcp)
{
    int has_syn = receiver->has & HAS_WINDOW_SCALE;
    __s32 ahead = distance(tcp->seq, sender->allowed);
    __u32 lag = receiver->next - tcp->ack;

    if (receiver->acquaintance != SEEN || !(tcp->flags & ACK) || after(tcp->ack, receiver->next))
        return 0;
    /* Nobody but who has seen the SYN knows its number; and how much of what follows on the answer has arrived,
     * only the receiver's acknowledgement says. */
    if (!(sender->has & HAS_ALLOWED))
        return has_syn && (tcp->flags & SYN) && after(tcp->ack, receiver->acked);
    if (has_syn)
        return after(tcp->ack, receiver->acked) && begins_there(ahead, MIN_TOLERANCE);
    return (lag <= MIN_TOLERANCE && begins_there(ahead, MOST_IN_FLIGHT)) ||
           (lag <= MOST_IN_FLIGHT && begins_there(ahead, MIN_TOLERANCE));
}

/* Notes what a host says that nobody else has said yet. */
inline_always int note_word(struct half *sender, struct half *receiver, const struct segment *tcp, __u32 len)
{
    __u32 end = tcp->seq + len;
    int is_known = keep_or_replace(sender, tcp, len);
    int meant = HONEST;

    if (len)
        meant |= !is_known || after(end, sender->next) ? NEW_DATA : REPEATED;
    sender->next = later(sender->next, end);
    if ((tcp->flags & FIN) && end == sender->next) {
        sender->fin = end;
        sender->has |= HAS_FIN;
    }
    sender->largest_window = larger(sender->largest_window, scaled_window(sender, tcp));
    if (!(tcp->flags & ACK)) {
        receiver->allowed = 0;
        receiver->has &= ~HAS_ALLOWED;
        return meant;
    }
    receiver->allowed = tcp->ack;
    receiver->has |= HAS_ALLOWED;
    if (receiver->acquaintance != SEEN) {
        receiver->acquaintance = BY_PEER;
        receiver->next = receiver->acked = tcp->ack;
    }
    return meant;
}

/* It fits what its peer has said: both are known. */
inline_always int introduce(struct half *sender, struct half *receiver, const struct segment *tcp, __u32 len)
{
    __s32 lead;

    keep_or_replace(sender, tcp, len);
    if (sender->has & HAS_ALLOWED) {
        lead = distance(tcp->seq + len, sender->allowed);
        if (!(receiver->has & HAS_WINDOW_SCALE))
            receiver->largest_window = demonstrated(receiver, lead > 0 ? lead : 0);
        sender->acked = sender->allowed;
        sender->next = later(sender->next, sender->allowed);
        sender->has &= ~HAS_ALLOWED;
    }
    if (!(sender->has & HAS_WINDOW_SCALE))
        sender->largest_window = demonstrated(sender, receiver->next - tcp->ack);
    if (!(receiver->has & HAS_WINDOW_SCALE) || before(tcp->ack, receiver->acked))
        receiver->acked = tcp->ack;
    receiver->has &= ~HAS_ALLOWED;
    /* Nobody has seen what it might repeat. */
    return (advance(sender, receiver, tcp, len) & ~(NEW_DATA | REPEATED)) | (len ? NEW_DATA : 0);
}

/* Whether a RST is what its receiver expects, of whom nothing is certain yet. */
inline_always int is_refusal(const struct half *sender, const struct half *receiver,
                 const struct segment *tcp)
{
    int answers_syn = (receiver->has & HAS_WINDOW_SCALE) && (tcp->flags & ACK) &&
              after(tcp->ack, receiver->acked) && !after(tcp->ack, receiver->next);

    return receiver->acquaintance == SEEN &&
           (answers_syn || ((sender->has & HAS_ALLOWED) && sender->allowed == tcp->seq));
}

/* What comes of a segment of hosts that were not seen to fit each other yet. */
enum {
    REFUSED = 64,
    MET = 128,
};

inline_always int meet(struct half *sender, struct half *receiver, const struct segment *tcp, __u32 len)
{
    if (tcp->flags & RST)
        return is_refusal(sender, receiver, tcp) ? HONEST | REFUSED : 0;
    if (fits(sender, receiver, tcp))
        return introduce(sender, receiver, tcp, len) | MET;
    return note_word(sender, receiver, tcp, len);
}

/* `observe` where the hosts were not seen to fit each other yet. */
inline_always int observe_meeting(struct flow *flow, struct rtt *rtt, __u64 now,
                  enum direction direction, const struct segment *tcp)
{
    struct half *sender = direction == TO_LINK ? &flow->near : &flow->far;
    struct half *receiver = direction == TO_LINK ? &flow->far : &flow->near;
    __u32 len = tcp->payload_len + control_len(tcp);
    int meant = meet(sender, receiver, tcp, len);

    if (!meant)
        return 0;
    if (meant & REFUSED) {
        flow->phase = CLOSED;
        return HONEST;
    }
    if (meant & MET)
        flow->phase = ESTABLISHED;
    else if (direction == TO_LINK)
        /* What was timed before may be somebody else's. */
        flow->is_timed = 0;
    meant &= ~MET;
    return measure(flow, rtt, now, direction, tcp, len, meant);
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
           (receiver->has & HAS_ALLOWED) && (sender->has & HAS_ALLOWED) &&
           (!after(tcp->seq, sender->allowed + 1) || !(receiver->has & HAS_WINDOW_SCALE)) &&
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
    return measure(flow, rtt, now, direction, tcp, len, meant);
}

/* Takes in a segment; what it meant. Zero if no honest host would send it now: then nothing has changed. */
verified_once int observe(struct flow *flow, struct rtt *rtt, __u64 now, enum direction direction,
          const struct segment *tcp)
{
    if (!flow || !rtt || !tcp || !are_flags_honest(tcp))
        return 0;
    if ((tcp->flags & SYN) &&
        !is_syn_honest(flow, direction == TO_LINK ? &flow->near : &flow->far, tcp))
        return 0;
    if (flow->phase == OPENING)
        return observe_meeting(flow, rtt, now, direction, tcp);
    return observe_known(flow, rtt, now, direction, tcp);
}

#endif
