#include "sim/workload/trace_feed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"

/* Draws of one entity. */
enum { DRAW_COPIES, DRAW_SPREAD };
static const uint64_t SESSION_ENTITY = UINT64_C(1) << 63; /* sessions beside row numbers */

void trace_feed_init(struct trace_feed *feed, struct trace_reader *reader,
                     const struct trace_feed_setup *setup)
{
    double least = floor(setup->rate_scale);
    *feed = (struct trace_feed){.setup = *setup,
                                .reader = reader,
                                .copies_least = (uint64_t)least,
                                .copies_chance = setup->rate_scale - least};
}

void trace_feed_init_kept(struct trace_feed *feed, const struct trace_feed_kept *kept,
                          const struct trace_feed_setup *setup)
{
    check(!kept->given_up);
    trace_feed_init(feed, NULL, setup);
    feed->kept = kept;
}

void trace_feed_free(struct trace_feed *feed)
{
    for (size_t i = feed->group_at; i < feed->group_count; i++)
        token_hashes_release(feed->group[i].hashes);
    if (feed->has_ahead && feed->ahead_status == TRACE_ROW)
        token_hashes_release(feed->ahead.hashes);
    free(feed->group);
    free(feed->offsets);
}

static void row_keep(struct trace_feed_kept *kept, const struct trace_row *row)
{
    if (kept->given_up)
        return;
    if (kept->count == TRACE_FEED_KEPT_MAX || row->hash_count > 0) {
        free(kept->rows);
        *kept = (struct trace_feed_kept){.given_up = true};
        return;
    }
    if (kept->count == kept->capacity) {
        kept->capacity = kept->capacity ? 2 * kept->capacity : 1024;
        kept->rows = memory_grow(kept->rows, kept->capacity * sizeof *kept->rows);
    }
    kept->rows[kept->count++] = (struct trace_feed_row){.arrival_ps = row->arrival_ps,
                                                        .session = row->session,
                                                        .prompt_tokens = row->prompt_tokens,
                                                        .output_tokens = row->output_tokens,
                                                        .turn = row->turn};
}

static enum trace_status next_row(struct trace_feed *feed, struct trace_row *row)
{
    if (feed->kept) {
        if (feed->kept_at == feed->kept->count)
            return TRACE_END;
        const struct trace_feed_row *kept = &feed->kept->rows[feed->kept_at++];
        *row = (struct trace_row){.arrival_ps = kept->arrival_ps,
                                  .prompt_tokens = kept->prompt_tokens,
                                  .output_tokens = kept->output_tokens,
                                  .turn = kept->turn,
                                  .session = kept->session};
        return TRACE_ROW;
    }
    enum trace_status status = trace_reader_next(feed->reader, row);
    if (status == TRACE_ROW && feed->keep)
        row_keep(feed->keep, row);
    return status;
}

/* How often the present row comes: rate_scale on average. */
static uint64_t copies_of(const struct trace_feed *feed)
{
    if (feed->copies_chance == 0)
        return feed->copies_least;
    uint64_t entity =
        feed->row.session >= 0 ? SESSION_ENTITY | (uint64_t)feed->row.session : feed->rows;
    double chance = rng_unit(rng_draw(feed->setup.key, entity, DRAW_COPIES).a);
    return feed->copies_least + (chance < feed->copies_chance);
}

/* A copy of a session is a session of its own. */
static int64_t session_of(const struct trace_feed *feed)
{
    uint64_t most = feed->copies_least + (feed->copies_chance > 0);
    if (feed->row.session < 0 || most <= 1)
        return feed->row.session;
    return (int64_t)(((uint64_t)feed->row.session * most + feed->copy) & INT64_MAX);
}

/* The row's hashes for one request; NULL: none, or they are not wanted. */
static struct token_hashes *hashes_of(const struct trace_feed *feed)
{
    if (!feed->setup.hashes || feed->hash_count == 0)
        return NULL;
    struct token_hashes *hashes = token_hashes_acquire(
        feed->setup.hashes, feed->hash_count, (uint32_t)trace_reader_hash_block_size(feed->reader));
    memcpy(hashes->ids, feed->hash_ids, feed->hash_count * sizeof *hashes->ids);
    return hashes;
}

