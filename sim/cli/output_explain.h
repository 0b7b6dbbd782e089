/* What an output column means, for `fleetsim explain KEY`, and the glossary (docs/glossary.md):
 * both from the tables that write the results. */
#ifndef FLEETSIM_SIM_CLI_OUTPUT_EXPLAIN_H
#define FLEETSIM_SIM_CLI_OUTPUT_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

/* Prints every column that key means: its name ("ttft_p99"), or group and name
 * ("summary.ttft_p99", "summary/ttft_p99"). Groups in which it means the same share an entry.
 * spaced: an empty line goes before the first. False when there is none; nothing is printed then.
 */
bool output_explain_print(FILE *out, const char *key, bool spaced);
/* The nearest column's name for a slip, or NULL. */
const char *output_explain_nearest(const char *key);
/* Prints what the glossary says of a word that is neither key nor column ("headroom", "floor"), in
 * any case. spaced: an empty line goes before it. False when it has none. */
bool output_explain_word(FILE *out, const char *word, bool spaced);
/* The glossary, as Markdown. */
void output_explain_glossary(FILE *out);

#endif
