// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two programs for traffic control that pass every packet of an interface: `to_link` sees what it
 * sends, `from_link` what it receives. They track its TCP connections, and keep what a gateway
 * needs if the link goes down: the segments sent last, and of each connection the newest
 * acknowledgement in both directions.
 *
 * Nothing is written to a packet. What cannot be read as a whole TCP segment is not tracked.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "contest.h"
#include "entry.h"
#include "counters.h"
#include "table.h"

/* What most packets need, in one cache line. */
struct common {
    /* Until then only what is important is recorded. */
    __u64 paused_until;
    /* The time when the first packet passed since the kernel's last tick, and which tick that was. */
    __u64 now;
    __u64 tick;
    /* Bytes in front of the IP header, which the interface's kind decides; set by who attaches this. */
    __u32 link_header;
    /* How many bursts the recorder's last pause was long. */
    __u32 pause;
};

volatile struct common COMMON SEC(".data") = { .link_header = ETH_HLEN };

#include "recorder.h"

/* TCX_NEXT: whoever is attached behind decides. */
#define PASS (-1)

/* Extension headers that are skipped; who uses more is not tracked. */
#define EXTENSIONS 6

/* IPv6 extension headers (RFC 8200). */
enum {
    HOP_BY_HOP = 0,
    ROUTING = 43,
    FRAGMENT = 44,
    AUTHENTICATION = 51,
    DESTINATION_OPTIONS = 60,
};

/* Where an entry comes from, and a contest; they are too long for the stack. */
static const __u8 EMPTY[sizeof(struct entry)] = {};

/*
 * Those whose handshake was not seen to be completed: whoever only guesses addresses displaces
 * nobody but his like.
 */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 32768);
    __type(key, struct key);
    __type(value, struct entry);
} OPENINGS SEC(".maps");

/* What does not belong to connections whose addresses and ports it has. Whoever guesses displaces others' guesses. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, struct key);
    __type(value, struct contest);
} CONTESTS SEC(".maps");

/* Connections whose far host does not answer, for user space to look at. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 65536);
} SUSPICIONS SEC(".maps");

/* Packets with this mark were sent by who loads this. */
const volatile __u32 MARK = 0;
/* In a trial the time is what `cb` says, in nanoseconds: the low half first. */
const volatile __u8 IS_TRIAL = 0;

/* Assumed before the first sample of a round-trip time. */
#define INITIAL_RTT 200000000ULL
/* Nobody is suspected for being silent for less. */
#define SHORTEST_SILENCE 200000000ULL
/* User space is told of one connection no oftener; hosts that are not answered repeat more seldom. */
#define SUSPICION_PAUSE 100000000ULL
/* Likewise, of a connection of which only the near host was heard. */
#define ONE_SIDED_PAUSE 1000000000ULL

/* Reads bytes at an offset from the IP header. */
inline_always int load(struct __sk_buff *skb, __u32 at, void *to, __u32 len)
{
    return bpf_skb_load_bytes(skb, COMMON.link_header + at, to, len);
}

/* Which version of IP it is, where the transport header begins, and where the packet ends. */
struct extent {
    __u32 version;
    __u32 transport_at;
    __u32 end;
};

out_of_line int read_v4(struct __sk_buff *skb, const __u8 *fixed, __u8 *source, __u8 *destination,
          struct extent *extent)
{
    __u8 options[OPTIONS] = {};
    __u32 header_len = (fixed[0] & 15) * 4;
    __s64 options_len = (__s64)header_len - IPV4_HEADER;
    __u32 total_len = fixed[2] << 8 | fixed[3];
    __u32 fragment = (fixed[6] << 8 | fixed[7]) & 0x3fff;
    __s64 sum;

    if (header_len < IPV4_HEADER || total_len < header_len || fragment || fixed[9] != IPPROTO_TCP)
        return 0;
    if (is_length(&options_len, sizeof(options)) && load(skb, IPV4_HEADER, options, options_len))
        return 0;
    sum = bpf_csum_diff(0, 0, (__be32 *)fixed, IPV4_HEADER, 0);
    sum = bpf_csum_diff(0, 0, (__be32 *)options, sizeof(options), sum);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    if ((sum & 0xffff) != 0xffff)
        return 0;
    source[10] = source[11] = destination[10] = destination[11] = 0xff;
    __builtin_memcpy(source + 12, fixed + 12, 4);
    __builtin_memcpy(destination + 12, fixed + 16, 4);
    extent->version = 4;
    extent->transport_at = header_len;
    extent->end = total_len;
    return 1;
}

/* On the way through IPv6's extension headers. */
struct walk {
    struct __sk_buff *skb;
    /* Where the next header begins, and what it is. */
    __u32 at;
    __u8 next;
};

