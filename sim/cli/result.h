/* The result of a run as one JSON object, and as CSV rows. */
#ifndef FLEETSIM_SIM_CLI_RESULT_H
#define FLEETSIM_SIM_CLI_RESULT_H

#include <stdbool.h>

#include "sim/cli/json_out.h"
#include "sim/run/run_outcome.h"

/* The object of `run --json`: exactly the keys of docs/output.md, without `run` when the outcome is
 * from a file. key: NULL at the top. The outcome is complete. */
void result_json(struct json *json, const char *key, const struct run_outcome *outcome);
/* Its members alone, into an object that is open. */
void result_members_json(struct json *json, const struct run_outcome *outcome);
/* The hourly table as CSV: for every interval a row of pool "all", then one per pool. Written
 * beside path and renamed. */
bool result_hourly_write(const struct run *run, const char *path, struct errors *errors);

#endif
