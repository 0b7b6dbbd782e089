/* fleetsim cache TRACE: how much a prefix cache would save, at several capacities, before any fleet
 * is drawn. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/field.h"
#include "sim/cli/command.h"
#include "sim/cli/json_out.h"
#include "sim/cli/setup.h"
#include "sim/cli/text.h"
#include "sim/workload/prefix_study.h"
#include "sim/workload/trace_reader.h"

struct cache_values {
    struct options_list capacities;
    const char *block_size;
    bool json;
};

static const struct options_spec cache_specs[] = {
    {"capacity", 0, OPTIONS_LIST, offsetof(struct cache_values, capacities), "TOKENS",
     "a capacity to ask about, such as 500k or 8M; may be given again"},
    {"block-size", 0, OPTIONS_TEXT, offsetof(struct cache_values, block_size), "TOKENS",
     "tokens that one hash_id stands for; 512 for Mooncake's traces"},
    {"json", 0, OPTIONS_FLAG, offsetof(struct cache_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

enum { CAPACITIES_MAX = 64, CAPACITIES_DEFAULT = 8 };

struct cache_study {
    const char *trace;
    int64_t block_size;
    uint64_t requests, without_ids;
    uint64_t prompt_tokens, output_tokens, full_blocks;
    struct prefix_study *prefixes;       /* owned */
    uint64_t capacities[CAPACITIES_MAX]; /* blocks, rising */
    size_t capacity_count;
};

/* A whole number of tokens, as any option or key takes it. */
static bool tokens_read(const char *text, const char *option, double max, int64_t *tokens,
                        struct arena *arena, struct errors *errors)
{
    const struct field field = {
        .name = option, .kind = FIELD_INT, .unit = UNIT_TOKENS, .min = 1, .max = max};
    char why[FIELD_WHY_MAX];
    if (field_parse(&field, text, tokens, arena, why, sizeof why))
        return true;
    errors_add(errors, SEVERITY_ERROR, NULL, "--%s: %s", option, why);
    return false;
}

static bool study_read(struct cache_study *study, struct errors *errors)
{
    struct trace_reader_options options = {.hash_block_size = study->block_size};
    struct trace_reader *reader = trace_reader_open(study->trace, &options, errors);
    if (!reader)
        return false;
    study->block_size = trace_reader_hash_block_size(reader);
    if (study->block_size == 0) {
        struct source_pos pos = {.file = study->trace};
        errors_add(errors, SEVERITY_ERROR, &pos,
                   "the trace has no hash_ids: nothing says which prompts share a prefix");
        trace_reader_close(reader);
        return false;
    }
    study->prefixes = prefix_study_create(study->block_size);
    struct trace_row row;
    enum trace_status status;
    while ((status = trace_reader_next(reader, &row)) == TRACE_ROW) {
        study->requests++;
        study->without_ids += row.hash_count == 0 && row.prompt_tokens >= study->block_size;
        study->prompt_tokens += row.prompt_tokens;
        study->output_tokens += row.output_tokens;
        study->full_blocks += row.prompt_tokens / (uint64_t)study->block_size;
        prefix_study_add(study->prefixes, row.hash_ids, row.hash_count, row.prompt_tokens);
    }
    bool ok = status == TRACE_END && trace_reader_bad_rows(reader) == 0;
    trace_reader_close(reader);
    return ok;
}

static int capacity_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Those asked for, in whole blocks; else halves of what would never evict. */
static bool capacities_make(struct cache_study *study, const struct options_list *asked,
                            struct arena *arena, struct errors *errors)
{
    if (asked->count > CAPACITIES_MAX) {
        errors_add(errors, SEVERITY_ERROR, NULL, "more than %d capacities", CAPACITIES_MAX);
        return false;
    }
    bool ok = true;
    for (size_t i = 0; i < asked->count; i++) {
        int64_t tokens = 0;
        ok = tokens_read(asked->items[i], "capacity", 1e15, &tokens, arena, errors) && ok;
        study->capacities[i] = (uint64_t)(tokens / study->block_size);
    }
    study->capacity_count = asked->count;
    uint64_t all = prefix_study_blocks(study->prefixes);
    for (int halving = CAPACITIES_DEFAULT - 1; asked->count == 0 && halving >= 0; halving--)
        if (all >> halving > 0)
            study->capacities[study->capacity_count++] = all >> halving;
    qsort(study->capacities, study->capacity_count, sizeof *study->capacities, capacity_compare);
    return ok;
}

static double share_of(const struct cache_study *study, uint64_t hits)
{
    double tokens = (double)(hits * (uint64_t)study->block_size);
    return study->prompt_tokens ? tokens / (double)study->prompt_tokens : NAN;
}

