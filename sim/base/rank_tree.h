/* A winner tree over a fixed number of slots like that of tournament.h, for keys that leave room
 * for the slot beside them in one word: the smallest key wins, ties go to the lower slot. Half the
 * work per level; for what happens several times per request. */
#ifndef FLEETSIM_SIM_BASE_RANK_TREE_H
#define FLEETSIM_SIM_BASE_RANK_TREE_H

#include <stdint.h>

#define RANK_TREE_SLOTS_MAX (UINT32_C(1) << 30)

/* A complete binary tree in heap order: node 1 is the champion, node i has the children 2i and
 * 2i + 1, slot s is the leaf slots + s. A node is its winner: the key above, the slot below. */
struct rank_tree {
    uint32_t slots;     /* ≥ 1 */
    uint32_t slot_bits; /* of a node that hold the slot; the others hold the key */
    uint64_t *nodes;    /* owned; [2 · slots] */
};

/* All slots idle; 1 ≤ slots ≤ RANK_TREE_SLOTS_MAX. */
void rank_tree_init(struct rank_tree *t, uint32_t slots);
void rank_tree_free(struct rank_tree *t);

/* The key of a slot that does not take part; every other key is below it. */
static inline uint64_t rank_tree_idle(const struct rank_tree *t)
{
    return UINT64_MAX >> t->slot_bits;
}
static inline uint64_t rank_tree_key_at(const struct rank_tree *t, uint32_t slot)
{
    return t->nodes[t->slots + slot] >> t->slot_bits;
}
/* key ≤ rank_tree_idle. */
static inline void rank_tree_set(struct rank_tree *t, uint32_t slot, uint64_t key)
{
    uint64_t *nodes = t->nodes, node = (uint64_t)t->slots + slot;
    uint64_t winner = key << t->slot_bits | slot;
    nodes[node] = winner;
    /* A sibling on the way up holds the winner of its own subtree, so replaying one path is enough,
     * to the root without looking whether anything still changes: the outcome of a match is a coin
     * toss to the predictor, but selecting the smaller number takes no branch. (Stopping a falling
     * key where it loses saves 1 % of a run's instructions and costs 3 % of its time.) */
    while (node > 1) {
        uint64_t rival = nodes[node ^ 1];
        winner = rival < winner ? rival : winner;
        node >>= 1;
        nodes[node] = winner;
    }
}
static inline uint32_t rank_tree_winner(const struct rank_tree *t)
{
    return (uint32_t)(t->nodes[1] & ((UINT64_C(1) << t->slot_bits) - 1));
}
static inline uint64_t rank_tree_key(const struct rank_tree *t)
{
    return t->nodes[1] >> t->slot_bits;
}

#endif