/* Skips one extension header; whether there is none, or none that can be skipped. */
static long skip_extension(__u32 index, struct walk *walk)
{
    __u8 header[8] = {};
    __u32 len;

    if (walk->next == IPPROTO_TCP)
        return 1;
    if (load(walk->skb, walk->at, header, sizeof(header)))
        return 1;
    switch (walk->next) {
    case HOP_BY_HOP:
        if (walk->at != IPV6_HEADER)
            return 1;
        len = (header[1] + 1) * 8;
        break;
    case ROUTING:
        /* Not yet at its final destination. */
        if (header[3])
            return 1;
        len = (header[1] + 1) * 8;
        break;
    case DESTINATION_OPTIONS:
        len = (header[1] + 1) * 8;
        break;
    case AUTHENTICATION:
        len = (header[1] + 2) * 4;
        break;
    case FRAGMENT:
        /* Offset 0 and no more: a whole packet (RFC 6946, section 3). */
        if (header[2] || (header[3] & 0xf9))
            return 1;
        len = 8;
        break;
    default:
        return 1;
    }
    walk->next = header[0];
    walk->at += len;
    return 0;
}

/* Where an IPv6 packet ends; a super-segment that is too long for its header goes to the end. */
inline_always __u32 end_of_v6(struct __sk_buff *skb, const __u8 *ip)
{
    __u32 payload_len = ip[4] << 8 | ip[5];

    return payload_len ? IPV6_HEADER + payload_len : skb->len - COMMON.link_header;
}

inline_always int read_v6(struct __sk_buff *skb, const __u8 *fixed, __u8 *source,
              __u8 *destination, struct extent *extent)
{
    __u32 end = end_of_v6(skb, fixed);
    struct walk walk = { .skb = skb, .at = IPV6_HEADER, .next = fixed[6] };

    /* A jumbogram says its length in its first extension header. */
    if ((!(fixed[4] | fixed[5]) && fixed[6] == HOP_BY_HOP) || load(skb, 8, source, 16) || load(skb, 24, destination, 16))
        return 0;
    bpf_loop(EXTENSIONS, skip_extension, &walk, 0);
    if (walk.next != IPPROTO_TCP || walk.at > end)
        return 0;
    extent->version = 6;
    extent->transport_at = walk.at;
    extent->end = end;
    return 1;
}

/* Options on their way from `place` on. */
struct options {
    /* Zero is the end of the list, so that what was not read ends it. */
    __u8 bytes[48];
    __u32 len;
    __u32 place;
    __u8 window_scale;
    __u8 has_window_scale;
    __u8 permits_sack;
};

/* Reads one option; whether it was the last one. Of two window scales the last counts. */
static long read_option(__u32 index, struct options *options)
{
    __u32 place = options->place;
    __u8 kind, len;

    if (place >= options->len || place >= OPTIONS)
        return 1;
    kind = options->bytes[place];
    if (kind == 0)
        return 1;
    if (kind == 1) {
        options->place = place + 1;
        return 0;
    }
    len = options->bytes[place + 1];
    if (len < 2 || place + len > options->len)
        return 1;
    if (kind == 3 && len == 3) {
        options->window_scale = options->bytes[place + 2];
        options->has_window_scale = 1;
    }
    if (kind == 4 && len == 2)
        options->permits_sack = 1;
    options->place = place + len;
    return 0;
}

out_of_line void read_options(struct __sk_buff *skb, __u32 at, __u32 len, struct segment *tcp)
{
    struct options options = { .len = len };
    __s64 bytes = len;

    if (!is_length(&bytes, OPTIONS) || load(skb, at, options.bytes, bytes))
        return;
    bpf_loop(OPTIONS, read_option, &options, 0);
    tcp->window_scale = options.window_scale;
    tcp->has_window_scale = options.has_window_scale;
    tcp->permits_sack = options.permits_sack;
}

/* The fields of a TCP header. */
inline_always void take_tcp(const __u8 *header, struct segment *tcp, __be16 *source_port,
                __be16 *destination_port)
{
    __builtin_memcpy(source_port, header, 2);
    __builtin_memcpy(destination_port, header + 2, 2);
    __builtin_memcpy(&tcp->seq, header + 4, 4);
    __builtin_memcpy(&tcp->ack, header + 8, 4);
    tcp->seq = bpf_ntohl(tcp->seq);
    tcp->ack = bpf_ntohl(tcp->ack);
    tcp->flags = header[13];
    tcp->window = header[14] << 8 | header[15];
}

inline_always int read_tcp(struct __sk_buff *skb, struct extent *extent,
               struct segment *tcp, __be16 *source_port, __be16 *destination_port)
{
    __u8 header[TCP_HEADER] = {};
    __u32 at = extent->transport_at, header_len;

    if (at + TCP_HEADER > extent->end || load(skb, at, header, sizeof(header)))
        return 0;
    header_len = (header[12] >> 4) * 4;
    if (header_len < TCP_HEADER || at + header_len > extent->end)
        return 0;
    /* All of it has to be there. */
    if (COMMON.link_header + extent->end > skb->len)
        return 0;
    take_tcp(header, tcp, source_port, destination_port);
    tcp->payload_len = extent->end - at - header_len;
    if (tcp->flags & SYN)
        read_options(skb, at + TCP_HEADER, header_len - TCP_HEADER, tcp);
    return 1;
}

