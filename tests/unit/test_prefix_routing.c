/* Routers and prefix caches together: conversations over four replicas, the same arrivals under
 * every policy. */
#include <math.h>

#include "sim/fleet/router.h"
#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

enum { SESSIONS = 40, TURNS = 5, REQUESTS = SESSIONS * TURNS, REPLICAS = 4, NEW = 100, OUT = 50 };

/* Turn k of a session has k · (NEW + OUT) tokens of history behind a system prompt of 320 tokens
 * that all have; a session's next turn comes long after its last has ended. */
static struct request requests[REQUESTS];

static void requests_fill(void)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint32_t turn = i / SESSIONS, session = i % SESSIONS;
        requests[i] = (struct request){
            .id = i,
            .arrival_ps = SECONDS(20) * turn + MILLIS(37) * ((session * 7 + turn * 3) % SESSIONS),
            .prompt_tokens = 320 + turn * (NEW + OUT) + NEW,
            .output_tokens = OUT,
            .turn = turn,
            .session = session,
            .stream = 1 + session,
            .shared_tokens = 320,
        };
    }
    /* In order of arrival, as ids must be. */
    for (uint32_t i = 1; i < REQUESTS; i++) {
        for (uint32_t j = i; j > 0 && requests[j].arrival_ps < requests[j - 1].arrival_ps; j--) {
            struct request r = requests[j];
            requests[j] = requests[j - 1];
            requests[j - 1] = r;
        }
    }
    for (uint32_t i = 0; i < REQUESTS; i++) {
        requests[i].id = i;
    }
}

/* What a policy made of them. */
struct outcome_of {
    uint64_t cached, prompts;
    uint64_t digest;         /* of everything that happened to every request */
    uint32_t moved;          /* turns that went elsewhere than the one before */
    uint32_t home[SESSIONS]; /* of the last turn */
    uint32_t count[REPLICAS];
};

static void take(void *self, const struct obs *obs)
{
    struct outcome_of *o = self;
    if (obs->kind != OBS_END) {
        return;
    }
    const struct request_record *r = obs->u.record;
    ck_assert_int_eq(r->outcome, OUTCOME_COMPLETED);
    ck_assert_uint_eq(r->cached_tokens + r->computed_tokens, r->request.prompt_tokens);
    o->cached += r->cached_tokens;
    o->prompts += r->request.prompt_tokens;
    o->count[r->replica]++;
    uint32_t session = (uint32_t)r->request.session;
    o->moved += r->request.turn > 0 && o->home[session] != r->replica;
    o->home[session] = r->replica;
    uint64_t mix = r->request.id * 31 + r->replica * 7 + (uint64_t)r->first_token_ps * 131 +
                   (uint64_t)r->end_ps * 17 + r->cached_tokens;
    o->digest ^= mix * UINT64_C(0x9e3779b97f4a7c15);
}

static struct outcome_of run_policy(const struct variant *policy, const char *change,
                                    uint32_t span_max, int64_t blocks)
{
    struct outcome_of o = {0};
    struct drive d;
    drive_init(&d);
    d.model = drive_model(&d.arena, drive_variant(&d.arena, &step_affine_variant, "base=10 ms",
                                                  "per_token=50 us", "per_kv_token=10 ns", NULL));
    d.engine.enable_prefix_caching = true;
    d.engine.num_gpu_blocks = blocks;
    d.router = drive_variant(&d.arena, policy, change, NULL);
    d.replicas = REPLICAS;
    d.span_max = span_max;
    d.requests = requests;
    d.request_count = REQUESTS;
    d.sink = (struct obs_sink){.take = take, .self = &o};
    drive_run(&d);
    drive_free(&d);
    return o;
}

/* Hits when every turn finds all of its session's past: full blocks of the history and the system
 * prompt; the last output of a turn is never stored. First turns find the system prompt but for the
 * first at each replica. */
static uint64_t all_of_the_past(void)
{
    uint64_t tokens = (uint64_t)(SESSIONS - REPLICAS) * 320;
    for (uint32_t turn = 1; turn < TURNS; turn++) {
        uint32_t past = 320 + turn * (NEW + OUT) - 1;
        tokens += (uint64_t)SESSIONS * (past / 16 * 16);
    }
    return tokens;
}

START_TEST(who_knows_the_cache_finds_the_past)
{
    requests_fill();
    struct outcome_of sticky =
        run_policy(&router_session_sticky_variant, NULL, ENGINE_SPAN_MAX, INT64_MAX);
    struct outcome_of aware =
        run_policy(&router_prefix_aware_variant, NULL, ENGINE_SPAN_MAX, INT64_MAX);
    struct outcome_of weighted =
        run_policy(&router_weighted_variant, NULL, ENGINE_SPAN_MAX, INT64_MAX);
    struct outcome_of turns =
        run_policy(&router_round_robin_variant, NULL, ENGINE_SPAN_MAX, INT64_MAX);
    ck_assert_uint_eq(sticky.cached, all_of_the_past());
    ck_assert_uint_eq(sticky.moved, 0);
    /* The system prompt alone is 76 % of a first turn's prompt: prefix_aware keeps to the replica
     * that has it while loads allow, so its sum may differ by first turns only. */
    ck_assert_uint_ge(aware.cached + REPLICAS * 320, all_of_the_past());
    ck_assert_uint_eq(aware.moved, 0);
    ck_assert_uint_eq(weighted.moved, 0);
    ck_assert_uint_gt(turns.moved, SESSIONS);
    ck_assert_uint_lt(turns.cached * 4, sticky.cached * 3);
}
END_TEST

/* Whatever a router learns of caches and loads, it learns at the same instants in both modes; with
 * caches too small for all, evictions included. */
START_TEST(spans_and_steps_route_alike)
{
    requests_fill();
    static const struct variant *const policies[] = {
        &router_power_of_two_variant, &router_session_sticky_variant, &router_prefix_aware_variant,
        &router_weighted_variant};
    static const int64_t blocks[] = {INT64_MAX, 400, 150, 80};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
            struct outcome_of spans = run_policy(policies[p], NULL, ENGINE_SPAN_MAX, blocks[b]);
            struct outcome_of steps = run_policy(policies[p], NULL, 1, blocks[b]);
            ck_assert_uint_eq(spans.digest, steps.digest);
            ck_assert_uint_eq(spans.cached, steps.cached);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {who_knows_the_cache_finds_the_past, spans_and_steps_route_alike,
                                  NULL};
    return suite_run("prefix_routing", tests, 60);
}
