/* trace: recorded arrivals, with the lengths they had. The file is read once from end to end when
 * the workload opens, so that every bad row is reported before the run and counts and means are
 * exact, and a second time, streaming, during the run, unless it is so short that its rows were
 * kept. (With `spread` it is read once more, to find the tick.) Requests come out of trace_feed.c,
 * the same in every pass. */
#include "sim/workload/arrivals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"
#include "sim/workload/trace_feed.h"

struct trace_config {
    const char *file;
    int format;
    double time_scale;
    double rate_scale;
    bool spread;
    int on_bad_row;
    int64_t hash_block_size;
};

/* In the order of trace_reader_formats. */
static const char *const format_choices[] = {"auto",     "azure",    "fleetsim",
                                             "mooncake", "burstgpt", NULL};
static const char *const bad_row_choices[] = {"error", "skip", NULL};
enum { BAD_ROW_ERROR, BAD_ROW_SKIP };

static const struct field trace_fields[] = {
    {.name = "file",
     .kind = FIELD_PATH,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct trace_config, file),
     .doc = "The trace: CSV or JSON lines, plain or gzip."},
    {.name = "format",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct trace_config, format),
     .fallback = "auto",
     .doc = "How to read it; auto: by its first line.",
     .choices = format_choices},
    {.name = "time_scale",
     .kind = FIELD_REAL,
     .offset = offsetof(struct trace_config, time_scale),
     .fallback = "1",
     .min = 1e-6,
     .max = 1e6,
     .doc = "Multiplies arrival times: 2 plays the trace half as fast. Each time is rounded once."},
    {.name = "rate_scale",
     .kind = FIELD_REAL,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct trace_config, rate_scale),
     .fallback = "1",
     .max = 1000,
     .doc =
         "Multiplies the number of requests: below 1 each is kept with this chance, above 1 each "
         "comes that often on average, at its own time. Sessions are kept or repeated whole."},
    {.name = "spread",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct trace_config, spread),
     .fallback = "false",
     .doc = "Whether requests that share a stamp are spread at random, in their order, over the "
            "clock's tick, which is the smallest step between two stamps of the trace."},
    {.name = "on_bad_row",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct trace_config, on_bad_row),
     .fallback = "error",
     .doc = "A row that cannot be read stops the run, or is left out and counted.",
     .choices = bad_row_choices},
    {.name = "hash_block_size",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct trace_config, hash_block_size),
     .min = 1,
     .max = 1048576,
     .doc = "Tokens that one of the trace's hash_ids stands for; required for our own format with "
            "hash_ids, 512 by default for mooncake."},
    {0}};

struct trace {
    const char *file;   /* borrowed from the config */
    const char **other; /* owned array of borrowed names; NULL-terminated */
    struct trace_reader_options options;
    struct trace_feed_setup feed_setup;
    int64_t horizon_ps; /* TIME_NEVER until there is one */

    /* From the first pass. */
    bool has_start;
    int64_t start_unix_s, last_ps;
    uint64_t rows, late, skipped, failed_calls; /* rows before the horizon, and from it on */
    uint32_t hash_block;                        /* 0: the trace has no hash_ids */
    uint64_t *hours;                            /* owned; arrivals in each hour, [hour_count] */
    size_t hour_count;
    uint128 prompt_sum, output_sum;
    struct trace_feed_kept kept; /* owned; whole unless given_up */

    /* The second pass. */
    struct trace_reader *reader;    /* owned; NULL: over the kept rows */
    struct trace_feed feed;         /* owned */
    struct token_hash_pool *hashes; /* borrowed; NULL: they are not wanted */
    uint64_t delivered;             /* rows */
};

static void count_request(struct trace *t, const struct request *request)
{
    int64_t time_ps = request->arrival_ps;
    size_t hour = (size_t)time_hour(time_ps);
    if (hour >= t->hour_count) {
        t->hours = memory_grow(t->hours, (hour + 1) * sizeof *t->hours);
        memset(t->hours + t->hour_count, 0, (hour + 1 - t->hour_count) * sizeof *t->hours);
        t->hour_count = hour + 1;
    }
    t->hours[hour]++;
    t->rows++;
    t->prompt_sum += request->prompt_tokens;
    t->output_sum += request->output_tokens;
    t->last_ps = time_ps;
}

