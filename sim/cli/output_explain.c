#include "sim/cli/output_explain.h"

#include <string.h>
#include <strings.h>

#include "sim/base/errors.h"
#include "sim/run/run_tables.h"

enum { NAMES_MAX = 1024 };

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The column of that name, or NULL. */
static const struct column *column_find(const struct trace_table *table, const char *name,
                                        size_t length)
{
    for (const struct column *c = table->columns; c->type != COLUMN_END; c++) {
        if (strlen(c->name) == length && memcmp(c->name, name, length) == 0)
            return c;
    }
    return NULL;
}

static bool same_meaning(const struct column *a, const struct column *b)
{
    return same_text(a->doc, b->doc) && same_text(a->unit, b->unit) &&
           same_text(a->long_name, b->long_name);
}

/* Whether a table before this one has the column, meaning the same. */
static bool told_before(size_t table, const struct column *column)
{
    for (size_t t = 0; t < table; t++) {
        const struct column *other =
            column_find(&run_tables[t], column->name, strlen(column->name));
        if (other && same_meaning(other, column))
            return true;
    }
    return false;
}

/* The groups in which the column means the same: "hourly, fleet, summary". */
static void groups_print(FILE *out, const struct column *column, const char *quote)
{
    size_t count = 0;
    for (size_t t = 0; t < RUN_TABLE_COUNT; t++) {
        const struct column *other =
            column_find(&run_tables[t], column->name, strlen(column->name));
        if (other && same_meaning(other, column))
            fprintf(out, "%s%s%s%s", count++ ? ", " : "", quote, run_tables[t].group, quote);
    }
}

/* Which values a mean, percentile or maximum is over: the meaning of NAME_count beside NAME_p99. */
static const char *population_of(const struct trace_table *table, const struct column *column)
{
    const char *end = strrchr(column->name, '_');
    static const char *const ends[] = {"_mean", "_p50", "_p90", "_p95", "_p99", "_max", NULL};
    for (size_t i = 0; end && ends[i]; i++) {
        if (strcmp(end, ends[i]) != 0)
            continue;
        char name[64];
        int length =
            snprintf(name, sizeof name, "%.*s_count", (int)(end - column->name), column->name);
        const struct column *count = column_find(table, name, (size_t)length);
        return count ? count->doc : NULL;
    }
    return NULL;
}

static const char *unit_of(const struct column *column)
{
    if (column->type == COLUMN_TEXT)
        return "text";
    return strcmp(column->unit, "1") == 0 ? "none (a count or a share)" : column->unit;
}

static void entry_print(FILE *out, const struct trace_table *table, const struct column *column)
{
    fprintf(out, "%s   (output: ", column->name);
    groups_print(out, column, "");
    fprintf(out, ")\n  %s\n  short    %s\n  unit     %s\n", column->doc, column->long_name,
            unit_of(column));
    const char *population = population_of(table, column);
    if (population)
        fprintf(out, "  over     %s\n", population);
}

bool output_explain_print(FILE *out, const char *key, bool spaced)
{
    const char *name = strpbrk(key, "./");
    size_t group = name ? (size_t)(name - key) : 0;
    name = name ? name + 1 : key;
    size_t found = 0;
    for (size_t t = 0; t < RUN_TABLE_COUNT; t++) {
        const struct trace_table *table = &run_tables[t];
        if (group && (strlen(table->group) != group || memcmp(table->group, key, group) != 0))
            continue;
        const struct column *column = column_find(table, name, strlen(name));
        if (!column || (!group && told_before(t, column)))
            continue;
        fputs(found++ || spaced ? "\n" : "", out);
        entry_print(out, table, column);
    }
    return found > 0;
}

const char *output_explain_nearest(const char *key)
{
    const char *names[NAMES_MAX + 1];
    size_t count = 0;
    for (size_t t = 0; t < RUN_TABLE_COUNT; t++) {
        for (const struct column *c = run_tables[t].columns; c->type != COLUMN_END; c++) {
            if (count < NAMES_MAX)
                names[count++] = c->name;
        }
    }
    names[count] = NULL;
    return errors_nearest(key, names);
}

/* ---- the glossary --------------------------------------------------------------------------- */

