/* The finish heap: a min-heap of decodes by the iteration count at which they emit their
 * last token. Count, not time: the order of finishing is known when a sequence begins to decode,
 * whatever the steps will take. Ties may come in any order: outcomes at one boundary are sorted by
 * request id afterwards. */
#ifndef FLEETSIM_SIM_ENGINE_FINISH_H
#define FLEETSIM_SIM_ENGINE_FINISH_H

#include <stdint.h>

/* A decode's entry: when it finishes, and its sequence. */
struct finish {
    uint64_t iteration;
    uint32_t sequence;
};

/* heap holds count entries and has room for one more. */
void finish_push(struct finish *heap, uint32_t count, uint64_t iteration, uint32_t sequence);
/* Takes the first of count ≥ 1 entries: its sequence. */
uint32_t finish_pop(struct finish *heap, uint32_t count);
/* Takes the entry of a sequence out of count entries; it must be there. O(count): only for
 * preemptions and cancels. */
void finish_remove(struct finish *heap, uint32_t count, uint32_t sequence);

#endif
