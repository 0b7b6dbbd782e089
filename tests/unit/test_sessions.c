/* Conversations: what a turn carries along, what draws hang on, who gives up, how many turns there
 * are, and that a stationary start is one. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "sim/base/time.h"
#include "sim/workload/workload.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

static struct arena arena;
static struct errors errors;

static void begin(void)
{
    arena_init(&arena);
    errors_init(&errors);
}

static void finish(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

#define CHAT                                                                                       \
    "name=chat; arrivals=poisson; arrivals.rate=2 /s; prompt_tokens=geometric; "                   \
    "prompt_tokens.mean=50; output_tokens=geometric; output_tokens.mean=30; "
#define TALK                                                                                       \
    CHAT "sessions.turns=geometric; sessions.turns.mean=5; sessions.think_time=exponential; "      \
         "sessions.think_time.mean=600 s; "

/* A server that answers everything after the same time: answers that are still to come, in order.
 */
struct server {
    struct workload *w;
    int64_t service_ps;
    struct request_record *queue;
    size_t head, tail, capacity;
    uint64_t over; /* conversations that ended with an answer */
    enum outcome (*outcome)(const struct request *request); /* NULL: all are completed */
};

enum { QUEUE = 1 << 14 };

static void server_open(struct server *server, const struct traffic_config *class, uint64_t seed,
                        int64_t horizon_ps)
{
    struct workload_config config = {
        .classes = &class, .class_count = 1, .seed = seed, .horizon_ps = horizon_ps};
    server->w = workload_open(&config, NULL, &errors);
    errors_print(&errors, stderr);
    ck_assert_ptr_nonnull(server->w);
    server->queue = arena_alloc(&arena, QUEUE * sizeof *server->queue);
    server->head = server->tail = 0;
    server->over = 0;
}

static void answer(struct server *server)
{
    server->over += workload_complete(server->w, &server->queue[server->head++ % QUEUE]);
}

/* The next request; false at the end. */
static bool server_next(struct server *server, struct request *request)
{
    while (server->head < server->tail &&
           server->queue[server->head % QUEUE].end_ps < workload_peek(server->w))
        answer(server);
    if (workload_next(server->w, request, &errors) != WORKLOAD_OK)
        return false;
    ck_assert_uint_lt(server->tail - server->head, QUEUE);
    server->queue[server->tail++ % QUEUE] = (struct request_record){
        .request = *request,
        .end_ps = request->arrival_ps + server->service_ps,
        .outcome = server->outcome ? server->outcome(request) : OUTCOME_COMPLETED};
    if (server->service_ps == 0)
        answer(server);
    return true;
}

/* What is known of every conversation, by number. */
enum { KNOWN = 1 << 17 };
struct known {
    uint32_t turns, history;
    int64_t end_ps;
    uint64_t stream;
};

/* Every turn carries along all before it, under one stream of its own, after the answer. */
START_TEST(turns_carry_along)
{
    begin();
    struct server server = {.service_ps = 3 * PS_PER_SECOND};
    server_open(&server,
                traffic_make(&arena, TALK "shared_prompt.tokens=100; shared_prompt.count=7"), 1,
                6 * PS_PER_HOUR);
    ck_assert(workload_is_live(server.w));
    struct known *known = arena_alloc(&arena, KNOWN * sizeof *known);
    memset(known, 0, KNOWN * sizeof *known);
    uint32_t shared[KNOWN / 64] = {0};
    uint64_t count = 0, seen[7] = {0};
    int64_t last_ps = 0;
    struct request r;
    while (server_next(&server, &r)) {
        ck_assert_uint_eq(r.id, count++);
        ck_assert_int_ge(r.arrival_ps, last_ps);
        last_ps = r.arrival_ps;
        ck_assert_int_lt(r.session, KNOWN);
        struct known *k = &known[r.session];
        ck_assert_uint_eq(r.turn, k->turns++);
        ck_assert_uint_eq(r.shared_tokens, 100);
        ck_assert_uint_lt(r.shared_prompt, 7);
        ck_assert_uint_gt(r.prompt_tokens, 100 + k->history);
        ck_assert_uint_ne(r.stream, 0);
        if (r.turn > 0) {
            ck_assert_int_gt(r.arrival_ps, k->end_ps);
            ck_assert_uint_eq(r.stream, k->stream);
            if (r.session < (int64_t)(sizeof shared / sizeof *shared))
                ck_assert_uint_eq(r.shared_prompt, shared[r.session]);
        } else {
            seen[r.shared_prompt]++;
        }
        if (r.session < (int64_t)(sizeof shared / sizeof *shared))
            shared[r.session] = r.shared_prompt;
        k->stream = r.stream;
        k->history = r.prompt_tokens - 100 + r.output_tokens;
        k->end_ps = r.arrival_ps + server.service_ps;
    }
    ck_assert_uint_gt(count, 150000);
    /* The prompts are drawn evenly: chi-square with 6 degrees of freedom, 0.1 % on either side. */
    double sessions = 0, square = 0;
    for (int i = 0; i < 7; i++)
        sessions += (double)seen[i];
    for (int i = 0; i < 7; i++)
        square += pow((double)seen[i] - sessions / 7, 2) / (sessions / 7);
    ck_assert(square > 0.3 && square < 22.5);
    /* No two conversations have one stream. */
    for (int i = 1; i < 40000; i++)
        ck_assert_uint_gt(known[i].stream, known[i - 1].stream);
    workload_close(server.w);
    finish();
}
END_TEST

