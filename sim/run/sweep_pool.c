#include "sim/run/sweep_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

enum { LOOK_EVERY_MS = 50, TEXT_MAX = 1000 };

struct worker {
    pid_t pid; /* 0: the slot is free */
    size_t task;
    int outcome_fd, text_fd; /* its outcome; its stderr */
    double began_s;
    char text[TEXT_MAX]; /* the beginning of its stderr */
    size_t text_length;
    uint64_t over_bytes; /* what it took when it was killed for memory; 0: it was not */
    double over_s;       /* likewise for time */
};

struct state {
    const struct sweep_pool *pool;
    struct worker *workers; /* owned; [jobs] */
    size_t next, running, ended;
    double began_s;
    bool stopping, killed, broken;
    sigset_t before;               /* the mask to give back */
    struct sigaction child_before; /* likewise of SIGCHLD */
    sigset_t waited;               /* what is waited for */
    struct errors *errors;
};

static double wall_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- a worker -----------------------------------------------------------------------------------
 */

static void worker_report(int fd, const struct sweep_outcome *outcome)
{
    const char *bytes = (const char *)outcome;
    size_t left = sizeof *outcome;
    while (left > 0) {
        ssize_t written = write(fd, bytes, left);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            bytes += written;
            left -= (size_t)written;
        }
    }
}

/* Ctrl-C reaches the whole group of processes: the parent alone answers it. A worker does not
 * outlive its parent. */
static _Noreturn void worker_run(const struct state *state, size_t task, int outcome_fd,
                                 int text_fd, pid_t parent)
{
    struct sweep_outcome outcome = {.done = false};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct rusage usage;
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGTERM, &ignore, NULL); /* a batch system sends it to every process of a job */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &state->before, NULL);
    dup2(text_fd, STDERR_FILENO);
    state->pool->work(state->pool->self, task, &outcome);
    getrusage(RUSAGE_SELF, &usage);
    outcome.peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    worker_report(outcome_fd, &outcome);
    _exit(0);
}

static bool pipes_open(int outcome[2], int text[2])
{
    if (pipe(outcome) != 0)
        return false;
    if (pipe(text) != 0) {
        close(outcome[0]);
        close(outcome[1]);
        return false;
    }
    int ends[] = {outcome[0], outcome[1], text[0], text[1]};
    for (size_t i = 0; i < 4; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    /* A worker that says too much loses the rest instead of waiting for a reader. */
    for (size_t i = 2; i < 4; i++)
        fcntl(ends[i], F_SETFL, fcntl(ends[i], F_GETFL) | O_NONBLOCK);
    return true;
}

static bool worker_start(struct state *state, struct worker *worker)
{
    int outcome[2], text[2];
    size_t task = state->pool->tasks[state->next];
    pid_t parent = getpid();
    if (!pipes_open(outcome, text))
        return false;
    *worker = (struct worker){.task = task, .began_s = wall_now()};
    fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0)
        worker_run(state, task, outcome[1], text[1], parent);
    int fork_errno = errno;
    close(outcome[1]);
    close(text[1]);
    worker->outcome_fd = outcome[0];
    worker->text_fd = text[0];
    if (worker->pid < 0) {
        close(outcome[0]);
        close(text[0]);
        worker->pid = 0;
        errno = fork_errno;
        return false;
    }
    state->next++;
    state->running++;
    return true;
}

/* ---- its end ------------------------------------------------------------------------------------
 */

static void text_drain(struct worker *worker)
{
    char rest[256];
    ssize_t got = 1;
    while (got > 0) {
        size_t room = TEXT_MAX - 1 - worker->text_length;
        got = room > 0 ? read(worker->text_fd, worker->text + worker->text_length, room)
                       : read(worker->text_fd, rest, sizeof rest);
        if (got > 0 && room > 0)
            worker->text_length += (size_t)got;
    }
    worker->text[worker->text_length] = '\0';
}

/* The first line of what it said, for a reason. */
static void text_append(const struct worker *worker, char *reason)
{
    size_t used = strlen(reason), length = strcspn(worker->text, "\n");
    if (length > 0)
        snprintf(reason + used, SWEEP_POOL_REASON_MAX - used, ": %.*s", (int)length, worker->text);
}

static bool killed_by_us(const struct worker *worker)
{
    return worker->over_bytes > 0 || worker->over_s > 0;
}

