// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The User Timeout Option (RFC 5482) for the kernel's TCP: writes it into the SYN, the SYN-ACK and
 * the first segments after them, reads the peer's, and sets the timeout that is adopted. An
 * established connection costs nothing: the kernel calls for a segment with an option that it does
 * not know, and for what is sent while the peer is still to be told.
 */
#include "user_timeout.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#define AF_INET6 10
#define SOL_TCP 6
#define TCP_KEEPIDLE 4
#define TCP_USER_TIMEOUT 18
#define TCP_SAVE_SYN 27
/* Linux 6.12. */
#define SOCK_OPS_CB_FLAGS 1008

#define OPTION_KIND 28
#define OPTION_LENGTH 4
#define MINUTES 0x80

#define FLAG_SYN 0x02

/* SYNs of one connection that tell at most: some middlebox may drop those with the option. */
#define MOST_TELLING_SYNS 2
/* Segments that tell at most, where none with data of its own is acknowledged before. */
#define MOST_TELLINGS 8
/* The kernel's limit, in seconds. */
#define LONGEST_KEEPIDLE 32767

/* A chosen cgroup that is deeper is not found by the iterators. */
#define DEEPEST_CGROUP 16

#define TELLS BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG
#define HEARS BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG
#define ENDS BPF_SOCK_OPS_STATE_CB_FLAG

enum state {
    ESTABLISHED = 1,
    SYN_SENT = 2,
    CLOSE = 7,
    CLOSE_WAIT = 8,
    LISTEN = 10,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct kernfs_node {
    __u64 id;
};

struct cgroup {
    int level;
    struct kernfs_node *kn;
    struct cgroup *ancestors[];
};

struct sock_cgroup_data {
    struct cgroup *cgroup;
};

struct in6_addr {
    union {
        __u32 u6_addr32[4];
    } in6_u;
};

struct sock_common {
    __be32 skc_daddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    struct in6_addr skc_v6_daddr;
};

struct net_device {
    int ifindex;
    char name[LONGEST_INTERFACE];
};

struct dst_entry {
    struct net_device *dev;
};

struct sock {
    struct sock_common __sk_common;
    struct dst_entry *sk_dst_cache;
    struct sock_cgroup_data sk_cgrp_data;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    __u8 icsk_retransmits;
    __u32 icsk_rto;
    __u32 icsk_user_timeout;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    unsigned int keepalive_time;
    __u8 bpf_sock_ops_cb_flags;
};

struct bpf_iter__tcp {
    struct sock_common *sk_common;
};
#pragma clang attribute pop

/* What is known of a connection. */
struct connection {
    /* The user timeout that this program has set; zero: none. */
    __u32 set_ms;
    /* The end of the first data that told the peer. */
    __u32 told_before;
    /* When idle connections would be probed without this program, in seconds; zero: as they are. */
    __u32 usual_idle;
    /* Segments that may still tell. */
    __u8 tellings;
    /* Whether data told the peer, and where it ends is known. */
    __u8 has_told;
    /* Whether it counts as kept for long. */
    __u8 is_kept;
    /* Whether the application has set its own timeout. */
    __u8 is_left_alone;
    /* Of a socket that listens: whether SYNs are kept because of this program. */
    __u8 saves_syn;
    /* The place of the rule that holds for it. */
    __u8 rule;
    /* Whether its timeout is a longer one while its link is away, what it was before, and the link. */
    __u8 is_stretched;
    __u8 padding;
    __u32 usual_ms;
    __u32 away_on;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct connection);
} connections SEC(".maps");

/* In the order of `linux/src/user_timeout.rs`. */
enum count {
    OPTIONS_SENT,
    OPTIONS_HEARD,
    ADOPTED,
    REFUSED,
    RESERVED_VALUES,
    LEFT_ALONE,
    NO_ROOM,
    FAILURES,
    TAKEN_OVER,
    STRETCHED,
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
    __u8 value[2];
};

static __always_inline void count(__u32 what)
{
    __u64 *counter = bpf_map_lookup_elem(&counts, &what);
    if (counter)
        *counter += 1;
}