/* With `spread`: the smallest step between two stamps. */
static bool find_tick(struct trace *t, const struct site *site)
{
    struct errors ignored; /* the first pass reports everything */
    errors_init(&ignored);
    int64_t tick_ps = TIME_NEVER, last_ps = -1;
    struct trace_reader *reader = trace_reader_open(t->file, &t->options, &ignored);
    struct trace_row row;
    while (reader && trace_reader_next(reader, &row) == TRACE_ROW) {
        int64_t gap_ps = row.arrival_ps - last_ps;
        if (last_ps >= 0 && gap_ps > 0 && gap_ps < tick_ps)
            tick_ps = gap_ps;
        last_ps = row.arrival_ps;
    }
    bool sound = reader != NULL;
    trace_reader_close(reader);
    errors_free(&ignored);
    t->feed_setup.tick_ps = tick_ps == TIME_NEVER ? 0 : tick_ps;
    if (tick_ps < TIME_NEVER || !sound)
        return true;
    site_error(site, "arrivals.spread", "spread needs two different stamps in the trace");
    return false;
}

/* Whether what was said of hash_ids fits the trace. */
static bool check_hashes(const struct trace *t, const struct trace_reader *reader,
                         const struct site *site)
{
    if (t->options.hash_block_size == 0 || trace_reader_hash_block_size(reader) != 0)
        return true;
    site_error(site, "arrivals.hash_block_size", "the trace has no hash_ids");
    return false;
}

/* The first pass. */
static bool scan(struct trace *t, const struct site *site)
{
    struct trace_reader *reader = trace_reader_open(t->file, &t->options, site->errors);
    if (!reader)
        return false;
    enum trace_status status;
    struct trace_feed feed;
    struct request request;
    uint64_t beyond = 0;
    trace_feed_init(&feed, reader, &t->feed_setup);
    feed.keep = &t->kept;
    while ((status = trace_feed_next(&feed, &request)) == TRACE_ROW) {
        int64_t time_ps = request.arrival_ps;
        if (time_ps < t->horizon_ps && time_ps < HORIZON_MAX_PS)
            count_request(t, &request);
        else if (t->horizon_ps == TIME_NEVER)
            beyond++;
        else
            t->late++;
    }
    trace_feed_free(&feed);
    uint64_t bad = trace_reader_bad_rows(reader);
    t->failed_calls = trace_reader_failed_calls(reader);
    t->has_start = trace_reader_start(reader, &t->start_unix_s);
    t->hash_block = (uint32_t)trace_reader_hash_block_size(reader);
    bool hashes = check_hashes(t, reader, site);
    trace_reader_close(reader);
    t->skipped = t->options.skip_bad ? bad : 0;
    if (status == TRACE_FAILED || (bad && !t->options.skip_bad) || !hashes)
        return false;
    if (beyond) {
        site_error(site, "arrivals.file", "%llu arrivals come after the longest horizon, 100 days",
                   (unsigned long long)beyond);
        return false;
    }
    if (t->rows == 0) {
        site_error(site, "arrivals.file", "the trace has no usable row for this class%s",
                   t->horizon_ps == TIME_NEVER ? "" : " before the horizon");
        return false;
    }
    return true;
}

static bool check_config(const struct trace_config *c, const struct traffic_config *class,
                         const struct site *site)
{
    bool ok = true;
    if (class->start_ps != 0 || class->end_ps != FIELD_INT_UNSET) {
        site_error(site, class->start_ps ? "start" : "end",
                   "start and end are not for a trace, which has its own times");
        ok = false;
    }
    if (strcmp(class->time_zone, "UTC") != 0) {
        site_error(site, "time_zone", "time_zone is not for a trace, which has no curve");
        ok = false;
    }
    FILE *probe = fopen(c->file, "rb");
    if (!probe) {
        site_error(site, "arrivals.file", "cannot open '%s': %s", c->file, strerror(errno));
        return false;
    }
    fclose(probe);
    return ok;
}

