#include "sim/workload/workload.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/base/rng.h"
#include "sim/base/tournament.h"
#include "sim/workload/arrivals.h"
#include "sim/workload/lengths.h"
#include "sim/workload/sessions.h"
#include "sim/workload/workload_draw.h"

static const struct field shared_prompt_fields[] = {
    {.name = "tokens",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct shared_prompt_config, tokens),
     .min = 1,
     .max = 16777216,
     .doc = "Tokens of it; they come on top of prompt_tokens."},
    {.name = "count",
     .kind = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct shared_prompt_config, count),
     .min = 1,
     .max = 1000000,
     .doc = "How many different ones the class has; each request, or session, has one of them, all "
            "alike. 1 when not given."},
    {0}};

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
     .tag = "process"},
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
     .doc =
         "Prompt length, without the shared prompt and the history of a session; required unless "
         "a trace brings it.",
     .variants = lengths_variants,
     .tag = "dist",
     .bare = "constant"},
    {.name = "output_tokens",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct traffic_config, output_tokens),
     .doc = "Output length; required unless a trace brings it.",
     .variants = lengths_variants,
     .tag = "dist",
     .bare = "constant"},
    {.name = "correlation",
     .kind = FIELD_REAL,
     .offset = offsetof(struct traffic_config, correlation),
     .fallback = "0",
     .min = -0.999,
     .max = 0.999,
     .doc = "Between prompt and output length of one request, both drawn: the correlation of their "
            "normal scores (a Gaussian copula). Neither distribution changes."},
    {.name = "shared_prompt",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct traffic_config, shared_prompt),
     .doc = "A system prompt that stands before what prompt_tokens states, the same for many "
            "requests: what a prefix cache can save. Not for a trace.",
     .fields = shared_prompt_fields},
    {.name = "sessions",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct traffic_config, sessions),
     .doc = "Conversations of several turns. Not for a trace or a closed_loop.",
     .fields = sessions_fields},
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
enum { CONTENT_LANE = CLASSES_MAX }; /* of the key of contents' names, beside those of classes */

/* One class: its requests come in batches, so that the work of drawing them overlaps in the
 * processor. With sessions the batches are their starts. */
struct stream {
    const struct arrivals_type *type; /* NULL: not open */
    void *process;                    /* owned through type->close */
    struct workload_draw draw;        /* owns its lengths */
    struct sessions *sessions;        /* owned; NULL: none */
    double mean_prompt, mean_output;
    uint64_t skipped;
    int64_t start_ps; /* of the class */
    int32_t priority;
    uint64_t number; /* in its class, of the next request to draw */
    uint32_t at, count;
    bool last;                          /* the batch in hand is the last one */
    struct request batch[STREAM_BATCH]; /* what neither process nor draws set stays as at first */
};

