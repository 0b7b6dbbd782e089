/* A request as the workload makes it, and the record of what became of it. */
#ifndef FLEETSIM_SIM_BASE_REQUEST_H
#define FLEETSIM_SIM_BASE_REQUEST_H

#include <stdint.h>

#include "sim/base/time.h"
#include "sim/base/token_hashes.h"

/* What its tokens are matters to prefix caches only. The first shared_tokens of the prompt are
 * those of a prompt that many requests share. Behind them `hashes` name the tokens as far as they
 * go (prompt, then outputs; with hashes nothing is shared), or else all tokens, outputs included,
 * are those of a stream that other requests may continue: a conversation. What neither names is
 * like nothing else. */
struct request {
    uint64_t id;        /* 0, 1, 2 … in order of arrival (ties: class, then number in class) */
    int64_t arrival_ps; /* since the scenario's start */
    uint32_t prompt_tokens; /* ≥ 1 */
    uint32_t output_tokens; /* ≥ 0; 0: completes at the end of its prefill, without a first token */
    uint32_t class_index;   /* index of its entry in `workload:` */
    uint32_t turn;          /* within its session, from 0 */
    int32_t priority;       /* smaller goes first, where the engine's scheduling_policy says so */
    int64_t session;        /* -1: none */
    uint64_t stream;        /* of the tokens behind the shared ones; 0: like nobody else's */
    uint32_t shared_prompt;      /* which prompt is shared, if shared_tokens > 0 */
    uint32_t shared_tokens;      /* ≤ prompt_tokens */
    struct token_hashes *hashes; /* NULL: none. Owned by whoever holds the request; the fleet gives
                                    them back when the request has ended */
};

enum outcome {
    OUTCOME_COMPLETED,
    OUTCOME_REFUSED,    /* its pool's queue was full, or no pool could take it */
    OUTCOME_UNSERVABLE, /* could never fit: KV, or max_model_len */
    OUTCOME_CANCELLED,  /* the client left */
    OUTCOME_IN_FLIGHT,  /* unfinished when the run was cut (drain: false) */
    OUTCOME_COUNT
};

/* Names as printed: "completed", "refused", … */
extern const char *const outcome_names[OUTCOME_COUNT];

/* A request's whole story, handed out once, at its end. Times are TIME_NONE where undefined. */
struct request_record {
    struct request request;
    int64_t admitted_ps;      /* start of the first step that computed any of it */
    int64_t first_token_ps;   /* end of the step that emitted output token 1 */
    int64_t end_ps;           /* last token, refusal or cancellation; the cut for IN_FLIGHT */
    uint32_t emitted_tokens;  /* output tokens emitted; = output_tokens when completed */
    uint32_t cached_tokens;   /* prompt tokens found in the prefix cache that it had never stored
                                 before: at first admission, or after a preemption */
    uint32_t computed_tokens; /* prompt tokens computed, first time only: cached + computed = prompt
                                 once prefilled */
    uint32_t recomputed_tokens; /* tokens computed again after preemptions (prompt and outputs) */
    uint32_t preemptions;
    uint32_t pool;    /* index in fleet.pools; UINT32_MAX when none was chosen */
    uint32_t replica; /* launch number in its pool, from 0; UINT32_MAX when none */
    enum outcome outcome;
};

#endif
