/* fleetsim show FILE.h5 … */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/cli/command.h"
#include "sim/cli/headline.h"
#include "sim/cli/replicate.h"
#include "sim/cli/report.h"
#include "sim/cli/result.h"
#include "sim/cli/setup.h"

struct show_values {
    bool json;
};

static const struct options_spec show_specs[] = {
    {"json", 0, OPTIONS_FLAG, offsetof(struct show_values, json), NULL,
     "print one JSON object and nothing else"},
    {0},
};

/* ---- one file -----------------------------------------------------------------------------------
 */

static void made_json(struct json *json, const struct run_outcome *o)
{
    json_out_object(json, "made");
    json_out_bool(json, "complete", o->complete);
    json_out_text(json, "version", o->version);
    json_out_text(json, "git", o->git);
    json_out_text(json, "compiler", o->compiler);
    json_out_text(json, "flags", o->flags);
    json_out_int(json, "replication", o->replication);
    json_out_text(json, "start", text_stamp(o->start_unix_s).s);
    json_out_time(json, "horizon_s", o->horizon_ps);
    json_out_time(json, "warmup_s", o->warmup_ps);
    json_out_time(json, "until_s",
                  o->hour_count > 0 ? o->hours_all[o->hour_count - 1].end_ps : (int64_t)0);
    json_out_object_end(json);
}

static void batches_json(struct json *json, const char *key, const struct interval *i)
{
    json_out_object(json, key);
    json_out_real(json, "mid", i->mean);
    json_out_real(json, "low", i->mean - i->half);
    json_out_real(json, "high", i->mean + i->half);
    json_out_text(json, "method", "batches");
    json_out_object_end(json);
}

static void within_json(struct json *json, const struct run_outcome *o)
{
    struct headline_within within = headline_within_run(o);
    json_out_object(json, "intervals");
    batches_json(json, "in_flight", &within.in_flight);
    batches_json(json, "ttft_mean_s", &within.ttft_mean);
    json_out_text(json, "no_means_because", within.unless);
    for (size_t i = 0; i < HEADLINE_COUNT; i++) {
        const struct interval_range *range = headline_within_find(&within, &headline_table[i]);
        if (range)
            headline_json(json, &headline_table[i], range);
    }
    json_out_object_end(json);
}

static void one_json(const struct run_outcome *o, FILE *out)
{
    struct json json;
    json_out_init(&json, out);
    json_out_object(&json, NULL);
    if (o->complete) {
        result_members_json(&json, o);
        within_json(&json, o);
    } else {
        json_out_text(&json, "scenario", o->name);
        json_out_int(&json, "seed", o->seed);
        json_out_text(&json, "digest", NULL);
    }
    made_json(&json, o);
    json_out_object_end(&json);
}

static int show_one(const struct show_values *values, const char *path, struct errors *errors)
{
    struct run_outcome o;
    struct trace_read *file = run_outcome_read(path, &o, errors);
    if (!file)
        return COMMAND_BAD_INPUT;
    if (values->json) {
        one_json(&o, stdout);
    } else {
        report_print(&o, stdout);
        if (o.complete)
            report_within_print(&o, stdout);
    }
    bool ok = !o.complete || o.audit_ok;
    trace_read_close(file);
    return ok ? COMMAND_OK : COMMAND_FAILURE;
}

/* ---- several: replications of one scenario ------------------------------------------------------
 */

struct replications {
    struct options_list paths;
    double values[HEADLINE_COUNT][REPLICATIONS_MAX];
    const char *name, *scenario; /* of the first; arena */
    const char **digests;        /* arena; [paths.count] */
    bool audit_ok;
};

/* The scenario as applied but for its seed and replication: what must be the same in all. */
static const char *scenario_of(const struct run_outcome *o, struct arena *arena)
{
    char *kept = arena_alloc(arena, strlen(o->resolved) + 1), *to = kept;
    for (const char *line = o->resolved; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        length += line[length] == '\n';
        if (strncmp(line, "seed:", 5) != 0 && strncmp(line, "replication:", 12) != 0) {
            memcpy(to, line, length);
            to += length;
        }
        line += length;
    }
    *to = '\0';
    return kept;
}

