#include "sim/base/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The one thread-local of the program: what a failed check says about the simulation. Nothing reads
 * it back, so two simulations in one process do not meet here. */
static _Thread_local struct {
    bool known;
    int64_t time_ps;
    int64_t actor;
} context;

void check_context(int64_t time_ps, int64_t actor)
{
    context.known = true;
    context.time_ps = time_ps;
    context.actor = actor;
}

/* Printed by hand: what formats times elsewhere may itself be what failed. */
static void print_context(void)
{
    if (context.known) {
        fprintf(stderr, "\n  at simulated time %" PRId64 " ps", context.time_ps);
        if (context.actor >= 0) {
            fprintf(stderr, ", actor %" PRId64, context.actor);
        }
    }
}

void check_limit_fail(const char *fmt, ...)
{
    va_list args;
    fflush(stdout);
    fputs("fleetsim: error: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    print_context();
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

void check_fail(const char *file, int line, const char *expression, const char *fmt, ...)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: check failed: %s", file, line, expression);
    if (fmt != NULL) {
        va_list args;
        va_start(args, fmt);
        fputs(": ", stderr);
        vfprintf(stderr, fmt, args);
        va_end(args);
    }
    print_context();
    fputs("\n  this is a fault of the program, not of its input\n", stderr);
    fflush(stderr);
    abort();
}
