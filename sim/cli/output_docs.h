/* The output reference, docs/output.md. */
#ifndef FLEETSIM_SIM_CLI_OUTPUT_DOCS_H
#define FLEETSIM_SIM_CLI_OUTPUT_DOCS_H

#include <stdio.h>

/* Markdown: the tables of the result file from their column tables, then JSON and CSV. */
void output_docs_print(FILE *out);

#endif
