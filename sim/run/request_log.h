/* Per-request rows in order of id: requests end in any order, so finished records wait in a ring
 * until every lower id has ended. Memory follows the spread between the oldest request in flight
 * and the newest that ended, and only runs that ask for rows pay it. */
#ifndef FLEETSIM_SIM_RUN_REQUEST_LOG_H
#define FLEETSIM_SIM_RUN_REQUEST_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/obs.h"
#include "sim/base/request.h"

struct request_log {
    void (*row)(void *self, const struct request_record *record); /* called in order of id */
    void *row_self;
    struct request_record *ring; /* owned; [capacity], a power of two; slot id & (capacity - 1) */
    bool *ended;                 /* owned; [capacity] */
    uint64_t next;               /* lowest id that has not ended */
    uint64_t capacity;
};

void request_log_init(struct request_log *log,
                      void (*row)(void *self, const struct request_record *record), void *row_self);
void request_log_free(struct request_log *log);
/* Takes OBS_END. */
struct obs_sink request_log_sink(struct request_log *log);

/* The CSV of --requests: id,class,session,turn,arrival_s,… (docs/output.md). */
void request_log_csv_header(FILE *out);
void request_log_csv_row(FILE *out, const struct request_record *record, const char *class_name,
                         const char *pool_name);

#endif
