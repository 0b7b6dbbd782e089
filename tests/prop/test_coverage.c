/* The scenario generator reaches what it is for, and a seed always means the same case. What each
 * counter counts is what a scheduler can get wrong (docs/engine.md). */
#include <check.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "tests/prop/support_scenario_gen.h"

enum counter {
    PREEMPTED,
    PREEMPTED_TAKEN_BACK,
    REFUSED,
    UNSERVABLE,
    CANCELLED_WAITING,
    CANCELLED_RUNNING,
    CANCELLED_AT_BOUNDARY,
    CANCELLED_WAITING_AT_BOUNDARY,
    ARRIVED_AT_BOUNDARY,
    ARRIVED_TOGETHER,
    ENDED_TOGETHER,
    ENDED_OUT_OF_ADMISSION,
    REPLICAS_STEP_TOGETHER,
    ZERO_OUTPUT,
    RELEASED,
    DRAINED_WITH_WORK,
    GAUGE_INSIDE,
    GAUGE_AT_BOUNDARY,
    LAW_ENDS,
    WINDOW,
    WINDOW_FILLED,
    WINDOW_IN_CHUNK,
    LINKED_ARRIVED,
    LINKED_OUT_OF_ID,
    LINKED_AFTER_NO_SERVICE,
    PREEMPTED_BY_PRIORITY,
    BUDGET_IS_SEATS,
    BLOCKS_OF_ONE,
    BLOCKS_ODD,
    LONG_PREFILL,
    NOT_CHUNKED,
    CENTRAL_PREEMPTED,
    LONG_OUTPUT,
    CUT_IN_FLIGHT,
    CACHING,
    HIT_FREE,
    HIT_HELD,
    HIT_IN_PASS,
    HIT_PART,
    HIT_CAPPED,
    HIT_SHARED,
    HIT_HASHED,
    HIT_STREAM,
    HIT_OUTPUT,
    HIT_OWN,
    HIT_OF_LATER,
    EVICTED,
    EVICTED_AND_HIT,
    DUPLICATE,
    OVERTAKEN,
    BEHIND_PRIVATE,
    UNPUBLISHED,
    NEED_SHRUNK,
    NEED_GROWN,
    CACHING_NOT_CHUNKED,
    CACHING_CENTRAL,
    CACHING_WINDOW,
    CACHING_CANCELLED,
    CACHING_LINKED,
    COUNTERS
};

/* Of 1,000 cases: at least so many must show it. */
static const struct {
    const char *name;
    uint32_t least;
} expected[COUNTERS] = {
    [PREEMPTED] = {"preempted", 150},
    [PREEMPTED_TAKEN_BACK] = {"preempted with its part taken back", 20},
    [REFUSED] = {"refused", 50},
    [UNSERVABLE] = {"unservable", 50},
    [CANCELLED_WAITING] = {"cancelled waiting", 100},
    [CANCELLED_RUNNING] = {"cancelled running", 100},
    [CANCELLED_AT_BOUNDARY] = {"cancelled running, at a boundary", 100},
    [CANCELLED_WAITING_AT_BOUNDARY] = {"cancelled waiting, at a boundary", 30},
    [ARRIVED_AT_BOUNDARY] = {"arrived at a boundary", 200},
    [ARRIVED_TOGETHER] = {"arrived together", 300},
    [ENDED_TOGETHER] = {"ended together", 120},
    [ENDED_OUT_OF_ADMISSION] = {"ended together, admitted in another order", 20},
    [REPLICAS_STEP_TOGETHER] = {"replicas step together", 200},
    [ZERO_OUTPUT] = {"zero output", 50},
    [RELEASED] = {"released", 50},
    [DRAINED_WITH_WORK] = {"drained with work", 40},
    [GAUGE_INSIDE] = {"gauge inside an iteration", 200},
    [GAUGE_AT_BOUNDARY] = {"gauge at a boundary", 100},
    [LAW_ENDS] = {"a law's piece ends", 100},
    [WINDOW] = {"window", 100},
    [WINDOW_FILLED] = {"window filled by a decode", 50},
    [WINDOW_IN_CHUNK] = {"window filled inside a chunk", 80},
    [LINKED_ARRIVED] = {"closed loop", 200},
    [LINKED_OUT_OF_ID] = {"closed loop, arrived after a larger id", 100},
    [LINKED_AFTER_NO_SERVICE] = {"closed loop, after a refusal or cancel", 40},
    [PREEMPTED_BY_PRIORITY] = {"preempted by a priority that differs", 40},
    [BUDGET_IS_SEATS] = {"budget equal to seats", 50},
    [BLOCKS_OF_ONE] = {"blocks of one token", 50},
    [BLOCKS_ODD] = {"blocks of three tokens", 50},
    [LONG_PREFILL] = {"prefill of more than four iterations", 50},
    [NOT_CHUNKED] = {"chunked prefill off", 150},
    [CENTRAL_PREEMPTED] = {"central queue with preemptions", 20},
    [LONG_OUTPUT] = {"output of more than 700 tokens", 30},
    [CUT_IN_FLIGHT] = {"cut with requests in flight", 50},
    [CACHING] = {"prefix caching", 400},
    [HIT_FREE] = {"hits of free blocks", 150},
    [HIT_HELD] = {"hits of held blocks", 120},
    [HIT_IN_PASS] = {"hits of blocks published in the same pass", 50},
    [HIT_PART] = {"hits that end where the cached chain goes on otherwise", 70},
    [HIT_CAPPED] = {"hits of all but the last block of a prompt", 80},
    [HIT_SHARED] = {"hits of a shared prompt", 80},
    [HIT_HASHED] = {"hits of hashes", 50},
    [HIT_STREAM] = {"hits of a stream", 100},
    [HIT_OUTPUT] = {"hits of another's outputs", 60},
    [HIT_OWN] = {"hits of own blocks after a preemption", 40},
    [HIT_OF_LATER] = {"hits of a later request's blocks", 40},
    [EVICTED] = {"evictions of what could be hit", 120},
    [EVICTED_AND_HIT] = {"evictions and hits", 120},
    [DUPLICATE] = {"full blocks that are cached already", 120},
    [OVERTAKEN] = {"the same, from a later request", 50},
    [BEHIND_PRIVATE] = {"full blocks behind a private one", 60},
    [UNPUBLISHED] = {"published and taken back", 3},
    [NEED_SHRUNK] = {"a head whose need shrinks while it waits for blocks", 12},
    [NEED_GROWN] = {"a head whose need grows while it waits for blocks", 12},
    [CACHING_NOT_CHUNKED] = {"hits, chunked prefill off", 25},
    [CACHING_CENTRAL] = {"hits, central queue of several replicas", 30},
    [CACHING_WINDOW] = {"hits, with a window", 40},
    [CACHING_CANCELLED] = {"hits by a request that is cancelled", 30},
    [CACHING_LINKED] = {"hits by a request of a closed loop", 70},
};

