/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The flight recorder: copies of the segments that went towards the link, in a ring of slots whose
 * oldest is overwritten. User space reads it when the link went down.
 *
 * What copying costs is bounded by a rate. A link that is faster for longer than a burst loses
 * segments here: since a few of many are of little use, all of them for a while, but not a flow's
 * first one since the last recorded one was acknowledged, unless that is less than a millisecond
 * ago, as long as the debt that this makes is no more than a burst.
 */
#ifndef OUTLAST_RECORDER_H
#define OUTLAST_RECORDER_H

/* Bytes of a packet in one slot. */
#define SLOT_DATA 2016
/* As many slots as the longest packet takes. */
#define MOST_PIECES 33
/* What a slot can say of it. */
#define MOST_LEFT_OUT 0xffff

struct slot {
    /* One more than the piece's place in the order of all; zero while it is being written. */
    __u64 ticket;
    __u64 at;
    /* Length of what is recorded of the packet, from its IP header on. */
    __u32 total_len;
    /* Which piece of it this is, and of how many. */
    __u16 piece;
    __u16 pieces;
    __u32 is_busy;
    /* Payload of each packet that a super-segment stands for; zero: it stands for itself. */
    __u16 segment_size;
    /* Bytes at its end that were not recorded. */
    __u16 left_out;
    __u8 data[SLOT_DATA];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 8192);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct slot);
} RECORDER SEC(".maps");

/* Where the recorder stands. */
struct position {
    /* The next ticket. */
    __u64 next;
    /* When everything recorded so far has been paid for, at the rate. */
    __u64 paid_at;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct position);
} POSITION SEC(".maps");

/* One less than the number of slots, which is a power of two; set by who loads this. */
const volatile __u32 SLOT_MASK = 8191;
/* What 1,024 bytes cost, and what may be recorded at once, as times; set by who loads this. */
const volatile __u64 NANOS_PER_KIB = 8192;
const volatile __u64 BURST_NANOS = 50000000;
/* What lies between two segments of a flow that a pause records, in units of 2^16 ns: about a millisecond. */
#define SHORTEST_GAP 16
/* A pause is as long as so many bursts at first, and twice the last one if that was too short. */
#define SHORTEST_PAUSE 4
#define LONGEST_PAUSE 32
/* Behind a pause so small a part of a burst says whether the link is still as fast. */
#define PROBE 4

/* A packet on its way into the recorder. */
struct recording {
    struct __sk_buff *skb;
    __u64 now;
    __u64 ticket;
    __u32 from;
    __u32 total_len;
    __u32 pieces;
    __u16 segment_size;
    __u16 left_out;
};

/* Writes one piece. Who is overtaken by a whole round of the ring leaves the slot alone. */
static long record_piece(__u32 piece, struct recording *recording)
{
    __u64 ticket = recording->ticket + piece;
    __u32 place = ticket & SLOT_MASK;
    __u32 at = piece * SLOT_DATA;
    __s64 len = (__u32)(recording->total_len - at);
    struct slot *slot = bpf_map_lookup_elem(&RECORDER, &place);

    if (!slot || __sync_lock_test_and_set(&slot->is_busy, 1))
        return 0;
    slot->ticket = 0;
    publish(&slot->is_busy, 1);
    slot->at = recording->now;
    slot->total_len = recording->total_len;
    slot->piece = piece;
    slot->pieces = recording->pieces;
    slot->segment_size = recording->segment_size;
    slot->left_out = recording->left_out;
    if (len > SLOT_DATA)
        len = SLOT_DATA;
    if (is_length(&len, SLOT_DATA) &&
        !bpf_skb_load_bytes(recording->skb, recording->from + at, slot->data, len)) {
        publish(&slot->is_busy, 1);
        slot->ticket = ticket + 1;
    }
    publish(&slot->is_busy, 0);
    return 0;
}

/* Whether only what is important is recorded now. */
inline_always int is_paused(__u64 now)
{
    return now < COMMON.paused_until;
}

/* From now on, and for a while, only what is important is recorded. */
inline_always void pause(__u64 now)
{
    __u32 bursts = COMMON.pause * 2;

    /* What could be recorded since the last one was over did not last as long as it should have. */
    if (now >= COMMON.paused_until + BURST_NANOS || bursts < SHORTEST_PAUSE)
        bursts = SHORTEST_PAUSE;
    if (bursts > LONGEST_PAUSE)
        bursts = LONGEST_PAUSE;
    COMMON.pause = bursts;
    COMMON.paused_until = now + bursts * BURST_NANOS;
}

/* What may be recorded at once, as a time: less than a burst until a link that was too fast is known not to be. */
inline_always __u64 credit(__u64 now)
{
    return now < COMMON.paused_until + BURST_NANOS ? BURST_NANOS / PROBE : BURST_NANOS;
}

/*
 * Pays for `len` bytes: where the recorder stands if that can be paid for. An important packet may
 * make debts.
 */
inline_always struct position *pay(__u64 now, __u32 len, int is_important)
{
    __u32 zero = 0;
    struct position *position = bpf_map_lookup_elem(&POSITION, &zero);
    __u64 paid_at, from, at_once = credit(now);

    if (!position || len > MOST_PIECES * SLOT_DATA)
        return 0;
    paid_at = position->paid_at;
    from = paid_at + at_once > now ? paid_at : now - at_once;
    if (from > now + (is_important ? BURST_NANOS : 0)) {
        if (!is_important)
            pause(now);
        return 0;
    }
    /* Of two processors at once one pays; the other one's packet is free of charge. */
    __sync_val_compare_and_swap(&position->paid_at, paid_at,
                    from + ((len * NANOS_PER_KIB) >> 10));
    return position;
}

/* Records `total_len` bytes from `from` on, of a packet that is longer by `left_out`. */
inline_always void record(struct __sk_buff *skb, struct position *position, __u64 now, __u32 from,
              __u32 total_len, __u32 left_out)
{
    struct recording recording = {
        .skb = skb,
        .now = now,
        .from = from,
        .total_len = total_len,
        .pieces = (total_len + SLOT_DATA - 1) / SLOT_DATA,
        .segment_size = skb->gso_size,
        .left_out = left_out,
    };

    recording.ticket = __sync_fetch_and_add(&position->next, recording.pieces);
    if (recording.pieces == 1)
        record_piece(0, &recording);
    else
        bpf_loop(recording.pieces, record_piece, &recording, 0);
}

#endif
