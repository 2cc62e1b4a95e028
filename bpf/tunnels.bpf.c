// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tunnels IP in IP (RFC 2003) for traffic control. `enter` encapsulates what the kernel sends into a
 * device; `leave_ethernet` and `leave_plain` decapsulate what other interfaces receive. The names
 * of the latter two say which header is in front of the packets.
 *
 * Super-segments stay whole: whoever sends them last cuts them, outer header and all.
 *
 * Only plain packets are taken. Fragments, IP options, a TTL that would expire, what does not fit
 * the way, a loop, and whatever is of no known tunnel pass untouched, and user space sees them.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* TCX_NEXT: whoever is attached behind decides. */
#define PASS (-1)
/* TCX_DROP. */
#define DROP 2

#define AF_INET 2
#define PACKET_HOST 0
#define IP_HEADER 20
#define LONGEST 65535
/* All of the field but the bit DF: whether it is a fragment. */
#define FRAGMENT 0xbfff
#define DONT_FRAGMENT 0x4000
#define TTL 64
/* The bits of TOS that are about congestion. */
#define ECN 0x03

#define inline_always static __attribute__((always_inline)) inline

/* Whether the inner source is the mobile node's address when a packet enters, and when it leaves. */
volatile const __u8 ENTERS_BY_SOURCE = 0;
volatile const __u8 LEAVES_BY_SOURCE = 0;
/*
 * Whether this host forwards. Then the kernel's routes say at each packet what fits, and whether
 * the sender is reached where its packet comes from.
 */
volatile const __u8 FORWARDS = 0;

/* The sending end of a mobile node's tunnel; in the order of `tunnels.rs`. */
struct entrance {
    __be32 source;
    __be32 destination;
    /* Where packets leave and how long they may be, on a host that does not forward. */
    __u32 interface;
    __u32 mtu;
    /* Secret; errors about the tunnel's packets are known by it. */
    __u32 identification_offset;
};

/* The receiving end, by the outer addresses and the mobile node's. */
struct end {
    __be32 source;
    __be32 destination;
    __be32 mobile;
};

/* What becomes of the inner packet. */
struct exit {
    /* The interface that seems to have received it, or by which it leaves in a frame. */
    __u32 interface;
    __u32 is_frame;
    /* The longest packet in a frame. */
    __u32 mtu;
    __u8 to[ETH_ALEN];
    __u8 from[ETH_ALEN];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, __be32);
    __type(value, struct entrance);
} ENTRANCES SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1);
    __type(key, struct end);
    __type(value, struct exit);
} EXITS SEC(".maps");

/* Packets by what became of them; a super-segment is as many as it stands for. */
enum count {
    ENTERED,
    LEFT,
    /* Could not go on after they had been changed. */
    DROPPED,
    COUNTS,
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, COUNTS);
    __type(key, __u32);
    __type(value, __u64);
} COUNTERS SEC(".maps");

inline_always void count(__u32 what, __u32 packets)
{
    __u64 *counter = bpf_map_lookup_elem(&COUNTERS, &what);

    if (counter)
        *counter += packets;
}

/* What a packet of the own host's or of a network card's stands for. */
struct segments {
    __u32 packets;
    /* Bytes of the longest, with its IP header. */
    __u32 longest;
};

/*
 * Of the packet of `length` bytes whose IP header is at `at`; false if it is not to be cut as TCP, or as
 * datagrams of one size (UDP_SEGMENT).
 */
inline_always int segments_of(struct __sk_buff *skb, __u32 at, const struct iphdr *ip, __u32 length,
                              struct segments *segments)
{
    struct tcphdr tcp;
    __u32 size = skb->gso_size, headers;

    if (!size) {
        segments->packets = 1;
        segments->longest = length;
        return 1;
    }
    if (ip->protocol == IPPROTO_UDP) {
        headers = IP_HEADER + sizeof(struct udphdr);
    } else {
        if (ip->protocol != IPPROTO_TCP ||
            bpf_skb_load_bytes(skb, at + IP_HEADER, &tcp, sizeof(tcp)))
            return 0;
        headers = IP_HEADER + 4 * tcp.doff;
    }
    if (length <= headers)
        return 0;
    segments->packets = (length - headers + size - 1) / size;
    segments->longest = headers + size;
    return 1;
}

