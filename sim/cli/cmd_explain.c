/* fleetsim explain KEY: what a key of a scenario or an output column means; and the generated
 * pages. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cli/command.h"
#include "sim/cli/output_docs.h"
#include "sim/cli/output_explain.h"
#include "sim/run/config.h"
#include "sim/scenario/explain.h"

struct explain_options {
    bool reference, outputs, glossary;
};

static const struct options_spec explain_specs[] = {
    {.name = "reference",
     .kind = OPTIONS_FLAG,
     .offset = offsetof(struct explain_options, reference),
     .doc = "every key of a scenario, as Markdown (docs/scenario.md)"},
    {.name = "outputs",
     .kind = OPTIONS_FLAG,
     .offset = offsetof(struct explain_options, outputs),
     .doc = "every output, as Markdown (docs/output.md)"},
    {.name = "glossary",
     .kind = OPTIONS_FLAG,
     .offset = offsetof(struct explain_options, glossary),
     .doc = "every number and what it means, as Markdown (docs/glossary.md)"},
    {0},
};

/* As a key of a scenario, an output column, a word of the glossary, or several of them. */
static bool key_print(const char *key)
{
    char *text = NULL;
    size_t length = 0;
    FILE *keys = open_memstream(&text, &length);
    if (!keys) {
        perror("fleetsim explain");
        return false;
    }
    bool is_key = explain_print(keys, config_fields, key);
    fclose(keys);
    if (is_key)
        fputs(text, stdout);
    bool is_column = output_explain_print(stdout, key, is_key);
    bool is_word = output_explain_word(stdout, key, is_key || is_column);
    if (!is_key && !is_column && !is_word) {
        fputs(text, stdout);
        const char *near = output_explain_nearest(key);
        if (near)
            printf("among the output columns the nearest is '%s'\n", near);
    }
    free(text);
    return is_key || is_column || is_word;
}

static int explain_run(const void *values, const struct options_list *operands)
{
    const struct explain_options *options = values;
    if (operands->count + options->reference + options->outputs + options->glossary != 1) {
        fputs("fleetsim explain: give a KEY, --reference, --outputs or --glossary\n"
              "`fleetsim help explain` shows how it is used\n",
              stderr);
        return COMMAND_BAD_USAGE;
    }
    if (options->reference) {
        explain_reference(stdout, config_fields);
        return COMMAND_OK;
    }
    if (options->outputs) {
        output_docs_print(stdout);
        return COMMAND_OK;
    }
    if (options->glossary) {
        output_explain_glossary(stdout);
        return COMMAND_OK;
    }
    return key_print(operands->items[0]) ? COMMAND_OK : COMMAND_BAD_INPUT;
}

const struct command cmd_explain_command = {
    .name = "explain",
    .summary = "what a key of a scenario, or an output, means: unit, default, range",
    .operands = "[KEY]",
    .operands_min = 0,
    .operands_max = 1,
    .options = explain_specs,
    .options_size = sizeof(struct explain_options),
    .text =
        "KEY is a path (fleet.pools.engine.block_size), its end (block_size), or the name of a\n"
        "choice (least_loaded); a column of the results (ttft_p99, summary.usd); or a word of the\n"
        "glossary (headroom).\n",
    .example = "fleetsim explain autoscaler.target\n"
               "fleetsim explain ttft_p99\n"
               "fleetsim explain poisson\n",
    .run = explain_run,
};
