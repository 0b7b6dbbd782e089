/* Rules as published in the IANA tz database (files northamerica, europe, australasia, asia). */
#include "sim/workload/zone.h"

#include <string.h>

enum { HOUR = 3600, DAY = 86400, DAYLIGHT_S = HOUR };

static const struct zone zones[] = {
    {"UTC", 0, ZONE_FIXED},
    {"America/New_York", -5 * HOUR, ZONE_US},
    {"America/Chicago", -6 * HOUR, ZONE_US},
    {"America/Denver", -7 * HOUR, ZONE_US},
    {"America/Los_Angeles", -8 * HOUR, ZONE_US},
    {"Europe/London", 0, ZONE_EU},
    {"Europe/Berlin", HOUR, ZONE_EU},
    {"Europe/Paris", HOUR, ZONE_EU},
    {"Europe/Madrid", HOUR, ZONE_EU},
    {"Europe/Helsinki", 2 * HOUR, ZONE_EU},
    {"Asia/Kolkata", 5 * HOUR + HOUR / 2, ZONE_FIXED},
    {"Asia/Shanghai", 8 * HOUR, ZONE_FIXED},
    {"Asia/Singapore", 8 * HOUR, ZONE_FIXED},
    {"Asia/Tokyo", 9 * HOUR, ZONE_FIXED},
    {"Australia/Sydney", 10 * HOUR, ZONE_AU},
};
enum { ZONES = sizeof zones / sizeof *zones };

const char *const zone_names[] = {"UTC",
                                  "America/New_York",
                                  "America/Chicago",
                                  "America/Denver",
                                  "America/Los_Angeles",
                                  "Europe/London",
                                  "Europe/Berlin",
                                  "Europe/Paris",
                                  "Europe/Madrid",
                                  "Europe/Helsinki",
                                  "Asia/Kolkata",
                                  "Asia/Shanghai",
                                  "Asia/Singapore",
                                  "Asia/Tokyo",
                                  "Australia/Sydney",
                                  NULL};

/* Days from the civil date as in H. Hinnant's chrono-compatible algorithms; years from 1 on. */
int64_t zone_days(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int era = y / 400;
    int year_of_era = y - era * 400;
    int day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

static int year_of(int64_t unix_s)
{
    int64_t day = unix_s / DAY - (unix_s % DAY < 0);
    int year = 1970 + (int)(day / 366);
    while (zone_days(year + 1, 1, 1) <= day)
        year++;
    return year;
}

/* The Sunday on or after (year, month, day). Day 0 was a Thursday. */
static int64_t sunday_from(int year, int month, int day)
{
    int64_t days = zone_days(year, month, day);
    int64_t weekday = ((days + 4) % 7 + 7) % 7; /* 0: Sunday */
    return days + (7 - weekday) % 7;
}

/* When daylight saving begins and ends in a year, in Unix seconds. */
static void year_changes(const struct zone *zone, int year, int64_t *begin_s, int64_t *end_s)
{
    int64_t standard = zone->standard_s;
    *begin_s = *end_s = INT64_MAX;
    switch (zone->rule) {
    case ZONE_US: /* 2:00 standard time; 2:00 daylight time */
        *begin_s = sunday_from(year, 3, 8) * DAY + 2 * HOUR - standard;
        *end_s = sunday_from(year, 11, 1) * DAY + HOUR - standard;
        break;
    case ZONE_EU: /* the last Sunday of a month of 31 days is the one from its 25th on */
        *begin_s = sunday_from(year, 3, 25) * DAY + HOUR;
        *end_s = sunday_from(year, 10, 25) * DAY + HOUR;
        break;
    case ZONE_AU: /* both at 2:00 standard time; the year begins in daylight time */
        *begin_s = sunday_from(year, 10, 1) * DAY + 2 * HOUR - standard;
        *end_s = sunday_from(year, 4, 1) * DAY + 2 * HOUR - standard;
        break;
    case ZONE_FIXED:
        break;
    }
}

int32_t zone_offset(const struct zone *zone, int64_t unix_s)
{
    if (zone->rule == ZONE_FIXED)
        return zone->standard_s;
    int64_t begin_s, end_s;
    year_changes(zone, year_of(unix_s + zone->standard_s), &begin_s, &end_s);
    bool daylight =
        begin_s < end_s ? unix_s >= begin_s && unix_s < end_s : unix_s >= begin_s || unix_s < end_s;
    return zone->standard_s + (daylight ? DAYLIGHT_S : 0);
}

int64_t zone_next_change(const struct zone *zone, int64_t unix_s)
{
    int64_t next = INT64_MAX;
    if (zone->rule == ZONE_FIXED)
        return next;
    int year = year_of(unix_s);
    for (int y = year; y <= year + 1; y++) {
        int64_t changes[2];
        year_changes(zone, y, &changes[0], &changes[1]);
        for (int i = 0; i < 2; i++)
            if (changes[i] > unix_s && changes[i] < next)
                next = changes[i];
    }
    return next;
}

static int two_digits(const char *text)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return -1;
    return (text[0] - '0') * 10 + text[1] - '0';
}

/* "+05:30", "-03", "+9". */
static bool offset_parse(const char *text, int32_t *seconds)
{
    if (*text != '+' && *text != '-')
        return false;
    int sign = *text++ == '-' ? -1 : 1;
    int hours = two_digits(text), minutes = 0;
    if (hours >= 0) {
        text += 2;
    } else {
        hours = *text >= '0' && *text <= '9' ? *text++ - '0' : -1;
    }
    if (hours >= 0 && *text == ':') {
        minutes = two_digits(text + 1);
        text += minutes < 0 ? 0 : 3;
    }
    if (hours < 0 || hours > 14 || minutes < 0 || minutes > 59 || *text)
        return false;
    *seconds = sign * (hours * HOUR + minutes * 60);
    return true;
}

bool zone_parse(const char *text, struct zone *zone)
{
    for (size_t i = 0; i < ZONES; i++) {
        if (strcmp(text, zones[i].name) == 0) {
            *zone = zones[i];
            return true;
        }
    }
    *zone = (struct zone){.name = text, .rule = ZONE_FIXED};
    return offset_parse(strncmp(text, "UTC", 3) == 0 ? text + 3 : text, &zone->standard_s);
}
