#include "sim/workload/workload.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/rng.h"
#include "sim/base/tournament.h"
#include "sim/workload/arrivals.h"
#include "sim/workload/lengths.h"

const struct field workload_class_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct traffic_config, name),
     .doc = "Name of this class of requests."},
    {.name = "arrivals",
     .kind = FIELD_VARIANT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct traffic_config, arrivals),
     .doc = "When requests come.",
     .variants = arrivals_variants,
     .tag = "process",
     .later = arrivals_later},
    {.name = "time_zone",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct traffic_config, time_zone),
     .fallback = "UTC",
     .doc = "Whose clock the curve follows: an offset such as +05:30, or UTC, America/New_York, "
            "America/Chicago, America/Denver, America/Los_Angeles, Europe/London, Europe/Berlin, "
            "Europe/Paris, Europe/Madrid, Europe/Helsinki, Asia/Kolkata, Asia/Shanghai, "
            "Asia/Singapore, Asia/Tokyo or Australia/Sydney, with their daylight saving. Outputs "
            "stay in UTC."},
    {.name = "start",
     .kind = FIELD_TIME,
     .offset = offsetof(struct traffic_config, start_ps),
     .fallback = "0 s",
     .min = 0,
     .max = 8640000,
     .doc = "When its arrivals begin, since the scenario's start. Not for a trace."},
    {.name = "end",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct traffic_config, end_ps),
     .min = 0,
     .max = 8640000,
     .doc = "When its arrivals stop; the horizon when not given. Not for a trace."},
    {.name = "prompt_tokens",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct traffic_config, prompt_tokens),
     .doc = "Prompt length; required unless a trace brings it.",
     .variants = lengths_variants,
     .tag = "dist",
     .later = lengths_later},
    {.name = "output_tokens",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct traffic_config, output_tokens),
     .doc = "Output length; required unless a trace brings it.",
     .variants = lengths_variants,
     .tag = "dist",
     .later = lengths_later},
    {.name = "correlation",
     .kind = FIELD_REAL,
     .offset = offsetof(struct traffic_config, correlation),
     .fallback = "0",
     .min = -0.999,
     .max = 0.999,
     .doc = "Between prompt and output length of one request, both drawn: the correlation of their "
            "normal scores (a Gaussian copula). Neither distribution changes."},
    {.name = "priority",
     .kind = FIELD_INT,
     .offset = offsetof(struct traffic_config, priority),
     .fallback = "0",
     .min = -1000000,
     .max = 1000000,
     .doc = "Smaller goes first and is preempted last, where a pool's scheduling_policy is "
            "priority."},
    {.name = "patience",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .offset = offsetof(struct traffic_config, patience_ps),
     .min = 0,
     .max = 8640000,
     .doc = "A client leaves this long after its request arrived, queued or in the middle of the "
            "answer: cancelled. Without it clients wait for ever."},
    {0}};

enum { STREAM_BATCH = 256, CLASSES_MAX = 1024 };

/* One class: its requests come in batches, so that the work of drawing them overlaps in the
 * processor. */
struct stream {
    const struct arrivals_type *type; /* NULL: not open */
    void *process;                    /* owned through type->close */
    bool prompt_drawn, output_drawn;  /* from a distribution, not from the trace */
    struct lengths prompt, output;
    double mean_prompt, mean_output;
    uint64_t skipped;
    double correlation;
    int32_t priority;
    uint64_t length_key;
    uint64_t number; /* in its class, of the next request to draw */
    uint32_t at, count;
    bool last;                          /* the batch in hand is the last one */
    struct request batch[STREAM_BATCH]; /* what neither process nor lengths set stays as at first */
};

struct workload {
    struct stream *streams; /* owned; [class_count] */
    size_t class_count;
    struct tournament order; /* slot: class, key: time of its next request */
    uint64_t next_id;
    int64_t start_unix_s, horizon_ps;
    bool failed;
};

/* ---- opening ---- */

