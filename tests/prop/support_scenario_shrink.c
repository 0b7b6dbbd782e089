/* Failing cases: printing, shrinking, and the loop over seeds. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/check.h"
#include "tests/prop/support_scenario_gen.h"

/* ---- printing ---- */

static const char *const step_kind_names[PROP_STEP_KINDS] = {"PROP_CONSTANT", "PROP_AFFINE",
                                                             "PROP_RATE", "PROP_KINK"};
static const char *const router_names[NAIVE_ROUTER_COUNT] = {
    "NAIVE_ROUND_ROBIN", "NAIVE_LEAST_LOADED", "NAIVE_CENTRAL_QUEUE", "NAIVE_CALLBACK"};

static void print_limit(FILE *out, const char *name, int64_t value)
{
    if (value == NAIVE_UNLIMITED) {
        fprintf(out, ", .%s = NAIVE_UNLIMITED", name);
    } else {
        fprintf(out, ", .%s = %" PRId64, name, value);
    }
}

static void print_parameters(const struct prop_case *c, FILE *out)
{
    const struct naive_engine *e = &c->engine;
    const struct prop_step *s = &c->step;
    const struct kink_config *k = &s->kink;
    fprintf(out, "    .engine = {.max_num_seqs = %" PRId64 ", .max_num_batched_tokens = %" PRId64,
            e->max_num_seqs, e->max_num_batched_tokens);
    fprintf(out, ", .block_size = %" PRId64, e->block_size);
    print_limit(out, "num_gpu_blocks", e->num_gpu_blocks);
    print_limit(out, "max_model_len", e->max_model_len);
    print_limit(out, "max_queue", e->max_queue);
    fprintf(out, ", .enable_chunked_prefill = %s, .by_priority = %s",
            e->enable_chunked_prefill ? "true" : "false", e->by_priority ? "true" : "false");
    fprintf(out, ", .enable_prefix_caching = %s},\n", e->enable_prefix_caching ? "true" : "false");
    fprintf(out, "    .step = {.kind = %s, .base_ps = %" PRId64, step_kind_names[s->kind],
            s->base_ps);
    fprintf(out, ", .per_token_ps = %" PRId64 ", .per_kv_ps = %" PRId64, s->per_token_ps,
            s->per_kv_ps);
    fprintf(out, ", .prefill_rate = %" PRId64 ", .decode_rate = %" PRId64, s->prefill_rate,
            s->decode_rate);
    fprintf(out, ",\n             .kink = {%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64,
            k->a_ps, k->b_ps, k->c_ps, k->d_ps);
    fprintf(out, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64, k->per_decode_ps,
            k->per_prefill_ps, k->per_pair_ps, k->cap_kv);
    fprintf(out, ", %" PRIu32 ", %" PRId64 ", %" PRId64 "}},\n", k->window, k->per_window_kv_ps,
            k->per_window_pair_ps);
    fprintf(out, "    .replicas = %" PRIu32 ", .router = %s, .cut_ps = %" PRId64 ",\n", c->replicas,
            router_names[c->router], c->cut_ps);
}

/* Lists that are empty stay out: C has no empty initialiser. */
static void print_events(const struct prop_case *c, FILE *out)
{
    if (c->cancel_count > 0) {
        fprintf(out, "    .cancel_count = %zu, .cancels = (struct naive_cancel[]){",
                c->cancel_count);
        for (size_t i = 0; i < c->cancel_count; i++) {
            fprintf(out, "{%" PRId64 ", %" PRIu64 "}, ", c->cancels[i].time_ps, c->cancels[i].id);
        }
        fprintf(out, "},\n");
    }
    if (c->link_count > 0) {
        fprintf(out, "    .link_count = %zu, .links = (struct naive_link[]){", c->link_count);
        for (size_t i = 0; i < c->link_count; i++) {
            fprintf(out, "{%" PRIu64 ", %" PRIu64 ", %" PRId64 "}, ", c->links[i].id,
                    c->links[i].after, c->links[i].think_ps);
        }
        fprintf(out, "},\n");
    }
    if (c->drain_count > 0) {
        fprintf(out, "    .drain_count = %zu, .drains = (struct naive_drain[]){", c->drain_count);
        for (size_t i = 0; i < c->drain_count; i++) {
            fprintf(out, "{%" PRId64 ", %" PRIu32 "}, ", c->drains[i].time_ps,
                    c->drains[i].replica);
        }
        fprintf(out, "},\n");
    }
    if (c->gauge_count > 0) {
        fprintf(out, "    .gauge_count = %zu, .gauge_times_ps = (int64_t[]){", c->gauge_count);
        for (size_t i = 0; i < c->gauge_count; i++) {
            fprintf(out, "%" PRId64 ", ", c->gauge_times_ps[i]);
        }
        fprintf(out, "},\n");
    }
}

