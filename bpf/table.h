/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The table of connections. Each has a place of its own among the entries, and an index says which:
 * in the bucket that belongs to the hash of its key, one slot of 32 bits. A lookup calls nothing and
 * touches one cache line of the index and those of the entry that it is for; the kernel's own
 * table with eviction (BPF_MAP_TYPE_LRU_HASH) took a third of what a packet costs.
 *
 * Each processor remembers the place of its newest segment's connection, which the next one's mostly
 * is: then the index is not looked at.
 *
 * User space maps all of it and reads it in place: crates/linux/src/tracker/table.rs.
 *
 * Places are given away in order. When all are taken, the next ones in turn are looked at, of which
 * a closed connection gives way, or else that which was used least recently.
 */
#ifndef OUTLAST_TABLE_H
#define OUTLAST_TABLE_H

/*
 * Slots of a bucket, which is a cache line. There is a bucket for two places, so that of 100,000 full
 * tables one has a bucket with a connection too many (a Poisson distribution of mean 2); with one for
 * four places it would be each thirteenth, whose connection finds no place until another of its
 * bucket is gone.
 */
#define SLOTS 16
/* Places that are looked at when somebody has to give way. */
#define WINDOW 32

struct bucket {
    __u32 slots[SLOTS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 262144);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct entry);
} FLOWS SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 131072);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct bucket);
} INDEX SEC(".maps");

/* Places passed so far, from the first to the last and then from the first again. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, __u64);
} HAND SEC(".maps");

/* How many places and, a power of two, buckets there are; set by who loads this. */
const volatile __u32 PLACES = 262144;
const volatile __u32 BUCKET_MASK = 131071;
/* Bits of a slot that say which place, counted from one; the others are of the key's hash. */
const volatile __u32 PLACE_MASK = 0x7ffff;
/* A slot that says something has this bit, so that none does which is zero. */
#define IS_SLOT 0x80000000

/* What a connection's slot has beside its place. */
inline_always __u32 tag_of(__u32 hash)
{
    return (hash | IS_SLOT) & ~PLACE_MASK;
}

/* Whether the entry is that of the connection with this key; of IPv6 hosts a hash is in the key. */
inline_always int has_key(const struct entry *entry, const struct key *key)
{
    return entry->key.hosts[0] == key->hosts[0] && entry->key.hosts[1] == key->hosts[1] &&
           entry->key.ports == key->ports;
}

inline_always struct entry *entry_at(__u32 slot, __u32 tag)
{
    __u32 place = slot - tag - 1;

    return bpf_map_lookup_elem(&FLOWS, &place);
}

/* Where the connection of a processor's newest segment has its place: the next one is often its too. */
struct latest {
    struct key key;
    __u32 place;
} __attribute__((aligned(64)));

/* Processors that are told apart: two that share one send each other to the wrong place, and no further. */
#define PROCESSORS 64

struct latest LATEST[PROCESSORS] SEC(".data.latest") = {};

inline_always struct latest *latest_here(void)
{
    return &LATEST[bpf_get_smp_processor_id() % PROCESSORS];
}

/* The connection has another place now, or none. */
inline_always void forget_latest(void)
{
    latest_here()->key.ports = 0;
}

/*
 * The entry that probably is that of the connection: whether it is, is found out when it is locked,
 * since before it may change hands.
 */
inline_always struct entry *probable_entry(const struct key *key)
{
    struct latest *latest = latest_here();
    __u32 place = latest->place;

    if (unlikely(latest->key.ports != key->ports || latest->key.hosts[0] != key->hosts[0] ||
           latest->key.hosts[1] != key->hosts[1])) {
        __u32 hash = hash_key(key), tag = tag_of(hash), number = hash & BUCKET_MASK;
        const struct bucket *bucket = bpf_map_lookup_elem(&INDEX, &number);
        __u32 mask = PLACE_MASK, counted = 0;

        if (!bucket)
            return 0;
#pragma unroll
        for (int at = 0; at < SLOTS; at++) {
            counted = bucket->slots[at] - tag;
            if (counted <= mask)
                break;
        }
        if (counted > mask)
            return 0;
        place = counted - 1;
        /* Not kept in a register or on the stack until here, where it is seldom needed. */
        latest = latest_here();
        latest->key = *key;
        latest->place = place;
    }
    return bpf_map_lookup_elem(&FLOWS, &place);
}

/* On the way through a bucket. */
struct search {
    struct bucket *bucket;
    const struct key *key;
    __u32 tag;
    __u32 found;
};

static long look_at_slot(__u32 at, struct search *search)
{
    __u32 slot = search->bucket->slots[at % SLOTS];
    struct entry *entry;

    if (slot - search->tag > PLACE_MASK)
        return 0;
    entry = entry_at(slot, search->tag);
    if (!entry || !has_key(entry, search->key))
        return 0;
    search->found = slot;
    return 1;
}

