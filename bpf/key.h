/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Under what a connection stands in the tables. What a lookup costs grows with the key: it is twelve
 * bytes, in which there is room for two IPv4 addresses and for the ports. In the place of IPv6
 * addresses stands a hash of them that nobody can foresee; the entry has the addresses themselves.
 */
#ifndef OUTLAST_KEY_H
#define OUTLAST_KEY_H

#include <linux/types.h>

#include "tracker.h"

/* Addresses of both hosts as seen from this end of the link; an IPv4 address is IPv4-mapped. */
struct hosts {
    union {
        struct {
            __be32 near[4];
            __be32 far[4];
        };
        __u32 words[8];
    };
};

struct key {
    /* The near and the far IPv4 address, or the hash of the IPv6 addresses. */
    __u32 hosts[2];
    union {
        struct {
            __be16 near_port;
            __be16 far_port;
        };
        /* As they are at the beginning of a TCP header towards the link. */
        __u32 ports;
    };
};

/* All that names a connection. */
struct connection {
    struct hosts hosts;
    struct key key;
};

/* Secret numbers, set by who loads this: one to begin with, and one for each word. */
#define WORDS 8
const volatile __u64 SECRETS[2][1 + WORDS] = {};
/* Likewise for the table's index. */
const volatile __u64 INDEX_SECRETS[4] = {};

inline_always __u32 hash_words(const __u32 *words, const volatile __u64 *secrets)
{
    __u64 sum = secrets[0];

#pragma unroll
    for (int word = 0; word < WORDS; word += 2)
        sum += (secrets[1 + word] + words[word]) * (secrets[2 + word] + words[word + 1]);
    return sum >> 32;
}

/*
 * Two hashes of 32 bits, each strongly universal (MULTILINEAR-HM; Lemire and Kaser, Strongly universal
 * string hashing is fast, 2014): two pairs of addresses have the same with a probability of 2^-64,
 * whoever chooses them.
 */
inline_always void hash_hosts(const struct hosts *hosts, __u32 *hashes)
{
    hashes[0] = hash_words(hosts->words, SECRETS[0]);
    hashes[1] = hash_words(hosts->words, SECRETS[1]);
}

/* 2^64 divided by the golden ratio. */
#define MULTIPLIER 0x9e3779b97f4a7c15ULL

/*
 * Where a connection is in the table's index, which nobody can foresee either: likewise, and then mixed,
 * since of ports that follow on one another one secret of forty would put very many in the same buckets.
 */
inline_always __u32 hash_key(const struct key *key)
{
    __u64 sum = (INDEX_SECRETS[0] + key->hosts[0]) * (INDEX_SECRETS[1] + key->hosts[1]) +
            (INDEX_SECRETS[2] + key->ports) * INDEX_SECRETS[3];

    return (sum ^ sum >> 32) * MULTIPLIER >> 32;
}

inline_always int are_same(const struct hosts *these, const struct hosts *those)
{
    const __u64 *these_words = (const __u64 *)these, *those_words = (const __u64 *)those;

    return ((these_words[0] ^ those_words[0]) | (these_words[1] ^ those_words[1]) |
        (these_words[2] ^ those_words[2]) | (these_words[3] ^ those_words[3])) == 0;
}

#endif