/* Reads any whole TCP segment; zero for anything else. */
out_of_line int read_any(struct __sk_buff *skb, enum direction direction, struct connection *connection,
           struct segment *tcp, struct extent *extent)
{
    struct hosts *hosts = &connection->hosts;
    struct key *key = &connection->key;
    __u8 *source = (__u8 *)(direction == TO_LINK ? hosts->near : hosts->far);
    __u8 *destination = (__u8 *)(direction == TO_LINK ? hosts->far : hosts->near);
    __be16 *source_port = direction == TO_LINK ? &key->near_port : &key->far_port;
    __be16 *destination_port = direction == TO_LINK ? &key->far_port : &key->near_port;
    __u8 fixed[IPV4_HEADER] = {};
    int is_read;

    __builtin_memset(connection, 0, sizeof(*connection));
    __builtin_memset(tcp, 0, sizeof(*tcp));
    if (load(skb, 0, fixed, sizeof(fixed)))
        return 0;
    /* Behind a VLAN tag that the interface has not taken off is something else. */
    if (skb->protocol == bpf_htons(ETH_P_IP) && fixed[0] >> 4 == 4)
        is_read = read_v4(skb, fixed, source, destination, extent);
    else if (skb->protocol == bpf_htons(ETH_P_IPV6) && fixed[0] >> 4 == 6)
        is_read = read_v6(skb, fixed, source, destination, extent);
    else
        return 0;
    if (!is_read || !read_tcp(skb, extent, tcp, source_port, destination_port))
        return 0;
    if (extent->version == 6) {
        hash_hosts(hosts, key->hosts);
    } else {
        key->hosts[0] = hosts->near[3];
        key->hosts[1] = hosts->far[3];
    }
    return 1;
}

/* In a tag of IEEE 802.1Q: which virtual LAN. */
#define VLAN_ID 0xfff

/*
 * With a tag that the interface has taken off the packet is another network's, unless the tag names
 * no virtual LAN and only gives a priority.
 */
inline_always int is_of_vlan(const struct __sk_buff *skb)
{
    return skb->vlan_present && (skb->vlan_tci & VLAN_ID);
}

/* What the first look at a packet says of it. */
enum look {
    /* It has to be looked at more closely. */
    UNUSUAL,
    /* It is a whole TCP segment. */
    WHOLE,
    /* It should be one, and is none. */
    PART,
    /* It is something else. */
    OTHER,
};

/* What times 65,535 is one, modulo 2^64. */
#define INVERSE_OF_65535 0xfffefffefffeffffULL

/*
 * Whether the one's complement sum of a header without options is right: then the sum of its words is a
 * multiple of 65,535, and no other number has so small a product with the inverse (Granlund and
 * Montgomery, Division by invariant integers using multiplication, 1994, section 9). A header is not all
 * zeros.
 */
inline_always int is_v4_intact(const __u32 *words)
{
    __u64 sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];

    return sum * INVERSE_OF_65535 <= ~0ULL / 65535;
}

/*
 * Reads the headers where they lie, if they are as most are: in one piece, without IP options or
 * extension headers, and not those of a SYN. What is not TCP is found out with the fewest looks.
 * Only of IPv6 are the hosts read.
 */
inline_always enum look read_usual(struct __sk_buff *skb, enum direction direction,
                   struct connection *connection, struct segment *tcp,
                   struct extent *extent)
{
    struct hosts *hosts = &connection->hosts;
    struct key *key = &connection->key;
    const __u8 *ip = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;
    __u32 link_header = COMMON.link_header, header_len;
    const __u8 *header;
    const __u32 *words;

    if (link_header > ETH_HLEN)
        return UNUSUAL;
    ip += link_header;
    words = (const __u32 *)ip;
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        header = ip + IPV4_HEADER;
        if (header > end)
            return UNUSUAL;
        if (ip[9] != IPPROTO_TCP)
            return OTHER;
        if (header + TCP_HEADER > end || ip[0] != 0x45 || (header[13] & SYN))
            return UNUSUAL;
        if ((*(const __be16 *)(ip + 6) & bpf_htons(0x3fff)) || !is_v4_intact(words))
            return PART;
        key->hosts[0] = words[direction == TO_LINK ? 3 : 4];
        key->hosts[1] = words[direction == TO_LINK ? 4 : 3];
        extent->version = 4;
        extent->transport_at = IPV4_HEADER;
        extent->end = bpf_ntohs(*(const __be16 *)(ip + 2));
    } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
        header = ip + IPV6_HEADER;
        if (header > end)
            return UNUSUAL;
        if (ip[6] == IPPROTO_UDP || ip[6] == IPPROTO_ICMPV6)
            return OTHER;
        if (header + TCP_HEADER > end || ip[6] != IPPROTO_TCP || ip[0] >> 4 != 6 ||
            (header[13] & SYN))
            return UNUSUAL;
