#include "sim/engine/finish.h"

#include "sim/base/check.h"

static void sift_up(struct finish *heap, uint32_t i, struct finish entry)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (heap[parent].iteration <= entry.iteration) {
            break;
        }
        heap[i] = heap[parent];
        i = parent;
    }
    heap[i] = entry;
}

static void sift_down(struct finish *heap, uint32_t count, uint32_t i, struct finish entry)
{
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && heap[child + 1].iteration < heap[child].iteration) {
            child++;
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
    if (i > 0 && last.iteration < heap[(i - 1) / 2].iteration) {
        sift_up(heap, i, last);
    } else {
        sift_down(heap, count - 1, i, last);
    }
}
