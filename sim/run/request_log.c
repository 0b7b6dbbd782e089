#include "sim/run/request_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

void request_log_init(struct request_log *log,
                      void (*row)(void *self, const struct request_record *record), void *row_self)
{
    *log = (struct request_log){.row = row, .row_self = row_self, .capacity = 1024};
    log->ring = memory_alloc(log->capacity * sizeof *log->ring);
    log->ended = memory_zero(log->capacity, sizeof *log->ended);
}

void request_log_free(struct request_log *log)
{
    free(log->ring);
    free(log->ended);
    *log = (struct request_log){0};
}

static void extend(struct request_log *log, uint64_t id)
{
    uint64_t capacity = log->capacity;
    while (id - log->next >= capacity) {
        capacity *= 2;
    }
    struct request_record *ring = memory_alloc(capacity * sizeof *ring);
    bool *ended = memory_zero(capacity, sizeof *ended);
    for (uint64_t i = log->next; i < log->next + log->capacity; i++) {
        ended[i & (capacity - 1)] = log->ended[i & (log->capacity - 1)];
        ring[i & (capacity - 1)] = log->ring[i & (log->capacity - 1)];
    }
    request_log_free(&(struct request_log){.ring = log->ring, .ended = log->ended});
    log->ring = ring;
    log->ended = ended;
    log->capacity = capacity;
}

static void take(void *self, const struct obs *obs)
{
    struct request_log *log = self;
    if (obs->kind != OBS_END) {
        return;
    }
    uint64_t id = obs->u.record->request.id;
    check(id >= log->next);
    if (id - log->next >= log->capacity) {
        extend(log, id);
    }
    log->ring[id & (log->capacity - 1)] = *obs->u.record;
    log->ended[id & (log->capacity - 1)] = true;
    for (uint64_t slot; log->ended[slot = log->next & (log->capacity - 1)]; log->next++) {
        log->ended[slot] = false;
        log->row(log->row_self, &log->ring[slot]);
    }
}

struct obs_sink request_log_sink(struct request_log *log)
{
    return (struct obs_sink){.take = take, .self = log, .kinds = 1 << OBS_END};
}

void request_log_csv_header(FILE *out)
{
    fputs("id,class,session,turn,arrival_s,admitted_s,first_token_s,end_s,prompt_tokens,"
          "output_tokens,cached_tokens,recomputed_tokens,preemptions,pool,replica,outcome\n",
          out);
}

void request_log_csv_row(FILE *out, const struct request_record *record, const char *class_name,
                         const char *pool_name)
{
    const struct request *q = &record->request;
    char arrival[TIME_TEXT_MAX], admitted[TIME_TEXT_MAX], first[TIME_TEXT_MAX], end[TIME_TEXT_MAX];
    fprintf(out, "%" PRIu64 ",%s,", q->id, class_name);
    if (q->session >= 0) {
        fprintf(out, "%" PRId64 ",%" PRIu32 ",", q->session, q->turn);
    } else {
        fputs(",,", out);
    }
    fprintf(out, "%s,%s,%s,%s,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,",
            time_text(q->arrival_ps, arrival), time_text(record->admitted_ps, admitted),
            time_text(record->first_token_ps, first), time_text(record->end_ps, end),
            q->prompt_tokens, q->output_tokens, record->cached_tokens, record->recomputed_tokens,
            record->preemptions, pool_name);
    if (record->replica != UINT32_MAX) {
        fprintf(out, "%" PRIu32, record->replica);
    }
    fprintf(out, ",%s\n", outcome_names[record->outcome]);
}
