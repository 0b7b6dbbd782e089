/* Random scenarios for property tests: everything the naive engine can simulate, drawn from one
 * seed, with many ties, tiny KV pools and events placed exactly on (or 1 ps beside) the boundaries
 * of iterations; a shrinker that makes a failing one small; and text that shows it.
 *
 * Environment: PROP_SEED (default 1) is the seed of the first case, PROP_COUNT the number of cases;
 * case i has seed PROP_SEED + i, so PROP_SEED=<printed seed> PROP_COUNT=1 replays one.
 * PROP_SHRINK=0 leaves out the shrinking. */
#ifndef FLEETSIM_TESTS_PROP_SUPPORT_SCENARIO_GEN_H
#define FLEETSIM_TESTS_PROP_SUPPORT_SCENARIO_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "models/step_time.h"
#include "sim/base/request.h"
#include "tests/prop/support_kink.h"
#include "tests/prop/support_naive.h"

enum prop_step_kind { PROP_CONSTANT, PROP_AFFINE, PROP_RATE, PROP_KINK, PROP_STEP_KINDS };

struct prop_step {
    enum prop_step_kind kind;
    int64_t base_ps;      /* constant: step; affine: base; rate: min_step */
    int64_t per_token_ps; /* affine */
    int64_t per_kv_ps;    /* affine: per_kv_token */
    int64_t prefill_rate; /* rate: prefill_tokens_per_s */
    int64_t decode_rate;  /* rate: decode_tokens_per_s */
    struct kink_config kink;
};

/* Lists are sorted by time, links by id; a linked request's arrival_ps says only where it stands in
 * the list. At least one replica is never drained. */
struct prop_case {
    uint64_t seed;
    struct naive_engine engine;
    struct prop_step step;
    uint32_t replicas;
    enum naive_router router; /* not NAIVE_CALLBACK */
    struct request *requests; /* owned, their hashes too (prop_hashes); id = index */
    size_t request_count;
    struct naive_cancel *cancels; /* owned */
    size_t cancel_count;
    struct naive_link *links; /* owned; the linked request has the larger id */
    size_t link_count;
    struct naive_drain *drains; /* owned; a replica at most once */
    size_t drain_count;
    int64_t *gauge_times_ps; /* owned */
    size_t gauge_count;
    int64_t cut_ps; /* 0: none, everything is served to its end */
};

/* What a request's tokens are, by itself: of no pool, freed with free(). ids: NULL for zeros. */
struct token_hashes *prop_hashes(uint32_t block_tokens, uint32_t count, const uint64_t *ids);
struct token_hashes *prop_hashes_copy(const struct token_hashes *hashes);
#define PROP_HASHES(block_tokens, ...)                                                             \
    prop_hashes(block_tokens, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),          \
                (const uint64_t[]){__VA_ARGS__})

/* create/free on the heap. */
struct prop_case *prop_case_generate(uint64_t seed);
struct prop_case *prop_case_copy(const struct prop_case *c);
void prop_case_free(struct prop_case *c);
/* As a C initialiser, preceded by how to replay it. */
void prop_case_print(const struct prop_case *c, FILE *out);

/* The case's step model, built in the arena: constant, affine and rate through the registry of
 * models/step_time.h (fields filled by name), kink from support_kink.h. */
struct step_model prop_case_model(const struct prop_case *c, struct arena *arena);
/* The case for naive_run; borrows the case and the model. */
struct naive_config prop_case_naive(const struct prop_case *c, const struct step_model *model);
/* Both at once: what the naive engine makes of it. The caller frees. */
struct naive_result *prop_case_run_naive(const struct prop_case *c);

/* A property: true when the case shows the fault. */
typedef bool prop_fails(const struct prop_case *c, void *self);

/* The smallest case found that still fails: requests, events and features dropped, lengths halved,
 * times simplified. c must fail. The caller frees. */
struct prop_case *prop_case_shrink(const struct prop_case *c, prop_fails *fails, void *self);

/* Tries PROP_COUNT (default: count) cases; prints the seed of the first that fails, and the case
 * shrunk. Returns the number of failures found (it stops at the first). Cases run in child
 * processes, so that a crash or a hang counts as a failure of its case and is shrunk too; what
 * `fails` writes to self is lost. A single case runs in this process, for debuggers. */
uint32_t prop_run(const char *name, uint32_t count, prop_fails *fails, void *self);

#endif
