// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The Immediate Retransmission Option for the kernel's TCP (Schütz, Eggert, Schmid and Brunner,
 * "Protocol Enhancements for Intermittently Connected Hosts", section 3.3.2), in an experimental
 * kind with a number of its own (RFC 6994). A host whose link is back puts it into one pure
 * acknowledgement; the agent at the peer is told of it and retransmits. Nothing is called for
 * segments without options that the kernel does not know.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "slow_start.h"

#define AF_INET6 10
/* Linux 6.12. */
#define SOCK_OPS_CB_FLAGS 1008

#define OPTION_KIND 253
#define OPTION_LENGTH 6

#define TELLS BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG
#define HEARS BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG

/* One request of a connection's peer is passed on in this time, in nanoseconds. */
#define PAUSE 500000000ULL

enum state {
    ESTABLISHED = 1,
    FIN_WAIT1 = 4,
    CLOSE_WAIT = 8,
    LAST_ACK = 9,
    CLOSING = 11,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sock_common {
    volatile unsigned char skc_state;
};

struct sock {
    struct sock_common __sk_common;
};

struct inet_sock {
    struct sock sk;
};

struct tcp_congestion_ops {
    void (*cong_control)(void);
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    const struct tcp_congestion_ops *icsk_ca_ops;
    __u8 icsk_retransmits;
};

struct tcp_options_received {
    __u16 sack_ok : 3;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    struct tcp_options_received rx_opt;
    __u32 prior_ssthresh;
    __u32 snd_una;
    __u32 snd_nxt;
    __u8 bpf_sock_ops_cb_flags;
};

struct bpf_iter__tcp {
    struct sock_common *sk_common;
};
#pragma clang attribute pop

/* What is known of a connection. */
struct connection {
    /* When a request of its peer was passed on; zero: never. */
    __u64 passed_on;
    /* Whether its next pure acknowledgement bears the option. */
    __u8 tells;
    /* Whether another program wants to be called for what it writes. */
    __u8 others_tell;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct connection);
} connections SEC(".maps");

/* The network namespace whose sockets are meant, by its cookie. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} namespaces SEC(".maps");

/* Connections that are to tell their peers, by their cookies. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, __u64);
    __type(value, __u8);
} askers SEC(".maps");

/* A connection whose peer has asked. */
struct request {
    __u32 local[4];
    __u32 remote[4];
    __u16 local_port;
    __u16 remote_port;
    __u16 family;
    __u16 padding;
};

/* What finds no room is counted. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} requests SEC(".maps");

/* In the order of `linux/src/immediate_retransmission.rs`. */
enum count {
    SENT,
    HEARD,
    PASSED_ON,
    NEEDLESS,
    TOO_SOON,
    NO_ROOM,
    FAILURES,
    COUNTS,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct option {
    __u8 kind;
    __u8 length;
    /* "OLIR"; not registered. */
    __u8 experiment[4];
};

#define OPTION { OPTION_KIND, OPTION_LENGTH, { 0x4f, 0x4c, 0x49, 0x52 } }

static __always_inline void count(__u32 what)
{
    __u64 *counter = bpf_map_lookup_elem(&counts, &what);
    if (counter)
        *counter += 1;
}

static __always_inline struct connection *connection_of(struct bpf_sock_ops *ops, int flags)
{
    struct bpf_sock *socket = ops->sk;
    return socket ? bpf_sk_storage_get(&connections, socket, 0, flags) : 0;
}

/* Only pure acknowledgements bear the option: data would not fit into full segments any more. */
static __always_inline int is_due(struct bpf_sock_ops *ops, struct connection *connection)
{
    return connection && connection->tells;
}

static __always_inline void on_room(struct bpf_sock_ops *ops)
{
    if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ops->skb_len)
        return;
    if (is_due(ops, connection_of(ops, 0)) && bpf_reserve_hdr_opt(ops, OPTION_LENGTH, 0))
        count(NO_ROOM);
}

static __always_inline void on_write(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 0);
    struct option option = OPTION;

    if (!is_due(ops, connection))
        return;
    /* Another program's option has made room on a segment with data. */
    if (bpf_store_hdr_opt(ops, &option, sizeof(option), 0))
        return;
    count(SENT);
    connection->tells = 0;
    if (!connection->others_tell)
        bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~TELLS);
}

static __always_inline void find(struct bpf_sock_ops *ops, struct request *request)
{
    request->family = ops->family;
    request->local_port = ops->local_port;
    request->remote_port = bpf_ntohl(ops->remote_port);
    if (ops->family == AF_INET6) {
        request->local[0] = ops->local_ip6[0];
        request->local[1] = ops->local_ip6[1];
        request->local[2] = ops->local_ip6[2];
        request->local[3] = ops->local_ip6[3];
        request->remote[0] = ops->remote_ip6[0];
        request->remote[1] = ops->remote_ip6[1];
        request->remote[2] = ops->remote_ip6[2];
        request->remote[3] = ops->remote_ip6[3];
    } else {
        request->local[0] = ops->local_ip4;
        request->remote[0] = ops->remote_ip4;
    }
}

