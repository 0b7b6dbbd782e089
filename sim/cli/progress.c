#include "sim/cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "sim/base/time.h"
#include "sim/cli/text.h"

static const double LINE_EVERY_S = 30;

void progress_init(struct progress *progress, const struct run *run, const char *what)
{
    *progress = (struct progress){
        .what = what, .terminal = isatty(STDERR_FILENO) != 0, .start_unix_s = run_start(run)};
    const struct workload *workload = run_workload(run);
    for (size_t c = 0; c < run_config(run)->workload.count; c++)
        progress->expected += workload_expected(workload, c, 0, run_horizon(run));
}

static void line_print(const struct progress *progress, const struct run_progress *at)
{
    /* A day's curve makes simulated time a poor clock: requests tell how much work is left. */
    double share = progress->expected > 0 ? (double)at->arrived / progress->expected : at->share;
    share = share < 1 ? share : 1;
    double rate = at->wall_s > 0 ? (double)at->arrived / at->wall_s : 0;
    fprintf(stderr, "%s: %3.0f %%, at %s, %s requests/s", progress->what, 100 * share,
            text_stamp(progress->start_unix_s + at->time_ps / PS_PER_SECOND).s,
            text_real(rate, 0).s);
    if (share > 0.01)
        fprintf(stderr, ", %s s left", text_real(at->wall_s * (1 - share) / share, 0).s);
    if (at->hours_saved > 0)
        fprintf(stderr, ", %lld intervals saved", (long long)at->hours_saved);
}

void progress_report(void *self, const struct run_progress *at)
{
    struct progress *progress = self;
    if (progress->terminal) {
        fputs("\r", stderr);
        if (!at->finished)
            line_print(progress, at);
        fputs("\033[K", stderr);
        fflush(stderr);
        return;
    }
    if (!at->finished && at->wall_s - progress->line_wall_s >= LINE_EVERY_S) {
        progress->line_wall_s = at->wall_s;
        line_print(progress, at);
        fputc('\n', stderr);
    }
}

void progress_capacity(void *self, const struct capacity_progress *at)
{
    (void)self;
    bool terminal = isatty(STDERR_FILENO) != 0;
    if (terminal)
        fputs("\r\033[K", stderr);
    if (at->finished) {
        fprintf(stderr,
                "pool %s: one replica sustains %s requests/s, measured in %u trial runs, %s s\n",
                at->pool, text_short(at->rate).s, at->capacity->trials,
                text_short(at->capacity->wall_s).s);
    } else if (terminal) {
        fprintf(stderr, "pool %s: one replica at %s requests/s: %s %% attained, %s", at->pool,
                text_short(at->rate).s, text_share(at->attainment, 2).s,
                at->sustained ? "sustained" : "too much");
        fflush(stderr);
    }
}
