/* What a request of one class is drawn from: its lengths and the prompt it shares, as a pure
 * function of who asks (the number of the request in its class, or of its conversation) and of the
 * turn. */
#ifndef FLEETSIM_SIM_WORKLOAD_WORKLOAD_DRAW_H
#define FLEETSIM_SIM_WORKLOAD_WORKLOAD_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/request.h"
#include "sim/base/rng.h"
#include "sim/workload/lengths.h"

struct workload_draw {
    bool prompt_drawn, output_drawn; /* from a distribution, not from the trace */
    bool chance;                     /* some length is drawn that varies */
    struct lengths prompt, output;   /* owned */
    double correlation;
    uint64_t length_key;                 /* (entity, turn): both lengths */
    uint64_t session_key;                /* (entity, 0).b: which prompt is shared */
    uint32_t shared_first, shared_count; /* prompts [first, first + count) of all classes' … */
    uint32_t shared_tokens;              /* … and the tokens of each; 0: none is shared */
};

/* Sets the drawn ones of prompt_tokens and output_tokens: the new tokens alone. */
static inline void workload_draw_lengths(const struct workload_draw *draw, uint64_t entity,
                                         uint64_t turn, struct request *request)
{
    struct rng_pair bits = {0};
    if (draw->chance)
        bits = rng_draw(draw->length_key, entity, turn);
    if (draw->correlation != 0)
        bits.b = lengths_correlate(&draw->prompt, bits.a, &draw->output, bits.b, draw->correlation);
    if (draw->prompt_drawn && draw->output_drawn) {
        uint32_t tokens[2];
        lengths_draw_two(&draw->prompt, &draw->output, (uint64_t[]){bits.a, bits.b}, tokens);
        request->prompt_tokens = tokens[0];
        request->output_tokens = tokens[1];
    } else if (draw->prompt_drawn) {
        request->prompt_tokens = lengths_draw(&draw->prompt, bits.a);
    } else if (draw->output_drawn) {
        request->output_tokens = lengths_draw(&draw->output, bits.b);
    }
}

/* Puts the shared prompt, if the class has one, before the prompt_tokens that are set; a prompt
 * stays within LENGTHS_TOKENS_MAX. */
static inline void workload_draw_shared(const struct workload_draw *draw, uint64_t entity,
                                        struct request *request)
{
    if (draw->shared_tokens == 0)
        return;
    uint32_t index = 0;
    if (draw->shared_count > 1) {
        uint64_t bits = rng_draw(draw->session_key, entity, 0).b;
        index = (uint32_t)((unsigned __int128)bits * draw->shared_count >> 64);
    }
    request->shared_prompt = draw->shared_first + index;
    request->shared_tokens = draw->shared_tokens;
    uint32_t most = LENGTHS_TOKENS_MAX - draw->shared_tokens;
    uint32_t own = request->prompt_tokens < most ? request->prompt_tokens : most;
    request->prompt_tokens = draw->shared_tokens + own;
}

#endif
