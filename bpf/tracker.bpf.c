// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Two programs for traffic control that track the TCP connections of an interface and pass every
 * packet: `to_link` on what it sends, `from_link` on what it receives.
 *
 * Nothing is written to a packet. What cannot be read as a whole TCP segment is not tracked.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tracker.h"

/* TCX_NEXT: whoever is attached behind decides. */
#define PASS (-1)

#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define TCP_HEADER 20
#define OPTIONS 40
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

/* Addresses and ports as seen from this end of the link; an IPv4 address is IPv4-mapped. */
struct key {
    __u8 near[16];
    __u8 far[16];
    __be16 near_port;
    __be16 far_port;
};

/* A flow, and who looks at it: the two directions may be on two processors. */
struct entry {
    __u32 lock;
    struct flow flow;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 262144);
    __type(key, struct key);
    __type(value, struct entry);
} FLOWS SEC(".maps");

/* Packets by what became of them. */
enum count {
    TRACKED,
    ODD,
    NOT_TRACKED,
    CONTENDED,
    COUNTS,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} COUNTERS SEC(".maps");

inline_always void count(__u32 what)
{
    __u64 *counter = bpf_map_lookup_elem(&COUNTERS, &what);

    if (counter)
        *counter += 1;
}

/* Bytes in front of the IP header, which the interface's kind decides; set by who loads this. */
const volatile __u32 LINK_HEADER = ETH_HLEN;

/* Reads bytes at an offset from the IP header. */
inline_always int load(struct __sk_buff *skb, __u32 at, void *to, __u32 len)
{
    return bpf_skb_load_bytes(skb, LINK_HEADER + at, to, len);
}

/* Where the transport header begins, and where the packet ends. */
struct extent {
    __u32 transport_at;
    __u32 end;
};