/* A slower fleet gets the same turns later. */
START_TEST(draws_do_not_follow_the_fleet)
{
    begin();
    const struct traffic_config *class = traffic_make(&arena, TALK);
    struct server fast = {.service_ps = 0}, slow = {.service_ps = 100 * PS_PER_SECOND};
    server_open(&fast, class, 1, 2 * PS_PER_HOUR);
    server_open(&slow, class, 1, 2 * PS_PER_HOUR);
    enum { SESSIONS = 2000, TURNS = 40 };
    static uint32_t prompt[SESSIONS][TURNS], output[SESSIONS][TURNS];
    static int64_t arrival[SESSIONS][TURNS];
    struct request r;
    while (server_next(&fast, &r)) {
        if (r.session < SESSIONS && r.turn < TURNS) {
            prompt[r.session][r.turn] = r.prompt_tokens;
            output[r.session][r.turn] = r.output_tokens;
            arrival[r.session][r.turn] = r.arrival_ps;
        }
    }
    uint64_t later = 0;
    while (server_next(&slow, &r)) {
        if (r.session >= SESSIONS || r.turn >= TURNS)
            continue;
        ck_assert_uint_eq(r.prompt_tokens, prompt[r.session][r.turn]);
        ck_assert_uint_eq(r.output_tokens, output[r.session][r.turn]);
        ck_assert_int_eq(r.arrival_ps,
                         arrival[r.session][r.turn] + (int64_t)r.turn * slow.service_ps);
        later += r.turn > 0;
    }
    ck_assert_uint_gt(later, 5000);
    workload_close(fast.w);
    workload_close(slow.w);
    finish();
}
END_TEST

/* A conversation of one turn is a request; what is shared comes on top and changes no other draw.
 */
START_TEST(one_turn_is_a_request)
{
    begin();
    struct server plain = {0}, single = {0}, shared = {0};
    server_open(&plain, traffic_make(&arena, CHAT), 1, PS_PER_HOUR);
    server_open(&single,
                traffic_make(&arena, CHAT "sessions.turns=constant; sessions.turns.value=1; "
                                          "sessions.think_time=constant; "
                                          "sessions.think_time.value=1 s"),
                1, PS_PER_HOUR);
    server_open(&shared, traffic_make(&arena, CHAT "shared_prompt.tokens=500"), 1, PS_PER_HOUR);
    struct request x, y, z;
    uint64_t count = 0;
    while (server_next(&plain, &x)) {
        ck_assert(server_next(&single, &y));
        ck_assert(server_next(&shared, &z));
        ck_assert_int_eq(y.session, (int64_t)count++);
        y.session = -1;
        y.stream = 0;
        ck_assert_mem_eq(&x, &y, sizeof x);
        ck_assert_uint_eq(z.shared_tokens, 500);
        ck_assert_uint_eq(z.stream, 0);
        z.shared_tokens = 0;
        z.prompt_tokens -= 500;
        ck_assert_mem_eq(&x, &z, sizeof x);
    }
    ck_assert(!server_next(&single, &y));
    ck_assert_uint_gt(count, 6000);
    ck_assert_double_eq_tol(workload_mean_prompt(shared.w, 0), 550, 1e-9);
    workload_close(plain.w);
    workload_close(single.w);
    workload_close(shared.w);
    finish();
}
END_TEST