#pragma unroll
        for (int word = 0; word < 4; word++) {
            hosts->near[word] = words[(direction == TO_LINK ? 2 : 6) + word];
            hosts->far[word] = words[(direction == TO_LINK ? 6 : 2) + word];
        }
        hash_hosts(hosts, key->hosts);
        extent->version = 6;
        extent->transport_at = IPV6_HEADER;
        extent->end = end_of_v6(skb, ip);
    } else {
        return OTHER;
    }
    if (is_of_vlan(skb))
        return OTHER;
    header_len = (header[12] >> 4) * 4;
    if (header_len < TCP_HEADER || extent->transport_at + header_len > extent->end ||
        link_header + extent->end > skb->len)
        return PART;
    words = (const __u32 *)header;
    key->ports = direction == TO_LINK ? words[0] : words[0] << 16 | words[0] >> 16;
    tcp->seq = bpf_ntohl(words[1]);
    tcp->ack = bpf_ntohl(words[2]);
    tcp->flags = header[13];
    tcp->window = bpf_ntohs(*(const __be16 *)(header + 14));
    tcp->window_scale = tcp->has_window_scale = tcp->permits_sack = 0;
    tcp->payload_len = extent->end - extent->transport_at - header_len;
    return WHOLE;
}

inline_always __u64 present(struct __sk_buff *skb)
{
    if (IS_TRIAL)
        return skb->cb[0] | (__u64)skb->cb[1] << 32;
    return bpf_ktime_get_ns();
}

/* The same as of the first packet since the last tick, without a call. */
inline_always __u64 recent(struct __sk_buff *skb)
{
    __u64 tick;

    if (IS_TRIAL)
        return skb->cb[0] | (__u64)skb->cb[1] << 32;
    tick = bpf_jiffies64();
    if (unlikely(COMMON.tick != tick)) {
        COMMON.now = bpf_ktime_get_ns();
        COMMON.tick = tick;
    }
    return COMMON.now;
}

/* Copies the first `len` bytes, a multiple of 4, of what is in one piece; whether that could be. */
inline_always int copy(__u8 *to, const __u8 *from, const __u8 *end, const __u32 len)
{
    if (from + len > end)
        return 0;
#pragma unroll
    for (__u32 at = 0; at + 8 <= len; at += 8)
        *(__u64 *)(to + at) = *(const __u64 *)(from + at);
    if (len % 8)
        *(__u32 *)(to + len - 4) = *(const __u32 *)(from + len - 4);
    return 1;
}

/* Copies the packet's first `len` bytes, from its IP header on; whether that could be done. */
inline_always int copy_headers(struct __sk_buff *skb, __u8 *to, __u32 len)
{
    const __u8 *ip = (const __u8 *)(long)skb->data, *end = (const __u8 *)(long)skb->data_end;
    __u32 link_header = COMMON.link_header;
    __s64 bytes;

    if (link_header <= ETH_HLEN) {
        ip += link_header;
        /* Without options, and with timestamps, of either version of IP. */
        if ((len == 52 && copy(to, ip, end, 52)) || (len == 40 && copy(to, ip, end, 40)) ||
            (len == 72 && copy(to, ip, end, 72)) || (len == 60 && copy(to, ip, end, 60)))
            return 1;
    }
    bytes = len;
    return is_length(&bytes, LONGEST_ACK) && !load(skb, 0, to, bytes);
}

/* The segment without payload that passes is the newest one in its direction. */
inline_always void keep_acknowledgement(struct __sk_buff *skb, __u64 now, __u32 len, struct details *details,
                enum direction direction)
{
    if (len > LONGEST_ACK)
        return;
    if (direction == TO_LINK) {
        details->to_link_len = copy_headers(skb, details->to_link, len) ? len : 0;
        details->to_link_at = now;
    } else {
        details->from_link_len = copy_headers(skb, details->from_link, len) ? len : 0;
        details->from_link_at = now;
    }
}

/* A time within which an answer should have come. */
inline_always __u64 patience(const struct entry *entry)
{
    const struct rtt *rtt = &entry->details.rtt;
    __u64 time = entry->flow.has_rtt ? rtt->smoothed + 4 * rtt->variation : INITIAL_RTT;

    return time > SHORTEST_SILENCE ? time : SHORTEST_SILENCE;
}

/* Whether no SYN of the connection was seen. */
inline_always int began_unseen(const struct flow *flow)
{
    return !(flow->near.has & HAS_WINDOW_SCALE) && !(flow->far.has & HAS_WINDOW_SCALE);
}

/*
 * The near host sends data, which `meant` something: whether it repeats what the far host has been silent
 * about for too long. Where only the near host was heard, and no beginning, user space is to see whether
 * it is answered.
 */
