/* The groups of a run's HDF5 file, without rows: what run_write fills and docs/output.md prints. */
#ifndef FLEETSIM_SIM_RUN_RUN_TABLES_H
#define FLEETSIM_SIM_RUN_RUN_TABLES_H

#include "sim/trace/trace.h"

enum run_table {
    RUN_TABLE_HOURLY,
    RUN_TABLE_FLEET,
    RUN_TABLE_SCALING,
    RUN_TABLE_SUMMARY,
    RUN_TABLE_CLASSES,
    RUN_TABLE_CLASS_HOURS,
    RUN_TABLE_LATENCY,
    RUN_TABLE_AUDIT,
    RUN_TABLE_POOLS,
    RUN_TABLE_GPU,
    RUN_TABLE_EXPERTS,
    RUN_TABLE_HOT_EXPERTS,
    RUN_TABLE_REQUESTS,
    RUN_TABLE_COUNT
};

extern const struct trace_table run_tables[RUN_TABLE_COUNT];

#endif