/* A history beyond its limit is dropped whole, and what follows is a stream of its own. */
START_TEST(history_has_a_limit)
{
    begin();
    struct server server = {0};
    server_open(&server,
                traffic_make(&arena, TALK "sessions.max_history_tokens=200; prompt_tokens=uniform; "
                                          "prompt_tokens.min=1; prompt_tokens.max=100"),
                1, 6 * PS_PER_HOUR);
    struct known *known = arena_alloc(&arena, KNOWN * sizeof *known);
    memset(known, 0, KNOWN * sizeof *known);
    uint64_t fresh = 0, turns = 0;
    double prompt = 0;
    struct request r;
    while (server_next(&server, &r)) {
        struct known *k = &known[r.session];
        uint32_t carried = k->history <= 200 ? k->history : 0;
        ck_assert(r.prompt_tokens > carried && r.prompt_tokens <= carried + 100);
        if (r.turn > 0) {
            ck_assert_int_eq(r.stream == k->stream, k->history <= 200);
            ck_assert_uint_ge(r.stream, k->stream);
            fresh += k->history > 200;
        }
        k->stream = r.stream;
        k->history = r.prompt_tokens + r.output_tokens;
        turns++;
        prompt += r.prompt_tokens;
    }
    ck_assert_uint_gt(fresh, 10000);
    ck_assert_double_eq_tol(prompt / (double)turns, workload_mean_prompt(server.w, 0),
                            0.02 * prompt / (double)turns);
    workload_close(server.w);
    finish();
}
END_TEST

static enum outcome every_tenth_fails(const struct request *request)
{
    static const enum outcome cut[] = {OUTCOME_REFUSED, OUTCOME_CANCELLED, OUTCOME_UNSERVABLE};
    return request->id % 10 == 9 ? cut[request->id / 10 % 3] : OUTCOME_COMPLETED;
}

/* Whose answer is cut gives up, and every conversation ends in one of four ways. */
START_TEST(cut_answers_end_conversations)
{
    begin();
    struct server server = {.outcome = every_tenth_fails};
    server_open(&server, traffic_make(&arena, TALK), 1, 6 * PS_PER_HOUR);
    static bool gone[KNOWN];
    memset(gone, 0, sizeof gone);
    uint64_t cut = 0, first = 0;
    struct request r;
    while (server_next(&server, &r)) {
        ck_assert(!gone[r.session]);
        gone[r.session] = every_tenth_fails(&r) != OUTCOME_COMPLETED;
        cut += gone[r.session];
        first += r.turn == 0;
    }
    struct sessions_counts counts = workload_sessions(server.w, 0);
    ck_assert_uint_gt(cut, 10000);
    ck_assert_uint_eq(counts.started, first);
    ck_assert_uint_eq(counts.given_up, cut);
    ck_assert_uint_gt(counts.past_horizon, 100);
    ck_assert_uint_eq(counts.finished + counts.given_up + counts.past_horizon, counts.started);
    ck_assert_uint_eq(server.over, counts.started);
    workload_close(server.w);

    /* A run that is cut asks for nothing more. */
    server = (struct server){0};
    server_open(&server, traffic_make(&arena, TALK), 1, PS_PER_HOUR);
    ck_assert_int_eq(workload_next(server.w, &r, &errors), WORKLOAD_OK);
    int64_t next_ps = workload_peek(server.w);
    struct request_record record = {.request = r, .outcome = OUTCOME_IN_FLIGHT};
    ck_assert(workload_complete(server.w, &record));
    ck_assert_int_eq(workload_peek(server.w), next_ps);
    ck_assert_uint_eq(workload_sessions(server.w, 0).given_up, 0);
    workload_close(server.w);
    finish();
}
END_TEST

/* Turns of conversations that start early enough to be over before the end, against their law:
 * chi-square, cells of at least 10, 0.1 % on either side. */
