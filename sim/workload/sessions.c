#include "sim/workload/sessions.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"
#include "sim/workload/sessions_law.h"

const struct field sessions_fields[] = {
    {.name = "turns",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct sessions_config, turns),
     .doc =
         "Requests of one conversation. With it the class's arrivals are starts of conversations "
         "(rate: that many start; requests_per_day and users: that many requests come), and "
         "prompt_tokens are the new ones of a turn: all that was asked and answered before "
         "stands before them.",
     .variants = sessions_law_turns_variants,
     .tag = "dist",
     .bare = "constant"},
    {.name = "think_time",
     .kind = FIELD_VARIANT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct sessions_config, think_time),
     .doc =
         "From the end of an answer to the next turn; at least 1 ps passes. Required with turns.",
     .variants = sessions_law_think_variants,
     .tag = "dist",
     .bare = "constant"},
    {.name = "max_history_tokens",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct sessions_config, max_history_tokens),
     .min = 0,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Most tokens of earlier turns, prompts and answers, that a turn carries along: a turn "
            "that would carry more starts afresh and carries none. Without it they grow without "
            "limit."},
    {.name = "stationary_start",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct sessions_config, stationary_start),
     .fallback = "false",
     .doc = "Whether conversations are already under way when the class starts, each somewhere in "
            "one of its think times, as if they had always started at the rate of that instant; "
            "the time that answers take is left out of account."},
    {0}};

/* The draws of an entity with the session key: 0 is (turns or, of one under way at the start, the
 * turns already behind it; shared prompt), from 1 on the think time behind each turn, and: */
enum { DRAW_FIRST_THINK = 1 };
static const uint64_t DRAW_UNDERWAY_TURNS = UINT64_C(1) << 32;
static const uint64_t DRAW_UNDERWAY_REST = (UINT64_C(1) << 32) + 1;
/* Entities: those that start are numbered from 0, those under way at the start from … */
static const uint64_t ENTITY_UNDERWAY = UINT64_C(1) << 63;
static const uint64_t ENTITY_COUNT = UINT64_C(1) << 62; /* … and what tells how many these are. */

/* A stream's name: class + 1, conversation, and how often it has started afresh. */
enum { STREAM_FRESH_BITS = 16, STREAM_SESSION_BITS = 37 };
_Static_assert(SESSIONS_LAW_TURNS_MAX < 1 << STREAM_FRESH_BITS, "it starts afresh once per turn");

enum { HEAP_MIN = 64 };
/* Conversations under way at the start, and turns behind them, which are all drawn. */
static const double UNDERWAY_MAX = 1e8, UNDERWAY_TURNS_MAX = 1e9;

/* A conversation whose user thinks. */
struct pending {
    int64_t time_ps;
    uint64_t session;
    uint32_t history; /* tokens asked and answered since it last started afresh */
    uint16_t turn;    /* the next one */
    uint16_t fresh;   /* how often it has started afresh */
};

struct sessions {
    const struct sessions_config *config; /* borrowed */
    const struct workload_draw *draw;     /* borrowed */
    struct site site;
    struct sessions_law_turns turns;
    struct sessions_law_think think;
    uint64_t history_max;
    int64_t horizon_ps;
    uint64_t underway; /* conversations 0 … underway − 1 were under way at the start */
    struct sessions_counts counts;

    double *gaps; /* owned; Σ P(turns > j) for j = 1 … i + 1; [gap_count] */
    uint32_t gap_count;

    struct pending *heap; /* owned; by (time, session) */
    size_t heap_count, heap_capacity;
};

/* ---- opening ---- */

static bool config_check(const struct sessions_config *c, const struct site *site)
{
    bool any =
        c->think_time.type || c->max_history_tokens != FIELD_INT_UNSET || c->stationary_start;
    if (c->turns.type && !c->think_time.type)
        site_error(site, "sessions", "sessions need a think_time");
    else if (!c->turns.type && any)
        site_error(site, "sessions", "sessions need turns");
    return c->turns.type && c->think_time.type;
}

struct sessions *sessions_create(const struct sessions_config *config,
                                 const struct workload_draw *draw, const struct site *site)
{
    if (!config_check(config, site))
        return NULL;
    struct sessions *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->draw = draw;
    s->site = *site;
    s->history_max = config->max_history_tokens == FIELD_INT_UNSET
                         ? UINT64_MAX
                         : (uint64_t)config->max_history_tokens;
    bool ok = sessions_law_turns_init(&s->turns, &config->turns, site);
    ok &= sessions_law_think_init(&s->think, &config->think_time, site);
    if (ok)
        return s;
    sessions_free(s);
    return NULL;
}

void sessions_free(struct sessions *s)
{
    if (!s)
        return;
    free(s->gaps);
    free(s->heap);
    free(s);
}

/* ---- the heap ---- */

static bool is_before(const struct pending *a, const struct pending *b)
{
    return a->time_ps != b->time_ps ? a->time_ps < b->time_ps : a->session < b->session;
}