/* What its tokens are, as far as it says something. */
static void print_contents(const struct request *r, FILE *out)
{
    if (r->shared_tokens > 0) {
        fprintf(out, ", .shared_prompt = %" PRIu32 ", .shared_tokens = %" PRIu32, r->shared_prompt,
                r->shared_tokens);
    }
    if (r->stream != 0) {
        fprintf(out, ", .stream = %" PRIu64, r->stream);
    }
    if (r->hashes && r->hashes->count == 0) {
        fprintf(out, ", .hashes = prop_hashes(%" PRIu32 ", 0, NULL)", r->hashes->block_tokens);
    } else if (r->hashes) {
        fprintf(out, ", .hashes = PROP_HASHES(%" PRIu32, r->hashes->block_tokens);
        for (uint32_t i = 0; i < r->hashes->count; i++) {
            fprintf(out, ", %" PRIu64, r->hashes->ids[i]);
        }
        fprintf(out, ")");
    }
}

void prop_case_print(const struct prop_case *c, FILE *out)
{
    fprintf(out, "/* generated with PROP_SEED=%" PRIu64 " PROP_COUNT=1 */\n", c->seed);
    fprintf(out, "struct prop_case c = {\n    .seed = %" PRIu64 ",\n", c->seed);
    print_parameters(c, out);
    fprintf(out, "    .request_count = %zu, .requests = (struct request[]){\n", c->request_count);
    for (size_t i = 0; i < c->request_count; i++) {
        const struct request *r = &c->requests[i];
        fprintf(out, "        {.id = %" PRIu64 ", .arrival_ps = %" PRId64, r->id, r->arrival_ps);
        fprintf(out,
                ", .prompt_tokens = %" PRIu32 ", .output_tokens = %" PRIu32 ", .priority = %" PRId32
                ", .session = -1",
                r->prompt_tokens, r->output_tokens, r->priority);
        print_contents(r, out);
        fprintf(out, "},\n");
    }
    fprintf(out, "    },\n");
    print_events(c, out);
    fprintf(out, "};\n");
}

/* ---- shrinking ---- */

enum { SHRINK_TRIES_MAX = 5000 };

struct shrinker {
    prop_fails *fails;
    void *self;
    struct prop_case *best; /* owned */
    uint32_t tries;
};

/* What contents say goes no further than the request. */
static void fit_contents(struct prop_case *c)
{
    for (size_t i = 0; i < c->request_count; i++) {
        struct request *r = &c->requests[i];
        if (r->shared_tokens > r->prompt_tokens) {
            r->shared_tokens = r->prompt_tokens;
        }
        if (r->hashes) {
            uint32_t full = (r->prompt_tokens + r->output_tokens) / r->hashes->block_tokens;
            r->hashes->count = r->hashes->count < full ? r->hashes->count : full;
        }
    }
}

/* Keeps the candidate when it still fails; owns it either way. */
static bool shrink_try(struct shrinker *s, struct prop_case *candidate)
{
    fit_contents(candidate);
    if (s->tries < SHRINK_TRIES_MAX) {
        s->tries++;
        if (s->fails(candidate, s->self)) {
            prop_case_free(s->best);
            s->best = candidate;
            return true;
        }
    }
    prop_case_free(candidate);
    return false;
}

