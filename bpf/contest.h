/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whether the addresses and ports of a tracked connection have got another one, the same as
 * crates/gateway/src/flow/contest.rs.
 */
#ifndef OUTLAST_CONTEST_H
#define OUTLAST_CONTEST_H

#include "tracker.h"

/* For so long no segment of a connection was seen that gives its place to another. */
#define PATIENCE 30000000000ULL

/* What does not belong to a connection, and the connection whose place was taken. */
struct contest {
    struct half near;
    struct half far;
    struct half first_near;
    struct half first_far;
    /* No segment of the connection was seen since then, and the rival's last one passed then. */
    __u64 since;
    __u64 heard_at;
    __u8 has_rival;
    __u8 has_met;
    __u8 has_first;
    __u8 padding[5];
};

/* Whether the segment is of the first connection, which then has its place again; what it meant. */
inline_always int give_back(struct contest *contest, struct flow *flow, struct rtt *rtt, __u64 now,
                enum direction direction, const struct segment *tcp)
{
    const struct half *sender = direction == TO_LINK ? &contest->first_near : &contest->first_far;
    const struct half *receiver = direction == TO_LINK ? &contest->first_far : &contest->first_near;
    __u32 len = tcp->payload_len + control_len(tcp);

    if (!contest->has_first || (tcp->flags & (SYN | RST)) ||
        !is_within_bounds(sender, receiver, tcp, len))
        return 0;
    flow->near = contest->first_near;
    flow->far = contest->first_far;
    flow->phase = ESTABLISHED;
    flow->is_timed = 0;
    contest->has_first = contest->has_rival = 0;
    return observe_known(flow, rtt, now, direction, tcp) | BEGINS_ANEW;
}

/* The rival has the place of `flow` from now on. */
inline_always void yield_to_rival(struct contest *contest, struct flow *flow)
{
    if (flow->phase == ESTABLISHED && !contest->has_first) {
        contest->first_near = flow->near;
        contest->first_far = flow->far;
        contest->has_first = 1;
    }
    flow->near = contest->near;
    flow->far = contest->far;
    flow->phase = ESTABLISHED;
    flow->is_timed = 0;
    contest->has_rival = 0;
}

/*
 * A segment that belongs neither to `flow`, whose addresses and ports it has, nor to the first
 * connection; what it meant.
 */
verified_once int hear(struct contest *contest, struct flow *flow, __u64 now, enum direction direction,
           const struct segment *tcp)
{
    struct half *sender, *receiver;
    __u32 len;

    if (!contest || !flow || !tcp)
        return 0;
    if (contest->has_rival && now >= contest->heard_at + PATIENCE)
        contest->has_rival = 0;
    if (tcp->flags & RST) {
        /* It ends nothing but what nobody relies on. */
        contest->has_rival = 0;
        return 0;
    }
    if (!contest->has_rival) {
        __builtin_memset(&contest->near, 0, sizeof(contest->near));
        __builtin_memset(&contest->far, 0, sizeof(contest->far));
        contest->since = now;
        contest->has_rival = 1;
        contest->has_met = 0;
    }
    sender = direction == TO_LINK ? &contest->near : &contest->far;
    receiver = direction == TO_LINK ? &contest->far : &contest->near;
    len = tcp->payload_len + control_len(tcp);
    if (!contest->has_met)
        contest->has_met = !!(meet(sender, receiver, tcp, len) & MET);
    else if (!(tcp->flags & SYN) && is_within_bounds(sender, receiver, tcp, len))
        advance(sender, receiver, tcp, len);
    else
        return 0;
    contest->heard_at = now;
    if (!contest->has_met || (flow->phase != CLOSED && now < contest->since + PATIENCE))
        return 0;
    yield_to_rival(contest, flow);
    return YIELDED;
}

#endif
