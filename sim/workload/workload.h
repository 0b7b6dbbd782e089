/* The traffic of a run: every class's arrivals merged into one stream of requests in time order. */
#ifndef FLEETSIM_SIM_WORKLOAD_WORKLOAD_H
#define FLEETSIM_SIM_WORKLOAD_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"
#include "sim/base/request.h"
#include "sim/workload/sessions.h"

/* Prompts that many requests of a class begin with. */
struct shared_prompt_config {
    int64_t tokens; /* FIELD_INT_UNSET: there is none */
    int64_t count;  /* different ones; FIELD_INT_UNSET: 1 */
};

/* One class of requests: an entry of `workload:` as far as traffic goes. */
struct traffic_config {
    const char *name;
    const char *time_zone;              /* of its curve */
    int64_t start_ps, end_ps;           /* of its arrivals; end FIELD_INT_UNSET: the horizon */
    struct variant_value arrivals;      /* process: … */
    struct variant_value prompt_tokens; /* dist: …; unset: from the trace */
    struct variant_value output_tokens;
    double correlation; /* of both lengths' normal scores */
    struct shared_prompt_config shared_prompt;
    struct sessions_config sessions;
    int64_t priority;
    int64_t patience_ps; /* FIELD_INT_UNSET: clients wait for ever */
};
extern const struct field workload_class_fields[];

struct workload_config {
    const struct traffic_config *const *classes; /* [class_count], borrowed */
    size_t class_count;
    uint64_t seed;
    uint32_t replication;
    int64_t start_unix_s; /* scenario's start in Unix seconds; FIELD_INT_UNSET: the first row of the
                             first trace, or 0 */
    int64_t horizon_ps;   /* arrivals stop before it; TIME_NONE: last trace arrival + 1 ps */
    bool want_contents;   /* what traces say of contents is wanted: requests come with hashes, which
                             whoever takes a request gives back (token_hashes_release) before the
                             workload is closed. Streams and shared prompts are always told. */
};

/* Whether a name can be a cell of the trace format and of the CSV outputs: not empty, no commas,
 * quotes or control characters. */
bool workload_name_is_plain(const char *name);

struct workload;

/* Opens every class; scans traces once from end to end, so that every bad row is reported now. On
 * failure NULL, with the errors (path "workload[i].…" is looked up in where). */
struct workload *workload_open(const struct workload_config *config, const struct locator *where,
                               struct errors *errors);
void workload_close(struct workload *w);

/* The next request, ids from 0. Ties: class order, then order in the class. */
enum workload_status { WORKLOAD_OK, WORKLOAD_END, WORKLOAD_FAILED };
enum workload_status workload_next(struct workload *w, struct request *request,
                                   struct errors *errors);

/* Time of the next request known now, TIME_NEVER: none. */
int64_t workload_peek(const struct workload *w);
/* Whether a class's arrivals follow from ends (closed_loop, sessions); whether some class's do. */
bool workload_follows_fleet(const struct traffic_config *class);
bool workload_is_live(const struct workload *w);
/* A request has ended: its user may ask again. Later than record->end_ps. Returns whether that was
 * the end of its conversation: no more requests have its class and session. */
bool workload_complete(struct workload *w, const struct request_record *record);

/* The horizon and start in force (a trace may have supplied them). */
int64_t workload_horizon(const struct workload *w);
int64_t workload_start(const struct workload *w);
/* λ(t): expected arrivals per second of one class at t. For a trace: arrivals in t's hour / 3,600.
 * With sessions: the rate of their starts times the mean turns, as if all turns came at once. */
double workload_rate(const struct workload *w, size_t class_index, int64_t time_ps);
/* Expected number of arrivals of one class in [from, to); exact count for a trace; with sessions as
 * for the rate. */
double workload_expected(const struct workload *w, size_t class_index, int64_t from_ps,
                         int64_t to_ps);
/* Mean prompt and output tokens per request of one class (after rounding and clipping; exact for a
 * trace); shared prompts and the history of sessions count into the prompt. */
double workload_mean_prompt(const struct workload *w, size_t class_index);
double workload_mean_output(const struct workload *w, size_t class_index);
/* What has become of a class's sessions so far, zeros without; and of those of all classes. */
struct sessions_counts workload_sessions(const struct workload *w, size_t class_index);
struct sessions_counts workload_sessions_all(const struct workload *w);
/* Tokens that one of the hashes of this class's requests stands for; 0: its trace has none, or it
 * is no trace. Whether requests of this class can share contents with others at all. */
uint32_t workload_hash_block(const struct workload *w, size_t class_index);
bool workload_has_contents(const struct workload *w, size_t class_index);
/* A key that differs between seeds and replications, for names of contents. */
uint64_t workload_content_key(const struct workload *w);
/* Rows that on_bad_row: skip left out, all traces. */
uint64_t workload_skipped_rows(const struct workload *w);
/* Calls that traces record as failed: left out, never run. */
uint64_t workload_failed_calls(const struct workload *w);
/* Requests of traces at or after the horizon: not played. */
uint64_t workload_late_requests(const struct workload *w);
/* The first stamp of a class's trace in Unix seconds: it is played at the start, whatever that is.
 * False: no trace, or one whose stamps are no dates. */
bool workload_trace_start(const struct workload *w, size_t class_index, int64_t *unix_s);

#endif