static void array_cut(void *items, size_t *count, size_t from, size_t n, size_t size)
{
    char *bytes = items;
    memmove(bytes + from * size, bytes + (from + n) * size, (*count - from - n) * size);
    *count -= n;
}

/* Requests [from, from + n) go, and their cancels and links; later ids move down. What came after
 * one of them comes at its time in the list instead. */
static void drop_requests(struct prop_case *c, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++) {
        free(c->requests[i].hashes);
    }
    array_cut(c->requests, &c->request_count, from, n, sizeof(*c->requests));
    for (size_t i = 0; i < c->request_count; i++) {
        c->requests[i].id = i;
    }
    size_t kept = 0;
    for (size_t i = 0; i < c->link_count; i++) {
        struct naive_link link = c->links[i];
        if ((link.id >= from && link.id < from + n) ||
            (link.after >= from && link.after < from + n)) {
            continue;
        }
        link.id -= link.id >= from + n ? n : 0;
        link.after -= link.after >= from + n ? n : 0;
        c->links[kept++] = link;
    }
    c->link_count = kept;
    kept = 0;
    for (size_t i = 0; i < c->cancel_count; i++) {
        struct naive_cancel cancel = c->cancels[i];
        if (cancel.id >= from && cancel.id < from + n) {
            continue;
        }
        cancel.id -= cancel.id >= from + n ? n : 0;
        c->cancels[kept++] = cancel;
    }
    c->cancel_count = kept;
}

static bool shrink_requests(struct shrinker *s)
{
    bool any = false;
    for (size_t n = (s->best->request_count + 1) / 2; n > 0; n /= 2) {
        for (size_t from = 0; from + n <= s->best->request_count;) {
            struct prop_case *candidate = prop_case_copy(s->best);
            drop_requests(candidate, from, n);
            bool kept = shrink_try(s, candidate);
            any |= kept;
            from += kept ? 0 : n;
        }
    }
    return any;
}

/* One of the four lists of events, by number. */
static void drop_event(struct prop_case *c, int list, size_t at, size_t n)
{
    if (list == 0) {
        array_cut(c->cancels, &c->cancel_count, at, n, sizeof(*c->cancels));
    } else if (list == 1) {
        array_cut(c->drains, &c->drain_count, at, n, sizeof(*c->drains));
    } else if (list == 2) {
        array_cut(c->links, &c->link_count, at, n, sizeof(*c->links));
    } else {
        array_cut(c->gauge_times_ps, &c->gauge_count, at, n, sizeof(*c->gauge_times_ps));
    }
}

static size_t event_count(const struct prop_case *c, int list)
{
    return list == 0   ? c->cancel_count
           : list == 1 ? c->drain_count
           : list == 2 ? c->link_count
                       : c->gauge_count;
}

static bool shrink_events(struct shrinker *s)
{
    bool any = false;
    for (int list = 0; list < 4; list++) {
        for (size_t i = 0; i < event_count(s->best, list);) {
            struct prop_case *candidate = prop_case_copy(s->best);
            drop_event(candidate, list, i, 1);
            bool kept = shrink_try(s, candidate);
            any |= kept;
            i += kept ? 0 : 1;
        }
    }
    return any;
}

/* Each makes the case simpler, and says whether there was anything to change. */

