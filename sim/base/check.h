/* Asserts in three tiers. An assert is for a fault of ours; what a user can cause is an error value
 * (sim/base/errors.h).
 *
 *   debug_check(x)    costs too much for a release build: dropped when NDEBUG is set
 *   check(x)          cheap and always worth it: kept in every build
 *   check_msg(x, ...) the same, with a printf message that says what was going on
 *   check_limit(x, …) not a fault of ours: a limit that only absurd input can reach, and only while
 *                     the run goes on
 *
 * A failed check prints the expression, the place and the simulated time of the event in hand (when
 * a run has announced one with check_context) to stderr, and aborts. */
#ifndef FLEETSIM_SIM_BASE_CHECK_H
#define FLEETSIM_SIM_BASE_CHECK_H

#include <stdint.h>

/* Prints and aborts. fmt may be NULL. Never returns. */
_Noreturn void check_fail(const char *file, int line, const char *expression, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/* The other thing that can end a run from deep inside: a limit of ours that the input went beyond.
 * Prints "fleetsim: error: …" with the simulated time to stderr and exits with 1. */
_Noreturn void check_limit_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/* Remembers, for this thread, where the simulation is: shown by check_fail. Cheap (two stores).
 * actor: an index that means something to the reader, such as a replica; -1 for none. */
void check_context(int64_t time_ps, int64_t actor);

#define check(x)          ((x) ? (void)0 : check_fail(__FILE__, __LINE__, #x, 0))
#define check_msg(x, ...) ((x) ? (void)0 : check_fail(__FILE__, __LINE__, #x, __VA_ARGS__))
/* x is a limit that absurd input can pass. */
#define check_limit(x, ...) ((x) ? (void)0 : check_limit_fail(__VA_ARGS__))
#ifdef NDEBUG
#define debug_check(x) ((void)sizeof(x))
#else
#define debug_check(x) check(x)
#endif

#endif