static __always_inline void add_flags(struct bpf_sock_ops *ops, int flags)
{
    bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | flags);
}

static __always_inline void drop_flags(struct bpf_sock_ops *ops, int flags)
{
    bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~flags);
}

static __always_inline struct connection *connection_of(struct bpf_sock_ops *ops, int may_begin)
{
    struct bpf_sock *socket = ops->sk;
    if (!socket)
        return 0;
    return bpf_sk_storage_get(&connections, socket, 0,
                              may_begin ? BPF_SK_STORAGE_GET_F_CREATE : 0);
}

static __always_inline struct tcp_sock *tcp_of(struct bpf_sock_ops *ops)
{
    struct bpf_sock *socket = ops->sk;
    return socket ? bpf_skc_to_tcp_sock(socket) : 0;
}

/* What a connection is judged by. */
struct way {
    __u32 peer[4];
    __u16 ports[2];
    __u32 padding;
    /* Where they are known; zero otherwise. */
    __u64 interface[LONGEST_INTERFACE / 8];
    /* The address of a `struct cgroup`. */
    __u64 cgroup;
};

/*
 * The verifier looks at it once, and not for each caller and each state there: with these loops inlined Linux 6.1 gave
 * up `speak` after 1,000,000 instructions.
 */
#define verified_once __attribute__((noinline))

/* The address of a socket's cgroup, as a number: functions that are verified once take no pointers to the kernel's types. */
static __always_inline __u64 cgroup_of(struct tcp_sock *tcp)
{
    __u64 address = 0;

    bpf_core_read(&address, sizeof(address), &tcp->inet_conn.icsk_inet.sk.sk_cgrp_data.cgroup);
    return address;
}

/* Whether a cgroup is the one of that number, or below it. */
verified_once int is_below(__u64 address, __u64 wanted)
{
    struct cgroup *cgroup = (struct cgroup *)address, *above;
    int deepest;

    if (!cgroup || bpf_core_read(&deepest, sizeof(deepest), &cgroup->level))
        return 0;
    for (int level = 0; level < DEEPEST_CGROUP; level++) {
        if (level > deepest)
            return 0;
        /* The verifier knows nothing of arrays at the end of a structure. */
        if (bpf_core_read(&above, sizeof(above), &cgroup->ancestors[level]))
            return 0;
        if (BPF_CORE_READ(above, kn, id) == wanted)
            return 1;
    }
    return 0;
}

static __always_inline int holds(const struct rule *rule, const struct way *way)
{
    if (rule->port && rule->port != way->ports[0] && rule->port != way->ports[1])
        return 0;
    for (int word = 0; word < 4; word++) {
        if ((way->peer[word] & rule->mask[word]) != rule->peer[word])
            return 0;
    }
    if (rule->interface[0]
        && (rule->interface[0] != way->interface[0] || rule->interface[1] != way->interface[1]))
        return 0;
    return !rule->cgroup || is_below(way->cgroup, rule->cgroup);
}

/* The place of the first rule that holds. */
verified_once int rule_for(const struct way *way)
{
    if (!way)
        return MOST_RULES;
    for (int place = 0; place < MOST_RULES; place++) {
        if (place >= POLICY.rule_count)
            break;
        if (holds(&POLICY.rules[place], way))
            return place;
    }
    return MOST_RULES;
}

static __always_inline const struct rule *rule_at(__u8 place)
{
    return &POLICY.rules[place < MOST_RULES ? place : MOST_RULES];
}

static __always_inline void find_peer(struct way *way, const __u32 *v6, __u32 v4, int family)
{
    if (family == AF_INET6) {
        for (int word = 0; word < 4; word++)
            way->peer[word] = v6[word];
    } else {
        way->peer[2] = bpf_htonl(0xffff);
        way->peer[3] = v4;
    }
}