static bool replication_take(struct replications *r, size_t k, const struct run_outcome *o,
                             struct arena *arena, struct errors *errors)
{
    const char *path = r->paths.items[k];
    if (!o->complete) {
        errors_add(errors, SEVERITY_ERROR, NULL, "%s is not complete", path);
        return false;
    }
    const char *scenario = scenario_of(o, arena);
    r->digests[k] = arena_copy(arena, o->digest);
    if (k == 0) {
        r->name = arena_copy(arena, o->name);
        r->scenario = scenario;
        r->audit_ok = true;
    } else if (strcmp(scenario, r->scenario) != 0) {
        errors_add(errors, SEVERITY_ERROR, NULL,
                   "%s is no replication of %s: they differ in more than seed and replication",
                   path, r->paths.items[0]);
        return false;
    }
    for (size_t i = 0; i < k; i++) {
        if (strcmp(r->digests[i], r->digests[k]) == 0) {
            errors_add(errors, SEVERITY_ERROR, NULL,
                       "%s and %s hold the same run: replications have another seed or replication",
                       r->paths.items[i], path);
            return false;
        }
    }
    for (size_t i = 0; i < HEADLINE_COUNT; i++)
        r->values[i][k] = headline_table[i].value(o->summaries);
    r->audit_ok &= o->audit_ok;
    return true;
}

static void replications_print(const struct replications *r, FILE *out)
{
    struct text_table table;
    fprintf(out, "%s: %zu replications\n\n", r->name, r->paths.count);
    text_table_init(&table, 3, 1, 2);
    struct text *head = text_table_row(&table, false);
    snprintf(head[2].s, sizeof head[2].s, "95 %% interval");
    for (size_t i = 0; i < HEADLINE_COUNT; i++) {
        struct interval_range range =
            headline_range(&headline_table[i], r->values[i], r->paths.count);
        struct text *row = text_table_row(&table, i == 0);
        snprintf(row[0].s, sizeof row[0].s, "%s", headline_table[i].name);
        snprintf(row[1].s, sizeof row[1].s, "%s", headline_table[i].unit);
        row[2] = headline_text(&headline_table[i], &range);
    }
    text_table_print(&table, out);
    text_table_free(&table);
    fputs(HEADLINE_NOTE, out);
    fprintf(out, "\naudit: %s\n", r->audit_ok ? "ok in all of them" : "FAILED");
}

static void replications_json(const struct replications *r, FILE *out)
{
    struct json json;
    json_out_init(&json, out);
    json_out_object(&json, NULL);
    json_out_text(&json, "scenario", r->name);
    json_out_count(&json, "replications", r->paths.count);
    json_out_bool(&json, "audit_ok", r->audit_ok);
    json_out_list(&json, "digests");
    for (size_t k = 0; k < r->paths.count; k++)
        json_out_text(&json, NULL, r->digests[k]);
    json_out_list_end(&json);
    json_out_object(&json, "intervals");
    for (size_t i = 0; i < HEADLINE_COUNT; i++) {
        struct interval_range range =
            headline_range(&headline_table[i], r->values[i], r->paths.count);
        headline_json(&json, &headline_table[i], &range);
    }
    json_out_object_end(&json);
    json_out_object_end(&json);
}

static int show_many(const struct show_values *values, const struct options_list *paths,
                     struct arena *arena, struct errors *errors)
{
    struct replications *r = arena_alloc(arena, sizeof *r);
    bool ok = true;
    r->paths = *paths;
    r->digests = arena_alloc(arena, paths->count * sizeof *r->digests);
    for (size_t k = 0; ok && k < paths->count; k++) {
        struct run_outcome o;
        struct trace_read *file = run_outcome_read(paths->items[k], &o, errors);
        ok = file && replication_take(r, k, &o, arena, errors);
        trace_read_close(file);
    }
    if (!ok)
        return COMMAND_BAD_INPUT;
    (values->json ? replications_json : replications_print)(r, stdout);
    return r->audit_ok ? COMMAND_OK : COMMAND_FAILURE;
}

static int show_run(const void *values, const struct options_list *operands)
{
    struct arena arena;
    struct errors errors;
    arena_init(&arena);
    errors_init(&errors);
    int code = operands->count == 1 ? show_one(values, operands->items[0], &errors)
                                    : show_many(values, operands, &arena, &errors);
    setup_errors_print(&errors);
    errors_free(&errors);
    arena_free(&arena);
    return code;
}

const struct command cmd_show_command = {
    .name = "show",
    .summary = "print what a result file holds; of several, intervals over replications",
    .operands = "FILE.h5 …",
    .operands_min = 1,
    .operands_max = REPLICATIONS_MAX,
    .options = show_specs,
    .options_size = sizeof(struct show_values),
    .text = "The tables of `run`, from its file alone: by hour, the summary, the references, the\n"
            "audit, what made it, and what one run says of how sure its numbers are. FILE.h5.part\n"
            "of a run that was killed shows the hours it finished. Several files of one scenario\n"
            "that differ in seed or replication are replications: each headline number gets its\n"
            "95 % interval. The exit code is 1 when an audit failed, 2 when a file cannot be "
            "read.\n",
    .example = "fleetsim show chat-1m.h5\n"
               "fleetsim show rep-*.h5 --json\n",
    .run = show_run,
};
