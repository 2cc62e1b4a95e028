// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Peers that have fallen silent, and the first packet that comes from one of them.
 *
 * One program runs at retransmissions only, the other one at each packet of an open connection; it is attached
 * while a silent peer is watched, and at no other time.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define AF_INET 2
#define AF_INET6 10

/* Timeouts in a row after which the peer is looked at: one alone may be the loss of a single segment. */
#define TIMEOUTS 2

/* A SYN is out: nothing was ever heard. */
#define SYN_SENT 2

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr {
    union {
        __u32 u6_addr32[4];
    } in6_u;
};

struct net {
    __u64 net_cookie;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    __be32 skc_daddr;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr;
};

struct sock {
    struct sock_common __sk_common;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    __u8 icsk_retransmits;
};

struct sk_buff {
    int skb_iif;
};
#pragma clang attribute pop

/* An address of IPv6, or one of IPv4 as IPv6 has it. */
struct peer {
    __u32 address[4];
};

enum kind {
    TIMED_OUT = 1,
    HEARD = 2,
};

/* What user space reads; in the order of `silence.rs`. */
struct event {
    struct peer peer;
    __u32 kind;
    /* By which interface a packet has come. */
    __u32 ifindex;
};

/* Peers that may be silent at once: `MOST_PEERS` of `silence.rs`. */
#define MOST_PEERS 4096

/* What user space knows of a peer. */
enum state {
    /* That a connection has timed out. */
    TOLD_OF_TIMEOUT = 1,
    /* And that a packet has come. */
    TOLD_OF_PACKET = 2,
};

/* Peers of which user space was told and has not decided otherwise. It alone takes them out again, so that what it is told
   of a peer, and what it has decided, are never of two different silences. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MOST_PEERS);
    __type(key, struct peer);
    __type(value, __u8);
} peers SEC(".maps");

/* Timeouts of peers that found no room in it. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} refused SEC(".maps");

/* The network namespace whose sockets are meant, by its cookie. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} namespaces SEC(".maps");

/* Room for both events of every peer, each with a header of eight bytes. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, MOST_PEERS * 2 * 32);
} events SEC(".maps");

/* Whether the socket is one of this namespace; then its peer. */
static __always_inline int peer_of(const struct sock *socket, struct peer *peer)
{
    __u32 first = 0;
    __u64 *cookie = bpf_map_lookup_elem(&namespaces, &first);
    const struct sock_common *common = &socket->__sk_common;

    if (!cookie || BPF_CORE_READ(common, skc_net.net, net_cookie) != *cookie)
        return 0;
    if (common->skc_family == AF_INET) {
        peer->address[2] = __builtin_bswap32(0xffff);
        peer->address[3] = common->skc_daddr;
        return 1;
    }
    if (common->skc_family != AF_INET6)
        return 0;
    for (int word = 0; word < 4; word++)
        peer->address[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
    return 1;
}

static __always_inline int tell(const struct peer *peer, enum kind kind, __u32 ifindex)
{
    struct event event = { .peer = *peer, .kind = kind, .ifindex = ifindex };

    return bpf_ringbuf_output(&events, &event, sizeof(event), 0);
}

static __always_inline void count_refusal(void)
{
    __u32 first = 0;
    __u64 *count = bpf_map_lookup_elem(&refused, &first);

    if (count)
        *count += 1;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(note_timeout, const struct sock *socket)
{
    const struct inet_connection_sock *connection = (const void *)socket;
    struct peer peer = {};
    __u8 state = TOLD_OF_TIMEOUT;

    if (BPF_CORE_READ(connection, icsk_retransmits) < TIMEOUTS)
        return 0;
    if (socket->__sk_common.skc_state == SYN_SENT || !peer_of(socket, &peer))
        return 0;
    if (bpf_map_lookup_elem(&peers, &peer))
        return 0;
    if (bpf_map_update_elem(&peers, &peer, &state, BPF_NOEXIST)) {
        if (!bpf_map_lookup_elem(&peers, &peer))
            count_refusal();
        return 0;
    }
    /* Without room the next timeout tells. */
    if (tell(&peer, TIMED_OUT, 0))
        bpf_map_delete_elem(&peers, &peer);
    return 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(note_packet, const struct sock *socket, struct sk_buff *packet)
{
    struct peer peer = {};
    __u8 *state;

    if (!peer_of(socket, &peer))
        return 0;
    state = bpf_map_lookup_elem(&peers, &peer);
    if (!state || *state == TOLD_OF_PACKET)
        return 0;
    *state = TOLD_OF_PACKET;
    /* Without room the next packet tells. */
    if (tell(&peer, HEARD, packet->skb_iif))
        *state = TOLD_OF_TIMEOUT;
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