/* What only whole sockets know. */
static __always_inline void find_way(struct way *way, struct tcp_sock *tcp)
{
    struct dst_entry *route = tcp->inet_conn.icsk_inet.sk.sk_dst_cache;

    way->cgroup = cgroup_of(tcp);
    if (route && route->dev)
        bpf_core_read(way->interface, sizeof(way->interface), &route->dev->name);
    /* What is behind the name is not always zero. */
    for (int byte = 0, is_over = 0; byte < LONGEST_INTERFACE; byte++) {
        __u8 *name = (__u8 *)way->interface;
        if (!name[byte])
            is_over = 1;
        if (is_over)
            name[byte] = 0;
    }
}

static __always_inline __u8 rule_of_socket(struct tcp_sock *tcp)
{
    struct sock_common *common = &tcp->inet_conn.icsk_inet.sk.__sk_common;
    struct way way = { .ports = { common->skc_num, bpf_ntohs(common->skc_dport) } };
    __u32 peer[4] = {};

    if (common->skc_family == AF_INET6) {
        for (int word = 0; word < 4; word++)
            peer[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
    }
    find_peer(&way, peer, common->skc_daddr, common->skc_family);
    find_way(&way, tcp);
    return rule_for(&way);
}

/* Of a request, interface and cgroup are not known yet. */
static __always_inline __u8 rule_of_request(struct bpf_sock_ops *ops)
{
    struct way way = { .ports = { ops->local_port, bpf_ntohl(ops->remote_port) } };
    __u32 first = ops->remote_ip6[0], second = ops->remote_ip6[1];
    __u32 third = ops->remote_ip6[2], fourth = ops->remote_ip6[3], v4 = ops->remote_ip4;

    /* The verifier allows no pointer to one of them, by which the compiler would choose. */
    asm volatile("" : "+r"(first), "+r"(second), "+r"(third), "+r"(fourth), "+r"(v4));
    find_peer(&way, (__u32[4]){ first, second, third, fourth }, v4, ops->family);
    return rule_for(&way);
}

static __always_inline struct peer peer_of(struct bpf_sock_ops *ops)
{
    struct peer peer = {};
    __u32 first = ops->remote_ip6[0], second = ops->remote_ip6[1], third = ops->remote_ip6[2];

    if (ops->family != AF_INET6) {
        peer.network[0] = ops->remote_ip4;
    } else if (!first && !second && third == bpf_htonl(0xffff)) {
        peer.network[0] = ops->remote_ip6[3];
    } else {
        peer.network[0] = first;
        peer.network[1] = second;
    }
    return peer;
}

static __always_inline void tell(struct connection *connection)
{
    connection->tellings = MOST_TELLINGS;
    connection->has_told = 0;
}

/* The application's timeout is in force: nothing is told, and nothing heard. */
static __always_inline void leave_alone(struct bpf_sock_ops *ops,
                                        struct connection *connection)
{
    struct peer peer = peer_of(ops);
    release(&peer, &connection->is_kept);
    if (!connection->is_left_alone)
        count(LEFT_ALONE);
    connection->is_left_alone = 1;
    connection->tellings = 0;
    /* Another program may hear. */
    drop_flags(ops, TELLS | ENDS);
}

/*
 * Probes that the kernel sends by its own habit begin later than the user timeout (RFC 5482,
 * section 4.2). Those of an application that has chosen when to probe stay: the kernel aborts
 * no connection before the user timeout because of them.
 */
static __always_inline int idle_for(__u32 timeout_ms)
{
    __u32 idle = timeout_ms / 1000 + 1;
    return idle < LONGEST_KEEPIDLE ? idle : LONGEST_KEEPIDLE;
}

static __always_inline void set(struct bpf_sock_ops *ops, struct tcp_sock *tcp,
                                struct connection *connection, __u32 timeout_ms)
{
    int idle = idle_for(timeout_ms), usual = 0, value = timeout_ms;

    if (bpf_setsockopt(ops, SOL_TCP, TCP_USER_TIMEOUT, &value, sizeof(value))) {
        count(FAILURES);
        return;
    }
    connection->set_ms = timeout_ms;
    connection->is_stretched = 0;
    /* Who has a time of its own has it from this program, or from the application. */
    if (tcp->keepalive_time && !connection->usual_idle)
        return;
    if (bpf_getsockopt(ops, SOL_TCP, TCP_KEEPIDLE, &usual, sizeof(usual)) || usual >= idle)
        return;
    if (bpf_setsockopt(ops, SOL_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)))
        count(FAILURES);
    else if (!connection->usual_idle)
        connection->usual_idle = usual;
}