static void row_fill(struct text *row, const struct cache_study *study, uint64_t capacity)
{
    uint64_t hits = prefix_study_hits(study->prefixes, capacity);
    uint64_t size = (uint64_t)study->block_size;
    if (capacity == UINT64_MAX) {
        snprintf(row[0].s, sizeof row[0].s, "unlimited");
        row[1] = text_count(prefix_study_blocks(study->prefixes));
    } else {
        row[0] = text_count(capacity * size);
        row[1] = text_count(capacity);
    }
    row[2] = text_count(hits);
    row[3] = text_count(hits * size);
    row[4] = text_percent(share_of(study, hits), 2);
}

static void study_print(const struct cache_study *study)
{
    printf("%s: %s requests, %s prompt tokens in %s full blocks of %" PRId64
           ", %s of them different\n\n",
           study->trace, text_count(study->requests).s, text_count(study->prompt_tokens).s,
           text_count(study->full_blocks).s, study->block_size,
           text_count(prefix_study_blocks(study->prefixes)).s);
    static const char *const head[] = {"capacity, tokens", "blocks", "block hits", "hit tokens",
                                       "% of prompts"};
    struct text_table table;
    text_table_init(&table, 5, 1, 0);
    struct text *row = text_table_row(&table, false);
    for (int i = 0; i < 5; i++)
        snprintf(row[i].s, sizeof row[i].s, "%s", head[i]);
    for (size_t i = 0; i < study->capacity_count; i++)
        row_fill(text_table_row(&table, i == 0), study, study->capacities[i]);
    row_fill(text_table_row(&table, true), study, UINT64_MAX);
    text_table_print(&table, stdout);
    text_table_free(&table);
    if (study->without_ids > 0)
        printf("%s requests have no hash_ids and count as misses.\n",
               text_count(study->without_ids).s);
    puts("One LRU cache, requests one at a time in file order; a partial block is never a hit, and "
         "at least\none token of a prompt is computed.");
}

static void capacity_json(struct json *json, const char *key, const struct cache_study *study,
                          uint64_t capacity)
{
    uint64_t hits = prefix_study_hits(study->prefixes, capacity);
    uint64_t size = (uint64_t)study->block_size;
    uint64_t blocks = capacity == UINT64_MAX ? prefix_study_blocks(study->prefixes) : capacity;
    json_out_object(json, key);
    json_out_count(json, "capacity_tokens", blocks * size);
    json_out_count(json, "capacity_blocks", blocks);
    json_out_count(json, "hit_blocks", hits);
    json_out_count(json, "hit_tokens", hits * size);
    json_out_real(json, "hit_rate", share_of(study, hits));
    json_out_object_end(json);
}

static void study_json(const struct cache_study *study)
{
    struct json json;
    json_out_init(&json, stdout);
    json_out_object(&json, NULL);
    json_out_text(&json, "trace", study->trace);
    json_out_count(&json, "block_size", (uint64_t)study->block_size);
    json_out_count(&json, "requests", study->requests);
    json_out_count(&json, "requests_without_hash_ids", study->without_ids);
    json_out_count(&json, "prompt_tokens", study->prompt_tokens);
    json_out_count(&json, "output_tokens", study->output_tokens);
    json_out_count(&json, "full_blocks", study->full_blocks);
    json_out_count(&json, "different_blocks", prefix_study_blocks(study->prefixes));
    capacity_json(&json, "unlimited", study, UINT64_MAX);
    json_out_list(&json, "capacities");
    for (size_t i = 0; i < study->capacity_count; i++)
        capacity_json(&json, NULL, study, study->capacities[i]);
    json_out_list_end(&json);
    json_out_object_end(&json);
}

static int cache_run(const void *values_, const struct options_list *operands)
{
    const struct cache_values *values = values_;
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    struct cache_study study = {.trace = operands->items[0]};
    bool ok = !values->block_size || tokens_read(values->block_size, "block-size", 1048576,
                                                 &study.block_size, &arena, &errors);
    ok = ok && study_read(&study, &errors) &&
         capacities_make(&study, &values->capacities, &arena, &errors);
    if (ok && values->json)
        study_json(&study);
    else if (ok)
        study_print(&study);
    setup_errors_print(&errors);
    prefix_study_free(study.prefixes);
    errors_free(&errors);
    arena_free(&arena);
    return ok ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_cache_command = {
    .name = "cache",
    .summary = "what prefix caching would save on a trace, by capacity",
    .operands = "TRACE",
    .operands_min = 1,
    .operands_max = 1,
    .options = cache_specs,
    .options_size = sizeof(struct cache_values),
    .text = "TRACE has hash_ids: one of Mooncake's, or one of ours with --block-size. All its "
            "prompts go\n"
            "through one LRU cache, one at a time in file order, at every capacity in one pass. "
            "Without\n"
            "--capacity: halves of what would never evict.\n",
    .example = "fleetsim cache conversation_trace.jsonl.gz\n"
               "fleetsim cache trace.csv --block-size 16 --capacity 500k --capacity 8M --json\n",
    .run = cache_run,
};