/* What happened on the replicas, as the iterations tell it. */
struct story {
    struct {
        uint32_t replica;
        int64_t start_ps, end_ps;
    } * iterations; /* owned */
    size_t count, capacity;
};

static void collect(void *self, uint32_t replica, int64_t start_ps, int64_t end_ps)
{
    struct story *s = self;
    if (s->count == s->capacity) {
        s->capacity = 2 * s->capacity + 64;
        s->iterations = memory_grow(s->iterations, s->capacity * sizeof(*s->iterations));
    }
    s->iterations[s->count].replica = replica;
    s->iterations[s->count].start_ps = start_ps;
    s->iterations[s->count++].end_ps = end_ps;
}

/* Whether an iteration ends at t; on one replica, or (UINT32_MAX) on any. */
static bool is_boundary(const struct story *s, uint32_t replica, int64_t t)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->iterations[i].end_ps == t &&
            (replica == UINT32_MAX || s->iterations[i].replica == replica)) {
            return true;
        }
    }
    return false;
}

static bool is_inside(const struct story *s, int64_t t)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->iterations[i].start_ps < t && t < s->iterations[i].end_ps) {
            return true;
        }
    }
    return false;
}

static void cover_record(const struct prop_case *c, const struct request_record *r,
                         const struct story *story, bool *seen)
{
    bool completed = r->outcome == OUTCOME_COMPLETED;
    if (r->outcome == OUTCOME_CANCELLED) {
        bool waiting = r->admitted_ps == TIME_NONE;
        seen[waiting ? CANCELLED_WAITING : CANCELLED_RUNNING] = true;
        if (is_boundary(story, waiting ? UINT32_MAX : r->replica, r->end_ps)) {
            seen[waiting ? CANCELLED_WAITING_AT_BOUNDARY : CANCELLED_AT_BOUNDARY] = true;
        }
    }
    seen[ARRIVED_AT_BOUNDARY] |= is_boundary(story, UINT32_MAX, r->request.arrival_ps);
    seen[ZERO_OUTPUT] |= completed && r->request.output_tokens == 0;
    seen[LONG_OUTPUT] |= completed && r->request.output_tokens > 700;
    seen[LONG_PREFILL] |=
        completed && r->request.prompt_tokens > 4 * c->engine.max_num_batched_tokens;
    seen[PREEMPTED_BY_PRIORITY] |=
        c->engine.by_priority && r->preemptions > 0 && r->request.priority != 0;
}