/* The peer's wish in milliseconds; zero if there is none. `flags`: where to look. */
static __always_inline __u32 heard(struct bpf_sock_ops *ops, __u64 flags)
{
    struct option option = { .kind = OPTION_KIND };
    __u32 value;

    if (bpf_load_hdr_opt(ops, &option, sizeof(option), flags) != OPTION_LENGTH
        || option.length != OPTION_LENGTH)
        return 0;
    count(OPTIONS_HEARD);
    value = (option.value[0] & ~MINUTES) << 8 | option.value[1];
    if (!value)
        count(RESERVED_VALUES);
    if (option.value[0] & MINUTES)
        value *= 60;
    return value * 1000;
}

static __always_inline void hear(struct bpf_sock_ops *ops,
                                 struct tcp_sock *tcp, struct connection *connection,
                                 __u32 remote_ms)
{
    struct peer peer = peer_of(ops);
    __u32 rto_ms = (__u64)tcp->inet_conn.icsk_rto * POLICY.tick_us / 1000;
    __u8 is_kept = connection->is_kept, is_refused = 0;
    __u32 timeout_ms;

    if (tcp->inet_conn.icsk_user_timeout != connection->set_ms) {
        leave_alone(ops, connection);
        return;
    }
    timeout_ms = judge(&peer, rule_at(connection->rule)->advertise_ms, remote_ms, rto_ms,
                       &is_kept, &is_refused);
    connection->is_kept = is_kept;
    if (is_refused)
        count(REFUSED);
    if (is_kept)
        add_flags(ops, ENDS);
    if (timeout_ms == connection->set_ms)
        return;
    set(ops, tcp, connection, timeout_ms);
    count(ADOPTED);
    tell(connection);
    add_flags(ops, TELLS);
}

/* A connection of the calling host's is about to send its SYN. */
static __always_inline void on_connect(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 1);
    struct tcp_sock *tcp = tcp_of(ops);

    if (!connection || !tcp || tcp->inet_conn.icsk_user_timeout)
        return;
    connection->rule = rule_of_socket(tcp);
    add_flags(ops, TELLS);
}

/* A socket begins to listen: SYNs are kept for what they say, and answered with the option. */
static __always_inline void on_listen(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 1);
    struct tcp_sock *tcp = tcp_of(ops);
    int saved = 0, one = 1;

    if (!connection || !tcp || tcp->inet_conn.icsk_user_timeout)
        return;
    if (!bpf_getsockopt(ops, SOL_TCP, TCP_SAVE_SYN, &saved, sizeof(saved)) && !saved) {
        if (bpf_setsockopt(ops, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one)))
            count(FAILURES);
        connection->saves_syn = 1;
    }
    add_flags(ops, TELLS);
}

static __always_inline void on_established(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 1);
    struct tcp_sock *tcp = tcp_of(ops);
    __u32 remote_ms, later_ms;

    if (!connection || !tcp) {
        drop_flags(ops, TELLS);
        count(FAILURES);
        return;
    }
    if (tcp->inet_conn.icsk_user_timeout) {
        leave_alone(ops, connection);
        return;
    }
    connection->rule = rule_of_socket(tcp);
    if (POLICY.is_one_sided)
        set(ops, tcp, connection, adopt(rule_at(connection->rule)->advertise_ms, 0, 0));
    tell(connection);
    add_flags(ops, TELLS | HEARS);
    remote_ms = 0;
    if (ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
        remote_ms = heard(ops, BPF_LOAD_HDR_OPT_TCP_SYN);
    later_ms = heard(ops, 0);
    if (later_ms)
        remote_ms = later_ms;
    if (remote_ms)
        hear(ops, tcp, connection, remote_ms);
}