static bool fewer_replicas(struct prop_case *c)
{
    if (c->replicas == 1) {
        return false;
    }
    c->replicas--;
    for (size_t i = c->drain_count; i > 0; i--) {
        if (c->drains[i - 1].replica >= c->replicas || c->drain_count >= c->replicas) {
            drop_event(c, 1, i - 1, 1);
        }
    }
    return true;
}
static bool one_replica(struct prop_case *c)
{
    bool change = c->replicas > 1;
    c->replicas = 1;
    c->drain_count = 0;
    return change;
}
static bool simple_router(struct prop_case *c)
{
    bool change = c->router != NAIVE_ROUND_ROBIN;
    c->router = NAIVE_ROUND_ROBIN;
    return change;
}
static bool no_limit(int64_t *limit)
{
    bool change = *limit != NAIVE_UNLIMITED;
    *limit = NAIVE_UNLIMITED;
    return change;
}
static bool no_queue_limit(struct prop_case *c)
{
    return no_limit(&c->engine.max_queue);
}
static bool no_length_limit(struct prop_case *c)
{
    return no_limit(&c->engine.max_model_len);
}
static bool no_block_limit(struct prop_case *c)
{
    return no_limit(&c->engine.num_gpu_blocks);
}
static bool chunked_prefill(struct prop_case *c)
{
    bool change = !c->engine.enable_chunked_prefill;
    c->engine.enable_chunked_prefill = true;
    return change;
}
static bool constant_step(struct prop_case *c)
{
    bool change = c->step.kind != PROP_CONSTANT;
    int64_t token_ps = PS_PER_SECOND / (c->step.decode_rate > 0 ? c->step.decode_rate : 1);
    if (c->step.kind == PROP_RATE && c->step.base_ps < token_ps) {
        c->step.base_ps = token_ps;
    }
    c->step.kind = PROP_CONSTANT;
    return change;
}
static bool no_cut(struct prop_case *c)
{
    bool change = c->cut_ps > 0;
    c->cut_ps = 0;
    return change;
}
static bool no_window(struct prop_case *c)
{
    bool change = c->step.kind == PROP_KINK && c->step.kink.window > 0;
    c->step.kink.window = 0;
    c->step.kink.per_window_kv_ps = c->step.kink.per_window_pair_ps = 0;
    return change;
}
static bool no_priority(struct prop_case *c)
{
    bool change = c->engine.by_priority;
    c->engine.by_priority = false;
    return change;
}
static bool no_caching(struct prop_case *c)
{
    bool change = c->engine.enable_prefix_caching;
    c->engine.enable_prefix_caching = false;
    return change;
}
/* Each for one request; the functions for all of them follow. */
static bool drop_shared(struct request *r)
{
    bool change = r->shared_tokens > 0;
    r->shared_tokens = r->shared_prompt = 0;
    return change;
}
static bool drop_stream(struct request *r)
{
    bool change = r->stream != 0;
    r->stream = 0;
    return change;
}
static bool drop_hashes(struct request *r)
{
    bool change = r->hashes != NULL;
    free(r->hashes);
    r->hashes = NULL;
    return change;
}
static bool drop_last_hash(struct request *r)
{
    bool change = r->hashes && r->hashes->count > 0;
    if (change) {
        r->hashes->count--;
    }
    return change;
}
static bool drop_shared_token(struct request *r)
{
    bool change = r->shared_tokens > 1;
    r->shared_tokens -= change;
    return change;
}
static bool drop_of_all(struct prop_case *c, bool (*drop)(struct request *))
{
    bool change = false;
    for (size_t i = 0; i < c->request_count; i++) {
        change |= drop(&c->requests[i]);
    }
    return change;
}
static bool no_shared(struct prop_case *c)
{
    return drop_of_all(c, drop_shared);
}
static bool no_streams(struct prop_case *c)
{
    return drop_of_all(c, drop_stream);
}
static bool no_hashes(struct prop_case *c)
{
    return drop_of_all(c, drop_hashes);
}
static bool equal_priorities(struct prop_case *c)
{
    bool change = false;
    for (size_t i = 0; i < c->request_count; i++) {
        change |= c->requests[i].priority != 0;
        c->requests[i].priority = 0;
    }
    return change;
}
static bool short_thoughts(struct prop_case *c)
{
    bool change = false;
    for (size_t i = 0; i < c->link_count; i++) {
        change |= c->links[i].think_ps != 1;
        c->links[i].think_ps = 1;
    }
    return change;
}
/* Every time becomes (time − minus) · times / over. */
static void change_times(struct prop_case *c, int64_t minus_ps, int64_t times, int64_t over)
{
    for (size_t i = 0; i < c->request_count; i++) {
        c->requests[i].arrival_ps = (c->requests[i].arrival_ps - minus_ps) * times / over;
    }
    for (size_t i = 0; i < c->cancel_count; i++) {
        c->cancels[i].time_ps = (c->cancels[i].time_ps - minus_ps) * times / over;
    }
    for (size_t i = 0; i < c->link_count; i++) {
        int64_t think_ps = c->links[i].think_ps * times / over;
        c->links[i].think_ps = think_ps > 1 ? think_ps : 1;
    }
    for (size_t i = 0; i < c->drain_count; i++) {
        c->drains[i].time_ps = (c->drains[i].time_ps - minus_ps) * times / over;
    }
    if (c->cut_ps > 0) {
        int64_t cut_ps = (c->cut_ps - minus_ps) * times / over;
        c->cut_ps = cut_ps > 1 ? cut_ps : 1;
    }
    for (size_t i = 0; i < c->gauge_count; i++) {
        c->gauge_times_ps[i] = (c->gauge_times_ps[i] - minus_ps) * times / over;
    }
}
static bool tiny_step(struct prop_case *c)
{
    bool change = c->step.kind == PROP_CONSTANT && c->step.base_ps > 10;
    if (change) {
        change_times(c, 0, 10, c->step.base_ps);
        c->step.base_ps = 10;
    }
    return change;
}
/* The first event happens at 0. */
static bool start_at_once(struct prop_case *c)
{
    int64_t first_ps = c->request_count ? c->requests[0].arrival_ps : 0;
    if (c->drain_count && c->drains[0].time_ps < first_ps) {
        first_ps = c->drains[0].time_ps;
    }
    if (c->gauge_count && c->gauge_times_ps[0] < first_ps) {
        first_ps = c->gauge_times_ps[0];
    }
    if (c->cancel_count && c->cancels[0].time_ps < first_ps) {
        first_ps = c->cancels[0].time_ps;
    }
    change_times(c, first_ps, 1, 1);
    return first_ps > 0;
}
static bool fewer_seqs(struct prop_case *c)
{
    bool change = c->engine.max_num_seqs > 1;
    c->engine.max_num_seqs = (c->engine.max_num_seqs + 1) / 2;
    return change;
}
static bool single_blocks(struct prop_case *c)
{
    bool change = c->engine.block_size > 1;
    c->engine.block_size = 1;
    return change;
}
static bool half_blocks(struct prop_case *c)
{
    bool change = c->engine.num_gpu_blocks != NAIVE_UNLIMITED && c->engine.num_gpu_blocks > 1;
    if (change) {
        c->engine.num_gpu_blocks /= 2;
    }
    return change;
}
/* As few as the largest request needs. */
static bool tight_blocks(struct prop_case *c)
{
    int64_t need = 1;
    for (size_t i = 0; i < c->request_count; i++) {
        const struct request *r = &c->requests[i];
        int64_t stored = (int64_t)r->prompt_tokens + r->output_tokens - (r->output_tokens > 0);
        int64_t blocks = naive_blocks(stored, c->engine.block_size);
        need = blocks > need ? blocks : need;
    }
    bool change = c->engine.num_gpu_blocks != NAIVE_UNLIMITED && need < c->engine.num_gpu_blocks;
    c->engine.num_gpu_blocks = change ? need : c->engine.num_gpu_blocks;
    return change;
}
static bool unit_prompts(struct prop_case *c)
{
    bool change = false;
    for (size_t i = 0; i < c->request_count; i++) {
        change |= c->requests[i].prompt_tokens > 1;
        c->requests[i].prompt_tokens = 1;
    }
    tight_blocks(c);
    return change;
}
/* Lengths and what limits them together. */
static bool half_scale(struct prop_case *c)
{
    bool change = false;
    for (size_t i = 0; i < c->request_count; i++) {
        change |= c->requests[i].prompt_tokens > 1 || c->requests[i].output_tokens > 1;
        c->requests[i].prompt_tokens = (c->requests[i].prompt_tokens + 1) / 2;
        c->requests[i].output_tokens = (c->requests[i].output_tokens + 1) / 2;
        c->requests[i].shared_tokens = (c->requests[i].shared_tokens + 1) / 2;
    }
    if (c->engine.num_gpu_blocks != NAIVE_UNLIMITED) {
        c->engine.num_gpu_blocks = (c->engine.num_gpu_blocks + 1) / 2;
    }
    return change;
}
static bool large_budget(struct prop_case *c)
{
    bool change = c->engine.max_num_batched_tokens < 8192;
    c->engine.max_num_batched_tokens = 8192;
    return change;
}

