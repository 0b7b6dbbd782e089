/* What arrives in a run, as sums and a digest: equal fingerprints mean the same requests at the
 * same instants with the same lengths. */
#ifndef FLEETSIM_SIM_CLI_FINGERPRINT_H
#define FLEETSIM_SIM_CLI_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/run/run.h"

struct fingerprint {
    uint64_t digest; /* over arrival, class, session, turn and lengths of every request, in order */
    uint64_t requests, prompt_tokens, output_tokens;
    bool live; /* a closed loop is among them: only the first request of each user is covered */
};

/* Draws the run's arrivals once more, apart from the run itself. False with errors when a trace
 * could not be read again. */
bool fingerprint_take(const struct run *run, struct fingerprint *print, struct errors *errors);

static inline bool fingerprint_equal(const struct fingerprint *a, const struct fingerprint *b)
{
    return a->digest == b->digest && a->requests == b->requests &&
           a->prompt_tokens == b->prompt_tokens && a->output_tokens == b->output_tokens;
}

#endif
