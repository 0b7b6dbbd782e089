/* Conversations: each is a number of turns, every one of which carries along what was asked and
 * answered before and comes a think time after the answer before it. The class's arrivals are their
 * starts. All draws hang on (number of the conversation, turn), so no policy can change them; times
 * follow. Only conversations whose user is thinking take memory: one that waits for an answer is
 * wholly described by its request. */
#ifndef FLEETSIM_SIM_WORKLOAD_SESSIONS_H
#define FLEETSIM_SIM_WORKLOAD_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/request.h"
#include "sim/workload/site.h"
#include "sim/workload/workload_draw.h"

struct sessions_config {
    struct variant_value turns; /* type NULL: there are no conversations */
    struct variant_value think_time;
    int64_t max_history_tokens; /* FIELD_INT_UNSET: no limit */
    bool stationary_start;
};
extern const struct field sessions_fields[];

/* What became of a class's conversations. Those that started and ended in none of these ways are
 * under way. */
struct sessions_counts {
    uint64_t started;      /* those under way at the start included */
    uint64_t finished;     /* every turn was answered */
    uint64_t given_up;     /* a turn was refused, unservable or cancelled: no more turns */
    uint64_t past_horizon; /* the next turn would have come at or after the horizon */
    uint64_t cut;          /* waited for an answer when the run was cut */
};

struct sessions;

/* draw: borrowed for the life of the sessions. NULL after reporting. */
struct sessions *sessions_create(const struct sessions_config *config,
                                 const struct workload_draw *draw, const struct site *site);
void sessions_free(struct sessions *sessions);
/* Once, before anything is asked. Conversations start at `rate` per second from from_ps on; with
 * stationary_start those are drawn that would be under way then if that had always been the rate
 * and answers took no time. False after reporting to errors: they are too many. */
bool sessions_start(struct sessions *sessions, double rate, int64_t from_ps, int64_t horizon_ps,
                    struct errors *errors);

/* When the next turn of a conversation under way comes; TIME_NEVER: none is known. */
int64_t sessions_peek(const struct sessions *sessions);
/* Fills that turn, and takes it; class and priority are the caller's. */
void sessions_next(struct sessions *sessions, struct request *request);
/* Fills the first turn of a new conversation; arrival_ps is set. */
void sessions_begin(struct sessions *sessions, struct request *request);
/* A turn has ended: its user thinks, or (true) is done, or gives up: no more turns. */
bool sessions_complete(struct sessions *sessions, const struct request_record *record);

struct sessions_counts sessions_counts(const struct sessions *sessions);
/* Per conversation; and tokens of earlier turns that a turn carries along, averaged over turns:
 * exact, or with max_history_tokens the mean over the draws of the first conversations. Horizon and
 * given-up conversations are not looked at. */
double sessions_mean_turns(const struct sessions *sessions);
double sessions_mean_history(const struct sessions *sessions);
/* Mean turns of a config, for those who need no more; NaN when it is wrong or has none. */
double sessions_config_turns(const struct sessions_config *config);

#endif