static bool shrink_features(struct shrinker *s)
{
    static bool (*const simplify[])(struct prop_case *) = {
        no_caching,      no_hashes,     no_streams,       no_shared,       one_replica,
        fewer_replicas,  simple_router, no_queue_limit,   no_length_limit, no_block_limit,
        chunked_prefill, no_priority,   equal_priorities, constant_step,   no_window,
        no_cut,          tiny_step,     start_at_once,    short_thoughts,  fewer_seqs,
        single_blocks,   tight_blocks,  half_blocks,      half_scale,      unit_prompts,
        large_budget};
    bool any = false;
    for (size_t i = 0; i < sizeof(simplify) / sizeof(*simplify); i++) {
        struct prop_case *candidate = prop_case_copy(s->best);
        if (simplify[i](candidate)) {
            any |= shrink_try(s, candidate);
        } else {
            prop_case_free(candidate);
        }
    }
    return any;
}

/* Tries a smaller number in one place of request i: which = prompt, output. */
static bool shrink_length(struct shrinker *s, size_t i, bool output, uint32_t to)
{
    const struct request *r = &s->best->requests[i];
    if (to >= (output ? r->output_tokens : r->prompt_tokens) || (!output && to == 0)) {
        return false;
    }
    struct prop_case *candidate = prop_case_copy(s->best);
    *(output ? &candidate->requests[i].output_tokens : &candidate->requests[i].prompt_tokens) = to;
    return shrink_try(s, candidate);
}