/* Whether the next segment that is not a SYN tells the peer. */
static __always_inline int is_due(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 0);
    struct tcp_sock *tcp = tcp_of(ops);
    __s32 left;

    /* Before it is established only its SYNs tell. */
    if (!connection || !tcp || ops->state == SYN_SENT)
        return 0;
    if (tcp->inet_conn.icsk_user_timeout != connection->set_ms) {
        leave_alone(ops, connection);
        return 0;
    }
    left = connection->told_before - ops->snd_una;
    if (connection->tellings && (!connection->has_told || left > 0))
        return 1;
    connection->tellings = 0;
    drop_flags(ops, TELLS);
    return 0;
}

static __always_inline int is_wanted(struct bpf_sock_ops *ops)
{
    struct tcp_sock *tcp;

    if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || !(ops->skb_tcp_flags & FLAG_SYN))
        return is_due(ops);
    /* What answers a SYN belongs to a request, which is no whole socket. */
    tcp = tcp_of(ops);
    return !tcp || tcp->inet_conn.icsk_retransmits < MOST_TELLING_SYNS;
}

static __always_inline void on_room(struct bpf_sock_ops *ops)
{
    if (is_wanted(ops) && bpf_reserve_hdr_opt(ops, OPTION_LENGTH, 0))
        count(NO_ROOM);
}

static __always_inline void on_write(struct bpf_sock_ops *ops)
{
    struct option option = { .kind = OPTION_KIND, .length = OPTION_LENGTH };
    struct connection *connection;
    const struct rule *rule;
    __u32 header, seq;
    __u8 *segment;

    if (!(ops->skb_tcp_flags & FLAG_SYN) && !is_due(ops))
        return;
    /* What answers a SYN belongs to a request, which keeps nothing. */
    connection = tcp_of(ops) ? connection_of(ops, 0) : 0;
    rule = rule_at(connection ? connection->rule : rule_of_request(ops));
    option.value[0] = rule->option[0];
    option.value[1] = rule->option[1];
    /* It is there already where another agent has written it. */
    if (bpf_store_hdr_opt(ops, &option, sizeof(option), 0))
        return;
    count(OPTIONS_SENT);
    if (ops->skb_tcp_flags & FLAG_SYN)
        return;
    segment = ops->skb_data;
    if (!connection || segment + 20 > (__u8 *)ops->skb_data_end)
        return;
    connection->tellings -= 1;
    header = (segment[12] >> 4) * 4;
    if (!connection->has_told && ops->skb_len > header) {
        seq = bpf_ntohl(*(__be32 *)(segment + 4));
        connection->told_before = seq + (ops->skb_len - header);
        connection->has_told = 1;
    }
}

static __always_inline void on_option(struct bpf_sock_ops *ops)
{
    struct connection *connection = connection_of(ops, 0);
    struct tcp_sock *tcp = tcp_of(ops);
    __u32 remote_ms;

    if (!connection || connection->is_left_alone || !tcp)
        return;
    remote_ms = heard(ops, 0);
    if (remote_ms)
        hear(ops, tcp, connection, remote_ms);
}

static __always_inline void on_state(struct bpf_sock_ops *ops)
{
    struct connection *connection;
    struct peer peer;
    __u8 is_kept;

    if (ops->args[1] != CLOSE)
        return;
    connection = connection_of(ops, 0);
    if (!connection)
        return;
    peer = peer_of(ops);
    is_kept = connection->is_kept;
    release(&peer, &is_kept);
    connection->is_kept = is_kept;
}

SEC("sockops")
int speak(struct bpf_sock_ops *ops)
{
    if (bpf_get_netns_cookie(ops) != POLICY.namespace)
        return 1;
    switch (ops->op) {
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
        on_connect(ops);
        break;
    case BPF_SOCK_OPS_TCP_LISTEN_CB:
        on_listen(ops);
        break;
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        on_established(ops);
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
    case BPF_SOCK_OPS_STATE_CB:
        on_state(ops);
        break;
    }
    return 1;
}