bool workload_name_is_plain(const char *name)
{
    bool plain = name[0] != '\0';
    for (const char *p = name; *p; p++)
        plain = plain && *p != ',' && *p != '"' && (unsigned char)*p >= ' ' && *p != 0x7f;
    return plain;
}

static bool name_check(const struct workload_config *config, const struct site *site)
{
    const char *name = config->classes[site->class_index]->name;
    if (!workload_name_is_plain(name)) {
        site_error(site, "name",
                   "a name is not empty and has no commas, quotes or control "
                   "characters");
        return false;
    }
    for (size_t i = 0; i < site->class_index; i++) {
        if (strcmp(config->classes[i]->name, name) == 0) {
            site_error(site, "name", "workload[%zu] has the name '%s' already", i, name);
            return false;
        }
    }
    return true;
}

static bool tokens_open(const struct variant_value *value, bool from_trace, uint32_t least,
                        const struct site *site, const char *key, bool *drawn,
                        struct lengths *lengths)
{
    *drawn = value->type != NULL;
    if (*drawn)
        return lengths_init(lengths, value, least, site, key);
    if (from_trace)
        return true;
    site_error(site, "", "%s is missing: only a trace brings its own", key);
    return false;
}

static bool stream_open(struct stream *s, const struct workload_config *config,
                        const struct site *site)
{
    const struct traffic_config *class = config->classes[site->class_index];
    struct arrivals_setup setup = {.site = *site, .config = config};
    bool ok = name_check(config, site);
    check(class->arrivals.type);
    const struct arrivals_type *type = class->arrivals.type->ops;
    bool brings_tokens = type->tokens != NULL;
    ok &= tokens_open(&class->prompt_tokens, brings_tokens, 1, site, "prompt_tokens",
                      &s->prompt_drawn, &s->prompt);
    ok &= tokens_open(&class->output_tokens, brings_tokens, 0, site, "output_tokens",
                      &s->output_drawn, &s->output);
    if (class->correlation != 0 && !(s->prompt_drawn && s->output_drawn)) {
        site_error(site, "correlation", "correlation needs both lengths from a distribution");
        ok = false;
    }
    s->correlation = class->correlation;
    s->priority = (int32_t) class->priority;
    s->process = type->open(class->arrivals.config, &setup);
    if (!s->process)
        return false;
    s->type = type;
    if (brings_tokens)
        type->tokens(s->process, &s->mean_prompt, &s->mean_output, &s->skipped);
    if (s->prompt_drawn)
        s->mean_prompt = s->prompt.mean;
    if (s->output_drawn)
        s->mean_output = s->output.mean;
    s->length_key =
        rng_key(config->seed, config->replication, RNG_LENGTH, (uint32_t)site->class_index);
    return ok;
}

/* The start and horizon in force: given, or the traces'. */
static bool extent_settle(struct workload *w, const struct workload_config *config,
                          const struct locator *where, struct errors *errors)
{
    w->start_unix_s = config->start_unix_s;
    int64_t last_ps = -1;
    for (size_t i = 0; i < w->class_count; i++) {
        if (!w->streams[i].type->extent)
            continue;
        int64_t start, last;
        w->streams[i].type->extent(w->streams[i].process, &start, &last);
        if (w->start_unix_s == FIELD_INT_UNSET)
            w->start_unix_s = start;
        last_ps = last > last_ps ? last : last_ps;
    }
    if (w->start_unix_s == FIELD_INT_UNSET)
        w->start_unix_s = 0;
    w->horizon_ps = config->horizon_ps != TIME_NONE ? config->horizon_ps : last_ps + 1;
    if (w->horizon_ps > 0 && w->horizon_ps <= HORIZON_MAX_PS)
        return true;
    struct source_pos pos = {0};
    if (where && where->find)
        where->find(where->self, "horizon", &pos);
    errors_add(errors, SEVERITY_ERROR, &pos,
               config->horizon_ps == TIME_NONE ? "horizon is missing: only a trace brings its own"
                                               : "horizon must be above 0 and at most 100 days");
    return false;
}

