/* Arrival processes: when the requests of one class come. One file per process; registered as the
 * variants of `arrivals:` under the tag `process`. */
#ifndef FLEETSIM_SIM_WORKLOAD_ARRIVALS_H
#define FLEETSIM_SIM_WORKLOAD_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/request.h"
#include "sim/workload/intensity.h"
#include "sim/workload/site.h"
#include "sim/workload/workload.h"

/* What a process is opened with. */
struct arrivals_setup {
    struct site site;
    const struct workload_config *config; /* borrowed for the life of the process */
    struct token_hash_pool *hashes; /* borrowed; where requests' hashes come from; NULL: they are
                                       not wanted */
};

/* A process: the ops of its variant. `self` is what open returned. */
struct arrivals_type {
    /* Checks the config and gives the process's state, or NULL after reporting. */
    void *(*open)(const void *config, const struct arrivals_setup *setup);
    void (*close)(void *self);
    /* A trace's first row in Unix seconds and last arrival in ps; NULL: the process has no opinion.
     */
    void (*extent)(const void *self, int64_t *start_unix_s, int64_t *last_ps);
    /* Called once, before the first fill, with the start and horizon in force. */
    bool (*start)(void *self, int64_t start_unix_s, int64_t horizon_ps, struct errors *errors);
    /* The next arrivals, at most max, in order, all before the horizon: sets arrival_ps (a trace
     * also tokens, session, turn and hashes). Fewer than max: there are no more. */
    size_t (*fill)(void *self, struct request *out, size_t max, struct errors *errors);
    /* workload.h: workload_rate, workload_expected. */
    double (*rate)(const void *self, int64_t time_ps);
    double (*expected)(const void *self, int64_t from_ps, int64_t to_ps);
    /* Token means of the rows and rows left out; NULL: the process brings no tokens. */
    void (*tokens)(const void *self, double *mean_prompt, double *mean_output, uint64_t *skipped);
    /* Failed calls of a trace, which are no requests; NULL: none. */
    uint64_t (*failed_calls)(const void *self);
    /* Requests of a trace at or after the horizon, which are not played; NULL: none. */
    uint64_t (*late)(const void *self);
    /* Tokens that a hash stands for, 0: there are none; NULL: the process never has any. */
    uint32_t (*hash_block)(const void *self);
    /* A process that follows the fleet (both NULL: it does not) gives one arrival at a time: the
     * time of the next one known, TIME_NEVER if none, … */
    int64_t (*peek)(const void *self);
    /* … and takes the end of each of its requests, after which a nearer one may be known. */
    void (*complete)(void *self, const struct request_record *record);
};

extern const struct variant *const arrivals_variants[];
extern const struct variant arrivals_poisson_variant;
extern const struct variant arrivals_constant_variant;
extern const struct variant arrivals_gamma_variant;
extern const struct variant arrivals_mmpp_variant;
extern const struct variant arrivals_closed_loop_variant;
extern const struct variant arrivals_trace_variant;

#endif
