/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Has a connection start slowly after its timeout, also if it takes that for spurious: whoever changes the
 * congestion control forgets the window of before. The same one goes on.
 */
#ifndef OUTLAST_SLOW_START_H
#define OUTLAST_SLOW_START_H

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define LONGEST_NAME 16

static __always_inline int is_reno(const char *name)
{
    return name[0] == 'r' && name[1] == 'e' && name[2] == 'n' && name[3] == 'o' && !name[4];
}

/* `socket` is what the program's kind calls a socket by. */
static __always_inline void forget_window(void *socket)
{
    char name[LONGEST_NAME] = {}, reno[LONGEST_NAME] = "reno", cubic[LONGEST_NAME] = "cubic";

    if (bpf_getsockopt(socket, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
        return;
    if (bpf_setsockopt(socket, SOL_TCP, TCP_CONGESTION, is_reno(name) ? cubic : reno, LONGEST_NAME))
        return;
    bpf_setsockopt(socket, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
}

#endif
