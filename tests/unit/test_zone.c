/* Time zones: the published changes of named years, and every hour of two decades against the
 * machine's own tz database where it has one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/workload/zone.h"

static struct zone zone_of(const char *name)
{
    struct zone zone;
    ck_assert_msg(zone_parse(name, &zone), "%s", name);
    return zone;
}

static int64_t utc(int year, int month, int day, int hour)
{
    return zone_days(year, month, day) * 86400 + hour * 3600;
}

START_TEST(names_and_offsets)
{
    struct zone zone;
    for (size_t i = 0; zone_names[i]; i++)
        ck_assert_str_eq(zone_of(zone_names[i]).name, zone_names[i]);
    ck_assert_int_eq(zone_of("+05:30").standard_s, 19800);
    ck_assert_int_eq(zone_of("UTC-3").standard_s, -10800);
    ck_assert_int_eq(zone_of("UTC-09:30").standard_s, -34200);
    static const char *const bad[] = {"",      "Europe", "+",   "+15",  "+05:3",
                                      "05:30", "+05:60", "+5:", "UTC5", "+05:30 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!zone_parse(bad[i], &zone), "'%s'", bad[i]);
}
END_TEST

START_TEST(published_changes)
{
    struct zone york = zone_of("America/New_York"), berlin = zone_of("Europe/Berlin");
    int64_t begin = utc(2025, 3, 9, 7), end = utc(2025, 11, 2, 6);
    ck_assert_int_eq(zone_next_change(&york, utc(2025, 1, 1, 0)), begin);
    ck_assert_int_eq(zone_next_change(&york, begin), end);
    ck_assert_int_eq(zone_next_change(&york, end), utc(2026, 3, 8, 7));
    ck_assert_int_eq(zone_offset(&york, begin - 1), -18000);
    ck_assert_int_eq(zone_offset(&york, begin), -14400);
    ck_assert_int_eq(zone_offset(&york, end - 1), -14400);
    ck_assert_int_eq(zone_offset(&york, end), -18000);
    ck_assert_int_eq(zone_next_change(&berlin, utc(2026, 1, 1, 0)), utc(2026, 3, 29, 1));
    ck_assert_int_eq(zone_next_change(&berlin, utc(2026, 6, 1, 0)), utc(2026, 10, 25, 1));
    struct zone tokyo = zone_of("Asia/Tokyo");
    ck_assert_int_eq(zone_next_change(&tokyo, 0), INT64_MAX);
    ck_assert_int_eq(zone_offset(&tokyo, 0), 32400);
}
END_TEST

static bool has_zone(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    return access(path, R_OK) == 0;
}

START_TEST(like_the_tz_database)
{
    for (size_t i = 1; zone_names[i]; i++) {
        if (!has_zone(zone_names[i])) {
            printf("SKIP: %s absent from the tz database\n", zone_names[i]);
            continue;
        }
        setenv("TZ", zone_names[i], 1);
        tzset();
        struct zone zone = zone_of(zone_names[i]);
        for (time_t t = utc(ZONE_YEAR_MIN, 1, 1, 0); t < utc(2030, 1, 1, 0); t += 3600) {
            struct tm tm;
            localtime_r(&t, &tm);
            int64_t local = zone_days(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday) * 86400 +
                            tm.tm_hour * 3600 + tm.tm_min * 60;
            if (local - t != zone_offset(&zone, t))
                ck_abort_msg("%s at %ld: %ld", zone.name, (long)t, (long)(local - t));
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("zone");
    TCase *c = tcase_create("zone");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, names_and_offsets);
    tcase_add_test(c, published_changes);
    tcase_add_test(c, like_the_tz_database);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
