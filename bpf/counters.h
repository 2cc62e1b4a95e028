/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What is counted, by each processor for itself. */
#ifndef OUTLAST_COUNTERS_H
#define OUTLAST_COUNTERS_H

/* Segments by what became of them. Packets that are others at first sight are not worth what counting costs. */
enum count {
    TRACKED,
    ODD,
    /* Looked at closely, and no whole segment; a RST of no connection; hosts whose hash is others'. */
    NOT_TRACKED,
    CONTENDED,
    /* Segments recorded, and not recorded because the rate forbade it. */
    RECORDED,
    THINNED,
    /* Connections of which user space was told. */
    SUSPECTED,
    /* Connections that were not closed and gave way to others. */
    EVICTED,
    COUNTS,
};

struct counters {
    __u64 of[COUNTS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct counters);
} COUNTERS SEC(".maps");

inline_always void count(enum count what)
{
    __u32 zero = 0;
    struct counters *counters = bpf_map_lookup_elem(&COUNTERS, &zero);

    if (counters)
        counters->of[what] += 1;
}

/* Segments of a connection that are not counted yet. */
struct uncounted {
    __u8 tracked;
    __u8 thinned;
};

inline_always void add_before(struct counters *counters, struct uncounted before)
{
    counters->of[TRACKED] += before.tracked;
    counters->of[THINNED] += before.thinned;
}

inline_always void count_before(struct uncounted before)
{
    __u32 zero = 0;
    struct counters *counters = bpf_map_lookup_elem(&COUNTERS, &zero);

    if (counters)
        add_before(counters, before);
}

/* Counts a segment by both, and those before it. */
inline_always void count_segment(enum count what, enum count also, struct uncounted before)
{
    __u32 zero = 0;
    struct counters *counters = bpf_map_lookup_elem(&COUNTERS, &zero);

    if (!counters)
        return;
    add_before(counters, before);
    counters->of[what] += 1;
    if (also != what)
        counters->of[also] += 1;
}

#endif
