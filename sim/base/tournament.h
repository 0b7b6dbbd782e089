/* A winner tree over a fixed number of slots, each with one 64-bit key: the smallest key wins, ties
 * go to the lower slot. One live key per slot makes changing a key O(log slots) without searching.
 * Used for the step events (one per replica) and by routers. */
#ifndef FLEETSIM_SIM_BASE_TOURNAMENT_H
#define FLEETSIM_SIM_BASE_TOURNAMENT_H

#include <stdint.h>

/* The key of a slot that does not take part; every other key is below it. */
#define TOURNAMENT_IDLE ((uint64_t)INT64_MAX)

struct tournament {
    uint32_t leaves;  /* a power of two ≥ 1 */
    uint32_t slots;   /* slots in use, ≤ leaves */
    uint64_t *keys;   /* owned; [leaves] */
    uint32_t *winner; /* owned; [2 · leaves], winner[1] is the champion, winner[leaves + i] = i */
};

/* All slots idle. */
void tournament_init(struct tournament *t, uint32_t slots);
void tournament_free(struct tournament *t);
/* More slots, the new ones idle; keeps the old keys. Allocates. */
void tournament_resize(struct tournament *t, uint32_t slots);

static inline void tournament_set(struct tournament *t, uint32_t slot, uint64_t key)
{
    t->keys[slot] = key;
    uint32_t node = t->leaves + slot;
    uint32_t champion = slot;
    /* A sibling on the way up holds the winner of its own subtree, so replaying one path is enough.
     * The lower slot wins ties: a left child (an even node's sibling is to its right) is always the
     * lower. Written without branches: the outcome of a match is a coin toss to the predictor. */
    while (node > 1) {
        uint32_t rival = t->winner[node ^ 1];
        uint64_t rival_key = t->keys[rival];
        /* All ones if the rival wins: selecting by mask, since compilers turn ?: into a branch. */
        uint64_t rival_wins = -(uint64_t)(rival_key < key + (node & 1));
        champion ^= (champion ^ rival) & (uint32_t)rival_wins;
        key ^= (key ^ rival_key) & rival_wins;
        node >>= 1;
        if (champion != slot && t->winner[node] == champion) {
            return; /* somebody else won here before as well: nothing changes further up */
        }
        t->winner[node] = champion;
    }
}
static inline uint32_t tournament_winner(const struct tournament *t)
{
    return t->winner[1];
}
static inline uint64_t tournament_key(const struct tournament *t)
{
    return t->keys[t->winner[1]];
}

#endif