static void cover_pair(const struct request_record *a, const struct request_record *b, bool *seen)
{
    seen[ARRIVED_TOGETHER] |= a->request.arrival_ps == b->request.arrival_ps;
    if (a->outcome == OUTCOME_COMPLETED && b->outcome == OUTCOME_COMPLETED &&
        a->end_ps == b->end_ps && a->replica == b->replica) {
        seen[ENDED_TOGETHER] = true;
        seen[ENDED_OUT_OF_ADMISSION] |=
            (a->request.id < b->request.id) != (a->first_token_ps <= b->first_token_ps);
    }
}

static const struct request_record *record_of(const struct naive_result *r, uint64_t id)
{
    size_t i = 0;
    while (i < r->record_count && r->records[i].request.id != id) {
        i++;
    }
    return i < r->record_count ? &r->records[i] : NULL;
}

static void cover_links(const struct prop_case *c, const struct naive_result *r, bool *seen)
{
    for (size_t i = 0; i < c->link_count; i++) {
        const struct request_record *linked = record_of(r, c->links[i].id);
        const struct request_record *after = record_of(r, c->links[i].after);
        if (linked == NULL || after == NULL) {
            ck_assert_int_gt(c->cut_ps, 0);
            continue;
        }
        ck_assert_int_eq(linked->request.arrival_ps, after->end_ps + c->links[i].think_ps);
        seen[LINKED_ARRIVED] = true;
        seen[LINKED_AFTER_NO_SERVICE] |= after->outcome != OUTCOME_COMPLETED;
        for (uint64_t id = linked->request.id + 1; id < c->request_count; id++) {
            const struct request_record *later = record_of(r, id);
            seen[LINKED_OUT_OF_ID] |=
                later != NULL && later->request.arrival_ps < linked->request.arrival_ps;
        }
    }
}

static void cover_engine(const struct prop_case *c, const struct naive_result *r, bool *seen)
{
    const struct naive_engine *e = &c->engine;
    seen[PREEMPTED] = r->preemptions > 0;
    seen[PREEMPTED_TAKEN_BACK] = r->taken_back > 0;
    seen[REFUSED] = r->outcomes[OUTCOME_REFUSED] > 0;
    seen[UNSERVABLE] = r->outcomes[OUTCOME_UNSERVABLE] > 0;
    seen[CUT_IN_FLIGHT] = r->outcomes[OUTCOME_IN_FLIGHT] > 0;
    seen[LAW_ENDS] = r->law_ends > 0;
    seen[WINDOW] = c->step.kind == PROP_KINK && c->step.kink.window > 0 &&
                   (c->step.kink.per_window_kv_ps > 0 || c->step.kink.per_window_pair_ps > 0);
    seen[WINDOW_FILLED] = seen[WINDOW] && r->window_fills > 0;
    seen[WINDOW_IN_CHUNK] = seen[WINDOW] && r->window_straddles > 0;
    seen[BUDGET_IS_SEATS] = e->max_num_batched_tokens == e->max_num_seqs;
    seen[BLOCKS_OF_ONE] = e->block_size == 1 && e->num_gpu_blocks != NAIVE_UNLIMITED;
    seen[BLOCKS_ODD] = e->block_size == 3 && e->num_gpu_blocks != NAIVE_UNLIMITED;
    seen[NOT_CHUNKED] = !e->enable_chunked_prefill;
    seen[CENTRAL_PREEMPTED] =
        c->router == NAIVE_CENTRAL_QUEUE && c->replicas > 1 && r->preemptions > 0;
}

static void cover_caching(const struct prop_case *c, const struct naive_result *r, bool *seen)
{
    const struct naive_story *s = &r->story;
    seen[CACHING] = c->engine.enable_prefix_caching;
    seen[HIT_FREE] = s->hit_free > 0;
    seen[HIT_HELD] = s->hit_held > 0;
    seen[HIT_IN_PASS] = s->hit_in_pass > 0;
    seen[HIT_PART] = s->hit_part > 0;
    seen[HIT_CAPPED] = s->hit_capped > 0;
    seen[HIT_SHARED] = s->hit_kind[NAIVE_SHARED] > 0;
    seen[HIT_HASHED] = s->hit_kind[NAIVE_HASHED] > 0;
    seen[HIT_STREAM] = s->hit_kind[NAIVE_STREAM] > 0;
    seen[HIT_OUTPUT] = s->hit_output > 0;
    seen[HIT_OWN] = s->hit_own > 0;
    seen[HIT_OF_LATER] = s->hit_later > 0;
    seen[EVICTED] = s->evicted > 0;
    seen[EVICTED_AND_HIT] = s->evicted > 0 && r->hit_tokens > 0;
    seen[DUPLICATE] = s->duplicates > 0;
    seen[OVERTAKEN] = s->overtaken > 0;
    seen[BEHIND_PRIVATE] = s->behind_private > 0;
    seen[UNPUBLISHED] = s->unpublished > 0;
    seen[NEED_SHRUNK] = s->shrunk > 0;
    seen[NEED_GROWN] = s->grown > 0;
    if (r->hit_tokens > 0) {
        seen[CACHING_NOT_CHUNKED] = seen[NOT_CHUNKED];
        seen[CACHING_CENTRAL] = c->router == NAIVE_CENTRAL_QUEUE && c->replicas > 1;
        seen[CACHING_WINDOW] = seen[WINDOW];
    }
    for (size_t i = 0; i < r->record_count; i++) {
        seen[CACHING_CANCELLED] |=
            r->records[i].outcome == OUTCOME_CANCELLED && r->records[i].cached_tokens > 0;
    }
    for (size_t i = 0; i < c->link_count; i++) {
        const struct request_record *linked = record_of(r, c->links[i].id);
        seen[CACHING_LINKED] |= linked != NULL && linked->cached_tokens > 0;
    }
}