/* Whether the socket is of one of the chosen cgroups, or of one below it. */
static __always_inline int is_chosen(struct tcp_sock *tcp)
{
    __u64 cgroup = cgroup_of(tcp);

    for (int n = 0; n < MOST_CGROUPS; n++) {
        if (POLICY.cgroups[n] && is_below(cgroup, POLICY.cgroups[n]))
            return 1;
    }
    return 0;
}

static __always_inline void put(struct tcp_sock *tcp, int option, int value)
{
    if (bpf_setsockopt(tcp, SOL_TCP, option, &value, sizeof(value)))
        count(FAILURES);
}

/* A socket of the chosen cgroups that is more than a request or what is left of a connection. */
static __always_inline struct tcp_sock *socket_of(struct bpf_iter__tcp *ctx)
{
    struct sock_common *common = ctx->sk_common;
    struct tcp_sock *tcp = common ? bpf_skc_to_tcp_sock(common) : 0;
    return tcp && is_chosen(tcp) ? tcp : 0;
}

static __always_inline void take_listener(struct tcp_sock *tcp, struct connection *connection)
{
    int saved = 0;

    if (!bpf_getsockopt(tcp, SOL_TCP, TCP_SAVE_SYN, &saved, sizeof(saved)) && !saved) {
        put(tcp, TCP_SAVE_SYN, 1);
        connection->saves_syn = 1;
    }
    put(tcp, SOCK_OPS_CB_FLAGS, tcp->bpf_sock_ops_cb_flags | TELLS);
}

static __always_inline void take_connection(struct tcp_sock *tcp, struct connection *connection)
{
    __u32 own_ms;
    int usual = 0;

    connection->rule = rule_of_socket(tcp);
    own_ms = adopt(rule_at(connection->rule)->advertise_ms, 0, 0);
    if (POLICY.is_one_sided) {
        put(tcp, TCP_USER_TIMEOUT, own_ms);
        connection->set_ms = own_ms;
        if (!tcp->keepalive_time
            && !bpf_getsockopt(tcp, SOL_TCP, TCP_KEEPIDLE, &usual, sizeof(usual))
            && usual < idle_for(own_ms)) {
            put(tcp, TCP_KEEPIDLE, idle_for(own_ms));
            connection->usual_idle = usual;
        }
    }
    tell(connection);
    put(tcp, SOCK_OPS_CB_FLAGS, tcp->bpf_sock_ops_cb_flags | TELLS | HEARS);
}

/* Takes over the sockets that were there before. */
SEC("iter/tcp")
int take(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = socket_of(ctx);
    struct connection *connection;
    __u8 state;

    if (!tcp || tcp->inet_conn.icsk_user_timeout)
        return 0;
    state = tcp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
    if (state != ESTABLISHED && state != CLOSE_WAIT && state != LISTEN)
        return 0;
    connection = bpf_sk_storage_get(&connections, tcp, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!connection) {
        count(FAILURES);
        return 0;
    }
    if (state == LISTEN)
        take_listener(tcp, connection);
    else
        take_connection(tcp, connection);
    count(TAKEN_OVER);
    return 0;
}

/* Gives all sockets back to the kernel's own limits. */
SEC("iter/tcp")
int give_back(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = socket_of(ctx);
    struct connection *connection;

    if (!tcp)
        return 0;
    connection = bpf_sk_storage_get(&connections, tcp, 0, 0);
    if (!connection)
        return 0;
    if (connection->saves_syn)
        put(tcp, TCP_SAVE_SYN, 0);
    if (connection->set_ms && tcp->inet_conn.icsk_user_timeout == connection->set_ms)
        put(tcp, TCP_USER_TIMEOUT, 0);
    if (connection->usual_idle && connection->set_ms
        && tcp->inet_conn.icsk_user_timeout == 0)
        put(tcp, TCP_KEEPIDLE, connection->usual_idle);
    put(tcp, SOCK_OPS_CB_FLAGS, tcp->bpf_sock_ops_cb_flags & ~(TELLS | HEARS | ENDS));
    /* The programs may begin anew. */
    *connection = (struct connection){};
    return 0;
}

