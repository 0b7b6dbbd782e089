#include "sim/fleet/prefix_path.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/engine/prefix_chain.h"

void prefix_path_free(struct prefix_path *path)
{
    free(path->steps);
}

void prefix_path_fill(struct prefix_path *path, const struct request *request, uint32_t block_size)
{
    /* At least one token is computed. */
    uint32_t limit = (request->prompt_tokens - 1) / block_size;
    uint32_t common = prefix_chain_common(request, block_size);
    struct prefix_chain chain;
    struct prefix_part part;
    uint32_t blocks;
    prefix_chain_begin(&chain, request, block_size);
    path->count = 0;
    while (prefix_chain_next(&chain, limit < common ? limit : common, &part, &blocks)) {
        if (path->count == path->capacity) {
            path->capacity = path->capacity == 0 ? 16 : 2 * path->capacity;
            path->steps = memory_grow(path->steps, path->capacity * sizeof *path->steps);
        }
        path->steps[path->count++] =
            (struct prefix_step){.node = chain.key, .before = part.first, .blocks = blocks};
    }
}

static bool anyone_holds(const struct prefix_index *index, uint64_t node)
{
    size_t count;
    const struct prefix_holder *held = prefix_index_holders(index, node, &count);
    for (size_t i = 0; i < count; i++) {
        if (prefix_index_holds(index, &held[i])) {
            return true;
        }
    }
    return false;
}

size_t prefix_path_known(const struct prefix_path *path, const struct prefix_index *index)
{
    size_t known = 0, above = path->count;
    while (known < above) {
        size_t middle = known + (above - known) / 2;
        if (anyone_holds(index, path->steps[middle].node)) {
            known = middle + 1;
        } else {
            above = middle;
        }
    }
    return known;
}
