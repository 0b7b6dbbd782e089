#include "sim/engine/sequence.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

static void table_extend(struct sequence_table *table, uint32_t capacity)
{
    table->items = memory_grow(table->items, capacity * sizeof *table->items);
    table->free = memory_grow(table->free, capacity * sizeof *table->free);
    /* The lowest new index on top, so that a table in use stays dense. */
    for (uint32_t index = capacity; index > table->capacity; index--) {
        table->free[table->free_count++] = index - 1;
    }
    table->capacity = capacity;
}

void sequence_table_init(struct sequence_table *table, uint32_t capacity)
{
    *table = (struct sequence_table){0};
    table_extend(table, capacity < 16 ? 16 : capacity);
}

void sequence_table_free(struct sequence_table *table)
{
    free(table->items);
    free(table->free);
    *table = (struct sequence_table){0};
}

/* Of a request that has just come, but for the request. Copied as a whole: member by member takes
 * half as many instructions more. */
static const struct sequence sequence_new = {
    .record = {.admitted_ps = TIME_NONE,
               .first_token_ps = TIME_NONE,
               .end_ps = TIME_NONE,
               .pool = UINT32_MAX,
               .replica = UINT32_MAX,
               .outcome = OUTCOME_IN_FLIGHT},
    .last_token_ps = TIME_NONE,
    .previous = SEQUENCE_NONE,
    .next = SEQUENCE_NONE,
    .slot = SEQUENCE_NONE,
    .hold = {.node = PREFIX_CACHE_NONE}, /* prefix_cache_hold() */
    .phase = SEQUENCE_WAITING,
};

uint32_t sequence_acquire(struct sequence_table *table, const struct request *request)
{
    if (table->free_count == 0) {
        check_msg(table->capacity <= UINT32_C(1) << 30, "a billion requests are in flight");
        table_extend(table, 2 * table->capacity);
    }
    uint32_t index = table->free[--table->free_count];
    table->live++;
    struct sequence *s = &table->items[index];
    *s = sequence_new;
    s->record.request = *request;
    s->target = request->prompt_tokens;
    return index;
}

void sequence_release(struct sequence_table *table, uint32_t index)
{
    debug_check(table->live > 0);
    struct request *request = &table->items[index].record.request;
    if (request->hashes != NULL) {
        token_hashes_release(request->hashes);
        request->hashes = NULL;
    }
    table->live--;
    table->free[table->free_count++] = index;
}

void sequence_list_push_tail(struct sequence_table *table, struct sequence_list *list,
                             uint32_t index)
{
    struct sequence *s = &table->items[index];
    s->previous = list->tail;
    s->next = SEQUENCE_NONE;
    if (list->tail == SEQUENCE_NONE) {
        list->head = index;
    } else {
        table->items[list->tail].next = index;
    }
    list->tail = index;
    list->count++;
}

void sequence_list_push_head(struct sequence_table *table, struct sequence_list *list,
                             uint32_t index)
{
    struct sequence *s = &table->items[index];
    s->previous = SEQUENCE_NONE;
    s->next = list->head;
    if (list->head == SEQUENCE_NONE) {
        list->tail = index;
    } else {
        table->items[list->head].previous = index;
    }
    list->head = index;
    list->count++;
}

void sequence_list_remove(struct sequence_table *table, struct sequence_list *list, uint32_t index)
{
    struct sequence *s = &table->items[index];
    debug_check(list->count > 0);
    if (s->previous == SEQUENCE_NONE) {
        list->head = s->next;
    } else {
        table->items[s->previous].next = s->next;
    }
    if (s->next == SEQUENCE_NONE) {
        list->tail = s->previous;
    } else {
        table->items[s->next].previous = s->previous;
    }
    s->previous = s->next = SEQUENCE_NONE;
    list->count--;
}

bool sequence_precedes(const struct sequence *a, const struct sequence *b)
{
    const struct request *p = &a->record.request, *q = &b->record.request;
    if (p->priority != q->priority) {
        return p->priority < q->priority;
    }
    return p->id < q->id; /* ids follow arrivals */
}

void sequence_list_insert(struct sequence_table *table, struct sequence_list *list, uint32_t index,
                          bool by_priority)
{
    uint32_t before = list->tail;
    while (by_priority && before != SEQUENCE_NONE &&
           sequence_precedes(&table->items[index], &table->items[before])) {
        before = table->items[before].previous;
    }
    if (before == list->tail) {
        sequence_list_push_tail(table, list, index);
    } else if (before == SEQUENCE_NONE) {
        sequence_list_push_head(table, list, index);
    } else {
        uint32_t after = table->items[before].next;
        table->items[index].previous = before;
        table->items[index].next = after;
        table->items[before].next = index;
        table->items[after].previous = index;
        list->count++;
    }
}
