#include "models/moe_placement.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

const char *const moe_placement_names[MOE_PLACEMENT_COUNT + 1] = {"contiguous", "round_robin",
                                                                  "eplb", "eplb_global", NULL};

const char *moe_placement_refuse(const struct moe_placement_shape *s)
{
    if ((s->experts + s->redundant) % s->ranks != 0) {
        return "the slots do not divide over the GPUs";
    }
    if (s->redundant > s->experts * (s->ranks - 1)) {
        return "two copies of one expert on the same GPU bring no gain";
    }
    return NULL;
}

void moe_placement_init(struct moe_placement *p, const struct moe_placement_shape *s)
{
    check(moe_placement_refuse(s) == NULL);
    p->experts = s->experts;
    p->slots = s->experts + s->redundant;
    p->ranks = s->ranks;
    p->expert = memory_zero(p->slots, sizeof *p->expert);
    p->copies = memory_zero(p->experts, sizeof *p->copies);
}

void moe_placement_free(struct moe_placement *p)
{
    free(p->expert);
    free(p->copies);
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Copies being packed onto GPUs first … first + count − 1 of a placement. */
struct packing {
    struct moe_placement *placement;
    size_t first, count, each; /* each: slots of a GPU */
    size_t *used;              /* [count] */
    double *load;              /* [count] */
};

static int32_t *slots_of(const struct packing *p, size_t gpu)
{
    return p->placement->expert + (p->first + gpu) * p->each;
}

static bool holds(const struct packing *p, size_t gpu, int32_t expert)
{
    const int32_t *slots = slots_of(p, gpu);
    for (size_t i = 0; i < p->used[gpu]; i++) {
        if (slots[i] == expert) {
            return true;
        }
    }
    return false;
}

static void put(struct packing *p, size_t gpu, int32_t expert, double load)
{
    slots_of(p, gpu)[p->used[gpu]++] = expert;
    p->load[gpu] += load;
}

/* Every GPU with room has a copy already: one of the others gives up an expert that a GPU with room
 * lacks. weight: of a copy of each expert. */
static void put_by_exchange(struct packing *p, size_t roomy, int32_t expert, const double *weight)
{
    for (size_t gpu = 0; gpu < p->count; gpu++) {
        int32_t *slots = slots_of(p, gpu);
        for (size_t i = p->used[gpu]; !holds(p, gpu, expert) && i-- > 0;) {
            if (!holds(p, roomy, slots[i])) {
                put(p, roomy, slots[i], weight[slots[i]]);
                p->load[gpu] += weight[expert] - weight[slots[i]];
                slots[i] = expert;
                return;
            }
        }
    }
    check_msg(false, "no GPU takes another copy of expert %d", (int)expert);
}

/* One copy onto the least loaded GPU that has room and no copy of it; ties to the first. */
static void pack(struct packing *p, int32_t expert, const double *weight)
{
    size_t best = SIZE_MAX, roomy = SIZE_MAX;
    for (size_t gpu = 0; gpu < p->count; gpu++) {
        if (p->used[gpu] == p->each) {
            continue;
        }
        roomy = roomy == SIZE_MAX ? gpu : roomy;
        if ((best == SIZE_MAX || p->load[gpu] < p->load[best]) && !holds(p, gpu, expert)) {
            best = gpu;
        }
    }
    check(roomy != SIZE_MAX);
    if (best != SIZE_MAX) {
        put(p, best, expert, weight[expert]);
    } else {
        put_by_exchange(p, roomy, expert, weight);
    }
}

/* ---- by order ------------------------------------------------------------------------------- */

static void fill_contiguous(struct moe_placement *p)
{
    for (size_t s = 0; s < p->slots; s++) {
        p->expert[s] = (int32_t)(s % p->experts);
    }
}

/* Slots are handed out over the GPUs in turn; a GPU that has the expert is passed over. */
static void fill_round_robin(struct moe_placement *p)
{
    struct packing k = {.placement = p, .count = p->ranks, .each = p->slots / p->ranks};
    double *weight = memory_zero(p->experts + p->ranks, sizeof *weight);
    k.load = weight + p->experts;
    k.used = memory_zero(p->ranks, sizeof *k.used);
    size_t next = 0;
    for (size_t s = 0; s < p->slots; s++) {
        int32_t expert = (int32_t)(s % p->experts);
        size_t tries = 0;
        while (tries < k.count && (k.used[next] == k.each || holds(&k, next, expert))) {
            next = (next + 1) % k.count;
            tries++;
        }
        if (tries < k.count) {
            put(&k, next, expert, 0);
            next = (next + 1) % k.count;
        } else {
            pack(&k, expert, weight);
        }
    }
    free(k.used);
    free(weight);
}

/* ---- by load -------------------------------------------------------------------------------- */

struct ranked {
    double weight;
    int32_t index;
};

static int by_weight(const void *a_, const void *b_)
{
    const struct ranked *a = a_, *b = b_;
    if (a->weight != b->weight) {
        return a->weight < b->weight ? 1 : -1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* Step 1 for `count` experts: `extra` more copies, one by one to the most loaded per copy. */
static void replicate(const int32_t *experts, size_t count, size_t extra, size_t gpus,
                      const double *load, int32_t *copies)
{
    for (size_t i = 0; i < count; i++) {
        copies[experts[i]] = 1;
    }
    for (size_t n = 0; n < extra; n++) {
        int32_t best = -1;
        for (size_t i = 0; i < count; i++) {
            int32_t e = experts[i];
            bool more = best < 0 || load[e] * (double)copies[best] > load[best] * (double)copies[e];
            if ((size_t)copies[e] < gpus && more) {
                best = e;
            }
        }
        check(best >= 0);
        copies[best]++;
    }
}

/* Steps 1 and 2 for these experts on GPUs first … first + gpus − 1. */
static void balance(struct moe_placement *p, const int32_t *experts, size_t count, size_t first,
                    size_t gpus, const double *load)
{
    struct packing k = {.placement = p, .first = first, .count = gpus, .each = p->slots / p->ranks};
    size_t slots = k.each * gpus, n = 0;
    replicate(experts, count, slots - count, gpus, load, p->copies);
    struct ranked *order = memory_alloc(slots * sizeof *order);
    double *weight = memory_zero(p->experts + gpus, sizeof *weight);
    k.load = weight + p->experts;
    k.used = memory_zero(gpus, sizeof *k.used);
    for (size_t i = 0; i < count; i++) {
        int32_t e = experts[i];
        weight[e] = load[e] / (double)p->copies[e];
        for (int32_t c = 0; c < p->copies[e]; c++) {
            order[n++] = (struct ranked){weight[e], e};
        }
    }
    check(n == slots);
    qsort(order, n, sizeof *order, by_weight);
    for (size_t i = 0; i < n; i++) {
        pack(&k, order[i].index, weight);
    }
    free(k.used);
    free(weight);
    free(order);
}

/* Expert groups to nodes, equal counts, least loaded first; then each node by itself. */
static void balance_by_node(struct moe_placement *p, const struct moe_placement_shape *s,
                            const double *load)
{
    size_t size = s->experts / s->groups, each = s->groups / s->nodes, gpus = s->ranks / s->nodes;
    struct ranked *order = memory_alloc(s->groups * sizeof *order);
    double *node_load = memory_zero(s->nodes, sizeof *node_load);
    size_t *node_groups = memory_zero(s->nodes, sizeof *node_groups);
    int32_t *experts = memory_alloc(s->experts * sizeof *experts); /* [nodes][each · size] */
    for (size_t g = 0; g < s->groups; g++) {
        order[g] = (struct ranked){0, (int32_t)g};
        for (size_t i = 0; i < size; i++) {
            order[g].weight += load[g * size + i];
        }
    }
    qsort(order, s->groups, sizeof *order, by_weight);
    for (size_t g = 0; g < s->groups; g++) {
        size_t best = SIZE_MAX;
        for (size_t n = 0; n < s->nodes; n++) {
            if (node_groups[n] < each && (best == SIZE_MAX || node_load[n] < node_load[best])) {
                best = n;
            }
        }
        int32_t *into = experts + (best * each + node_groups[best]) * size;
        for (size_t i = 0; i < size; i++) {
            into[i] = order[g].index * (int32_t)size + (int32_t)i;
        }
        node_groups[best]++;
        node_load[best] += order[g].weight;
    }
    for (size_t n = 0; n < s->nodes; n++) {
        balance(p, experts + n * each * size, each * size, n * gpus, gpus, load);
    }
    free(experts);
    free(node_groups);
    free(node_load);
    free(order);
}

static void balance_all(struct moe_placement *p, const double *load)
{
    int32_t *experts = memory_alloc(p->experts * sizeof *experts);
    for (size_t e = 0; e < p->experts; e++) {
        experts[e] = (int32_t)e;
    }
    balance(p, experts, p->experts, 0, p->ranks, load);
    free(experts);
}

/* Whether nodes can be filled one by one: whole groups and whole copies on each. */
static bool divides_by_node(const struct moe_placement_shape *s)
{
    return s->groups > 1 && s->groups % s->nodes == 0 && s->ranks % s->nodes == 0 &&
           s->redundant <= s->experts * (s->ranks / s->nodes - 1);
}

void moe_placement_fill(struct moe_placement *p, enum moe_placement_kind kind,
                        const struct moe_placement_shape *s, const double *load)
{
    check(p->experts == s->experts && p->ranks == s->ranks);
    memset(p->copies, 0, p->experts * sizeof *p->copies);
    if (kind == MOE_PLACEMENT_CONTIGUOUS) {
        fill_contiguous(p);
    } else if (kind == MOE_PLACEMENT_ROUND_ROBIN) {
        fill_round_robin(p);
    } else if (kind == MOE_PLACEMENT_EPLB && divides_by_node(s)) {
        balance_by_node(p, s, load);
    } else {
        balance_all(p, load);
    }
    memset(p->copies, 0, p->experts * sizeof *p->copies);
    for (size_t i = 0; i < p->slots; i++) {
        p->copies[p->expert[i]]++;
    }
}

void moe_placement_shares(const struct moe_placement *p, const double *expert_share,
                          double *slot_share)
{
    for (size_t s = 0; s < p->slots; s++) {
        slot_share[s] = expert_share[p->expert[s]] / (double)p->copies[p->expert[s]];
    }
}

struct moe_placement_moves moe_placement_moves(const struct moe_placement *from,
                                               const struct moe_placement *to)
{
    struct moe_placement_moves moves = {0, 0};
    size_t each = to->slots / to->ranks;
    for (size_t g = 0; g < to->ranks; g++) {
        size_t here = 0;
        for (size_t i = 0; i < each; i++) {
            bool had = false;
            for (size_t j = 0; j < each && !had; j++) {
                had = from->expert[g * each + j] == to->expert[g * each + i];
            }
            here += !had;
        }
        moves.most = here > moves.most ? here : moves.most;
        moves.all += here;
    }
    return moves;
}