static void turns_against(const char *spec, double (*share)(uint32_t turns), uint32_t cells)
{
    begin();
    struct server server = {0};
    server_open(&server,
                traffic_make(&arena, arena_printf(&arena,
                                                  CHAT "sessions.think_time=uniform; "
                                                       "sessions.think_time.max=2 s; "
                                                       "sessions.think_time.min=0 s; %s",
                                                  spec)),
                1, 3 * PS_PER_HOUR);
    enum { SESSIONS = 20000, CELLS_MAX = 64 };
    static uint32_t turns[SESSIONS];
    memset(turns, 0, sizeof turns);
    struct request r;
    while (server_next(&server, &r))
        if (r.session < SESSIONS)
            turns[r.session]++;
    double count[CELLS_MAX + 1] = {0}, square = 0, rest = 1;
    for (size_t i = 0; i < SESSIONS; i++)
        count[turns[i] <= cells ? turns[i] - 1 : cells]++;
    int freedom = -1;
    for (uint32_t i = 0; i <= cells; i++) {
        double expected = SESSIONS * (i < cells ? share(i + 1) : rest);
        rest -= i < cells ? share(i + 1) : 0;
        if (expected < 1e-9) {
            ck_assert_double_eq(count[i], 0);
            continue;
        }
        square += pow(count[i] - expected, 2) / expected;
        freedom++;
    }
    /* Wilson and Hilferty's normal score of a chi-square. */
    double v = 2.0 / (9 * freedom);
    double score = (cbrt(square / freedom) - (1 - v)) / sqrt(v);
    ck_assert_msg(fabs(score) < 3.3, "%s: score %g", spec, score);
    workload_close(server.w);
    finish();
}

static double geometric_share(uint32_t turns)
{
    return pow(0.8, turns - 1) * 0.2;
}

static double uniform_share(uint32_t turns)
{
    return turns >= 3 && turns <= 9 ? 1.0 / 7 : 0;
}

START_TEST(turns_follow_their_law)
{
    turns_against("sessions.turns=geometric; sessions.turns.mean=5", geometric_share, 30);
    turns_against("sessions.turns=uniform; sessions.turns.min=3; sessions.turns.max=9",
                  uniform_share, 9);
}
END_TEST

/* ---- the stationary start ---- */

static const char *const laws[] = {
    "sessions.turns=geometric; sessions.turns.mean=5; sessions.think_time=exponential; "
    "sessions.think_time.mean=600 s",
    "sessions.turns=constant; sessions.turns.value=4; sessions.think_time=constant; "
    "sessions.think_time.value=1000 s",
    "sessions.turns=uniform; sessions.turns.min=1; sessions.turns.max=9; "
    "sessions.think_time=uniform; sessions.think_time.min=100 s; sessions.think_time.max=900 s",
    "sessions.turns=uniform; sessions.turns.min=2; sessions.turns.max=6; "
    "sessions.think_time=lognormal; sessions.think_time.mean=600 s; sessions.think_time.cv=1",
};
enum { LAWS = sizeof laws / sizeof *laws, WINDOWS = 6, SEEDS = 30 };
static const int64_t WINDOW_PS = 600 * PS_PER_SECOND;

struct windows {
    double mean[WINDOWS], error[WINDOWS]; /* requests in each window, over seeds */
    double prompt;                        /* mean tokens of all */
};

static void windows_count(const char *law, const char *more, struct windows *out)
{
    const struct traffic_config *class =
        traffic_make(&arena, arena_printf(&arena, CHAT "%s; %s", law, more));
    double sum[WINDOWS] = {0}, square[WINDOWS] = {0}, prompt = 0, all = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct server server = {0};
        server_open(&server, class, seed, WINDOWS * WINDOW_PS);
        double count[WINDOWS] = {0};
        struct request r;
        while (server_next(&server, &r)) {
            count[r.arrival_ps / WINDOW_PS]++;
            prompt += r.prompt_tokens;
            all++;
        }
        for (int i = 0; i < WINDOWS; i++) {
            sum[i] += count[i];
            square[i] += count[i] * count[i];
        }
        workload_close(server.w);
    }
    for (int i = 0; i < WINDOWS; i++) {
        out->mean[i] = sum[i] / SEEDS;
        double variance = (square[i] - sum[i] * out->mean[i]) / (SEEDS - 1);
        out->error[i] = sqrt(variance / SEEDS);
    }
    out->prompt = prompt / all;
}

/* From the first minute on as many requests as ever after, whatever the laws; and prompts as long.
 * Student's 99.9 % interval with 29 degrees of freedom is ± 3.66. */