/*
 * Whether what the peer acknowledges may bring the window of before the outage back, although all that was in flight
 * is lost: without selective acknowledgements nobody would tell. Congestion controls that set their window
 * themselves are left alone.
 */
static __always_inline int restores_window(struct bpf_sock_ops *ops)
{
    struct bpf_sock *socket = ops->sk;
    struct tcp_sock *tcp = socket ? bpf_skc_to_tcp_sock(socket) : 0;
    const struct tcp_congestion_ops *control;

    if (!tcp || BPF_CORE_READ_BITFIELD(tcp, rx_opt.sack_ok) || !tcp->inet_conn.icsk_retransmits)
        return 0;
    control = tcp->inet_conn.icsk_ca_ops;
    return tcp->prior_ssthresh && control && !control->cong_control;
}

/* The kernel has taken the segment for the connection's own, and has not acted on its acknowledgement yet. */
static __always_inline void on_option(struct bpf_sock_ops *ops)
{
    struct option option = OPTION;
    struct connection *connection;
    struct request request = {};
    __u64 now;

    if (bpf_load_hdr_opt(ops, &option, sizeof(option), 0) != OPTION_LENGTH)
        return;
    count(HEARD);
    if (ops->snd_una == ops->snd_nxt) {
        count(NEEDLESS);
        return;
    }
    connection = connection_of(ops, BPF_SK_STORAGE_GET_F_CREATE);
    if (!connection) {
        count(FAILURES);
        return;
    }
    now = bpf_ktime_get_ns();
    if (connection->passed_on && now - connection->passed_on < PAUSE) {
        count(TOO_SOON);
        return;
    }
    find(ops, &request);
    if (bpf_ringbuf_output(&requests, &request, sizeof(request), 0)) {
        count(NO_ROOM);
        return;
    }
    connection->passed_on = now;
    count(PASSED_ON);
    if (restores_window(ops))
        forget_window(ops);
}

SEC("sockops")
int speak(struct bpf_sock_ops *ops)
{
    __u32 zero = 0;
    __u64 *namespace = bpf_map_lookup_elem(&namespaces, &zero);

    if (!namespace || bpf_get_netns_cookie(ops) != *namespace)
        return 1;
    switch (ops->op) {
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | HEARS);
        break;
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
        on_room(ops);
        break;
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
        on_write(ops);
        break;
    case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
        on_option(ops);
        break;
    }
    return 1;
}

static __always_inline void put_flags(struct tcp_sock *tcp, int flags)
{
    if (bpf_setsockopt(tcp, SOL_TCP, SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
        count(FAILURES);
}

/* A connection that may have data outstanding. */
static __always_inline struct tcp_sock *connected(struct bpf_iter__tcp *ctx)
{
    struct sock_common *common = ctx->sk_common;

    if (!common)
        return 0;
    switch (common->skc_state) {
    case ESTABLISHED: case FIN_WAIT1: case CLOSE_WAIT: case LAST_ACK: case CLOSING:
        return bpf_skc_to_tcp_sock(common);
    default:
        return 0;
    }
}

/* Has the connections that were there before call for options. */
SEC("iter/tcp")
int take(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connected(ctx);

    if (tcp && !(tcp->bpf_sock_ops_cb_flags & HEARS))
        put_flags(tcp, tcp->bpf_sock_ops_cb_flags | HEARS);
    return 0;
}

/* And call no more. */
SEC("iter/tcp")
int give_back(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connected(ctx);

    if (tcp && tcp->bpf_sock_ops_cb_flags & HEARS)
        put_flags(tcp, tcp->bpf_sock_ops_cb_flags & ~HEARS);
    return 0;
}

/* The next pure acknowledgement of chosen connections bears the option. */
SEC("iter/tcp")
int ask(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connected(ctx);
    struct connection *connection;
    __u64 cookie;

    if (!tcp)
        return 0;
    cookie = bpf_get_socket_cookie(tcp);
    if (!bpf_map_lookup_elem(&askers, &cookie))
        return 0;
    connection = bpf_sk_storage_get(&connections, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!connection) {
        count(FAILURES);
        return 0;
    }
    if (!connection->tells)
        connection->others_tell = (tcp->bpf_sock_ops_cb_flags & TELLS) != 0;
    connection->tells = 1;
    put_flags(tcp, tcp->bpf_sock_ops_cb_flags | TELLS);
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
