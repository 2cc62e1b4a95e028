/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What is kept of a connection, and how one at a time writes it. */
#ifndef OUTLAST_ENTRY_H
#define OUTLAST_ENTRY_H

#include "key.h"

#include "counters.h"

#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define TCP_HEADER 20
#define OPTIONS 40

/* The longest segment without payload: fixed IPv6 header, TCP header, options. */
#define LONGEST_ACK (IPV6_HEADER + TCP_HEADER + OPTIONS)

/*
 * What segments without payload and round-trip times change: a segment with data, as most are, does
 * not touch it. Its places are chosen so that an acknowledgement with timestamps, over IPv4, fills
 * one cache line in either direction, beside the one that the other fields share.
 */
struct details {
    /* In units of 2^20 ns; zero: never. */
    __u32 suspected_at;
    /* The newest segment without payload in each direction: its length, zero if there was none. */
    __u16 to_link_len;
    __u16 from_link_len;
    struct rtt rtt;
    /* When it passed. */
    __u64 to_link_at;
    __u64 from_link_at;
    /* What it is, from its IP header on. */
    __u8 from_link[LONGEST_ACK];
    /* What the far host had acknowledged when the segment that is timed was sent. */
    __u32 timed_acked;
    /* What the last timed round trip has delivered, in bytes per second, and when it ended. */
    __u64 delivery_rate;
    __u64 delivery_at;
    __u8 padding[8];
    __u8 to_link[LONGEST_ACK];
};

/*
 * A flow, and what a gateway needs of it. Two processors may want to write at once, and user space
 * reads it meanwhile: where `finished` and `begun` differ, or `begun` is another one afterwards,
 * somebody writes.
 *
 * All before `hosts` is in two cache lines, and the whole in seven.
 */
struct entry {
    __u32 finished;
    /* The number behind the segment that was recorded last. */
    __u32 recorded;
    struct flow flow;
    /* When the far host was heard last, as of the kernel's last tick or since. */
    __u64 heard_at;
    /* Likewise, when data went towards the far host, which has not been heard since; zero: it has. */
    __u64 owed_since;
    /* When the connection began, or was seen first: what was recorded before is another's. */
    __u64 opened_at;
    __u8 has_recorded;
    /* The handshake was seen to be completed: crates/gateway/src/gateway/crossing.rs. */
    __u8 is_proven;
    /* The version of IP; zero: `hosts` is not filled in yet. */
    __u8 version;
    __u8 padding;
    __u32 begun;
    /* Neither changes while it is the same connection's. */
    struct key key;
    struct uncounted uncounted;
    /* When a segment was recorded last in a pause, in units of 2^16 ns. */
    __u16 recorded_at;
    struct hosts hosts;
    struct details details;
} __attribute__((aligned(64)));

/* How often a lock is tried. */
#define TRIES 1000

struct attempt {
    struct entry *entry;
    __u32 is_taken;
};

inline_always int lock_if_free(struct entry *entry)
{
    __u32 free = *(volatile __u32 *)&entry->finished;

    return __sync_val_compare_and_swap(&entry->begun, free, free + 1) == free;
}

static long try_lock(__u32 index, struct attempt *attempt)
{
    attempt->is_taken = lock_if_free(attempt->entry);
    return attempt->is_taken;
}

/*
 * Who holds the lock is on another processor and gives it back within nanoseconds. A spin lock of
 * the kernel's cannot be part of a map that evicts.
 */
out_of_line int lock(struct entry *entry)
{
    struct attempt attempt = { .entry = entry };

    bpf_loop(TRIES, try_lock, &attempt, 0);
    return attempt.is_taken;
}

/* The connection's segments that are not counted yet, which whoever takes them has to count. */
inline_always struct uncounted take_uncounted(struct entry *entry)
{
    struct uncounted uncounted = entry->uncounted;

    entry->uncounted.tracked = entry->uncounted.thinned = 0;
    return uncounted;
}

inline_always void unlock(struct entry *entry)
{
    publish(&entry->finished, entry->begun);
}

#endif