out_of_line int is_suspicious(struct entry *entry, __u64 now, int meant)
{
    __u32 tick = now >> 20, pause = SUSPICION_PAUSE >> 20;

    if (entry->flow.phase == OPENING) {
        if (!began_unseen(&entry->flow))
            return 0;
        pause = ONE_SIDED_PAUSE >> 20;
    } else if (!(meant & REPEATED) || !entry->is_proven || entry->flow.phase != ESTABLISHED ||
           !entry->owed_since || now < entry->owed_since + patience(entry)) {
        return 0;
    }
    if (entry->details.suspected_at && tick - entry->details.suspected_at < pause)
        return 0;
    entry->details.suspected_at = tick ? tick : 1;
    return 1;
}

/* What was timed of a flow before a segment. */
struct timing {
    __u8 is_timed;
    __u8 has_rtt;
};

inline_always struct timing timing_of(const struct flow *flow)
{
    return (struct timing){ flow->is_timed, flow->has_rtt };
}

/*
 * The delivery rate that goes with a round-trip time: what was acknowledged while a segment was timed,
 * as `LinkRtt` of crates/gateway/src/flow/rtt.rs has it.
 */
inline_always void rate(struct entry *entry, __u64 now, enum direction direction,
            const struct segment *tcp, int meant, struct timing was)
{
    struct details *details = &entry->details;
    const struct flow *flow = &entry->flow;
    __u64 sample, rate;

    if (direction == TO_LINK) {
        if (meant & TIMED)
            details->timed_acked = flow->near.acked;
        return;
    }
    if (!was.is_timed || flow->is_timed || !flow->has_rtt || !(meant & NEWLY_ACKED))
        return;
    sample = now > flow->sent_at ? now - flow->sent_at : 1;
    rate = after(tcp->ack, details->timed_acked)
               ? (__u64)distance(tcp->ack, details->timed_acked) * 1000000000ULL / sample
               : 0;
    if (rate || !was.has_rtt) {
        details->delivery_rate = rate;
        details->delivery_at = now;
    }
}

/* Notes what the segment says of the connection as a whole. */
inline_always void note(struct entry *entry, __u64 now, const struct segment *tcp, int meant)
{
    const struct flow *flow = &entry->flow;
    int is_another = meant & (BEGINS_ANEW | YIELDED);

    if ((tcp->flags & SYN) || is_another || !entry->opened_at)
        entry->opened_at = now;
    if ((tcp->flags & SYN) || is_another)
        entry->details.to_link_len = entry->details.from_link_len = 0;
    if (flow->phase == OPENING || is_another) {
        /* The same addresses and ports carry another connection now. */
        entry->has_recorded = 0;
        /* One that had its place before was proven then. */
        entry->is_proven = !!(meant & BEGINS_ANEW);
        entry->owed_since = 0;
    } else if (flow->phase == ESTABLISHED && !(tcp->flags & SYN) &&
           (began_unseen(flow) || (meant & NEWLY_ACKED))) {
        entry->is_proven = 1;
    }
}

/* What is to be done about a segment, once its flow is unlocked; zero if it is odd. */
enum {
    COUNT = 8,
    RECORD = 1,
    /* The first one since the last recorded one was acknowledged. */
    IMPORTANT = 2,
    SUSPECT = 4,
};

/* Whether nothing of the flow is recorded that is not acknowledged. */
inline_always int is_important(const struct entry *entry)
{
    return !entry->has_recorded || !after(entry->recorded, entry->flow.near.acked);
}

/* A segment of the flow that goes towards the link; what is to be done about it. */
inline_always int take_to_link(struct __sk_buff *skb, struct entry *entry, __u64 now, int meant,
                   const struct segment *tcp, __u32 len)
{
    const struct half *near = &entry->flow.near;
    int is_own = MARK && skb->mark == MARK;
    int to_do = 0;

    if (tcp->flags & RST)
        return 0;
    /* Who repeats one waits for its answer; a flood of them would overwrite the data that is recorded. */
    if (tcp->flags & SYN)
        return (meant & REPEATED) && !is_own ? RECORD : 0;
    if (!(meant & (NEW_DATA | REPEATED))) {
        /* A probe of the gateway's is no host's acknowledgement. */
        if (!is_own || tcp->seq == near->next)
            keep_acknowledgement(skb, now, len, &entry->details, TO_LINK);
        return 0;
    }
    if (entry->flow.phase == CLOSED)
        return 0;
    if (!entry->owed_since)
        entry->owed_since = now;
    if (after(tcp->seq + tcp->payload_len + control_len(tcp), near->acked)) {
        to_do |= RECORD;
        if (is_important(entry))
            to_do |= IMPORTANT;
    }
    /* What the gateway sends it judges itself. */
    if (((meant & REPEATED) || entry->flow.phase == OPENING) && !is_own &&
        is_suspicious(entry, now, meant))
        to_do |= SUSPECT;
    return to_do;
}

inline_always void take_from_link(struct __sk_buff *skb, struct entry *entry, __u64 now,
                  const struct segment *tcp, __u8 flags, __u32 len)
{
    entry->heard_at = now;
    entry->owed_since = 0;
    if (flags == ACK && tcp->payload_len == 0)
        keep_acknowledgement(skb, now, len, &entry->details, FROM_LINK);
}

