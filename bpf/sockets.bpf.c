// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Iterators over the TCP sockets of a network namespace: one writes a record for each connection,
 * others have chosen connections start slowly. Nothing runs between passes.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "slow_start.h"

#define AF_INET6 10
#define SACK_BLOCKS 4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct in6_addr {
    union {
        __u32 u6_addr32[4];
    } in6_u;
};

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
};

struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
};

struct net_device {
    int ifindex;
};

struct dst_entry {
    struct net_device *dev;
};

struct sock {
    struct sock_common __sk_common;
    struct dst_entry *sk_dst_cache;
};

struct inet_sock {
    struct sock sk;
};

struct tcp_congestion_ops {
    void (*cong_control)(void);
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    struct {
        __u32 lrcvtime;
        __u16 rcv_mss;
    } icsk_ack;
    const struct tcp_congestion_ops *icsk_ca_ops;
    __u8 icsk_retransmits;
    __u8 icsk_backoff;
    __u32 icsk_rto;
    __u32 icsk_pmtu_cookie;
    __u32 icsk_user_timeout;
};

struct minmax_sample {
    __u32 v;
};

struct minmax {
    struct minmax_sample s[3];
};

struct tcp_options_received {
    __u32 ts_recent;
    __u16 tstamp_ok : 1;
    __u16 sack_ok : 3;
    __u16 snd_wscale : 4;
    __u16 rcv_wscale : 4;
    __u8 num_sacks;
};

struct tcp_sack_block {
    __u32 start_seq;
    __u32 end_seq;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    struct tcp_options_received rx_opt;
    __u32 prior_ssthresh;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 rcv_nxt;
    __u32 srtt_us;
    struct minmax rtt_min;
    __u32 lsndtime;
    __u32 rcv_tstamp;
    __u32 packets_out;
    __u32 retrans_out;
    __u32 lost_out;
    __u32 snd_wnd;
    __u32 rcv_wnd;
    __u32 rcv_wup;
    __u32 tsoffset;
    /* Linux 6.7. */
    __u8 tcp_usec_ts : 1;
    struct tcp_sack_block selective_acks[SACK_BLOCKS];
};
#pragma clang attribute pop

/* What user space reads of each connection; in the order of `stack/record.rs`. */
struct record {
    __u32 local[4];
    __u32 remote[4];
    __u16 local_port;
    __u16 remote_port;
    __u16 family;
    __u8 state;
    __u8 retransmits;
    __u32 ifindex;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 rcv_nxt;
    __u32 srtt_us;
    __u32 user_timeout_ms;
    __u8 backoff;
    /* Whether selective acknowledgements were agreed on. */
    __u8 has_sack;
    /* Whether a timeout that is taken for spurious brings the former window back. */
    __u8 restores_window;
    __u8 has_timestamps;
    __u32 min_rtt_us;
    __u32 path_mtu;
    /* In ticks of the kernel's clock. */
    __u32 rto;
    __u32 since_sent;
    __u32 since_heard;
    __u64 cookie;
    __u32 since_received;
    __u32 receive_mss;
    __u32 packets_out;
    /* What the peer's next acknowledgement would say, and this host's: as on the wire. */
    __u32 peer_window;
    __u32 window;
    __u32 timestamp;
    __u32 echo;
    __u8 sack_count;
    /* Whether the kernel sets its window by a threshold. */
    __u8 has_threshold;
    /* Whether something retransmitted does not count as lost any more: nobody sends it again. */
    __u8 has_forgotten;
    __u8 padding;
    __u32 sacks[2 * SACK_BLOCKS];
};

/* Connections that are to start slowly, by their cookies. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, __u64);
    __type(value, __u8);
} slow_starts SEC(".maps");

/* The congestion control that goes back to the initial window when it is chosen; empty: there is none. */
struct name {
    char text[LONGEST_NAME];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct name);
} initial_windows SEC(".maps");

static __always_inline struct tcp_sock *connection_of(struct bpf_iter__tcp *ctx)
{
    struct sock_common *common = ctx->sk_common;
    if (!common)
        return 0;
    /* TCP_ESTABLISHED to TCP_CLOSING without those that wait or listen. */
    switch (common->skc_state) {
    case 1: case 2: case 3: case 4: case 5: case 8: case 9: case 11:
        return bpf_skc_to_tcp_sock(common);
    default:
        return 0;
    }
}

/* Whether the kernel sets the window by a threshold; BBR and others set it themselves. */
static __always_inline int has_threshold(struct tcp_sock *tcp)
{
    const struct tcp_congestion_ops *control = tcp->inet_conn.icsk_ca_ops;
    return control && !control->cong_control;
}

static __always_inline int restores_window(struct tcp_sock *tcp)
{
    return tcp->prior_ssthresh && has_threshold(tcp);
}