/* Whether two paths name one file, however they are spelled. */
static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return strcmp(a, b) == 0 || (stat(a, &first) == 0 && stat(b, &second) == 0 &&
                                 first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

/* The classes beside this one that read the same file and so take the rows of their own name. */
static const char **other_classes(const struct arrivals_setup *setup, const char *file)
{
    const struct workload_config *config = setup->config;
    const char **names = memory_zero(config->class_count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < config->class_count; i++) {
        const struct traffic_config *other = config->classes[i];
        if (i == setup->site.class_index || other->arrivals.type != &arrivals_trace_variant)
            continue;
        const struct trace_config *c = other->arrivals.config;
        if (same_file(c->file, file))
            names[count++] = other->name;
    }
    return names;
}

static void trace_close(void *self)
{
    struct trace *t = self;
    trace_feed_free(&t->feed);
    trace_reader_close(t->reader);
    free(t->kept.rows);
    free(t->hours);
    free(t->other);
    free(t);
}

static void *trace_open(const void *config, const struct arrivals_setup *setup)
{
    const struct trace_config *c = config;
    if (!check_config(c, setup->config->classes[setup->site.class_index], &setup->site))
        return NULL;
    struct trace *t = memory_zero(1, sizeof *t);
    t->file = c->file;
    t->other = other_classes(setup, c->file);
    t->options = (struct trace_reader_options){
        .format = c->format ? trace_reader_formats[c->format - 1] : NULL,
        .skip_bad = c->on_bad_row == BAD_ROW_SKIP,
        .hash_block_size = c->hash_block_size == FIELD_INT_UNSET ? 0 : c->hash_block_size,
        .class_name = setup->site.class_name,
        .other_classes = t->other,
    };
    t->hashes = setup->hashes;
    t->feed_setup = (struct trace_feed_setup){
        .time_scale = rational_from_real(c->time_scale),
        .rate_scale = c->rate_scale,
        .key = rng_key(setup->config->seed, setup->config->replication, RNG_ARRIVAL,
                       (uint32_t)setup->site.class_index),
    };
    int64_t horizon_ps = setup->config->horizon_ps;
    t->horizon_ps = horizon_ps == TIME_NONE ? TIME_NEVER : horizon_ps;
    if ((!c->spread || find_tick(t, &setup->site)) && scan(t, &setup->site))
        return t;
    trace_close(t);
    return NULL;
}

static void trace_extent(const void *self, int64_t *start_unix_s, int64_t *last_ps)
{
    const struct trace *t = self;
    *start_unix_s = t->has_start ? t->start_unix_s : FIELD_INT_UNSET;
    *last_ps = t->last_ps;
}

/* Another pass over the same rows; false when the file cannot be opened any more. */
static bool pass_begin(const struct trace *t, struct trace_feed *feed, struct trace_reader **reader,
                       struct errors *errors)
{
    if (!t->kept.given_up) {
        *reader = NULL;
        trace_feed_init_kept(feed, &t->kept, &t->feed_setup);
        return true;
    }
    *reader = trace_reader_open(t->file, &t->options, errors);
    trace_feed_init(feed, *reader, &t->feed_setup);
    return *reader != NULL;
}

static bool trace_start(void *self, int64_t start_unix_s, int64_t horizon_ps, struct errors *errors)
{
    (void)start_unix_s;
    struct trace *t = self;
    t->horizon_ps = horizon_ps;
    t->feed_setup.hashes = t->hashes; /* only here: the other passes throw requests away */
    bool ok = pass_begin(t, &t->feed, &t->reader, errors);
    t->feed_setup.hashes = NULL;
    return ok;
}

static size_t trace_fill(void *self, struct request *out, size_t max, struct errors *errors)
{
    struct trace *t = self;
    size_t count = 0;
    uint64_t bad_before = 0;
    if (t->reader) {
        bad_before = trace_reader_bad_rows(t->reader);
        trace_reader_report_to(t->reader, errors);
    }
    while (count < max && trace_feed_next(&t->feed, &out[count]) == TRACE_ROW) {
        if (out[count].arrival_ps >= t->horizon_ps) {
            token_hashes_release(out[count].hashes);
            break;
        }
        count++;
    }
    t->delivered += count;
    /* The first pass found the file sound and counted it: anything else now means a change. */
    bool worse = t->reader && !t->options.skip_bad && trace_reader_bad_rows(t->reader) > bad_before;
    if (worse || (count < max && t->delivered != t->rows)) {
        struct source_pos pos = {.file = t->file};
        errors_add(errors, SEVERITY_ERROR, &pos, "the file changed while the run was reading it");
    }
    return count;
}

static double trace_rate(const void *self, int64_t time_ps)
{
    const struct trace *t = self;
    size_t hour = (size_t)time_hour(time_ps);
    return hour < t->hour_count ? (double)t->hours[hour] / 3600 : 0;
}

/* Arrivals in [from, to) inside one hour, by another pass. */
static uint64_t count_part(const struct trace *t, int64_t from_ps, int64_t to_ps)
{
    struct errors ignored; /* the first pass reported everything */
    errors_init(&ignored);
    uint64_t count = 0;
    struct trace_reader *reader;
    struct trace_feed feed;
    struct request request;
    bool open = pass_begin(t, &feed, &reader, &ignored);
    while (open && trace_feed_next(&feed, &request) == TRACE_ROW && request.arrival_ps < to_ps)
        count += request.arrival_ps >= from_ps;
    trace_feed_free(&feed);
    trace_reader_close(reader);
    errors_free(&ignored);
    return count;
}

static double trace_expected(const void *self, int64_t from_ps, int64_t to_ps)
{
    const struct trace *t = self;
    if (to_ps > t->last_ps)
        to_ps = (int64_t)t->hour_count * PS_PER_HOUR;
    if (from_ps >= to_ps)
        return 0;
    size_t first = (size_t)((from_ps + PS_PER_HOUR - 1) / PS_PER_HOUR);
    size_t last = (size_t)(to_ps / PS_PER_HOUR);
    if (first > last)
        return (double)count_part(t, from_ps, to_ps);
    uint64_t count = 0;
    for (size_t hour = first; hour < last; hour++)
        count += t->hours[hour];
    if (from_ps % PS_PER_HOUR)
        count += count_part(t, from_ps, (int64_t)first * PS_PER_HOUR);
    if (to_ps % PS_PER_HOUR)
        count += count_part(t, (int64_t)last * PS_PER_HOUR, to_ps);
    return (double)count;
}

static void trace_tokens(const void *self, double *mean_prompt, double *mean_output,
                         uint64_t *skipped)
{
    const struct trace *t = self;
    *mean_prompt = (double)t->prompt_sum / (double)t->rows;
    *mean_output = (double)t->output_sum / (double)t->rows;
    *skipped = t->skipped;
}

static uint64_t trace_failed_calls(const void *self)
{
    return ((const struct trace *)self)->failed_calls;
}

static uint64_t trace_late(const void *self)
{
    return ((const struct trace *)self)->late;
}

static uint32_t trace_hash_block(const void *self)
{
    return ((const struct trace *)self)->hash_block;
}

static const struct arrivals_type trace_type = {
    .open = trace_open,
    .close = trace_close,
    .extent = trace_extent,
    .start = trace_start,
    .fill = trace_fill,
    .rate = trace_rate,
    .expected = trace_expected,
    .tokens = trace_tokens,
    .failed_calls = trace_failed_calls,
    .late = trace_late,
    .hash_block = trace_hash_block,
};

const struct variant arrivals_trace_variant = {
    .name = "trace",
    .doc = "Recorded requests, replayed; lengths default to the recorded ones.",
    .fields = trace_fields,
    .size = sizeof(struct trace_config),
    .ops = &trace_type,
};