static bool stream_fill(struct workload *w, size_t index, struct errors *errors);

static bool streams_start(struct workload *w, struct errors *errors)
{
    tournament_init(&w->order, (uint32_t)w->class_count);
    for (size_t i = 0; i < w->class_count; i++) {
        struct stream *s = &w->streams[i];
        for (size_t k = 0; k < STREAM_BATCH; k++)
            s->batch[k] = (struct request){.session = -1};
        if (!s->type->start(s->process, w->start_unix_s, w->horizon_ps, errors) ||
            !stream_fill(w, i, errors))
            return false;
    }
    return true;
}

struct workload *workload_open(const struct workload_config *config, const struct locator *where,
                               struct errors *errors)
{
    size_t errors_before = errors->error_count;
    struct workload *w = memory_zero(1, sizeof *w);
    if (config->class_count == 0 || config->class_count > CLASSES_MAX) {
        struct source_pos pos = {0};
        if (where && where->find)
            where->find(where->self, "workload", &pos);
        errors_add(errors, SEVERITY_ERROR, &pos, "workload has %zu entries: 1 to %d can be run",
                   config->class_count, CLASSES_MAX);
        free(w);
        return NULL;
    }
    w->class_count = config->class_count;
    w->streams = memory_zero(w->class_count, sizeof *w->streams);
    bool ok = true;
    for (size_t i = 0; i < w->class_count; i++) {
        struct site site = {where, errors, i, config->classes[i]->name};
        ok &= stream_open(&w->streams[i], config, &site);
    }
    ok = ok && extent_settle(w, config, where, errors) && streams_start(w, errors);
    if (ok)
        return w;
    check(errors->error_count > errors_before);
    workload_close(w);
    return NULL;
}

void workload_close(struct workload *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->class_count; i++) {
        lengths_free(&w->streams[i].prompt);
        lengths_free(&w->streams[i].output);
        if (w->streams[i].type)
            w->streams[i].type->close(w->streams[i].process);
    }
    tournament_free(&w->order);
    free(w->streams);
    free(w);
}

/* ---- the stream ---- */

/* Draws the lengths of a batch: both from one draw of the request's number, which is spared where
 * neither depends on it. */
static void batch_lengths(struct stream *s)
{
    if (!s->prompt_drawn && !s->output_drawn)
        return;
    bool chance = (s->prompt_drawn && s->prompt.min != s->prompt.max) ||
                  (s->output_drawn && s->output.min != s->output.max);
    for (uint32_t i = 0; i < s->count; i++) {
        struct rng_pair bits = {0};
        if (chance)
            bits = rng_draw(s->length_key, s->number + i, 0);
        if (s->prompt_drawn)
            s->batch[i].prompt_tokens = lengths_draw(&s->prompt, bits.a);
        if (s->correlation != 0)
            bits.b = lengths_correlate(&s->prompt, bits.a, &s->output, bits.b, s->correlation);
        if (s->output_drawn)
            s->batch[i].output_tokens = lengths_draw(&s->output, bits.b);
    }
}

/* ---- classes that follow the fleet: one request at a time ---- */

static void live_settle(struct workload *w, size_t index)
{
    const struct stream *s = &w->streams[index];
    int64_t time_ps = s->type->peek(s->process);
    tournament_set(&w->order, (uint32_t)index,
                   time_ps == TIME_NEVER ? TOURNAMENT_IDLE : (uint64_t)time_ps);
}

static void live_next(struct workload *w, uint32_t index, struct request *request,
                      struct errors *errors)
{
    struct stream *s = &w->streams[index];
    s->batch[0] = (struct request){.class_index = index, .priority = s->priority};
    s->count = (uint32_t)s->type->fill(s->process, s->batch, 1, errors);
    check(s->count == 1);
    batch_lengths(s);
    s->number++;
    *request = s->batch[0];
    request->id = w->next_id++;
    live_settle(w, index);
}

