/* Workers that end well, badly, or not at all, and the journal's lines about them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sim/run/sweep_journal.h"
#include "sim/run/sweep_pool.h"
#include "tests/unit/suite_run.h"

enum { TASKS = 12 };

/* What each task does, and what the parent was told of it. */
enum deed { WELL, REFUSE, CRASH, EXIT, TALK, FILL, SLEEP };
struct stage {
    enum deed deeds[TASKS];
    bool told[TASKS], done[TASKS];
    char reasons[TASKS][SWEEP_POOL_REASON_MAX];
    size_t refuse_after; /* ended says no after so many; 0: never */
    size_t ended;
};

static void memory_fill(void)
{
    for (size_t i = 0; i < 400; i++) {
        char *block = malloc(1 << 20);
        if (block)
            memset(block, 1, 1 << 20);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static void work(void *self, size_t task, struct sweep_outcome *outcome)
{
    const struct stage *stage = self;
    switch (stage->deeds[task]) {
    case REFUSE:
        snprintf(outcome->reason, sizeof outcome->reason, "no");
        return;
    case CRASH:
        fputs("last words\nand more\n", stderr);
        abort();
    case EXIT:
        _exit(3);
    case TALK: /* more than any pipe holds */
        for (size_t i = 0; i < 100000; i++)
            fputs("a line that nobody reads\n", stderr);
        break;
    case FILL:
        memory_fill();
        break;
    case SLEEP:
        nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
        break;
    default:
        break;
    }
    outcome->done = true;
    outcome->bytes = 100 + task;
}

static bool ended(void *self, size_t task, const struct sweep_outcome *outcome)
{
    struct stage *stage = self;
    ck_assert(!stage->told[task]);
    stage->told[task] = true;
    stage->done[task] = outcome->done;
    if (outcome->done)
        ck_assert_uint_eq(outcome->bytes, 100 + task);
    snprintf(stage->reasons[task], sizeof stage->reasons[task], "%s", outcome->reason);
    return ++stage->ended != stage->refuse_after;
}

static enum sweep_pool_end stage_run(struct stage *stage, size_t jobs, uint64_t memory,
                                     double time_s)
{
    size_t tasks[TASKS];
    struct errors errors;
    errors_init(&errors);
    for (size_t i = 0; i < TASKS; i++)
        tasks[i] = TASKS - 1 - i;
    struct sweep_pool pool = {.tasks = tasks,
                              .count = TASKS,
                              .jobs = jobs,
                              .memory_bytes = memory,
                              .time_s = time_s,
                              .work = work,
                              .ended = ended,
                              .self = stage};
    enum sweep_pool_end end = sweep_pool_run(&pool, &errors);
    ck_assert_uint_eq(errors.error_count, 0);
    errors_free(&errors);
    return end;
}

START_TEST(what_goes_wrong_stays_in_its_process)
{
    struct stage stage = {.deeds = {[1] = REFUSE, [2] = CRASH, [3] = EXIT, [5] = TALK}};
    for (size_t jobs = 1; jobs <= 16; jobs *= 4) {
        memset(stage.told, 0, sizeof stage.told);
        ck_assert_int_eq(stage_run(&stage, jobs, 0, 0), SWEEP_POOL_ALL);
        for (size_t i = 0; i < TASKS; i++) {
            ck_assert(stage.told[i]);
            ck_assert(stage.done[i] == (i == 0 || i > 3));
        }
        ck_assert_str_eq(stage.reasons[1], "no");
        ck_assert_ptr_nonnull(strstr(stage.reasons[2], "ended by signal 6"));
        ck_assert_ptr_nonnull(strstr(stage.reasons[2], ": last words"));
        ck_assert_str_eq(stage.reasons[3], "ended with exit code 3");
    }
}
END_TEST

START_TEST(who_takes_too_much_memory_is_killed)
{
    struct stage stage = {.deeds = {[4] = FILL}};
    ck_assert_int_eq(stage_run(&stage, 2, 200 << 20, 0), SWEEP_POOL_ALL);
    for (size_t i = 0; i < TASKS; i++)
        ck_assert(stage.done[i] == (i != 4));
    ck_assert_ptr_nonnull(strstr(stage.reasons[4], "killed for memory: "));
    ck_assert_ptr_nonnull(strstr(stage.reasons[4], "and 200.0 MiB are allowed"));
}
END_TEST

START_TEST(who_takes_too_long_is_killed)
{
    struct stage stage = {.deeds = {[0] = SLEEP, [4] = SLEEP, [11] = SLEEP}};
    ck_assert_int_eq(stage_run(&stage, 2, 0, 0.5), SWEEP_POOL_ALL);
    for (size_t i = 0; i < TASKS; i++) {
        ck_assert(stage.told[i]);
        ck_assert(stage.done[i] == (stage.deeds[i] == WELL));
        if (!stage.done[i]) {
            ck_assert_ptr_nonnull(strstr(stage.reasons[i], "killed for time: "));
            ck_assert_ptr_nonnull(strstr(stage.reasons[i], "and 0.5 s are allowed"));
        }
    }
}
END_TEST

START_TEST(a_parent_that_cannot_go_on_starts_nothing_more)
{
    struct stage stage = {.refuse_after = 3};
    ck_assert_int_eq(stage_run(&stage, 2, 0, 0), SWEEP_POOL_STOPPED);
    ck_assert_uint_ge(stage.ended, 3);
    ck_assert_uint_le(stage.ended, 4);
}
END_TEST

/* A signal to the parent while tasks sleep: the first waits, the second kills. */
static void pool_of_sleepers(void *arg)
{
    struct stage *stage = arg;
    for (size_t i = 0; i < TASKS; i++)
        stage->deeds[i] = SLEEP;
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        kill(parent, SIGTERM);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        kill(parent, SIGTERM);
        _exit(0);
    }
    enum sweep_pool_end end = stage_run(stage, 3, 0, 0);
    waitpid(child, NULL, 0);
    _exit(end == SWEEP_POOL_KILLED && stage->ended == 0 ? 42 : 1);
}

START_TEST(the_second_signal_kills)
{
    struct stage stage = {.ended = 0};
    char message[256];
    int status = suite_child(pool_of_sleepers, &stage, message, sizeof message);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
}
END_TEST

/* ---- the journal ------------------------------------------------------------------------------
 */

static const char *folder_make(struct arena *arena)
{
    char path[] = "test_sweep_pool.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    return arena_copy(arena, path);
}

START_TEST(lines_come_back_and_torn_ones_do_not)
{
    struct arena arena;
    struct errors errors;
    struct sweep_journal journal;
    size_t count;
    arena_init(&arena);
    errors_init(&errors);
    const char *folder = folder_make(&arena);
    const char *path = arena_printf(&arena, "%s/journal.jsonl", folder);
    struct sweep_line line = {.done = true,
                              .run = "p00001",
                              .fingerprint = sweep_check_bytes("a", 1),
                              .file = sweep_check_bytes("b", 1),
                              .digest = "0123456789abcdef",
                              .bytes = 77,
                              .wall_s = 1.5};
    struct sweep_line bad = {.run = "p00002",
                             .fingerprint = sweep_check_bytes("c", 1),
                             .reason = "a \"quoted\"\nreason"};
    ck_assert(sweep_journal_open(&journal, path, &errors));
    ck_assert(sweep_journal_begin(&journal, "x", 2, 2, 1, &errors));
    ck_assert(sweep_journal_put(&journal, &line, &errors));
    sweep_journal_close(&journal);
    int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_eq(write(fd, "{\"event\":\"done\",\"run\":\"p000", 27), 27);
    close(fd);
    ck_assert(sweep_journal_open(&journal, path, &errors));
    ck_assert(sweep_journal_put(&journal, &bad, &errors));
    ck_assert(sweep_journal_end(&journal, 1, 1, &errors));
    sweep_journal_close(&journal);
    const struct sweep_line *lines = sweep_journal_read(folder, &count, &arena, &errors);
    ck_assert_uint_eq(count, 2);
    ck_assert(lines[0].done && !lines[1].done);
    ck_assert_str_eq(lines[0].run, "p00001");
    ck_assert_str_eq(lines[0].fingerprint.hex, line.fingerprint.hex);
    ck_assert_str_eq(lines[0].file.hex, line.file.hex);
    ck_assert_str_eq(lines[0].digest, line.digest);
    ck_assert_uint_eq(lines[0].bytes, 77);
    ck_assert_str_eq(lines[1].reason, bad.reason);
    ck_assert_uint_eq(errors.error_count, 0);
    unlink(path);
    rmdir(folder);
    errors_free(&errors);
    arena_free(&arena);
}
END_TEST

static void journal_open_again(void *path)
{
    struct sweep_journal journal;
    struct errors errors;
    errors_init(&errors);
    if (!sweep_journal_open(&journal, path, &errors))
        fputs(errors.items[0].message, stderr);
}

START_TEST(a_second_writer_is_refused)
{
    struct arena arena;
    struct errors errors;
    struct sweep_journal journal;
    char message[256];
    arena_init(&arena);
    errors_init(&errors);
    const char *folder = folder_make(&arena);
    char *path = arena_printf(&arena, "%s/journal.jsonl", folder);
    ck_assert(sweep_journal_open(&journal, path, &errors));
    suite_child(journal_open_again, path, message, sizeof message);
    ck_assert_ptr_nonnull(strstr(message, "another sweep is at work in this folder"));
    sweep_journal_close(&journal);
    suite_child(journal_open_again, path, message, sizeof message);
    ck_assert_str_eq(message, "");
    unlink(path);
    rmdir(folder);
    errors_free(&errors);
    arena_free(&arena);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_goes_wrong_stays_in_its_process,
                                  who_takes_too_much_memory_is_killed,
                                  who_takes_too_long_is_killed,
                                  a_parent_that_cannot_go_on_starts_nothing_more,
                                  the_second_signal_kills,
                                  lines_come_back_and_torn_ones_do_not,
                                  a_second_writer_is_refused,
                                  NULL};
    return suite_run("sweep pool", tests, 120);
}
