/* A winner tree over a fixed number of slots, each with one 64-bit key: the smallest key wins, ties
 * go to the lower slot. One live key per slot makes changing a key O(log slots) without searching.
 * Used for the step events (one per replica) and by routers. */
#ifndef FLEETSIM_SIM_BASE_TOURNAMENT_H
#define FLEETSIM_SIM_BASE_TOURNAMENT_H

#include <stdbool.h>
#include <stdint.h>

/* The key of a slot that does not take part; every other key is below it. */
#define TOURNAMENT_IDLE ((uint64_t)INT64_MAX)

/* A complete binary tree in heap order: node 1 is the champion, node i has the children 2i and
 * 2i + 1, slot s is the leaf slots + s. */
struct tournament {
    uint32_t slots;    /* ≥ 1 */
    uint64_t *keys;    /* owned; [2 · slots]: of each node's winner */
    uint64_t *winners; /* owned; [2 · slots]: its slot */
};

/* All slots idle. */
void tournament_init(struct tournament *t, uint32_t slots);
void tournament_free(struct tournament *t);
/* More slots, the new ones idle; keeps the old keys. Allocates. */
void tournament_resize(struct tournament *t, uint32_t slots);

/* A key and its slot as one number: the order of the matches, ties included. */
static inline unsigned __int128 tournament_rank(uint64_t key, uint64_t slot)
{
    return (unsigned __int128)key << 64 | slot;
}

/* A sibling on the way up holds the winner of its own subtree, so replaying one path is enough.
 * to_the_root: without looking whether anything still changes, which it does on the champion's
 * path. Written without branches: the outcome of a match is a coin toss to the predictor. */
static inline void tournament_replay(struct tournament *t, uint32_t slot, uint64_t key,
                                     bool to_the_root)
{
    uint64_t *keys = t->keys, *winners = t->winners, winner = slot;
    uint64_t node = (uint64_t)t->slots + slot;
    keys[node] = key;
    while (node > 1) {
        uint64_t rival_key = keys[node ^ 1], rival = winners[node ^ 1];
        /* All ones if the rival wins: selecting by mask, since compilers turn ?: into a branch. */
        uint64_t rival_wins =
            -(uint64_t)(tournament_rank(rival_key, rival) < tournament_rank(key, winner));
        key ^= (key ^ rival_key) & rival_wins;
        winner ^= (winner ^ rival) & rival_wins;
        node >>= 1;
        if (!to_the_root && keys[node] == key && winners[node] == winner) {
            return; /* nothing changes further up */
        }
        keys[node] = key;
        winners[node] = winner;
    }
}

static inline void tournament_set(struct tournament *t, uint32_t slot, uint64_t key)
{
    tournament_replay(t, slot, key, false);
}
static inline uint32_t tournament_winner(const struct tournament *t)
{
    return (uint32_t)t->winners[1];
}
/* A new key for the champion. */
static inline void tournament_replace(struct tournament *t, uint64_t key)
{
    tournament_replay(t, tournament_winner(t), key, true);
}
static inline uint64_t tournament_key(const struct tournament *t)
{
    return t->keys[1];
}

#endif
