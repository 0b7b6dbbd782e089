/* A winner tree over a fixed number of slots, each with one 64-bit key: the smallest key wins, ties
 * go to the lower slot. One live key per slot makes changing a key O(log slots) without searching.
 * Used for the step events (one per replica) and by routers. */
#ifndef FLEETSIM_SIM_BASE_TOURNAMENT_H
#define FLEETSIM_SIM_BASE_TOURNAMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef unsigned __int128 uint128;

/* The key of a slot that does not take part; every other key is below it. */
#define TOURNAMENT_IDLE ((uint64_t)INT64_MAX)

/* A complete binary tree in heap order: node 1 is the champion, node i has the children 2i and
 * 2i + 1, slot s is the leaf slots + s. A node holds its winner's rank: the key above 64 bits of
 * slot, so that one comparison decides a match, ties included. */
struct tournament {
    uint32_t slots; /* ≥ 1 */
    uint128 *ranks; /* owned; [2 · slots] */
};

/* All slots idle. */
void tournament_init(struct tournament *t, uint32_t slots);
void tournament_free(struct tournament *t);
/* More slots, the new ones idle; keeps the old keys. Allocates. */
void tournament_resize(struct tournament *t, uint32_t slots);

static inline uint128 tournament_rank(uint64_t key, uint32_t slot)
{
    return (uint128)key << 64 | slot;
}

static inline void tournament_set(struct tournament *t, uint32_t slot, uint64_t key)
{
    uint128 *ranks = t->ranks, winner = tournament_rank(key, slot);
    uint64_t node = (uint64_t)t->slots + slot;
    ranks[node] = winner;
    /* A sibling on the way up holds the winner of its own subtree, so replaying one path is enough,
     * to the root without looking whether anything still changes: the outcome of a match is a coin
     * toss to the predictor, but selecting the smaller number takes no branch. */
    while (node > 1) {
        uint128 rival = ranks[node ^ 1];
        winner = rival < winner ? rival : winner;
        node >>= 1;
        ranks[node] = winner;
    }
}
static inline uint32_t tournament_winner(const struct tournament *t)
{
    return (uint32_t)t->ranks[1];
}
static inline uint64_t tournament_key(const struct tournament *t)
{
    return (uint64_t)(t->ranks[1] >> 64);
}

#endif