/* The flow's entry, made if there was none; none for what begins nothing, or without memory. */
inline_always struct entry *enter(const struct key *key, const struct segment *tcp, int *is_opening)
{
    struct entry *entry = find(key);

    *is_opening = !entry;
    if (entry)
        return entry;
    entry = bpf_map_lookup_elem(&OPENINGS, key);
    /* A lone RST begins nothing. */
    if (entry || (tcp->flags & RST))
        return entry;
    bpf_map_update_elem(&OPENINGS, key, EMPTY, BPF_NOEXIST);
    return bpf_map_lookup_elem(&OPENINGS, key);
}

/*
 * Its handshake is completed: it gets a place in the table. Who calls this holds the lock. Where
 * there is no place now, there is one for its next segment.
 */
verified_once int promote(const struct key *key, const struct entry *entry)
{
    struct key inner_key;

    if (key && entry && (slot_of(key) || add(key, entry))) {
        /* As in `take_in`. */
        inner_key = *key;
        bpf_map_delete_elem(&OPENINGS, &inner_key);
    }
    return 0;
}

/* Whether a segment of the flow was recorded in this pause just now. */
inline_always int is_recent(const struct entry *entry, __u64 now)
{
    return entry->has_recorded && (__u16)((__u16)(now >> 16) - entry->recorded_at) < SHORTEST_GAP;
}

/*
 * How many bytes at the end of a super-segment are not worth recording: in a pause one packet is as
 * good as all that it stands for.
 */
inline_always __u32 useless_part(struct __sk_buff *skb, __u32 payload_len)
{
    __u32 segment_size = skb->gso_size;

    if (!segment_size || payload_len <= segment_size || payload_len - segment_size > MOST_LEFT_OUT)
        return 0;
    return payload_len - segment_size;
}

/*
 * Records the segment, of `len` bytes with its headers and `end` the number behind it, if that can be
 * paid for and is worth it; whether it is recorded.
 */
out_of_line int record_if_due(struct __sk_buff *skb, struct entry *entry, __u32 end, __u32 len,
            __u32 payload_len)
{
    __u64 now = present(skb);
    int is_needed = is_important(entry);
    struct position *position;
    __u32 left_out = 0;

    if (is_paused(now)) {
        if (is_recent(entry, now)) {
            entry->recorded = end;
            return 0;
        }
        left_out = useless_part(skb, payload_len);
    }
    position = pay(now, len - left_out, is_needed);
    if (!position)
        return 0;
    record(skb, position, now, COMMON.link_header, len - left_out, left_out);
    entry->recorded = end - left_out;
    entry->recorded_at = now >> 16;
    entry->has_recorded = 1;
    return 1;
}

out_of_line void tell_of(const struct key *key, const struct entry *entry)
{
    struct connection connection = { .hosts = entry->hosts, .key = *key };

    if (!bpf_ringbuf_output(&SUSPICIONS, &connection, sizeof(connection), 0))
        count(SUSPECTED);
}

/*
 * Does what is to be done about a segment, `len` bytes long with its headers, and counts it with those
 * `before` it.
 */
inline_always void act(struct __sk_buff *skb, const struct key *key, struct entry *entry, __u64 now,
               const struct segment *tcp, __u32 len, int to_do, struct uncounted before)
{
    if (unlikely(!to_do)) {
        count_segment(ODD, ODD, before);
    } else if (!(to_do & RECORD)) {
        count_segment(TRACKED, TRACKED, before);
    } else if (((to_do & IMPORTANT) || !is_paused(now)) &&
           record_if_due(skb, entry, tcp->seq + tcp->payload_len + control_len(tcp), len,
                 tcp->payload_len)) {
        count_segment(TRACKED, RECORDED, before);
    } else {
        count_segment(TRACKED, THINNED, before);
    }
    if (unlikely(to_do & SUSPECT))
        tell_of(key, entry);
}

/*
 * When the segment passes, to the last tick, unless a round-trip time, the beginning of a connection
 * or its place among recorded segments hangs on it.
 */
inline_always __u64 time_of(struct __sk_buff *skb, const struct entry *entry,
                enum direction direction, const struct segment *tcp)
{
    const struct half *near = &entry->flow.near;

    if ((tcp->flags & SYN) || is_time_needed(&entry->flow, direction, tcp) ||
        (direction == TO_LINK && tcp->payload_len == 0 && near->next != near->acked))
        return present(skb);
    return recent(skb);
}

/*
 * What an honest segment, with these flags on the wire, changes beside the connection's numbers; what
 * is to be done about it.
 */
inline_always int take(struct __sk_buff *skb, enum direction direction, struct entry *entry,
               __u64 now, int meant, const struct segment *tcp, __u32 len, __u8 flags)
{
    if (direction == TO_LINK)
        return COUNT | take_to_link(skb, entry, now, meant, tcp, len);
    take_from_link(skb, entry, now, tcp, flags, len);
    return COUNT;
}