inline_always __u16 folded(__u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* The sum of a header's words, its checksum among them: 0xffff if that is right. */
inline_always __u16 sum_of(struct iphdr *ip)
{
    return folded(bpf_csum_diff(0, 0, (__be32 *)ip, IP_HEADER, 0));
}

inline_always int is_plain(const struct iphdr *ip)
{
    return ip->version == 4 && ip->ihl == IP_HEADER / 4 && !(ip->frag_off & bpf_htons(FRAGMENT));
}

/* Whether a destination is one host's, as far as the address shows. */
inline_always int is_of_a_host(__be32 address)
{
    return (bpf_ntohl(address) >> 28) < 14;
}

/* The next hop to a tunnel's other end; false if the packets do not fit the way, or there is none. */
inline_always int find_way(struct __sk_buff *skb, const struct entrance *entrance, __u32 longest,
                           struct bpf_fib_lookup *way)
{
    long found;

    way->family = AF_INET;
    way->l4_protocol = IPPROTO_IPIP;
    way->tot_len = longest;
    way->ifindex = skb->ifindex;
    way->ipv4_src = entrance->source;
    way->ipv4_dst = entrance->destination;
    found = bpf_fib_lookup(skb, way, sizeof(*way), 0);
    if (found != BPF_FIB_LKUP_RET_SUCCESS && found != BPF_FIB_LKUP_RET_NO_NEIGH)
        return 0;
    return way->family == AF_INET && way->ifindex != skb->ifindex;
}

/*
 * A new outer header: DF and TOS are copied outward (RFC 2003, section 3.1), but for ECN. Congestion that
 * a router marked outside would be lost where the tunnel ends, so that routers are told to drop instead
 * (RFC 6040, section 4.1, compatibility mode).
 */
inline_always void surround(const struct iphdr *inner, const struct entrance *entrance, __u32 length,
                            struct iphdr *outer)
{
    outer->version = 4;
    outer->ihl = IP_HEADER / 4;
    outer->tos = inner->tos & ~ECN;
    outer->tot_len = bpf_htons(length);
    outer->id = bpf_htons(bpf_ntohs(inner->id) + entrance->identification_offset);
    outer->frag_off = inner->frag_off & bpf_htons(DONT_FRAGMENT);
    outer->ttl = TTL;
    outer->protocol = IPPROTO_IPIP;
    outer->check = 0;
    outer->saddr = entrance->source;
    outer->daddr = entrance->destination;
    outer->check = ~sum_of(outer);
}

inline_always void decrement_ttl(struct iphdr *ip)
{
    ip->ttl -= 1;
    ip->check = 0;
    ip->check = ~sum_of(ip);
}

SEC("classifier")
int enter(struct __sk_buff *skb)
{
    const __u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 |
                        BPF_F_ADJ_ROOM_NO_CSUM_RESET;
    struct bpf_fib_lookup way = {};
    struct bpf_redir_neigh hop = {};
    struct { struct iphdr outer, inner; } headers = {};
    struct iphdr *inner = &headers.inner;
    const struct entrance *known;
    struct entrance entrance;
    struct segments segments;
    __u32 length = skb->len;
    __be32 mobile;

    if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, 0, inner, IP_HEADER))
        return PASS;
    mobile = ENTERS_BY_SOURCE ? inner->saddr : inner->daddr;
    known = bpf_map_lookup_elem(&ENTRANCES, &mobile);
    if (!known || !is_plain(inner) || inner->ttl <= 1 || !is_of_a_host(inner->daddr))
        return PASS;
    /* From one mobile node to another: the kernel takes no merged packets of these, which would fall behind. */
    if (FORWARDS && !ENTERS_BY_SOURCE && bpf_map_lookup_elem(&ENTRANCES, &inner->saddr))
        return PASS;
    entrance = *known;
    /* What is between the tunnel's ends already may be a loop (section 3.2). */
    if (inner->saddr == entrance.source || inner->daddr == entrance.destination)
        return PASS;
    if (length + IP_HEADER > LONGEST || bpf_ntohs(inner->tot_len) != length ||
        sum_of(inner) != 0xffff || !segments_of(skb, 0, inner, length, &segments))
        return PASS;
    if (FORWARDS ? !find_way(skb, &entrance, segments.longest + IP_HEADER, &way)
                 : segments.longest + IP_HEADER > entrance.mtu)
        return PASS;
    if (bpf_skb_adjust_room(skb, IP_HEADER, BPF_ADJ_ROOM_MAC, flags))
        return PASS;

    surround(inner, &entrance, length + IP_HEADER, &headers.outer);
    decrement_ttl(inner);
    /* The next hop's link header has no place yet: the device has none. */
    if (bpf_skb_change_head(skb, ETH_HLEN, 0) ||
        bpf_skb_store_bytes(skb, ETH_HLEN, &headers, sizeof(headers), 0)) {
        count(DROPPED, segments.packets);
        return DROP;
    }
    count(ENTERED, segments.packets);
    if (!FORWARDS)
        return bpf_redirect_neigh(entrance.interface, 0, 0, 0);
    hop.nh_family = AF_INET;
    hop.ipv4_nh = way.ipv4_dst;
    return bpf_redirect_neigh(way.ifindex, &hop, sizeof(hop), 0);
}