inline_always int read_v4(struct __sk_buff *skb, const __u8 *fixed, __u8 *source,
              __u8 *destination, struct extent *extent)
{
    __u8 header[60] = {};
    __u32 header_len = (fixed[0] & 15) * 4;
    __u32 total_len = fixed[2] << 8 | fixed[3];
    __u32 fragment = (fixed[6] << 8 | fixed[7]) & 0x3fff;
    __s64 sum;

    if (header_len < IPV4_HEADER || total_len < header_len || fragment || fixed[9] != IPPROTO_TCP)
        return 0;
    /* The verifier cannot see the bounds through the shift. */
    if (header_len > sizeof(header) || load(skb, 0, header, header_len))
        return 0;
    sum = bpf_csum_diff(0, 0, (__be32 *)header, sizeof(header), 0);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    if ((sum & 0xffff) != 0xffff)
        return 0;
    source[10] = source[11] = destination[10] = destination[11] = 0xff;
    __builtin_memcpy(source + 12, fixed + 12, 4);
    __builtin_memcpy(destination + 12, fixed + 16, 4);
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

inline_always int read_v6(struct __sk_buff *skb, const __u8 *fixed, __u8 *source,
              __u8 *destination, struct extent *extent)
{
    __u32 end = IPV6_HEADER + (fixed[4] << 8 | fixed[5]);
    struct walk walk = { .skb = skb, .at = IPV6_HEADER, .next = fixed[6] };

    /* A jumbogram says its length elsewhere. */
    if (end == IPV6_HEADER || load(skb, 8, source, 16) || load(skb, 24, destination, 16))
        return 0;
    bpf_loop(EXTENSIONS, skip_extension, &walk, 0);
    if (walk.next != IPPROTO_TCP || walk.at > end)
        return 0;
    extent->transport_at = walk.at;
    extent->end = end;
    return 1;
}

/* Options on their way from `place` on. */
struct options {
    /* Zero is the end of the list, so that what was not read ends it. */
    __u8 bytes[64];
    __u32 len;
    __u32 place;
    __u8 window_scale;
    __u8 has_window_scale;
};

/* Reads one option; whether it was the last one. Of two window scales the last counts. */
static long read_option(__u32 index, struct options *options)
{
    __u32 place = options->place;
    __u8 kind, len;

    if (place >= options->len || place >= OPTIONS)
        return 1;
    kind = options->bytes[place & 63];
    if (kind == 0)
        return 1;
    if (kind == 1) {
        options->place = place + 1;
        return 0;
    }
    len = options->bytes[(place + 1) & 63];
    if (len < 2 || place + len > options->len)
        return 1;
    if (kind == 3 && len == 3) {
        options->window_scale = options->bytes[(place + 2) & 63];
        options->has_window_scale = 1;
    }
    options->place = place + len;
    return 0;
}

inline_always void read_window_scale(struct __sk_buff *skb, __u32 at, __u32 len,
                     struct segment *tcp)
{
    struct options options = { .len = len };

    if (len == 0 || len > OPTIONS || load(skb, at, options.bytes, len))
        return;
    bpf_loop(OPTIONS, read_option, &options, 0);
    tcp->window_scale = options.window_scale;
    tcp->has_window_scale = options.has_window_scale;
}

inline_always int read_tcp(struct __sk_buff *skb, const struct extent *extent,
               struct segment *tcp, __be16 *source_port, __be16 *destination_port)
{
    __u8 header[TCP_HEADER] = {};
    __u32 at = extent->transport_at, header_len;
    __u8 last = 0;

    if (at + TCP_HEADER > extent->end || load(skb, at, header, sizeof(header)))
        return 0;
    header_len = (header[12] >> 4) * 4;
    if (header_len < TCP_HEADER || at + header_len > extent->end)
        return 0;
    /* All of it has to be there. */
    if (load(skb, extent->end - 1, &last, 1))
        return 0;
    __builtin_memcpy(source_port, header, 2);
    __builtin_memcpy(destination_port, header + 2, 2);
    __builtin_memcpy(&tcp->seq, header + 4, 4);
    __builtin_memcpy(&tcp->ack, header + 8, 4);
    tcp->seq = bpf_ntohl(tcp->seq);
    tcp->ack = bpf_ntohl(tcp->ack);
    tcp->flags = header[13];
    tcp->window = header[14] << 8 | header[15];
    tcp->payload_len = extent->end - at - header_len;
    if (tcp->flags & SYN)
        read_window_scale(skb, at + TCP_HEADER, header_len - TCP_HEADER, tcp);
    return 1;
}

/* Reads a whole TCP segment; zero for anything else. */
inline_always int read(struct __sk_buff *skb, enum direction direction, struct key *key,
               struct segment *tcp)
{
    __u8 fixed[IPV4_HEADER] = {};
    __u8 *source = direction == TO_LINK ? key->near : key->far;
    __u8 *destination = direction == TO_LINK ? key->far : key->near;
    __be16 *source_port = direction == TO_LINK ? &key->near_port : &key->far_port;
    __be16 *destination_port = direction == TO_LINK ? &key->far_port : &key->near_port;
    struct extent extent = {};
    int is_read;

    if (load(skb, 0, fixed, sizeof(fixed)))
        return 0;
    /* Behind a VLAN tag that the interface has not taken off is something else. */
    if (skb->protocol == bpf_htons(ETH_P_IP) && fixed[0] >> 4 == 4)
        is_read = read_v4(skb, fixed, source, destination, &extent);
    else if (skb->protocol == bpf_htons(ETH_P_IPV6) && fixed[0] >> 4 == 6)
        is_read = read_v6(skb, fixed, source, destination, &extent);
    else
        return 0;
    return is_read && read_tcp(skb, &extent, tcp, source_port, destination_port);
}

/* How often a lock is tried. */
#define TRIES 1000

struct attempt {
    __u32 *lock;
    __u32 is_taken;
};

static long try_lock(__u32 index, struct attempt *attempt)
{
    attempt->is_taken = __sync_val_compare_and_swap(attempt->lock, 0, 1) == 0;
    return attempt->is_taken;
}

/*
 * Who holds the lock is on another processor and gives it back within nanoseconds. A spin lock of
 * the kernel's cannot be part of a map that evicts.
 */
inline_always int lock(__u32 *lock)
{
    struct attempt attempt = { .lock = lock };

    bpf_loop(TRIES, try_lock, &attempt, 0);
    return attempt.is_taken;
}

inline_always void unlock(__u32 *lock)
{
    __sync_lock_test_and_set(lock, 0);
}

inline_always int track(struct __sk_buff *skb, enum direction direction)
{
    struct key key = {};
    struct segment tcp = {};
    struct entry *entry;
    int is_honest;

    if (!read(skb, direction, &key, &tcp)) {
        count(NOT_TRACKED);
        return PASS;
    }
    entry = bpf_map_lookup_elem(&FLOWS, &key);
    if (!entry) {
        struct entry fresh = {};

        /* A lone RST begins nothing. */
        if (tcp.flags & RST) {
            count(NOT_TRACKED);
            return PASS;
        }
        bpf_map_update_elem(&FLOWS, &key, &fresh, BPF_NOEXIST);
        entry = bpf_map_lookup_elem(&FLOWS, &key);
        if (!entry)
            return PASS;
    }
    if (!lock(&entry->lock)) {
        count(CONTENDED);
        return PASS;
    }
    is_honest = observe(&entry->flow, direction, &tcp);
    unlock(&entry->lock);
    count(is_honest ? TRACKED : ODD);
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