/* Whether the entry, which is locked, is that of the connection, and of no other with the same hash. */
inline_always int is_of(const struct entry *entry, const struct connection *connection, __u32 version)
{
    return entry->version == version && has_key(entry, &connection->key) &&
           (version == 4 || are_same(&entry->hosts, &connection->hosts));
}

/* Likewise; a new one is from now on. */
inline_always int is_theirs(struct entry *entry, const struct connection *connection, __u32 version,
                int is_opening)
{
    if (is_opening && !entry->version) {
        entry->hosts = connection->hosts;
        entry->key = connection->key;
        entry->version = version;
    }
    return is_of(entry, connection, version);
}

/* Whether a segment is of the connection that had the place first, and has it again; what it meant. */
out_of_line int come_back(const struct key *key, struct entry *entry, __u64 now, enum direction direction,
            const struct segment *tcp)
{
    struct contest *contest = bpf_map_lookup_elem(&CONTESTS, key);
    int meant;

    if (!contest || !are_flags_honest(tcp))
        return 0;
    meant = give_back(contest, &entry->flow, &entry->details.rtt, now, direction, tcp);
    if (meant) {
        /* Nothing that was timed before is of this connection. */
        rate(entry, now, direction, tcp, meant, (struct timing){});
        entry->flow.is_contested = 0;
        bpf_map_delete_elem(&CONTESTS, key);
    }
    return meant;
}

/* A segment that does not belong to the connection whose addresses and ports it has; what it meant. */
inline_always int contest(const struct key *key, struct entry *entry, __u64 now, enum direction direction,
          const struct segment *tcp)
{
    struct contest *contest = bpf_map_lookup_elem(&CONTESTS, key);
    struct flow *flow = &entry->flow;
    int meant;

    if (!are_flags_honest(tcp))
        return 0;
    if (!contest) {
        bpf_map_update_elem(&CONTESTS, key, EMPTY, BPF_NOEXIST);
        contest = bpf_map_lookup_elem(&CONTESTS, key);
        if (!contest)
            return 0;
    }
    flow->is_contested = 1;
    meant = come_back(key, entry, now, direction, tcp);
    return meant ? meant : hear(contest, flow, now, direction, tcp);
}

/* A segment of a connection was seen: whatever else has its addresses and ports has not its place. */
out_of_line void settle(const struct key *key, struct flow *flow)
{
    struct contest *contest = bpf_map_lookup_elem(&CONTESTS, key);

    if (contest && contest->has_first) {
        contest->has_rival = 0;
        return;
    }
    flow->is_contested = 0;
    if (contest)
        bpf_map_delete_elem(&CONTESTS, key);
}

/* A segment that passes. */
struct passing {
    __u64 now;
    struct segment tcp;
    __u32 direction;
    /* With its headers. */
    __u32 len;
};

/* Takes any segment into its flow, which is locked; what is to be done about it. */
verified_once int take_in(struct __sk_buff *skb, const struct key *outer_key, struct entry *entry,
          const struct passing *passing)
{
    enum direction direction;
    struct key inner_key, *key = &inner_key;
    struct timing was;
    __u8 is_contested;
    int meant = 0;

    if (!outer_key || !entry || !passing)
        return 0;
    /* In Linux 6.1 a map takes its key from the function's own stack only. */
    inner_key = *outer_key;
    direction = passing->direction == TO_LINK ? TO_LINK : FROM_LINK;
    is_contested = entry->flow.is_contested;
    /* Of a connection that is not alive, more would be believed than of the first one. */
    if (is_contested && entry->flow.phase != ESTABLISHED)
        meant = come_back(key, entry, passing->now, direction, &passing->tcp);
    if (!meant) {
        was = timing_of(&entry->flow);
        meant = observe(&entry->flow, &entry->details.rtt, passing->now, direction, &passing->tcp);
        rate(entry, passing->now, direction, &passing->tcp, meant, was);
        entry->flow.is_contested = is_contested;
        if (meant && is_contested)
            settle(key, &entry->flow);
        else if (!meant)
            meant = contest(key, entry, passing->now, direction, &passing->tcp);
    }
    if (!meant)
        return 0;
    note(entry, passing->now, &passing->tcp, meant);
    if (meant & YIELDED)
        return 0;
    return take(skb, direction, entry, passing->now, meant, &passing->tcp, passing->len,
            passing->tcp.flags);
}