/* The connection's slot, if it has a place. */
verified_once __u32 slot_of(const struct key *key)
{
    struct search search = {};
    __u32 hash, number;

    if (!key)
        return 0;
    hash = hash_key(key);
    number = hash & BUCKET_MASK;
    search.key = key;
    search.tag = tag_of(hash);
    search.bucket = bpf_map_lookup_elem(&INDEX, &number);
    if (!search.bucket)
        return 0;
    bpf_loop(SLOTS, look_at_slot, &search, 0);
    return search.found;
}

/* The connection's entry, likewise. */
inline_always struct entry *find(const struct key *key)
{
    __u32 slot = slot_of(key);

    return slot ? entry_at(slot, tag_of(hash_key(key))) : 0;
}

/* A slot that is to become another. */
struct exchange {
    struct bucket *bucket;
    __u32 slot;
    __u32 instead;
    __u32 is_done;
};

static long exchange_slot(__u32 at, struct exchange *exchange)
{
    __u32 *slot = &exchange->bucket->slots[at % SLOTS];
    __u32 was = __sync_val_compare_and_swap(slot, exchange->slot, exchange->instead);

    exchange->is_done = was == exchange->slot;
    return exchange->is_done;
}

/* Puts `instead` where `slot` is in the bucket of `hash`; whether it was there. */
verified_once int exchange(__u32 hash, __u32 slot, __u32 instead)
{
    __u32 number = hash & BUCKET_MASK;
    struct exchange exchange = { .slot = slot, .instead = instead };

    exchange.bucket = bpf_map_lookup_elem(&INDEX, &number);
    if (!exchange.bucket)
        return 0;
    bpf_loop(SLOTS, exchange_slot, &exchange, 0);
    return exchange.is_done;
}

/* When a connection was used last; zero: it may give way. */
inline_always __u64 last_use(const struct entry *entry)
{
    __u64 at = entry->opened_at;

    if (!entry->version || entry->flow.phase == CLOSED)
        return 0;
    if (entry->heard_at > at)
        at = entry->heard_at;
    if (entry->owed_since > at)
        at = entry->owed_since;
    return entry->details.to_link_at > at ? entry->details.to_link_at : at;
}

/* Who of those looked at so far has to give way, so many places ahead. */
struct choice {
    __u64 used_at;
    __u32 from;
    __u32 ahead;
};

static long look_at_place(__u32 ahead, struct choice *choice)
{
    __u32 place = (choice->from + ahead) % PLACES;
    const struct entry *entry = bpf_map_lookup_elem(&FLOWS, &place);
    __u64 used_at;

    if (!entry)
        return 1;
    used_at = last_use(entry);
    if (used_at < choice->used_at) {
        choice->used_at = used_at;
        choice->ahead = ahead;
    }
    return used_at == 0;
}

/* Takes the connection that has the place, and whose entry is locked, out of the index. */
inline_always void evict(struct entry *entry, __u32 place)
{
    __u32 hash = hash_key(&entry->key);

    if (!entry->version)
        return;
    exchange(hash, tag_of(hash) + place + 1, 0);
    entry->version = 0;
    count_before(take_uncounted(entry));
    if (entry->flow.phase != CLOSED)
        count(EVICTED);
}

/* A free place, whose entry is locked; none if somebody is using it just now. */
inline_always struct entry *make_room(__u32 *place)
{
    struct choice choice = { .used_at = ~0ULL };
    __u32 zero = 0;
    __u64 *hand = bpf_map_lookup_elem(&HAND, &zero);
    struct entry *entry;
    __u64 passed;

    if (!hand)
        return 0;
    passed = __sync_fetch_and_add(hand, 1);
    choice.from = passed % PLACES;
    if (passed >= PLACES)
        bpf_loop(WINDOW, look_at_place, &choice, 0);
    /* Those before who gives way freely are all in use. */
    if (choice.used_at == 0 && choice.ahead)
        __sync_fetch_and_add(hand, choice.ahead);
    *place = (choice.from + choice.ahead) % PLACES;
    entry = bpf_map_lookup_elem(&FLOWS, place);
    if (!entry || !lock_if_free(entry))
        return 0;
    evict(entry, *place);
    return entry;
}

/* Copies all but what says whether somebody writes. */
inline_always void fill(struct entry *entry, const struct entry *from)
{
    __u32 rest = sizeof(*entry) - __builtin_offsetof(struct entry, key);

    entry->recorded = from->recorded;
    entry->flow = from->flow;
    entry->heard_at = from->heard_at;
    entry->owed_since = from->owed_since;
    entry->opened_at = from->opened_at;
    entry->has_recorded = from->has_recorded;
    entry->is_proven = from->is_proven;
    entry->version = from->version;
    __builtin_memcpy(&entry->key, &from->key, rest);
}

/* Gives the connection a place; whether that could be. */
inline_always int add(const struct key *key, const struct entry *from)
{
    __u32 hash = hash_key(key), place = 0;
    struct entry *entry = make_room(&place);
    int is_added;

    if (!entry)
        return 0;
    fill(entry, from);
    is_added = exchange(hash, 0, tag_of(hash) + place + 1);
    if (!is_added)
        entry->version = 0;
    unlock(entry);
    return is_added;
}

#endif
