#include "sim/engine/finish.h"

#include "sim/base/check.h"

/* Four children to a node: half the levels of two, and the least of four takes no branch. */
enum { CHILDREN = 4 };

static uint32_t parent_of(uint32_t i)
{
    return (i - 1) / CHILDREN;
}

static void sift_up(struct finish *heap, uint32_t i, struct finish entry)
{
    while (i > 0) {
        uint32_t parent = parent_of(i);
        if (heap[parent].iteration <= entry.iteration) {
            break;
        }
        heap[i] = heap[parent];
        i = parent;
    }
    heap[i] = entry;
}

static uint32_t lesser(const struct finish *heap, uint32_t a, uint32_t b)
{
    return heap[b].iteration < heap[a].iteration ? b : a;
}

static void sift_down(struct finish *heap, uint32_t count, uint32_t i, struct finish entry)
{
    for (;;) {
        uint32_t child = CHILDREN * i + 1;
        if (child + CHILDREN <= count) {
            child =
                lesser(heap, lesser(heap, child, child + 1), lesser(heap, child + 2, child + 3));
        } else if (child < count) {
            for (uint32_t other = child + 1; other < count; other++) {
                child = lesser(heap, child, other);
            }
        } else {
            break;
        }
        if (entry.iteration <= heap[child].iteration) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = entry;
}

void finish_push(struct finish *heap, uint32_t count, uint64_t iteration, uint32_t sequence)
{
    sift_up(heap, count, (struct finish){iteration, sequence});
}

uint32_t finish_pop(struct finish *heap, uint32_t count)
{
    uint32_t sequence = heap[0].sequence;
    if (count > 1) {
        sift_down(heap, count - 1, 0, heap[count - 1]);
    }
    return sequence;
}

void finish_remove(struct finish *heap, uint32_t count, uint32_t sequence)
{
    uint32_t i = 0;
    while (i < count && heap[i].sequence != sequence) {
        i++;
    }
    check(i < count);
    if (i == count - 1) {
        return;
    }
    struct finish last = heap[count - 1];
    if (i > 0 && last.iteration < heap[parent_of(i)].iteration) {
        sift_up(heap, i, last);
    } else {
        sift_down(heap, count - 1, i, last);
    }
}