/* Tracks any packet. */
inline_always int track_any(struct __sk_buff *skb, enum direction direction)
{
    struct connection connection;
    struct passing passing = { .direction = direction };
    const struct segment *tcp = &passing.tcp;
    struct extent extent;
    struct entry *entry = 0;
    struct uncounted before;
    int is_opening, to_do;

    if (!is_of_vlan(skb) && read_any(skb, direction, &connection, &passing.tcp, &extent))
        entry = enter(&connection.key, tcp, &is_opening);
    if (!entry) {
        count(NOT_TRACKED);
        return PASS;
    }
    if (!lock(entry)) {
        count(CONTENDED);
        return PASS;
    }
    if (!is_theirs(entry, &connection, extent.version, is_opening)) {
        unlock(entry);
        count(NOT_TRACKED);
        return PASS;
    }
    passing.now = time_of(skb, entry, direction, tcp);
    passing.len = extent.end;
    to_do = take_in(skb, &connection.key, entry, &passing);
    before = take_uncounted(entry);
    if (is_opening && entry->is_proven)
        promote(&connection.key, entry);
    unlock(entry);
    act(skb, &connection.key, entry, passing.now, tcp, passing.len, to_do, before);
    return PASS;
}

verified_once int track_any_to_link(struct __sk_buff *skb)
{
    return track_any(skb, TO_LINK);
}

verified_once int track_any_from_link(struct __sk_buff *skb)
{
    return track_any(skb, FROM_LINK);
}

inline_always int track_apart(struct __sk_buff *skb, enum direction direction)
{
    return direction == TO_LINK ? track_any_to_link(skb) : track_any_from_link(skb);
}

/* A connection's segments are counted at the latest when there are so many. */
#define MOST_UNCOUNTED 64

/*
 * Takes the segment in if it only continues a stream of data, and is not to be recorded; whether that
 * is so. Most of what a fast link carries is.
 */
inline_always int take_next(struct __sk_buff *skb, struct entry *entry, enum direction direction,
                const struct segment *tcp)
{
    struct flow *flow = &entry->flow;
    __u32 len = tcp->payload_len;
    struct timing was;
    __u64 now;
    int meant;

    if (!continues(flow, direction, tcp) || entry->uncounted.tracked == MOST_UNCOUNTED)
        return 0;
    now = time_of(skb, entry, direction, tcp);
    if (direction == TO_LINK) {
        if (!is_paused(now))
            return 0;
        if (is_important(entry)) {
            if (flow->is_timed || !is_recent(entry, now))
                return 0;
            entry->recorded = tcp->seq + len;
        }
        if (!entry->owed_since)
            entry->owed_since = now;
        flow->near.next += len;
        entry->uncounted.thinned += 1;
    } else {
        take_from_link(skb, entry, now, tcp, 0, 0);
        flow->far.next += len;
    }
    was = timing_of(flow);
    meant = measure(flow, &entry->details.rtt, now, direction, tcp, len, NEW_DATA);
    rate(entry, now, direction, tcp, meant, was);
    entry->uncounted.tracked += 1;
    return 1;
}

/*
 * Tracks what most packets are, segments in the midst of a connection, and leaves all others to
 * `track_any`, which would do the same with these: what costs here is less the work than the code,
 * which the rest of a packet's way has driven out of the processor's cache.
 */
inline_always int track(struct __sk_buff *skb, enum direction direction)
{
    struct connection connection;
    struct segment tcp;
    struct uncounted before;
    struct extent extent;
    struct entry *entry;
    __u64 now;
    int meant, to_do;
    struct timing was;
    __u8 flags;

    switch (read_usual(skb, direction, &connection, &tcp, &extent)) {
    case OTHER:
        return PASS;
    case WHOLE:
        break;
    default:
        return track_apart(skb, direction);
    }
    flags = tcp.flags;
    if (unlikely((flags & (FIN | SYN | RST | ACK)) != ACK))
        return track_apart(skb, direction);
    entry = probable_entry(&connection.key);
    if (unlikely(!entry) || unlikely(!lock_if_free(entry)))
        return track_apart(skb, direction);
    /* Then both hosts are known, and `note` has nothing to note. */
    if (unlikely(!is_of(entry, &connection, extent.version) || !entry->is_proven ||
           entry->flow.phase != ESTABLISHED || entry->flow.is_contested)) {
        unlock(entry);
        forget_latest();
        return track_apart(skb, direction);
    }
    /* No other flags mean anything to the tracker: the compiler is to know. */
    tcp.flags = ACK;
    if (take_next(skb, entry, direction, &tcp)) {
        unlock(entry);
        return PASS;
    }
    now = time_of(skb, entry, direction, &tcp);
    was = timing_of(&entry->flow);
    meant = observe_known(&entry->flow, &entry->details.rtt, now, direction, &tcp);
    rate(entry, now, direction, &tcp, meant, was);
    if (unlikely(!meant)) {
        /* It may be another connection's. */
        unlock(entry);
        return track_apart(skb, direction);
    }
    to_do = take(skb, direction, entry, now, meant, &tcp, extent.end, flags);
    before = take_uncounted(entry);
    unlock(entry);
    act(skb, &connection.key, entry, now, &tcp, extent.end, to_do, before);
    return PASS;
}

SEC("classifier/to_link")
int to_link(struct __sk_buff *skb)
{
    return track(skb, TO_LINK);
}

SEC("classifier/from_link")
int from_link(struct __sk_buff *skb)
{
    return track(skb, FROM_LINK);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