/* The next request with its stamp as recorded. */
static enum trace_status next_copy(struct trace_feed *feed, struct request *request)
{
    while (feed->copy == feed->copies) {
        struct trace_row row;
        enum trace_status status = next_row(feed, &row);
        if (status != TRACE_ROW)
            return status;
        feed->row = (struct request){.arrival_ps = row.arrival_ps,
                                     .prompt_tokens = row.prompt_tokens,
                                     .output_tokens = row.output_tokens,
                                     .session = row.session,
                                     .turn = row.turn};
        feed->hash_ids = row.hash_ids;
        feed->hash_count = (uint32_t)row.hash_full;
        feed->copies = copies_of(feed);
        feed->copy = 0;
        feed->rows++;
    }
    *request = feed->row;
    request->session = session_of(feed);
    request->hashes = hashes_of(feed);
    feed->copy++;
    return TRACE_ROW;
}

static int offset_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void group_add(struct trace_feed *feed, const struct request *request)
{
    if (feed->group_count == feed->group_capacity) {
        feed->group_capacity = feed->group_capacity ? 2 * feed->group_capacity : 64;
        feed->group = memory_grow(feed->group, feed->group_capacity * sizeof *feed->group);
        feed->offsets = memory_grow(feed->offsets, feed->group_capacity * sizeof *feed->offsets);
    }
    feed->group[feed->group_count++] = *request;
}

/* Requests keep their order: the sorted offsets go to them one by one. */
static void group_spread(struct trace_feed *feed)
{
    for (size_t i = 0; i < feed->group_count; i++) {
        uint64_t bits = rng_draw(feed->setup.key, feed->spread++, DRAW_SPREAD).a;
        feed->offsets[i] = (int64_t)((uint128)bits * (uint64_t)feed->setup.tick_ps >> 64);
    }
    qsort(feed->offsets, feed->group_count, sizeof *feed->offsets, offset_compare);
    for (size_t i = 0; i < feed->group_count; i++)
        feed->group[i].arrival_ps += feed->offsets[i];
}

/* The next request out of a group that has been spread. */
static enum trace_status next_spread(struct trace_feed *feed, struct request *request)
{
    if (feed->group_at == feed->group_count) {
        if (!feed->has_ahead)
            feed->ahead_status = next_copy(feed, &feed->ahead);
        if (feed->ahead_status != TRACE_ROW) {
            feed->has_ahead = true;
            return feed->ahead_status;
        }
        feed->group_at = feed->group_count = 0;
        int64_t stamp_ps = feed->ahead.arrival_ps;
        do {
            group_add(feed, &feed->ahead);
            feed->ahead_status = next_copy(feed, &feed->ahead);
        } while (feed->ahead_status == TRACE_ROW && feed->ahead.arrival_ps == stamp_ps);
        feed->has_ahead = true;
        group_spread(feed);
    }
    *request = feed->group[feed->group_at++];
    return TRACE_ROW;
}

/* t · scale, rounded once, half up; past every horizon when it leaves the clock. */
static int64_t scaled_time(const struct rational *scale, int64_t ps)
{
    if (scale->numerator == scale->denominator)
        return ps;
    uint128 scaled = ((uint128)ps * scale->numerator + scale->denominator / 2) / scale->denominator;
    return scaled < (uint128)TIME_NEVER ? (int64_t)scaled : TIME_NEVER;
}

enum trace_status trace_feed_next(struct trace_feed *feed, struct request *request)
{
    enum trace_status status =
        feed->setup.tick_ps > 0 ? next_spread(feed, request) : next_copy(feed, request);
    if (status == TRACE_ROW)
        request->arrival_ps = scaled_time(&feed->setup.time_scale, request->arrival_ps);
    return status;
}