static void cover(const struct prop_case *c, const struct naive_result *r,
                  const struct story *story, bool *seen)
{
    cover_engine(c, r, seen);
    cover_caching(c, r, seen);
    for (size_t i = 0; i < r->record_count; i++) {
        cover_record(c, &r->records[i], story, seen);
        for (size_t j = 0; j < i; j++) {
            cover_pair(&r->records[j], &r->records[i], seen);
        }
    }
    cover_links(c, r, seen);
    for (size_t i = 0; i + 1 < story->count; i++) {
        seen[REPLICAS_STEP_TOGETHER] |=
            story->iterations[i].start_ps == story->iterations[i + 1].start_ps;
    }
    for (size_t i = 0; i < c->drain_count; i++) {
        int64_t released_ps = r->released_ps[c->drains[i].replica];
        seen[RELEASED] |= released_ps != TIME_NONE;
        seen[DRAINED_WITH_WORK] |= released_ps > c->drains[i].time_ps;
    }
    for (size_t i = 0; i < c->gauge_count; i++) {
        if (r->gauges[i].kv_blocks > 0) {
            seen[GAUGE_INSIDE] |= is_inside(story, c->gauge_times_ps[i]);
            seen[GAUGE_AT_BOUNDARY] |= is_boundary(story, UINT32_MAX, c->gauge_times_ps[i]);
        }
    }
}

static struct naive_result *run_with_story(const struct prop_case *c, struct story *story)
{
    struct arena arena;
    arena_init(&arena);
    struct step_model model = prop_case_model(c, &arena);
    struct naive_config config = prop_case_naive(c, &model);
    config.iteration = collect;
    config.iteration_self = story;
    struct naive_result *r = naive_run(&config);
    arena_free(&arena);
    return r;
}

START_TEST(test_coverage)
{
    enum { CASES = 1000 };
    uint32_t counts[COUNTERS] = {0};
    uint32_t kinds[PROP_STEP_KINDS] = {0};
    uint32_t routers[NAIVE_ROUTER_COUNT] = {0};
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct prop_case *c = prop_case_generate(seed);
        struct story story = {0};
        struct naive_result *r = run_with_story(c, &story);
        bool seen[COUNTERS] = {false};
        cover(c, r, &story, seen);
        for (int i = 0; i < COUNTERS; i++) {
            counts[i] += seen[i];
        }
        kinds[c->step.kind]++;
        routers[c->router] += c->replicas > 1;
        naive_free(r);
        free(story.iterations);
        prop_case_free(c);
    }
    printf("of %d cases:\n", CASES);
    for (int i = 0; i < COUNTERS; i++) {
        printf("  %4u %s\n", counts[i], expected[i].name);
    }
    fflush(stdout);
    for (int i = 0; i < COUNTERS; i++) {
        ck_assert_msg(counts[i] >= expected[i].least, "%s: %u cases, fewer than %u",
                      expected[i].name, counts[i], expected[i].least);
    }
    for (int i = 0; i < PROP_STEP_KINDS; i++) {
        ck_assert(kinds[i] >= 50);
    }
    for (int i = 0; i <= NAIVE_CENTRAL_QUEUE; i++) {
        ck_assert(routers[i] >= 50);
    }
}
END_TEST

START_TEST(test_seed_is_the_case)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct prop_case *c = prop_case_generate(seed);
        struct prop_case *again = prop_case_generate(seed);
        struct naive_result *r = prop_case_run_naive(c);
        struct naive_result *same = prop_case_run_naive(again);
        ck_assert_uint_eq(same->digest.state, r->digest.state);
        ck_assert_uint_eq(same->digest.events, r->digest.events);
        naive_free(same);
        naive_free(r);
        prop_case_free(again);
        prop_case_free(c);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("generator");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, test_coverage);
    tcase_add_test(tcase, test_seed_is_the_case);
    Suite *suite = suite_create("coverage");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