static bool shrink_contents(struct shrinker *s, size_t i)
{
    static bool (*const drops[])(struct request *) = {drop_hashes, drop_stream, drop_shared,
                                                      drop_last_hash, drop_shared_token};
    bool any = false;
    for (size_t k = 0; k < sizeof(drops) / sizeof(*drops); k++) {
        struct prop_case *candidate = prop_case_copy(s->best);
        if (drops[k](&candidate->requests[i])) {
            any |= shrink_try(s, candidate);
        } else {
            prop_case_free(candidate);
        }
    }
    return any;
}

static bool shrink_lengths(struct shrinker *s)
{
    bool any = false;
    for (size_t i = 0; i < s->best->request_count; i++) {
        for (int output = 0; output < 2; output++) {
            any |= shrink_length(s, i, output, 1);
            const struct request *r = &s->best->requests[i];
            any |= shrink_length(s, i, output, (output ? r->output_tokens : r->prompt_tokens) / 2);
            r = &s->best->requests[i];
            uint32_t now = output ? r->output_tokens : r->prompt_tokens;
            any |= now > 0 && shrink_length(s, i, output, now - 1);
        }
        any |= shrink_contents(s, i);
        int64_t earlier_ps = i > 0 ? s->best->requests[i - 1].arrival_ps : 0;
        if (s->best->requests[i].arrival_ps > earlier_ps) {
            struct prop_case *candidate = prop_case_copy(s->best);
            candidate->requests[i].arrival_ps = earlier_ps;
            any |= shrink_try(s, candidate);
        }
    }
    return any;
}

struct prop_case *prop_case_shrink(const struct prop_case *c, prop_fails *fails, void *self)
{
    struct shrinker s = {.fails = fails, .self = self, .best = prop_case_copy(c)};
    check(fails(c, self));
    bool any = true;
    while (any && s.tries < SHRINK_TRIES_MAX) {
        any = shrink_requests(&s);
        any |= shrink_events(&s);
        any |= shrink_features(&s);
        any |= shrink_lengths(&s);
    }
    return s.best;
}