static void death_explain(const struct worker *worker, const struct sweep_pool *pool, int status,
                          struct sweep_outcome *outcome)
{
    char *reason = outcome->reason;
    size_t size = sizeof outcome->reason;
    *outcome = (struct sweep_outcome){.done = false};
    if (worker->over_bytes > 0)
        snprintf(reason, size, "killed for memory: %.1f MiB, and %.1f MiB are allowed",
                 (double)worker->over_bytes / 0x1p20, (double)pool->memory_bytes / 0x1p20);
    else if (worker->over_s > 0)
        snprintf(reason, size, "killed for time: %.1f s, and %.1f s are allowed", worker->over_s,
                 pool->time_s);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        snprintf(reason, size, "killed (signal 9): by hand, or by the system for want of memory");
    else if (WIFSIGNALED(status))
        snprintf(reason, size, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(reason, size, "ended with exit code %d", WEXITSTATUS(status));
    text_append(worker, reason);
}

static bool outcome_read(int fd, struct sweep_outcome *outcome)
{
    char *bytes = (char *)outcome;
    size_t got = 0;
    while (got < sizeof *outcome) {
        ssize_t n = read(fd, bytes + got, sizeof *outcome - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        if (n > 0)
            got += (size_t)n;
    }
    return true;
}

/* Takes a worker that is no more; whether the pool may go on. */
static bool worker_end(struct state *state, struct worker *worker, int status)
{
    struct sweep_outcome outcome;
    text_drain(worker);
    if (!outcome_read(worker->outcome_fd, &outcome) || killed_by_us(worker))
        death_explain(worker, state->pool, status, &outcome);
    outcome.wall_s = wall_now() - worker->began_s;
    close(worker->outcome_fd);
    close(worker->text_fd);
    worker->pid = 0;
    state->running--;
    state->ended++;
    if (state->killed)
        return true; /* killed by us: it has not failed */
    return state->pool->ended(state->pool->self, worker->task, &outcome);
}

static void workers_reap(struct state *state)
{
    for (size_t i = 0; i < state->pool->jobs; i++) {
        int status;
        struct worker *worker = &state->workers[i];
        if (worker->pid == 0 || waitpid(worker->pid, &status, WNOHANG) != worker->pid)
            continue;
        if (!worker_end(state, worker, status))
            state->stopping = true;
    }
}

/* ---- looking after them -------------------------------------------------------------------------
 */

/* Resident bytes of a process; 0: unknown. */
static uint64_t resident_bytes(pid_t pid)
{
    char path[48];
    unsigned long long pages = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void workers_look(struct state *state)
{
    const struct sweep_pool *pool = state->pool;
    struct sweep_pool_view view = {.started = state->next,
                                   .ended = state->ended,
                                   .running = state->running,
                                   .stopping = state->stopping,
                                   .wall_s = wall_now() - state->began_s};
    for (size_t i = 0; i < pool->jobs; i++) {
        struct worker *worker = &state->workers[i];
        if (worker->pid == 0)
            continue;
        text_drain(worker);
        double s = wall_now() - worker->began_s;
        if (s >= view.slowest_s) {
            view.slowest_s = s;
            view.slowest = worker->task;
        }
        uint64_t bytes = pool->memory_bytes > 0 ? resident_bytes(worker->pid) : 0;
        if (killed_by_us(worker))
            continue;
        worker->over_bytes = bytes > pool->memory_bytes ? bytes : 0;
        worker->over_s = pool->time_s > 0 && s > pool->time_s ? s : 0;
        if (killed_by_us(worker))
            kill(worker->pid, SIGKILL);
    }
    if (pool->look)
        pool->look(pool->self, &view);
}

static void workers_kill(struct state *state)
{
    state->killed = true;
    for (size_t i = 0; i < state->pool->jobs; i++)
        if (state->workers[i].pid != 0)
            kill(state->workers[i].pid, SIGKILL);
}

static void signal_take(struct state *state, int signal)
{
    if (signal != SIGINT && signal != SIGTERM)
        return;
    if (state->stopping)
        workers_kill(state);
    state->stopping = true;
}

/* A signal that whoever started us wants ignored is left alone. */
static void signal_wait_for(sigset_t *set, int signal)
{
    struct sigaction action;
    if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        return;
    sigaddset(set, signal);
}

static void workers_start(struct state *state)
{
    for (size_t i = 0; i < state->pool->jobs && !state->stopping; i++) {
        if (state->workers[i].pid != 0 || state->next == state->pool->count)
            continue;
        if (worker_start(state, &state->workers[i]))
            continue;
        errors_add(state->errors, SEVERITY_ERROR, NULL, "no process can be started: %s",
                   strerror(errno));
        state->broken = state->stopping = true;
    }
}

enum sweep_pool_end sweep_pool_run(const struct sweep_pool *pool, struct errors *errors)
{
    static const struct timespec while_waiting = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    check(pool->jobs >= 1 && pool->jobs <= SWEEP_POOL_JOBS_MAX);
    struct state state = {.pool = pool, .errors = errors, .began_s = wall_now()};
    double looked_s = state.began_s;
    state.workers = memory_zero(pool->jobs, sizeof *state.workers);
    /* Whoever started us may ignore SIGCHLD, and so would we: children would leave no status. */
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &usual, &state.child_before);
    sigemptyset(&state.waited);
    sigaddset(&state.waited, SIGCHLD);
    signal_wait_for(&state.waited, SIGINT);
    signal_wait_for(&state.waited, SIGTERM);
    sigprocmask(SIG_BLOCK, &state.waited, &state.before);
    workers_start(&state);
    while (state.running > 0) {
        signal_take(&state, sigtimedwait(&state.waited, NULL, &while_waiting));
        workers_reap(&state);
        workers_start(&state);
        if (wall_now() - looked_s >= LOOK_EVERY_MS / 1e3) {
            looked_s = wall_now();
            workers_look(&state);
        }
    }
    /* What came after the last of them must not end the program when signals flow again. */
    static const struct timespec at_once = {0};
    while (sigtimedwait(&state.waited, NULL, &at_once) > 0)
        continue;
    sigprocmask(SIG_SETMASK, &state.before, NULL);
    sigaction(SIGCHLD, &state.child_before, NULL);
    free(state.workers);
    if (state.broken)
        return SWEEP_POOL_BROKEN;
    if (state.killed)
        return SWEEP_POOL_KILLED;
    return state.next == pool->count ? SWEEP_POOL_ALL : SWEEP_POOL_STOPPED;
}