START_TEST(stationary_from_the_start)
{
    begin();
    struct windows w;
    windows_count(laws[_i], "sessions.stationary_start=true", &w);
    struct server server = {0};
    server_open(&server, traffic_make(&arena, arena_printf(&arena, CHAT "%s", laws[_i])), 1,
                PS_PER_HOUR);
    double expected = workload_expected(server.w, 0, 0, WINDOW_PS);
    for (int i = 0; i < WINDOWS; i++)
        ck_assert_msg(fabs(w.mean[i] - expected) < 3.66 * w.error[i],
                      "window %d: %g ± %g, expected %g", i, w.mean[i], w.error[i], expected);
    ck_assert_double_eq_tol(w.error[0], 0, 0.02 * expected);
    ck_assert_double_eq_tol(w.prompt, workload_mean_prompt(server.w, 0), 0.02 * w.prompt);
    ck_assert_double_eq_tol(workload_rate(server.w, 0, 0) * 600, expected, 1e-9 * expected);

    /* Without it the first window is far below, and only slowly does it become as much. */
    struct windows cold;
    windows_count(laws[_i], "sessions.stationary_start=false", &cold);
    ck_assert_double_lt(cold.mean[0], 0.8 * expected);
    ck_assert_double_lt(cold.mean[0], cold.mean[1]);
    ck_assert_double_lt(cold.mean[1], 1.02 * cold.mean[WINDOWS - 1]);
    workload_close(server.w);
    finish();
}
END_TEST

/* Who was under way is one of 0 … M − 1, starts in the middle, and is in number about
 * rate · E[think] · (E[turns] − 1). */
START_TEST(under_way_at_the_start)
{
    begin();
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct server server = {0};
        server_open(&server, traffic_make(&arena, TALK "sessions.stationary_start=true; start=1 h"),
                    seed, 2 * PS_PER_HOUR);
        uint64_t under_way = workload_sessions(server.w, 0).started;
        sum += (double)under_way;
        struct request r;
        for (uint64_t n = 0; n < 1000 && server_next(&server, &r); n++) {
            ck_assert_int_ge(r.arrival_ps, PS_PER_HOUR);
            if ((uint64_t)r.session < under_way) {
                ck_assert_uint_gt(r.turn, 0);
                ck_assert_uint_gt(r.prompt_tokens, 2 * r.turn);
            }
        }
        workload_close(server.w);
    }
    double mean = 2 * 600 * 4; /* Poisson: variance = mean */
    ck_assert_double_eq_tol(sum / SEEDS, mean, 3.3 * sqrt(mean / SEEDS));
    finish();
}
END_TEST

/* ---- several classes, rates, refusals ---- */

START_TEST(classes_beside_each_other)
{
    begin();
    const struct traffic_config *classes[] = {
        traffic_make(&arena, TALK "shared_prompt.tokens=10; shared_prompt.count=3"),
        traffic_make(&arena, "name=b; arrivals=constant; arrivals.rate=1 /s; "
                             "prompt_tokens=constant; prompt_tokens.value=5; "
                             "output_tokens=constant; output_tokens.value=5; "
                             "shared_prompt.tokens=20; shared_prompt.count=2"),
        traffic_make(&arena, "name=c; arrivals=constant; arrivals.rate=1 /s; "
                             "prompt_tokens=constant; prompt_tokens.value=5; "
                             "output_tokens=constant; output_tokens.value=5; "
                             "shared_prompt.tokens=30; sessions.turns=constant; "
                             "sessions.turns.value=3; sessions.think_time=constant; "
                             "sessions.think_time.value=1 s")};
    struct workload *w = traffic_open(classes, 3, PS_PER_HOUR, &errors);
    ck_assert_ptr_nonnull(w);
    uint64_t seen[3] = {0};
    int64_t last_ps = 0;
    uint32_t last_class = 0;
    struct request r;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        ck_assert(r.arrival_ps > last_ps ||
                  (r.arrival_ps == last_ps && r.class_index >= last_class));
        last_ps = r.arrival_ps;
        last_class = r.class_index;
        seen[r.class_index]++;
        static const uint32_t from[] = {0, 3, 5}, to[] = {3, 5, 6};
        ck_assert_uint_ge(r.shared_prompt, from[r.class_index]);
        ck_assert_uint_lt(r.shared_prompt, to[r.class_index]);
        ck_assert_uint_eq(r.stream >> 53, r.class_index == 1 ? 0 : r.class_index + 1);
        if (r.class_index == 2 && r.turn > 0) /* it ticks with the others: in order of class */
            ck_assert_int_eq(r.arrival_ps % PS_PER_SECOND, 0);
        struct request_record record = {.request = r, .end_ps = r.arrival_ps};
        workload_complete(w, &record);
    }
    ck_assert_uint_eq(seen[1], 3600);
    ck_assert_uint_eq(seen[2], 3 * 3600 - 3); /* the last two were cut by the horizon */
    ck_assert_double_eq_tol(workload_expected(w, 2, 0, PS_PER_HOUR), 3 * 3600, 1e-6);
    ck_assert_double_eq_tol(workload_mean_prompt(w, 2), 30 + 5 + 10, 1e-9);
    ck_assert(workload_has_contents(w, 1) && workload_hash_block(w, 1) == 0);
    workload_close(w);
    finish();
}
END_TEST

