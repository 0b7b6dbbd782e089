/* How many turns a conversation has, and how long its user thinks between two of them: variants
 * under the tag `dist`. Everything a draw hangs on is computed with detmath. */
#ifndef FLEETSIM_SIM_WORKLOAD_SESSIONS_LAW_H
#define FLEETSIM_SIM_WORKLOAD_SESSIONS_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/rng.h"
#include "sim/workload/site.h"

enum { SESSIONS_LAW_TURNS_MAX = 65535 };

struct sessions_law_turns;

struct sessions_law_turns_type {
    /* Fills the parameters and the means; false after reporting at "sessions.turns". */
    bool (*init)(struct sessions_law_turns *law, const void *config, const struct site *site);
    /* 1 … SESSIONS_LAW_TURNS_MAX. */
    uint32_t (*draw)(const struct sessions_law_turns *law, uint64_t bits);
    /* P(turns > i). */
    double (*over)(const struct sessions_law_turns *law, uint32_t i);
    /* Turns, given that there are more than i; P(turns > i) > 0. */
    uint32_t (*draw_over)(const struct sessions_law_turns *law, uint32_t i, uint64_t bits);
};

struct sessions_law_turns {
    const struct sessions_law_turns_type *type;
    uint32_t min, max;
    double scale;
    double mean;       /* E[n] */
    double mean_pairs; /* E[n (n − 1) / 2]: pairs of an earlier and a later turn */
};

extern const struct variant *const sessions_law_turns_variants[];
/* value: a variant of sessions_law_turns_variants. */
bool sessions_law_turns_init(struct sessions_law_turns *law, const struct variant_value *value,
                             const struct site *site);

struct sessions_law_think;

struct sessions_law_think_type {
    /* False after reporting at "sessions.think_time". */
    bool (*init)(struct sessions_law_think *law, const void *config, const struct site *site);
    /* In ps, below 2^63. */
    double (*draw_ps)(const struct sessions_law_think *law, uint64_t bits);
    /* What is left, at a random instant, of the think time that instant falls into: a longer one is
     * met more often. Its density is P(T > r) / E[T]. */
    double (*rest_ps)(const struct sessions_law_think *law, struct rng_pair bits);
};

struct sessions_law_think {
    const struct sessions_law_think_type *type;
    double a, b; /* parameters, meaning by type */
    double mean_s;
};

extern const struct variant *const sessions_law_think_variants[];
/* value: a variant of sessions_law_think_variants. */
bool sessions_law_think_init(struct sessions_law_think *law, const struct variant_value *value,
                             const struct site *site);
/* Whole ps, from 1 up to the longest horizon. */
int64_t sessions_law_think_draw(const struct sessions_law_think *law, uint64_t bits);
int64_t sessions_law_think_rest(const struct sessions_law_think *law, struct rng_pair bits);

#endif
