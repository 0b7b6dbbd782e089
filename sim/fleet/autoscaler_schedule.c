/* A timetable by the clock, in UTC: from each time of day on, so many replicas. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/fleet/autoscaler.h"

struct schedule_entry {
    const char *at; /* "HH:MM" */
    int64_t replicas;
};

struct schedule_config {
    struct field_list entries; /* struct schedule_entry */
    int64_t ahead_ps;
};

static const struct field entry_fields[] = {
    {.name = "at",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct schedule_entry, at),
     .doc = "A time of day in UTC, \"HH:MM\""},
    {.name = "replicas",
     .kind = FIELD_INT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct schedule_entry, replicas),
     .min = 1,
     .max = 100000,
     .doc = "Replicas from then on"},
    {0},
};

static const struct field entry_item = {
    .kind = FIELD_STRUCT, .fields = entry_fields, .doc = "One line of the timetable"};

enum { ENTRIES_MAX = 1440 };

static const struct field schedule_fields[] = {
    {.name = "times",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct schedule_config, entries),
     .item = &entry_item,
     .item_size = sizeof(struct schedule_entry),
     .min = 1,
     .max = ENTRIES_MAX,
     .doc = "The timetable, in ascending order; before its first time the last one holds"},
    {.name = "ahead",
     .kind = FIELD_TIME,
     .offset = offsetof(struct schedule_config, ahead_ps),
     .fallback = "0 s",
     .max = 43200,
     .doc = "Order what a later line needs more this long before its time: a cold start, to have "
            "it ready then"},
    {0},
};

/* Minutes since midnight; -1: not a time of day. */
static int minute_of_day(const char *at)
{
    for (int i = 0; i < 5; i++) {
        if (i == 2 ? at[i] != ':' : at[i] < '0' || at[i] > '9') {
            return -1;
        }
    }
    int hour = 10 * (at[0] - '0') + at[1] - '0', minute = 10 * (at[3] - '0') + at[4] - '0';
    return at[5] == '\0' && hour < 24 && minute < 60 ? 60 * hour + minute : -1;
}

static const struct schedule_entry *entry_at(const struct schedule_config *config, size_t i)
{
    return (const struct schedule_entry *)config->entries.items + i;
}

static const char *refuse(const void *config_)
{
    const struct schedule_config *config = config_;
    int before = -1;
    for (size_t i = 0; i < config->entries.count; i++) {
        int minute = minute_of_day(entry_at(config, i)->at);
        if (minute < 0) {
            return "at is a time of day in UTC such as \"08:30\", in quotes";
        }
        if (minute <= before) {
            return "times must be in ascending order";
        }
        before = minute;
    }
    return NULL;
}

struct schedule_state {
    const struct schedule_config *config; /* borrowed */
    int64_t day_ps;
};

static const int64_t MINUTE_PS = 60 * PS_PER_SECOND, DAY_PS = 24 * PS_PER_HOUR;

static void *create(const void *config, const struct autoscaler_env *env)
{
    struct schedule_state *s = memory_zero(1, sizeof *s);
    s->config = config;
    s->day_ps = env->day_ps;
    return s;
}

static int64_t interval(const void *config)
{
    (void)config;
    return DAY_PS;
}

static int64_t replicas_at(const struct schedule_state *s, int64_t time_ps)
{
    int64_t clock = (time_ps + s->day_ps) % DAY_PS;
    const struct schedule_entry *found = entry_at(s->config, s->config->entries.count - 1);
    for (size_t i = 0; i < s->config->entries.count; i++) {
        const struct schedule_entry *entry = entry_at(s->config, i);
        if (minute_of_day(entry->at) * MINUTE_PS <= clock) {
            found = entry;
        }
    }
    return found->replicas;
}

/* The first time after now at which a line begins. */
static int64_t line_after(const struct schedule_state *s, int64_t now_ps)
{
    int64_t midnight = now_ps - (now_ps + s->day_ps) % DAY_PS;
    for (int64_t day = 0;; day++) {
        for (size_t i = 0; i < s->config->entries.count; i++) {
            int64_t at = minute_of_day(entry_at(s->config, i)->at) * MINUTE_PS;
            if (midnight + day * DAY_PS + at > now_ps) {
                return midnight + day * DAY_PS + at;
            }
        }
    }
}

static int64_t next(const void *state, int64_t now_ps)
{
    const struct schedule_state *s = state;
    int64_t line = line_after(s, now_ps);
    int64_t ahead = line_after(s, now_ps + s->config->ahead_ps) - s->config->ahead_ps;
    return ahead < line ? ahead : line;
}

static void limits(const void *config_, uint32_t *min, uint32_t *max, uint32_t *initial)
{
    const struct schedule_config *config = config_;
    *min = UINT32_MAX;
    *max = 0;
    for (size_t i = 0; i < config->entries.count; i++) {
        uint32_t replicas = (uint32_t)entry_at(config, i)->replicas;
        *min = replicas < *min ? replicas : *min;
        *max = replicas > *max ? replicas : *max;
    }
    *initial = UINT32_MAX;
}

static void decide(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision)
{
    const struct schedule_state *s = state;
    int64_t until = signal->now_ps + s->config->ahead_ps;
    int64_t most = replicas_at(s, signal->now_ps);
    for (int64_t t = line_after(s, signal->now_ps); t <= until; t = line_after(s, t)) {
        int64_t replicas = replicas_at(s, t);
        most = replicas > most ? replicas : most;
    }
    decision->wished = decision->target = (uint32_t)most;
    decision->metric = NAN;
    decision->announce = false;
    decision->reason = "the timetable";
}

static const struct autoscaler_type schedule_type = {
    .create = create,
    .destroy = free,
    .refuse = refuse,
    .interval = interval,
    .next = next,
    .limits = limits,
    .decide = decide,
};

const struct variant autoscaler_schedule_variant = {
    .name = "schedule",
    .doc = "A timetable by the clock",
    .fields = schedule_fields,
    .size = sizeof(struct schedule_config),
    .ops = &schedule_type,
};