/*
 * Whether packets to `address` leave where this one comes from. If not, user space takes it, after the
 * kernel has judged it (`rp_filter`).
 */
inline_always int is_towards(struct __sk_buff *skb, __be32 own, __be32 address)
{
    struct bpf_fib_lookup way = {};
    long found;

    way.family = AF_INET;
    way.tot_len = IP_HEADER;
    way.ifindex = skb->ifindex;
    way.ipv4_src = own;
    way.ipv4_dst = address;
    found = bpf_fib_lookup(skb, &way, sizeof(way), BPF_FIB_LOOKUP_OUTPUT);
    return found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH;
}

/* The packet's IP header is at `at`. */
inline_always int leave(struct __sk_buff *skb, __u32 at)
{
    const __u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET;
    struct { struct iphdr outer, inner; } headers;
    struct iphdr *outer = &headers.outer, *inner = &headers.inner;
    struct ethhdr frame = { .h_proto = bpf_htons(ETH_P_IP) };
    const struct exit *exit;
    struct segments segments;
    struct end end;
    __u32 length;

    if (skb->protocol != bpf_htons(ETH_P_IP) || skb->pkt_type != PACKET_HOST || skb->vlan_present ||
        bpf_skb_load_bytes(skb, at, &headers, sizeof(headers)) || outer->protocol != IPPROTO_IPIP)
        return PASS;
    end.source = outer->saddr;
    end.destination = outer->daddr;
    end.mobile = LEAVES_BY_SOURCE ? inner->saddr : inner->daddr;
    exit = bpf_map_lookup_elem(&EXITS, &end);
    if (!exit || !is_plain(outer) || !is_plain(inner) || sum_of(outer) != 0xffff)
        return PASS;
    length = bpf_ntohs(inner->tot_len);
    if (bpf_ntohs(outer->tot_len) != length + IP_HEADER || skb->len != at + length + IP_HEADER ||
        !segments_of(skb, at + IP_HEADER, inner, length, &segments))
        return PASS;
    if (exit->is_frame && (!at || segments.longest > exit->mtu))
        return PASS;
    if (FORWARDS && !is_towards(skb, end.destination, end.source))
        return PASS;
    if (bpf_skb_adjust_room(skb, -IP_HEADER, BPF_ADJ_ROOM_MAC, flags))
        return PASS;

    if (!exit->is_frame) {
        count(LEFT, segments.packets);
        return bpf_redirect(exit->interface, BPF_F_INGRESS);
    }
    __builtin_memcpy(frame.h_dest, exit->to, ETH_ALEN);
    __builtin_memcpy(frame.h_source, exit->from, ETH_ALEN);
    if (bpf_skb_store_bytes(skb, 0, &frame, sizeof(frame), 0)) {
        count(DROPPED, segments.packets);
        return DROP;
    }
    count(LEFT, segments.packets);
    return bpf_redirect(exit->interface, 0);
}

SEC("classifier")
int leave_ethernet(struct __sk_buff *skb)
{
    return leave(skb, ETH_HLEN);
}

SEC("classifier")
int leave_plain(struct __sk_buff *skb)
{
    return leave(skb, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
