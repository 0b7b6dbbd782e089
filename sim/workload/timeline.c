#include "sim/workload/timeline.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/time.h"

enum { WEEK_S = 604800, MONDAY_S = 3 * 86400 /* 1970-01-01 was a Thursday */ };
#define WEEK_PS (WEEK_S * PS_PER_SECOND)

static void piece_add(struct timeline *timeline, const struct timeline_setup *setup, int64_t ps)
{
    if (ps < 0 || ps >= setup->horizon_ps)
        return;
    timeline->pieces =
        memory_grow(timeline->pieces, (timeline->count + 1) * sizeof *timeline->pieces);
    timeline->pieces[timeline->count++] = (struct timeline_piece){.from_ps = ps};
}

static int piece_compare(const void *a, const void *b)
{
    int64_t x = ((const struct timeline_piece *)a)->from_ps;
    int64_t y = ((const struct timeline_piece *)b)->from_ps;
    return (x > y) - (x < y);
}

static void piece_fill(struct timeline_piece *piece, const struct timeline_setup *setup)
{
    int64_t unix_s = setup->start_unix_s + piece->from_ps / PS_PER_SECOND;
    int64_t local = (setup->start_unix_s + zone_offset(setup->zone, unix_s) + MONDAY_S) % WEEK_S;
    piece->local_s = local < 0 ? local + WEEK_S : local;
    piece->factor = piece->from_ps >= setup->from_ps && piece->from_ps < setup->to_ps ? 1 : 0;
    const struct timeline_spike *spikes = setup->spikes->items;
    for (size_t i = 0; i < setup->spikes->count; i++)
        if (piece->from_ps >= spikes[i].at_ps &&
            piece->from_ps - spikes[i].at_ps < spikes[i].duration_ps)
            piece->factor *= spikes[i].factor;
}

void timeline_init(struct timeline *timeline, const struct timeline_setup *setup)
{
    *timeline = (struct timeline){0};
    piece_add(timeline, setup, 0);
    piece_add(timeline, setup, setup->from_ps);
    piece_add(timeline, setup, setup->to_ps);
    const struct timeline_spike *spikes = setup->spikes->items;
    for (size_t i = 0; i < setup->spikes->count; i++) {
        piece_add(timeline, setup, spikes[i].at_ps);
        piece_add(timeline, setup, time_add(spikes[i].at_ps, spikes[i].duration_ps));
    }
    int64_t end_unix_s = setup->start_unix_s + setup->horizon_ps / PS_PER_SECOND + 1;
    for (int64_t unix_s = zone_next_change(setup->zone, setup->start_unix_s); unix_s < end_unix_s;
         unix_s = zone_next_change(setup->zone, unix_s))
        piece_add(timeline, setup, (unix_s - setup->start_unix_s) * PS_PER_SECOND);

    qsort(timeline->pieces, timeline->count, sizeof *timeline->pieces, piece_compare);
    size_t kept = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        if (kept && timeline->pieces[kept - 1].from_ps == timeline->pieces[i].from_ps)
            continue;
        timeline->pieces[kept] = timeline->pieces[i];
        piece_fill(&timeline->pieces[kept++], setup);
    }
    timeline->count = kept;
    check(kept > 0 && timeline->pieces[0].from_ps == 0);
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->pieces);
}

const struct timeline_piece *timeline_at(const struct timeline *timeline, int64_t time_ps)
{
    check(time_ps >= 0);
    size_t i = timeline->count - 1;
    while (timeline->pieces[i].from_ps > time_ps)
        i--;
    return &timeline->pieces[i];
}

double timeline_factor_max(const struct timeline *timeline)
{
    double max = 0;
    for (size_t i = 0; i < timeline->count; i++)
        max = timeline->pieces[i].factor > max ? timeline->pieces[i].factor : max;
    return max;
}

int64_t timeline_local(const struct timeline_piece *piece, int64_t time_ps, int64_t *weeks)
{
    *weeks = time_ps / WEEK_PS;
    return time_ps % WEEK_PS + piece->local_s * PS_PER_SECOND;
}