struct workload {
    struct stream *streams; /* owned; [class_count] */
    size_t class_count;
    struct tournament order;        /* slot: class, key: time of its next request */
    struct token_hash_pool *hashes; /* owned; NULL: contents are not wanted */
    uint64_t content_key;
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

/* The class's shared prompts, numbered behind those of the classes before it. */
static bool shared_open(struct workload_draw *draw, const struct workload_config *config,
                        const struct site *site, bool from_trace)
{
    const struct shared_prompt_config *shared = &config->classes[site->class_index]->shared_prompt;
    for (size_t i = 0; i < site->class_index; i++) {
        int64_t count = config->classes[i]->shared_prompt.count;
        draw->shared_first += count == FIELD_INT_UNSET ? 1 : (uint32_t)count;
    }
    bool none = shared->tokens == FIELD_INT_UNSET;
    if (none && shared->count != FIELD_INT_UNSET) {
        site_error(site, "shared_prompt", "a shared_prompt needs tokens");
        return false;
    }
    if (!none && from_trace) {
        site_error(site, "shared_prompt",
                   "shared_prompt is not for a trace, whose prompts are whole");
        return false;
    }
    draw->shared_tokens = none ? 0 : (uint32_t)shared->tokens;
    draw->shared_count = shared->count == FIELD_INT_UNSET ? 1 : (uint32_t)shared->count;
    return true;
}

static bool draw_open(struct workload_draw *draw, const struct workload_config *config,
                      const struct site *site, bool brings_tokens)
{
    const struct traffic_config *class = config->classes[site->class_index];
    bool ok = tokens_open(&class->prompt_tokens, brings_tokens, 1, site, "prompt_tokens",
                          &draw->prompt_drawn, &draw->prompt);
    ok &= tokens_open(&class->output_tokens, brings_tokens, 0, site, "output_tokens",
                      &draw->output_drawn, &draw->output);
    if (class->correlation != 0 && !(draw->prompt_drawn && draw->output_drawn)) {
        site_error(site, "correlation", "correlation needs both lengths from a distribution");
        ok = false;
    }
    draw->chance = (draw->prompt_drawn && draw->prompt.min != draw->prompt.max) ||
                   (draw->output_drawn && draw->output.min != draw->output.max);
    draw->correlation = class->correlation;
    uint32_t lane = (uint32_t)site->class_index;
    draw->length_key = rng_key(config->seed, config->replication, RNG_LENGTH, lane);
    draw->session_key = rng_key(config->seed, config->replication, RNG_SESSION, lane);
    return shared_open(draw, config, site, brings_tokens) && ok;
}

/* Whether anything of `sessions:` is stated. */
static bool sessions_stated(const struct sessions_config *c)
{
    return c->turns.type || c->think_time.type || c->stationary_start ||
           c->max_history_tokens != FIELD_INT_UNSET;
}

static bool stream_sessions_open(struct stream *s, const struct traffic_config *class,
                                 const struct site *site, bool drawn)
{
    if (!sessions_stated(&class->sessions))
        return true;
    if (s->type->tokens || s->type->complete) {
        site_error(site, "sessions", "sessions are not for a %s, whose %s",
                   class->arrivals.type->name,
                   s->type->tokens ? "rows have their own" : "users ask for ever");
        return false;
    }
    if (!drawn) /* reported; there is nothing to draw from */
        return false;
    s->sessions = sessions_create(&class->sessions, &s->draw, site);
    return s->sessions != NULL;
}

static bool stream_open(struct stream *s, const struct workload_config *config,
                        const struct site *site, struct token_hash_pool *hashes)
{
    const struct traffic_config *class = config->classes[site->class_index];
    struct arrivals_setup setup = {.site = *site, .config = config, .hashes = hashes};
    bool ok = name_check(config, site);
    check(class->arrivals.type);
    const struct arrivals_type *type = class->arrivals.type->ops;
    bool drawn = draw_open(&s->draw, config, site, type->tokens != NULL);
    s->start_ps = class->start_ps;
    s->priority = (int32_t) class->priority;
    s->process = type->open(class->arrivals.config, &setup);
    if (!s->process)
        return false;
    s->type = type;
    ok &= stream_sessions_open(s, class, site, drawn) && drawn;
    if (type->tokens)
        type->tokens(s->process, &s->mean_prompt, &s->mean_output, &s->skipped);
    if (s->draw.prompt_drawn)
        s->mean_prompt = s->draw.prompt.mean;
    if (s->draw.output_drawn)
        s->mean_output = s->draw.output.mean;
    s->mean_prompt += s->draw.shared_tokens;
    if (s->sessions)
        s->mean_prompt += sessions_mean_history(s->sessions);
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

static bool stream_sessions_start(const struct workload *w, struct stream *s, struct errors *errors)
{
    return !s->sessions || sessions_start(s->sessions, s->type->rate(s->process, s->start_ps),
                                          s->start_ps, w->horizon_ps, errors);
}

static bool streams_start(struct workload *w, struct errors *errors)
{
    tournament_init(&w->order, (uint32_t)w->class_count);
    for (size_t i = 0; i < w->class_count; i++) {
        struct stream *s = &w->streams[i];
        for (size_t k = 0; k < STREAM_BATCH; k++)
            s->batch[k] = (struct request){.session = -1};
        if (!s->type->start(s->process, w->start_unix_s, w->horizon_ps, errors) ||
            !stream_sessions_start(w, s, errors) || !stream_fill(w, i, errors))
            return false;
    }
    return true;
}

bool workload_follows_fleet(const struct traffic_config *class)
{
    const struct arrivals_type *type = class->arrivals.type->ops;
    return type->complete || class->sessions.turns.type;
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
    w->hashes = config->want_contents ? token_hashes_pool_create() : NULL;
    w->content_key = rng_key(config->seed, config->replication, RNG_SESSION, CONTENT_LANE);
    bool ok = true;
    for (size_t i = 0; i < w->class_count; i++) {
        struct site site = {where, errors, i, config->classes[i]->name};
        ok &= stream_open(&w->streams[i], config, &site, w->hashes);
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
        struct stream *s = &w->streams[i];
        for (uint32_t k = s->at; k < s->count; k++)
            token_hashes_release(s->batch[k].hashes);
        sessions_free(s->sessions);
        lengths_free(&s->draw.prompt);
        lengths_free(&s->draw.output);
        if (s->type)
            s->type->close(s->process);
    }
    token_hashes_pool_free(w->hashes);
    tournament_free(&w->order);
    free(w->streams);
    free(w);
}

/* ---- the stream ---- */

/* Names of what no longer is part of the request, its lengths being others than the trace's. */
static void hashes_trim(const struct workload_draw *draw, struct request *request)
{
    struct token_hashes *hashes = request->hashes;
    if (!hashes)
        return;
    uint32_t tokens = request->prompt_tokens + (draw->prompt_drawn ? 0 : request->output_tokens);
    uint32_t most = tokens / hashes->block_tokens;
    hashes->count = hashes->count < most ? hashes->count : most;
}

/* Draws the lengths of a batch: both from one draw of the request's number, which is spared where
 * neither depends on it. */
static void batch_lengths(struct stream *s)
{
    const struct workload_draw *draw = &s->draw;
    if (!draw->prompt_drawn && !draw->output_drawn)
        return;
    for (uint32_t i = 0; i < s->count; i++) {
        workload_draw_lengths(draw, s->number + i, 0, &s->batch[i]);
        hashes_trim(draw, &s->batch[i]);
        workload_draw_shared(draw, s->number + i, &s->batch[i]);
    }
}

/* ---- classes that follow the fleet: one request at a time ---- */

/* The time of the next first turn: that of the batch's next start. */
static int64_t start_next_ps(const struct stream *s)
{
    return s->at < s->count ? s->batch[s->at].arrival_ps : TIME_NEVER;
}

static void live_settle(struct workload *w, size_t index)
{
    const struct stream *s = &w->streams[index];
    int64_t time_ps = s->sessions ? start_next_ps(s) : s->type->peek(s->process);
    if (s->sessions && sessions_peek(s->sessions) < time_ps)
        time_ps = sessions_peek(s->sessions);
    tournament_set(&w->order, (uint32_t)index,
                   time_ps == TIME_NEVER ? TOURNAMENT_IDLE : (uint64_t)time_ps);
}

/* The next turn, of one session or a new one; those under way go first at one instant. False on a
 * failure, which is reported. */
static bool session_next(struct workload *w, uint32_t index, struct request *request,
                         struct errors *errors)
{
    struct stream *s = &w->streams[index];
    bool filled = true;
    if (sessions_peek(s->sessions) <= start_next_ps(s)) {
        *request = (struct request){.class_index = index, .priority = s->priority};
        sessions_next(s->sessions, request);
    } else {
        *request = s->batch[s->at++];
        sessions_begin(s->sessions, request);
        if (s->at == s->count)
            filled = stream_fill(w, index, errors);
    }
    request->id = w->next_id++;
    live_settle(w, index);
    return filled;
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

bool workload_complete(struct workload *w, const struct request_record *record)
{
    uint32_t index = record->request.class_index;
    struct stream *s = &w->streams[index];
    bool over = false;
    if (s->sessions)
        over = sessions_complete(s->sessions, record);
    else if (s->type->complete)
        s->type->complete(s->process, record);
    else
        return false;
    live_settle(w, index);
    return over;
}

bool workload_is_live(const struct workload *w)
{
    for (size_t i = 0; i < w->class_count; i++)
        if (w->streams[i].type->complete || w->streams[i].sessions)
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
        if (!s->sessions)
            batch_lengths(s);
        s->number += s->count;
        w->failed |= errors->error_count != errors_before;
    }
    if (s->sessions) {
        live_settle(w, index);
        return !w->failed;
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
    if (s->sessions)
        return session_next(w, index, request, errors) ? WORKLOAD_OK : WORKLOAD_FAILED;
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
    double turns = s->sessions ? sessions_mean_turns(s->sessions) : 1;
    return turns * s->type->rate(s->process, time_ps);
}

double workload_expected(const struct workload *w, size_t class_index, int64_t from_ps,
                         int64_t to_ps)
{
    const struct stream *s = stream_at(w, class_index);
    double turns = s->sessions ? sessions_mean_turns(s->sessions) : 1;
    return turns * s->type->expected(s->process, from_ps, to_ps);
}

double workload_mean_prompt(const struct workload *w, size_t class_index)
{
    return stream_at(w, class_index)->mean_prompt;
}

double workload_mean_output(const struct workload *w, size_t class_index)
{
    return stream_at(w, class_index)->mean_output;
}

struct sessions_counts workload_sessions(const struct workload *w, size_t class_index)
{
    const struct sessions *sessions = stream_at(w, class_index)->sessions;
    return sessions ? sessions_counts(sessions) : (struct sessions_counts){0};
}

struct sessions_counts workload_sessions_all(const struct workload *w)
{
    struct sessions_counts all = {0};
    for (size_t i = 0; i < w->class_count; i++) {
        struct sessions_counts own = workload_sessions(w, i);
        all.started += own.started;
        all.finished += own.finished;
        all.given_up += own.given_up;
        all.past_horizon += own.past_horizon;
        all.cut += own.cut;
    }
    return all;
}

uint32_t workload_hash_block(const struct workload *w, size_t class_index)
{
    const struct stream *s = stream_at(w, class_index);
    return s->type->hash_block ? s->type->hash_block(s->process) : 0;
}

bool workload_has_contents(const struct workload *w, size_t class_index)
{
    const struct stream *s = stream_at(w, class_index);
    return s->sessions || s->draw.shared_tokens > 0 || workload_hash_block(w, class_index) > 0;
}

uint64_t workload_content_key(const struct workload *w)
{
    return w->content_key;
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

uint64_t workload_late_requests(const struct workload *w)
{
    uint64_t late = 0;
    for (size_t i = 0; i < w->class_count; i++)
        if (w->streams[i].type->late)
            late += w->streams[i].type->late(w->streams[i].process);
    return late;
}

bool workload_trace_start(const struct workload *w, size_t class_index, int64_t *unix_s)
{
    const struct stream *s = stream_at(w, class_index);
    int64_t last_ps;
    *unix_s = FIELD_INT_UNSET;
    if (s->type->extent)
        s->type->extent(s->process, unix_s, &last_ps);
    return *unix_s != FIELD_INT_UNSET;
}
