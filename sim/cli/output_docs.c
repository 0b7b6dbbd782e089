#include "sim/cli/output_docs.h"

#include "sim/run/run_tables.h"

static const char *const intro =
    "# Output reference\n\n"
    "Everything a run writes, from the same tables that write it: `fleetsim explain --outputs` "
    "prints this page.\n\n"
    "Rules that hold everywhere:\n\n"
    "- Counted are the requests that arrive in [warmup, horizon); they are followed to their end. "
    "GPU-hours, dollars and references cover that window; the drain after it is one more row and "
    "is not billed.\n"
    "- arrived = completed + refused + unservable + cancelled + in flight.\n"
    "- A percentile is the nearest-rank one: the smallest value with at least that share at or "
    "below it, from a histogram with a relative error of at most 1/256. Counts, means, maxima and "
    "sums are exact. A p99 from fewer than 100 values is marked `*` on the terminal.\n"
    "- An undefined number is empty in CSV, `null` in JSON, NaN (floating) or the fill value "
    "(whole numbers) in the result file, `–` on the terminal. It is never 0.\n"
    "- A stamp belongs to the interval floor(stamp / interval): what ends exactly at an edge "
    "belongs to the later one.\n"
    "- No wall-clock time is in any file: identical runs give identical bytes.\n\n"
    "## The result file\n\n"
    "HDF5, and netCDF-4 at once: `ncdump -h FILE`, "
    "`xarray.open_dataset(FILE, group=\"hourly\")`, h5py, MATLAB and Julia open it. Groups over "
    "time have a CF time axis (`time`: start of the interval; `time_bnds`). Beside the groups "
    "below there are `scenario/given` (the files as read), `scenario/resolved` (every value as "
    "applied), and `meta` (version, git, compiler, flags, seed, replication, digest, "
    "schema_version, complete). While a long run goes on its finished intervals are in FILE.part, "
    "with `meta/complete` 0.\n\n";

static const char *const rest =
    "## `run --json`\n\n"
    "One object. `run` is the only part that may differ between identical runs. Times are exact "
    "decimals in seconds.\n\n"
    "| key | holds |\n| --- | --- |\n"
    "| `scenario`, `seed`, `digest` | its name, the seed, the fingerprint of everything that "
    "happened |\n"
    "| `requests` | `arrived`, `completed`, `refused`, `unservable`, `cancelled`, `in_flight` |\n"
    "| `tokens` | `prompt`, `cached`, `computed`, `recomputed`, `output` |\n"
    "| `latency` | `ttft_s`, `tpot_s`, `itl_s`, `e2e_s`, `queue_s`, each with `count`, `mean`, "
    "`p50`, `p90`, `p95`, `p99`, `max` |\n"
    "| `slo` | `attained`, `missed`, `undecided`, `attainment`, `attainment_upper` |\n"
    "| `kv` | `peak_blocks`, `preemptions` |\n"
    "| `gpu_hours` | `billed`, `held`, `starting`, `ready`, `draining`, `idle`, `floor`, `ideal`, "
    "`peak` |\n"
    "| `cost` | `usd`, `usd_low`, `usd_high`, `usd_ideal`, `usd_peak`, `usd_per_mtok_total`, "
    "`usd_per_mtok_input`, `usd_per_mtok_output` |\n"
    "| `audit` | `ok`, `checks` (how many) |\n"
    "| `run` | `wall_s`, `events`, `spans`, `iterations`, `requests_per_s`, `peak_rss_bytes` |\n\n"
    "Each is the column of that meaning in `summary` above, for all pools together. "
    "`compare --json` prints `scenario`, `arrivals` (`identical`, `requests`, `prompt_tokens`, "
    "`output_tokens`), `cheapest_that_meets_slo` and `variants`: for each its `name`, `set`, "
    "`saving` (1 − its billed GPU-hours / the largest), `scale_events`, `slo_met` and `result`, "
    "the object above.\n\n"
    "## CSV\n\n"
    "`run --hourly FILE.csv`: the columns `start`, `end`, `pool`, then those of `hourly` above; "
    "for "
    "every interval a row for `all` pools together and one for each pool; the last interval is the "
    "drain.\n\n"
    "`run --requests FILE.csv`: one row per request in order of arrival: `id`, `class`, `session`, "
    "`turn`, `arrival_s`, `admitted_s`, `first_token_s`, `end_s`, `prompt_tokens`, "
    "`output_tokens`, `cached_tokens`, `recomputed_tokens`, `preemptions`, `pool`, `replica`, "
    "`outcome`. Times are exact decimals in seconds since the start; definitions are those of "
    "`requests` above.\n\n"
    "`run --export-trace FILE` (and `check`): `arrival_s,prompt_tokens,output_tokens,class,session,"
    "turn`, gzip when FILE ends in `.gz`. Replaying it gives the identical requests.\n";

void output_docs_print(FILE *out)
{
    fputs(intro, out);
    trace_docs_print(run_tables, RUN_TABLE_COUNT, out);
    fputs(rest, out);
}