static const char *const glossary_intro =
    "# Glossary\n\n"
    "What every number means, by the names that the result file, CSV, JSON and the pages use: "
    "`fleetsim explain --glossary` prints this page, and `fleetsim explain ttft_p99` one entry. "
    "The rules that hold for all of them are in [the output reference](output.md).\n\n"
    "## Words\n\n"
    "| word | meaning |\n| --- | --- |\n"
    "| request | One prompt and its answer. It arrives, is admitted (its first step begins), gets "
    "its first token, and ends. |\n"
    "| counted request | One that arrives in [warmup, horizon). Requests before are simulated, not "
    "counted. |\n"
    "| TTFT | Time to first token: arrival to the end of the step that emits output token 1. |\n"
    "| TPOT | Time per output token after the first: (end − first token) / (outputs − 1). |\n"
    "| ITL | Inter-token latency: the gap between two successive tokens of a request. |\n"
    "| E2E | Arrival to the last token. |\n"
    "| SLO, attainment | The limits a class states, and the share of its arrived requests for "
    "which every one of them holds. |\n"
    "| class, pool, replica | A kind of traffic; replicas that are alike and scale together; one "
    "serving engine over one or several GPUs. |\n"
    "| provisioning, loading | The two parts of a cold start: until there is a machine with the "
    "image; then weights, engine start and warm-up. |\n"
    "| serving, idle, draining | Ready and running a step; ready with nothing to do; finishing "
    "what it has before release. |\n"
    "| held, billed | GPU time from launch to release; the same with the price's increments and "
    "minimums. |\n"
    "| capacity | Requests per second that one replica sustains at full utilisation. |\n"
    "| need | GPUs of ceil(expected arrivals per second on the hour / (capacity × target "
    "utilisation)) replicas. |\n"
    "| floor, ideal, peak | What the work alone takes at full utilisation; the need of each hour; "
    "the largest need all the time. |\n"
    "| work, headroom | Of ready time: the work itself (step_time `rate`: at full rate; other "
    "models: the time a step ran), and the rest, the price of being there before the requests "
    "are. |\n"
    "| KV block, preemption | A piece of a GPU's memory for the attention state of some tokens; a "
    "request that loses its blocks to another and is computed again. |\n"
    "| cached, computed, recomputed | Prompt tokens found in the prefix cache; computed for the "
    "first time; computed again after preemptions. |\n"
    "| step, iteration, span | One pass of the engine over its batch; the same; equal iterations "
    "taken at once ([the engine](engine.md)). |\n"
    "| drain | What happens after the horizon: the last requests finish. One more row, not "
    "billed. |\n"
    "| digest | A fingerprint of everything that happened: equal digests, equal runs. |\n"
    "| audit | Sums that must agree, each counted in two ways. |\n\n";

/* Whether word is one of the words, separated by ", ", that begin at text and end at end. */
static bool words_have(const char *text, const char *end, const char *word)
{
    size_t length = strlen(word);
    while (text < end) {
        size_t until = strcspn(text, ",|");
        size_t size = text + until > end ? (size_t)(end - text) : until;
        if (size == length && strncasecmp(text, word, size) == 0)
            return true;
        text += until + 2;
    }
    return false;
}

bool output_explain_word(FILE *out, const char *word, bool spaced)
{
    const char *row = strstr(glossary_intro, "| request |");
    for (; row && *row == '|'; row = strchr(row, '\n') + 1) {
        const char *words = row + 2, *bar = strstr(words, " | ");
        if (!words_have(words, bar, word))
            continue;
        const char *meaning = bar + 3;
        fprintf(out, "%s%.*s   (a word of the results)\n  %.*s\n", spaced ? "\n" : "",
                (int)(bar - words), words, (int)(strstr(meaning, " |\n") - meaning), meaning);
        return true;
    }
    return false;
}

static void cell_print(FILE *out, const char *text)
{
    for (; text && *text; text++)
        fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void glossary_row(FILE *out, const struct trace_table *table, const struct column *column)
{
    fprintf(out, "| `%s` | ", column->name);
    cell_print(out, column->long_name);
    fprintf(out, " | %s | ", column->type == COLUMN_TEXT ? "" : column->unit);
    cell_print(out, column->doc);
    fputs(" | ", out);
    cell_print(out, population_of(table, column));
    fputs(" | ", out);
    groups_print(out, column, "`");
    fputs(" |\n", out);
}

void output_explain_glossary(FILE *out)
{
    fputs(glossary_intro, out);
    fputs("## Numbers\n\nA unit of 1 is a count or a share. A group is where the number is in the "
          "result file; where two groups define a name differently it has two rows.\n\n"
          "| name | short | unit | definition | over which values | groups |\n"
          "| --- | --- | --- | --- | --- | --- |\n",
          out);
    for (size_t t = 0; t < RUN_TABLE_COUNT; t++) {
        for (const struct column *c = run_tables[t].columns; c->type != COLUMN_END; c++) {
            if (!told_before(t, c))
                glossary_row(out, &run_tables[t], c);
        }
    }
}