/* The link that has gone or come. */
struct outage {
    __u32 ifindex;
    __u32 is_away;
    /* The neighbour, of IPv4 as IPv6 writes it; zero: the whole link. */
    __u32 peer[4];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct outage);
} outages SEC(".maps");

static __always_inline int is_of(struct tcp_sock *tcp, const __u32 *wanted)
{
    struct sock_common *common = &tcp->inet_conn.icsk_inet.sk.__sk_common;
    struct way way = {};
    __u32 peer[4] = {};

    if (!(wanted[0] | wanted[1] | wanted[2] | wanted[3]))
        return 1;
    if (common->skc_family == AF_INET6) {
        for (int word = 0; word < 4; word++)
            peer[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
    }
    find_peer(&way, peer, common->skc_daddr, common->skc_family);
    for (int word = 0; word < 4; word++) {
        if (way.peer[word] != wanted[word])
            return 0;
    }
    return 1;
}

/* The interface that its packets leave by; zero: none is known. */
static __always_inline __u32 interface_of(struct tcp_sock *tcp)
{
    struct dst_entry *route = tcp->inet_conn.icsk_inet.sk.sk_dst_cache;
    return route && route->dev ? route->dev->ifindex : 0;
}

/* Keeps connections for longer while their link is away, and as before when it is back. */
SEC("iter/tcp")
int stretch(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = socket_of(ctx);
    struct connection *connection;
    struct outage *outage;
    __u32 zero = 0, longer_ms;

    outage = bpf_map_lookup_elem(&outages, &zero);
    if (!tcp || !outage)
        return 0;
    connection = bpf_sk_storage_get(&connections, tcp, 0, 0);
    if (!connection || connection->is_left_alone
        || tcp->inet_conn.icsk_user_timeout != connection->set_ms)
        return 0;
    longer_ms = rule_at(connection->rule)->in_outage_ms;
    if (!outage->is_away) {
        /* Its route may be another one by now, or none. */
        if (!connection->is_stretched || connection->away_on != outage->ifindex
            || !is_of(tcp, outage->peer))
            return 0;
        put(tcp, TCP_USER_TIMEOUT, connection->usual_ms);
        connection->set_ms = connection->usual_ms;
        connection->is_stretched = 0;
        return 0;
    }
    if (connection->is_stretched || longer_ms <= connection->set_ms
        || interface_of(tcp) != outage->ifindex || !is_of(tcp, outage->peer))
        return 0;
    put(tcp, TCP_USER_TIMEOUT, longer_ms);
    connection->usual_ms = connection->set_ms;
    connection->set_ms = longer_ms;
    connection->is_stretched = 1;
    connection->away_on = outage->ifindex;
    count(STRETCHED);
    return 0;
}

/* A question of the test, behind an Ethernet header, and its answer. */
struct question {
    __u8 ethernet[14];
    __u8 is_kept;
    __u8 padding;
    struct peer peer;
    __u32 remote_ms;
    __u32 rto_ms;
};

struct answer {
    __u32 timeout_ms;
    __u8 is_kept;
    __u8 is_refused;
    __u8 padding[2];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct answer);
} answers SEC(".maps");

/* Attached nowhere: a test asks it what the other programs would adopt. */
SEC("classifier")
int ask(struct __sk_buff *skb)
{
    struct question *question = (void *)(long)skb->data;
    struct answer *answer;
    struct peer peer;
    __u32 zero = 0;

    answer = bpf_map_lookup_elem(&answers, &zero);
    if (!answer || (void *)(question + 1) > (void *)(long)skb->data_end)
        return 2;
    peer = question->peer;
    answer->is_kept = question->is_kept;
    answer->timeout_ms = judge(&peer, rule_at(MOST_RULES)->advertise_ms, question->remote_ms, question->rto_ms,
                               &answer->is_kept, &answer->is_refused);
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
