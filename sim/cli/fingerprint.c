#include "sim/cli/fingerprint.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/digest.h"

/* The scenario was found sound when the run was opened: no place in it is needed any more. */
static void nowhere(void *self, const char *path, struct source_pos *pos)
{
    (void)self;
    (void)path;
    *pos = (struct source_pos){0};
}

bool fingerprint_take(const struct run *run, struct fingerprint *print, struct errors *errors)
{
    const struct run_config *c = run_config(run);
    const struct traffic_config **classes = memory_zero(c->workload.count, sizeof *classes);
    for (size_t i = 0; i < c->workload.count; i++)
        classes[i] = &config_class(c, i)->traffic;
    struct workload_config config = {.classes = classes,
                                     .class_count = c->workload.count,
                                     .seed = (uint64_t)c->seed,
                                     .replication = (uint32_t)c->replication,
                                     .start_unix_s = run_start(run),
                                     .horizon_ps = run_horizon(run)};
    struct locator where = {.find = nowhere};
    struct workload *workload = workload_open(&config, &where, errors);
    enum workload_status status = workload ? WORKLOAD_OK : WORKLOAD_FAILED;
    struct digest digest;
    struct request request;
    digest_init(&digest);
    *print = (struct fingerprint){0};
    while (workload && (status = workload_next(workload, &request, errors)) == WORKLOAD_OK) {
        digest_event(&digest, request.class_index, request.arrival_ps,
                     (uint64_t)request.session ^ (uint64_t)request.turn << 48,
                     (uint64_t)request.prompt_tokens << 20 ^ request.output_tokens);
        digest_event(&digest, request.shared_prompt, request.shared_tokens, request.stream, 0);
        print->requests++;
        print->prompt_tokens += request.prompt_tokens;
        print->output_tokens += request.output_tokens;
    }
    print->digest = digest.state;
    print->live = workload && workload_is_live(workload);
    if (workload)
        workload_close(workload);
    free(classes);
    return status == WORKLOAD_END;
}
