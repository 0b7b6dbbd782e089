/* What every unit test program shares: running a list of Check tests, and watching a call die. */
#ifndef FLEETSIM_TESTS_UNIT_SUITE_RUN_H
#define FLEETSIM_TESTS_UNIT_SUITE_RUN_H

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the tests (ended by NULL) as one suite. Returns main's exit status. */
static inline int suite_run(const char *name, const TTest *const *tests, double timeout_s)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, timeout_s);
    for (; *tests != NULL; tests++) {
        tcase_add_test(all, *tests);
    }
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

/* Calls f(arg) in a child and gives its wait status; keeps the start of what it wrote to stderr.
 * Works with CK_FORK=no as well, unlike Check's own signal tests. */
static inline int suite_child(void (*f)(void *), void *arg, char *message, size_t size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        f(arg);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n = 1; n > 0 && used + 1 < size; used += n > 0 ? (size_t)n : 0) {
        n = read(ends[0], message + used, size - 1 - used);
    }
    message[used] = '\0';
    close(ends[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Whether it aborts. */
static inline bool suite_aborts(void (*f)(void *), void *arg, char *message, size_t size)
{
    int status = suite_child(f, arg, message, size);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