/* Grows only while more users think at once than ever before. */
static void heap_push(struct sessions *s, const struct pending *pending)
{
    if (s->heap_count == s->heap_capacity) {
        size_t more = s->heap_capacity / 2;
        s->heap_capacity += more > HEAP_MIN ? more : HEAP_MIN;
        s->heap = memory_grow(s->heap, s->heap_capacity * sizeof *s->heap);
    }
    size_t at = s->heap_count++;
    while (at > 0 && is_before(pending, &s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = *pending;
}

static struct pending heap_pop(struct sessions *s)
{
    struct pending top = s->heap[0], last = s->heap[--s->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->heap_count)
            break;
        child += child + 1 < s->heap_count && is_before(&s->heap[child + 1], &s->heap[child]);
        if (!is_before(&s->heap[child], &last))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return top;
}

/* ---- one conversation ---- */

static uint64_t entity_of(const struct sessions *s, uint64_t session)
{
    return session < s->underway ? ENTITY_UNDERWAY | session : session - s->underway;
}

/* The turns behind a conversation that is under way at the start: i with the chance
 * P(turns > i) / Σ. */
static uint32_t gap_of(const struct sessions *s, uint64_t entity)
{
    double bits = rng_unit(rng_draw(s->draw->session_key, entity, 0).a);
    double sum = bits * s->gaps[s->gap_count - 1];
    uint32_t low = 0, high = s->gap_count - 1;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (s->gaps[mid] <= sum)
            low = mid + 1;
        else
            high = mid;
    }
    return low + 1;
}

static uint32_t turns_of(const struct sessions *s, uint64_t session)
{
    uint64_t entity = entity_of(s, session);
    if (session >= s->underway)
        return s->turns.type->draw(&s->turns, rng_draw(s->draw->session_key, entity, 0).a);
    uint64_t bits = rng_draw(s->draw->session_key, entity, DRAW_UNDERWAY_TURNS).a;
    return s->turns.type->draw_over(&s->turns, gap_of(s, entity), bits);
}

/* The lengths of the turn, the shared prompt and the history before the new tokens; starts afresh
 * where the history would be too long. */
static void turn_draw(const struct sessions *s, struct pending *at, struct request *request)
{
    uint64_t entity = entity_of(s, at->session);
    workload_draw_lengths(s->draw, entity, at->turn, request);
    uint64_t whole = (uint64_t)s->draw->shared_tokens + at->history + request->prompt_tokens;
    if (at->history > s->history_max || whole > LENGTHS_TOKENS_MAX) {
        at->fresh += at->history > 0;
        at->history = 0;
    }
    request->prompt_tokens += at->history;
    workload_draw_shared(s->draw, entity, request);
}

/* What the next turn has before it. */
static uint32_t history_after(const struct request *request)
{
    return request->prompt_tokens - request->shared_tokens + request->output_tokens;
}

static void turn_fill(const struct sessions *s, struct pending *at, struct request *request)
{
    turn_draw(s, at, request);
    uint64_t class = (uint64_t)s->site.class_index + 1;
    check_limit(at->session < UINT64_C(1) << STREAM_SESSION_BITS, "more than 2^37 sessions");
    request->arrival_ps = at->time_ps;
    request->session = (int64_t)at->session;
    request->turn = at->turn;
    request->stream = (class << STREAM_SESSION_BITS | at->session) << STREAM_FRESH_BITS | at->fresh;
}

/* ---- those under way at the start ---- */

/* How many: Poisson with this mean, as unit exponentials that fit into it. */
static uint64_t underway_draw(const struct sessions *s, double mean)
{
    double sum = 0;
    for (uint64_t i = 0;; i++) {
        uint64_t bits = rng_draw(s->draw->session_key, ENTITY_COUNT | i, 0).a;
        sum -= detmath_log(rng_unit_open(bits));
        if (sum > mean)
            return i;
    }
}

static void gaps_make(struct sessions *s)
{
    const double nothing = 0x1p-60;
    uint32_t count = 0;
    double sum = 0;
    s->gaps = memory_alloc(s->turns.max * sizeof *s->gaps);
    for (uint32_t i = 1; i < s->turns.max; i++) {
        double over = s->turns.type->over(&s->turns, i);
        if (over < nothing)
            break;
        s->gaps[count++] = sum += over;
    }
    check(count > 0);
    s->gap_count = count;
}

/* Mean turns behind one that is under way at the start: Σ P(behind > i). */
static double gaps_mean(const struct sessions *s)
{
    double mean = s->gap_count;
    for (uint32_t i = 0; i + 1 < s->gap_count; i++)
        mean -= s->gaps[i] / s->gaps[s->gap_count - 1];
    return mean;
}

/* Of the conversations that ever started, those thinking behind turn i at one instant are in number
 * rate · E[think] · P(turns > i): so each has i turns behind it with that weight, ends as those do
 * that have more than i, and has the rest of a think time before it. What it said was said as
 * always. */
static void underway_place(struct sessions *s, uint64_t session, int64_t from_ps)
{
    uint64_t entity = entity_of(s, session);
    uint32_t behind = gap_of(s, entity);
    struct pending at = {.session = session};
    struct request request = {0};
    for (; at.turn < behind; at.turn++) {
        turn_draw(s, &at, &request);
        at.history = history_after(&request);
    }
    struct rng_pair bits = rng_draw(s->draw->session_key, entity, DRAW_UNDERWAY_REST);
    int64_t wait_ps = sessions_law_think_rest(&s->think, bits);
    if (wait_ps >= s->horizon_ps - from_ps) {
        s->counts.past_horizon++;
        return;
    }
    at.time_ps = from_ps + wait_ps;
    heap_push(s, &at);
}

bool sessions_start(struct sessions *s, double rate, int64_t from_ps, int64_t horizon_ps,
                    struct errors *errors)
{
    s->horizon_ps = horizon_ps;
    double mean = rate * s->think.mean_s * (s->turns.mean - 1);
    if (!s->config->stationary_start || !(mean > 0) || from_ps >= horizon_ps)
        return true;
    struct site site = s->site;
    site.errors = errors;
    if (mean > UNDERWAY_MAX) {
        site_error(&site, "sessions.stationary_start",
                   "%.3g conversations would be under way at the start, at most %.0e can be", mean,
                   UNDERWAY_MAX);
        return false;
    }
    gaps_make(s);
    if (mean * gaps_mean(s) > UNDERWAY_TURNS_MAX) {
        site_error(&site, "sessions.stationary_start",
                   "%.3g conversations would be under way at the start with %.3g turns each behind "
                   "them, at most %.0e turns can be",
                   mean, gaps_mean(s), UNDERWAY_TURNS_MAX);
        return false;
    }
    s->underway = underway_draw(s, mean);
    s->counts.started = s->underway;
    for (uint64_t session = 0; session < s->underway; session++)
        underway_place(s, session, from_ps);
    return true;
}

/* ---- the stream of turns ---- */

int64_t sessions_peek(const struct sessions *s)
{
    return s->heap_count ? s->heap[0].time_ps : TIME_NEVER;
}

void sessions_next(struct sessions *s, struct request *request)
{
    struct pending at = heap_pop(s);
    turn_fill(s, &at, request);
}

void sessions_begin(struct sessions *s, struct request *request)
{
    struct pending at = {.time_ps = request->arrival_ps, .session = s->counts.started++};
    turn_fill(s, &at, request);
}

bool sessions_complete(struct sessions *s, const struct request_record *record)
{
    const struct request *request = &record->request;
    if (record->outcome == OUTCOME_IN_FLIGHT) {
        s->counts.cut++;
        return true;
    }
    if (record->outcome != OUTCOME_COMPLETED) {
        s->counts.given_up++;
        return true;
    }
    struct pending at = {.session = (uint64_t)request->session,
                         .history = history_after(request),
                         .turn = (uint16_t)(request->turn + 1),
                         .fresh = (uint16_t)(request->stream & ((1u << STREAM_FRESH_BITS) - 1))};
    if (request->turn + 1 >= turns_of(s, at.session)) {
        s->counts.finished++;
        return true;
    }
    uint64_t draw = DRAW_FIRST_THINK + (uint64_t)request->turn;
    uint64_t bits = rng_draw(s->draw->session_key, entity_of(s, at.session), draw).a;
    int64_t wait_ps = sessions_law_think_draw(&s->think, bits);
    if (record->end_ps >= s->horizon_ps || wait_ps >= s->horizon_ps - record->end_ps) {
        s->counts.past_horizon++;
        return true;
    }
    at.time_ps = record->end_ps + wait_ps;
    heap_push(s, &at);
    return false;
}

/* ---- questions ---- */

struct sessions_counts sessions_counts(const struct sessions *s)
{
    return s->counts;
}

double sessions_mean_turns(const struct sessions *s)
{
    return s->turns.mean;
}

/* Over the first conversations that start. */
static double history_sampled(const struct sessions *s)
{
    enum { TURNS = 50000 };
    uint64_t turns = 0;
    double sum = 0;
    for (uint64_t number = 0; turns < TURNS; number++) {
        struct pending at = {.session = s->underway + number};
        struct request request = {0};
        uint32_t count = turns_of(s, at.session);
        for (; at.turn < count; at.turn++) {
            turn_draw(s, &at, &request);
            sum += at.history;
            at.history = history_after(&request);
        }
        turns += count;
    }
    return sum / (double)turns;
}

double sessions_mean_history(const struct sessions *s)
{
    if (s->history_max < UINT64_MAX)
        return history_sampled(s);
    return s->turns.mean_pairs / s->turns.mean * (s->draw->prompt.mean + s->draw->output.mean);
}

double sessions_config_turns(const struct sessions_config *config)
{
    struct errors ignored;
    struct sessions_law_turns law;
    errors_init(&ignored);
    struct site site = {.errors = &ignored};
    bool ok = config->turns.type && sessions_law_turns_init(&law, &config->turns, &site);
    errors_free(&ignored);
    return ok ? law.mean : NAN;
}