/* ---- the loop over seeds ---- */

/* CASE_SECONDS: a case takes some milliseconds; one that takes this long hangs, which is a failure.
 */
enum { BATCH = 500, CASE_SECONDS = 10 };

struct isolated {
    prop_fails *fails;
    void *self;
};

/* fails in a child process: a crash is a failure, and so is a hang (SIGALRM). */
static bool isolated_fails(const struct prop_case *c, void *self)
{
    const struct isolated *i = self;
    fflush(NULL);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL); /* Check's handler would kill the whole process group */
        alarm(CASE_SECONDS);
        _exit(i->fails(c, i->self) ? 1 : 0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Runs cases [seed, seed + count) in a child that writes every seed it starts into a pipe. Returns
 * whether one failed or crashed, with its seed. */
static bool batch_fails(uint64_t seed, uint32_t count, const struct isolated *i, uint64_t *failed)
{
    int ends[2];
    check(count <= BATCH && pipe(ends) == 0); /* 8 bytes each: fits a pipe's 64 KiB */
    fflush(NULL);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        signal(SIGALRM, SIG_DFL);
        for (uint64_t s = seed; s < seed + count; s++) {
            check(write(ends[1], &s, sizeof(s)) == (ssize_t)sizeof(s));
            alarm(CASE_SECONDS);
            struct prop_case *c = prop_case_generate(s);
            if (i->fails(c, i->self)) {
                _exit(1);
            }
            prop_case_free(c);
        }
        _exit(0);
    }
    int status = 0;
    check(waitpid(pid, &status, 0) == pid);
    close(ends[1]);
    while (read(ends[0], failed, sizeof(*failed)) == (ssize_t)sizeof(*failed)) {
    }
    close(ends[0]);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static uint64_t environment_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    if (!text || !*text) {
        return fallback;
    }
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    check_msg(*end == '\0', "%s=%s is not a number", name, text);
    return value;
}

static void report_failure(const char *name, uint64_t seed, prop_fails *fails, void *self)
{
    printf("%s: seed %" PRIu64 " fails; replay with PROP_SEED=%" PRIu64 " PROP_COUNT=1\n", name,
           seed, seed);
    fflush(stdout);
    if (environment_number("PROP_SHRINK", 1) == 0) {
        return;
    }
    struct prop_case *c = prop_case_generate(seed);
    if (fails(c, self)) {
        struct prop_case *small = prop_case_shrink(c, fails, self);
        printf("%s: shrunk from %zu requests to %zu:\n", name, c->request_count,
               small->request_count);
        prop_case_print(small, stdout);
        prop_case_free(small);
    } else {
        printf("%s: it did not fail again: the property depends on more than the case\n", name);
    }
    prop_case_free(c);
    fflush(stdout);
}

uint32_t prop_run(const char *name, uint32_t count, prop_fails *fails, void *self)
{
    uint64_t seed = environment_number("PROP_SEED", 1);
    uint64_t cases = environment_number("PROP_COUNT", count);
    struct isolated isolated = {.fails = fails, .self = self};
    uint64_t failed = seed;
    if (cases == 1) {
        struct prop_case *c = prop_case_generate(seed);
        bool fault = fails(c, self);
        prop_case_free(c);
        if (fault) {
            report_failure(name, seed, fails, self);
        }
        return fault;
    }
    for (uint64_t done = 0; done < cases; done += BATCH) {
        uint32_t now = (uint32_t)(cases - done < BATCH ? cases - done : BATCH);
        if (batch_fails(seed + done, now, &isolated, &failed)) {
            report_failure(name, failed, isolated_fails, &isolated);
            return 1;
        }
    }
    printf("%s: %" PRIu64 " cases from PROP_SEED=%" PRIu64 " agree\n", name, cases, seed);
    return 0;
}
