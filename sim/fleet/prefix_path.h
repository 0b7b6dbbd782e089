/* A request's way down the tree of prompts, and how far along it replicas go: what policies that
 * know prefix caches share. */
#ifndef FLEETSIM_SIM_FLEET_PREFIX_PATH_H
#define FLEETSIM_SIM_FLEET_PREFIX_PATH_H

#include "sim/base/request.h"
#include "sim/fleet/prefix_index.h"

struct prefix_step {
    uint64_t node;
    uint32_t before; /* blocks of the prompt in the nodes before it */
    uint32_t blocks; /* of the node that the prompt has */
};

struct prefix_path {
    struct prefix_step *steps; /* owned; scratch that grows to the longest path */
    size_t count, capacity;
};

void prefix_path_free(struct prefix_path *path);
/* The nodes that other requests could have left cached, from the root; blocks of block_size
 * tokens. */
void prefix_path_fill(struct prefix_path *path, const struct request *request, uint32_t block_size);
/* Steps that some replica has told to hold anything of, from the root. O(log steps) nodes are
 * looked at: whoever holds one holds all before it. */
size_t prefix_path_known(const struct prefix_path *path, const struct prefix_index *index);
/* Blocks of the prompt that a replica has which holds the first `held` ≥ 1 of a step's node: all
 * before it too. */
static inline uint64_t prefix_path_match(const struct prefix_step *step, uint32_t held)
{
    return (uint64_t)step->before + (held < step->blocks ? held : step->blocks);
}

#endif