void workload_complete(struct workload *w, const struct request_record *record)
{
    uint32_t index = record->request.class_index;
    struct stream *s = &w->streams[index];
    if (!s->type->complete)
        return;
    s->type->complete(s->process, record);
    live_settle(w, index);
}

bool workload_is_live(const struct workload *w)
{
    for (size_t i = 0; i < w->class_count; i++)
        if (w->streams[i].type->complete)
            return true;
    return false;
}

int64_t workload_peek(const struct workload *w)
{
    uint64_t key = tournament_key(&w->order);
    return key == TOURNAMENT_IDLE ? TIME_NEVER : (int64_t)key;
}

/* Gets the next batch of a class and enters its first request into the order; false on a failure,
 * which is reported. */
static bool stream_fill(struct workload *w, size_t index, struct errors *errors)
{
    struct stream *s = &w->streams[index];
    s->at = s->count = 0;
    if (s->type->peek) {
        live_settle(w, index);
        return true;
    }
    if (!s->last) {
        size_t errors_before = errors->error_count;
        s->count = (uint32_t)s->type->fill(s->process, s->batch, STREAM_BATCH, errors);
        s->last = s->count < STREAM_BATCH;
        for (uint32_t i = 0; i < s->count; i++) {
            s->batch[i].class_index = (uint32_t)index;
            s->batch[i].priority = s->priority;
        }
        batch_lengths(s);
        s->number += s->count;
        w->failed |= errors->error_count != errors_before;
    }
    tournament_set(&w->order, (uint32_t)index,
                   s->count ? (uint64_t)s->batch[0].arrival_ps : TOURNAMENT_IDLE);
    return !w->failed;
}

enum workload_status workload_next(struct workload *w, struct request *request,
                                   struct errors *errors)
{
    if (w->failed)
        return WORKLOAD_FAILED;
    if (tournament_key(&w->order) == TOURNAMENT_IDLE)
        return WORKLOAD_END;
    uint32_t index = tournament_winner(&w->order);
    struct stream *s = &w->streams[index];
    if (s->type->peek) {
        live_next(w, index, request, errors);
        return WORKLOAD_OK;
    }
    *request = s->batch[s->at++];
    request->id = w->next_id++;
    if (s->at < s->count) {
        debug_check(s->batch[s->at].arrival_ps >= request->arrival_ps);
        tournament_set(&w->order, index, (uint64_t)s->batch[s->at].arrival_ps);
    } else if (!stream_fill(w, index, errors)) {
        return WORKLOAD_FAILED;
    }
    return WORKLOAD_OK;
}

/* ---- questions ---- */

int64_t workload_horizon(const struct workload *w)
{
    return w->horizon_ps;
}

int64_t workload_start(const struct workload *w)
{
    return w->start_unix_s;
}

static const struct stream *stream_at(const struct workload *w, size_t class_index)
{
    check(class_index < w->class_count);
    return &w->streams[class_index];
}

double workload_rate(const struct workload *w, size_t class_index, int64_t time_ps)
{
    const struct stream *s = stream_at(w, class_index);
    return s->type->rate(s->process, time_ps);
}

double workload_expected(const struct workload *w, size_t class_index, int64_t from_ps,
                         int64_t to_ps)
{
    const struct stream *s = stream_at(w, class_index);
    return s->type->expected(s->process, from_ps, to_ps);
}

double workload_mean_prompt(const struct workload *w, size_t class_index)
{
    return stream_at(w, class_index)->mean_prompt;
}

double workload_mean_output(const struct workload *w, size_t class_index)
{
    return stream_at(w, class_index)->mean_output;
}

uint64_t workload_skipped_rows(const struct workload *w)
{
    uint64_t skipped = 0;
    for (size_t i = 0; i < w->class_count; i++)
        skipped += w->streams[i].skipped;
    return skipped;
}

uint64_t workload_failed_calls(const struct workload *w)
{
    uint64_t failed = 0;
    for (size_t i = 0; i < w->class_count; i++)
        if (w->streams[i].type->failed_calls)
            failed += w->streams[i].type->failed_calls(w->streams[i].process);
    return failed;
}