/* rate counts starts; requests_per_day and users count requests. */
START_TEST(rates_of_starts)
{
    static const struct {
        const char *arrivals;
        double requests;
    } cases[] = {
        {"arrivals.rate=0.5 /s", 43200 * 4},
        {"arrivals.requests_per_day=86400", 86400},
        {"arrivals.users.daily=1000; arrivals.users.sessions=3; "
         "arrivals.users.requests_per_session=4",
         12000},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server server = {0};
        server_open(
            &server,
            traffic_make(&arena, arena_printf(&arena,
                                              "name=a; arrivals=poisson; %s; "
                                              "prompt_tokens=geometric; prompt_tokens.mean=9; "
                                              "output_tokens=geometric; output_tokens.mean=9; "
                                              "sessions.turns=constant; sessions.turns.value=4; "
                                              "sessions.think_time=constant; "
                                              "sessions.think_time.value=0 s",
                                              cases[i].arrivals)),
            1, 24 * PS_PER_HOUR);
        ck_assert_double_eq_tol(workload_expected(server.w, 0, 0, 24 * PS_PER_HOUR),
                                cases[i].requests, 1e-6);
        double count = 0;
        struct request r;
        while (server_next(&server, &r))
            count++;
        ck_assert_double_eq_tol(count, cases[i].requests, 4 * 3.3 * sqrt(cases[i].requests / 4));
        workload_close(server.w);
    }
    finish();
}
END_TEST

START_TEST(refusals)
{
#define TURNS "sessions.turns=constant; sessions.turns.value=3; "
#define THINK "sessions.think_time=constant; sessions.think_time.value=1 s; "
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {CHAT TURNS, "sessions need a think_time"},
        {CHAT THINK, "sessions need turns"},
        {CHAT "sessions.stationary_start=true", "sessions need turns"},
        {CHAT "sessions.max_history_tokens=5", "sessions need turns"},
        {CHAT "shared_prompt.count=5", "a shared_prompt needs tokens"},
        {CHAT THINK "sessions.turns=uniform; sessions.turns.min=5; sessions.turns.max=4",
         "min is above max"},
        {CHAT TURNS "sessions.think_time=uniform; sessions.think_time.min=5 s; "
                    "sessions.think_time.max=4 s",
         "min is above max"},
        {"name=a; arrivals=poisson; arrivals.rate=1 /s; " TURNS THINK, "prompt_tokens is missing"},
        {"name=a; arrivals=closed_loop; arrivals.concurrency=1; prompt_tokens=constant; "
         "prompt_tokens.value=1; output_tokens=constant; output_tokens.value=1; " TURNS THINK,
         "sessions are not for a closed_loop"},
        {"name=a; arrivals=poisson; arrivals.users.daily=10; arrivals.users.sessions=1; "
         "arrivals.users.requests_per_session=4; prompt_tokens=constant; prompt_tokens.value=1; "
         "output_tokens=constant; output_tokens.value=1; " TURNS THINK,
         "requests_per_session is 4, the mean turns of the sessions are 3"},
        {CHAT TURNS "sessions.think_time=constant; sessions.think_time.value=90 d; "
                    "arrivals.rate=1000 /s; sessions.stationary_start=true",
         "conversations would be under way at the start"},
        {CHAT "sessions.turns=constant; sessions.turns.value=10000; sessions.think_time=constant; "
              "sessions.think_time.value=1 min; sessions.stationary_start=true",
         "conversations would be under way at the start with 5e+03 turns each behind them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        const struct traffic_config *class = traffic_make(&arena, cases[i].spec);
        ck_assert_msg(!traffic_open(&class, 1, PS_PER_HOUR, &errors), "case %zu", i);
        traffic_expect_error(&errors, 0, 0, cases[i].message);
        finish();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sessions");
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, turns_carry_along);
    tcase_add_test(c, draws_do_not_follow_the_fleet);
    tcase_add_test(c, one_turn_is_a_request);
    tcase_add_test(c, history_has_a_limit);
    tcase_add_test(c, cut_answers_end_conversations);
    tcase_add_test(c, turns_follow_their_law);
    tcase_add_loop_test(c, stationary_from_the_start, 0, LAWS);
    tcase_add_test(c, under_way_at_the_start);
    tcase_add_test(c, classes_beside_each_other);
    tcase_add_test(c, rates_of_starts);
    tcase_add_test(c, refusals);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