/* What an acknowledgement of what has arrived says. */
static __always_inline void describe_acknowledgement(struct tcp_sock *tcp, struct record *record)
{
    __u32 used = tcp->rcv_nxt - tcp->rcv_wup;
    __u64 clock = bpf_ktime_get_ns();
    int in_microseconds = 0;

    record->packets_out = tcp->packets_out;
    record->has_forgotten = tcp->retrans_out > tcp->lost_out;
    record->peer_window = tcp->snd_wnd >> BPF_CORE_READ_BITFIELD(tcp, rx_opt.snd_wscale);
    if (used < tcp->rcv_wnd)
        record->window = (tcp->rcv_wnd - used) >> BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale);
    if (bpf_core_field_exists(tcp->tcp_usec_ts))
        in_microseconds = BPF_CORE_READ_BITFIELD(tcp, tcp_usec_ts);
    record->timestamp = (__u32)(clock / (in_microseconds ? 1000 : 1000000)) + tcp->tsoffset;
    record->echo = tcp->rx_opt.ts_recent;
    record->sack_count = tcp->rx_opt.num_sacks;
#pragma unroll
    for (int block = 0; block < SACK_BLOCKS; block++) {
        record->sacks[2 * block] = tcp->selective_acks[block].start_seq;
        record->sacks[2 * block + 1] = tcp->selective_acks[block].end_seq;
    }
}

static __always_inline void write(struct bpf_iter__tcp *ctx, struct tcp_sock *tcp)
{
    struct sock_common *common = ctx->sk_common;
    struct record record = {};
    __u32 now = bpf_jiffies64();

    if (!common)
        return;
    record.family = common->skc_family;
    if (record.family == AF_INET6) {
        for (int word = 0; word < 4; word++) {
            record.local[word] = common->skc_v6_rcv_saddr.in6_u.u6_addr32[word];
            record.remote[word] = common->skc_v6_daddr.in6_u.u6_addr32[word];
        }
    } else {
        record.local[0] = common->skc_rcv_saddr;
        record.remote[0] = common->skc_daddr;
    }
    record.local_port = common->skc_num;
    record.remote_port = __builtin_bswap16(common->skc_dport);
    record.state = common->skc_state;
    record.retransmits = tcp->inet_conn.icsk_retransmits;
    record.backoff = tcp->inet_conn.icsk_backoff;
    record.has_sack = BPF_CORE_READ_BITFIELD(tcp, rx_opt.sack_ok) != 0;
    record.restores_window = restores_window(tcp);
    record.has_threshold = has_threshold(tcp);
    record.has_timestamps = BPF_CORE_READ_BITFIELD(tcp, rx_opt.tstamp_ok) != 0;
    record.since_received = now - tcp->inet_conn.icsk_ack.lrcvtime;
    record.receive_mss = tcp->inet_conn.icsk_ack.rcv_mss;
    record.cookie = bpf_get_socket_cookie(tcp);
    record.user_timeout_ms = tcp->inet_conn.icsk_user_timeout;
    record.snd_una = tcp->snd_una;
    record.snd_nxt = tcp->snd_nxt;
    record.rcv_nxt = tcp->rcv_nxt;
    record.srtt_us = tcp->srtt_us >> 3;
    record.min_rtt_us = tcp->rtt_min.s[0].v;
    record.path_mtu = tcp->inet_conn.icsk_pmtu_cookie;
    record.rto = tcp->inet_conn.icsk_rto;
    record.since_sent = now - tcp->lsndtime;
    record.since_heard = now - tcp->rcv_tstamp;
    describe_acknowledgement(tcp, &record);
    struct dst_entry *route = tcp->inet_conn.icsk_inet.sk.sk_dst_cache;
    if (route && route->dev)
        record.ifindex = route->dev->ifindex;
    bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
}

SEC("iter/tcp")
int list(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connection_of(ctx);
    if (tcp)
        write(ctx, tcp);
    return 0;
}

/* Chosen connections start slowly. */
SEC("iter/tcp")
int start_slowly(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connection_of(ctx);
    __u64 cookie;

    if (!tcp)
        return 0;
    cookie = bpf_get_socket_cookie(tcp);
    if (!bpf_map_lookup_elem(&slow_starts, &cookie) || !restores_window(tcp))
        return 0;
    forget_window(tcp);
    return 0;
}

/* Chosen connections go back to the initial window, and to a threshold by what is outstanding. */
SEC("iter/tcp")
int start_anew(struct bpf_iter__tcp *ctx)
{
    struct tcp_sock *tcp = connection_of(ctx);
    struct name former = {}, always = { "reno" }, *chosen;
    __u32 first = 0;
    __u64 cookie;

    if (!tcp)
        return 0;
    cookie = bpf_get_socket_cookie(tcp);
    chosen = bpf_map_lookup_elem(&initial_windows, &first);
    if (!chosen || !chosen->text[0] || !bpf_map_lookup_elem(&slow_starts, &cookie))
        return 0;
    if (bpf_getsockopt(tcp, SOL_TCP, TCP_CONGESTION, former.text, LONGEST_NAME))
        return 0;
    if (bpf_setsockopt(tcp, SOL_TCP, TCP_CONGESTION, chosen->text, LONGEST_NAME))
        return 0;
    if (bpf_setsockopt(tcp, SOL_TCP, TCP_CONGESTION, former.text, LONGEST_NAME))
        bpf_setsockopt(tcp, SOL_TCP, TCP_CONGESTION, always.text, LONGEST_NAME);
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
