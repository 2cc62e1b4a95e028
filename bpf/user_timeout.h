/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which user timeout a connection adopts (RFC 5482, section 3.1): what `outlast-host`'s
 * `user_timeout` decides, a second time. A test asks both the same questions.
 */
#ifndef OUTLAST_USER_TIMEOUT_H
#define OUTLAST_USER_TIMEOUT_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Counters of peers. Peers that share one share its limit. */
#define PEER_SLOTS 4096
#define MOST_CGROUPS 8
#define MOST_RULES 16
#define LONGEST_INTERFACE 16

/* What some connections are told and kept for instead. What is zero holds for all. */
struct rule {
    __u64 cgroup;
    /* The name of the interface that its packets leave by. */
    __u64 interface[LONGEST_INTERFACE / 8];
    /* The peer's network, of IPv4 as IPv6 writes it. */
    __u32 peer[4];
    __u32 mask[4];
    __u32 advertise_ms;
    /* For how long connections are kept while their link is away; zero: as before. */
    __u32 in_outage_ms;
    /* At either end. */
    __u16 port;
    /* The two bytes of the option that say `advertise_ms`. */
    __u8 option[2];
    __u32 padding;
};

/* Written by user space while no program is attached. */
struct policy {
    /* The network namespace whose sockets are meant. */
    __u64 namespace;
    /* The cgroups whose sockets are meant, for sockets that are there already. */
    __u64 cgroups[MOST_CGROUPS];
    /* The first one that holds for a connection, and last the one for all others. */
    struct rule rules[MOST_RULES + 1];
    /* L_LIMIT and U_LIMIT. */
    __u32 at_least_ms;
    __u32 at_most_ms;
    /* Length of a tick of the kernel's clock. */
    __u32 tick_us;
    /* Connections that are kept for longer than this host wants, because their peers ask for it. */
    __u32 per_peer;
    __u32 in_all;
    /* Secret of this process. */
    __u32 seed;
    /* Whether this host's own wish holds where the peer sends no option. */
    __u8 is_one_sided;
    /* Rules before the last one. */
    __u8 rule_count;
    __u8 padding[2];
};

/* A section of its own, which is one map: user space writes all of it at once. */
struct policy POLICY SEC(".data.policy") = {};

/* Connections kept for long: of the peers of each slot, and last of all. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, PEER_SLOTS + 1);
    __type(key, __u32);
    __type(value, __u32);
} kept SEC(".maps");

/* What is known of a peer's address: the whole of it, or of IPv6 the network's half. */
struct peer {
    __u32 network[2];
};

static __always_inline __u32 larger(__u32 a, __u32 b)
{
    return a > b ? a : b;
}

/* USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)), and longer than the RTO. */
static __always_inline __u32 adopt(__u32 advertise_ms, __u32 remote_ms, __u32 rto_ms)
{
    __u32 timeout_ms = larger(advertise_ms, remote_ms);
    timeout_ms = larger(larger(timeout_ms, POLICY.at_least_ms), rto_ms);
    return timeout_ms < POLICY.at_most_ms ? timeout_ms : POLICY.at_most_ms;
}

static __always_inline __u32 slot_of(const struct peer *peer)
{
    __u32 hash = POLICY.seed;
    for (int word = 0; word < 2; word++) {
        hash = (hash ^ peer->network[word]) * 0x9e3779b1;
        hash ^= hash >> 15;
    }
    hash *= 0x85ebca6b;
    return (hash ^ hash >> 13) % PEER_SLOTS;
}

/* Whether one more may be counted at `place`, of which there may be `most`. */
static __always_inline int count_one(__u32 place, __u32 most)
{
    __u32 *count = bpf_map_lookup_elem(&kept, &place);
    if (!count)
        return 0;
    if (__sync_fetch_and_add(count, 1) < most)
        return 1;
    __sync_fetch_and_add(count, -1);
    return 0;
}

static __always_inline void discount_one(__u32 place)
{
    __u32 *count = bpf_map_lookup_elem(&kept, &place);
    if (count)
        __sync_fetch_and_add(count, -1);
}

/* The connection has ended, or is kept no longer than this host wants. */
static __always_inline void release(const struct peer *peer,
                                    __u8 *is_kept)
{
    if (!*is_kept)
        return;
    *is_kept = 0;
    discount_one(slot_of(peer));
    discount_one(PEER_SLOTS);
}

static __always_inline int grant(const struct peer *peer,
                                 __u8 *is_kept)
{
    __u32 slot;

    if (*is_kept)
        return 1;
    slot = slot_of(peer);
    if (!count_one(slot, POLICY.per_peer))
        return 0;
    if (!count_one(PEER_SLOTS, POLICY.in_all)) {
        discount_one(slot);
        return 0;
    }
    *is_kept = 1;
    return 1;
}

/*
 * The timeout for a connection of which this host wants `advertise_ms`, whose peer asks for
 * `remote_ms`, which is not zero, and that `is_kept` for long or not. A request that finds a limit reached counts as one for nothing.
 */
static __always_inline __u32 judge(const struct peer *peer, __u32 advertise_ms,
                                   __u32 remote_ms, __u32 rto_ms, __u8 *is_kept, __u8 *is_refused)
{
    __u32 own_ms = adopt(advertise_ms, 0, rto_ms);
    __u32 wanted_ms = adopt(advertise_ms, remote_ms, rto_ms);

    *is_refused = 0;
    if (wanted_ms <= own_ms) {
        release(peer, is_kept);
        return own_ms;
    }
    if (grant(peer, is_kept))
        return wanted_ms;
    *is_refused = 1;
    return own_ms;
}

#endif
