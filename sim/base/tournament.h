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
 * 2i + 1, slot s is the leaf slots + s. A node holds its winner: the key, and whose it is. */
struct tournament {
    uint32_t slots;    /* ≥ 1 */
    uint64_t *keys;    /* owned; [2 · slots] */
    uint32_t *winners; /* owned; [2 · slots] */
};

/* All slots idle. */
void tournament_init(struct tournament *t, uint32_t slots);
void tournament_free(struct tournament *t);
/* More slots, the new ones idle; keeps the old keys. Allocates. */
void tournament_resize(struct tournament *t, uint32_t slots);

/* Key and slot as one number: one comparison decides a match, ties included. */
static inline uint128 tournament_rank(uint64_t key, uint32_t slot)
{
    return (uint128)key << 64 | slot;
}

static inline void tournament_set(struct tournament *t, uint32_t slot, uint64_t key)
{
    uint64_t *keys = t->keys, node = (uint64_t)t->slots + slot;
    uint32_t *winners = t->winners;
    uint128 winner = tournament_rank(key, slot);
    keys[node] = key;
    /* A sibling on the way up holds the winner of its own subtree, so replaying one path is enough,
     * to the root without looking whether anything still changes: the outcome of a match is a coin
     * toss to the predictor, but selecting the smaller number takes no branch. (Stopping a falling
     * key where it loses saves 1 % of a run's instructions and costs 3 % of its time.) */
    while (node > 1) {
        uint128 rival = tournament_rank(keys[node ^ 1], winners[node ^ 1]);
        winner = rival < winner ? rival : winner;
        node >>= 1;
        keys[node] = (uint64_t)(winner >> 64);
        winners[node] = (uint32_t)winner;
    }
}
static inline uint32_t tournament_winner(const struct tournament *t)
{
    return t->winners[1];
}
static inline uint64_t tournament_key(const struct tournament *t)
{
    return t->keys[1];
}

#endif
