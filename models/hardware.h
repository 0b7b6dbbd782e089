/* An accelerator as a cost model sees it: what a data sheet and measurements say. Filled from
 * models/catalog/gpu/NAME.yaml (or a user's own file) through hardware_fields. All rates are of one
 * GPU, dense (not 2:4 sparse), and links are one way of a full-duplex link. */
#ifndef FLEETSIM_MODELS_HARDWARE_H
#define FLEETSIM_MODELS_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/errors.h"
#include "sim/base/field.h"

/* Number formats with math units of their own. */
enum math { MATH_BF16, MATH_FP8, MATH_FP4, MATH_COUNT };
extern const char *const hardware_math_names[MATH_COUNT + 1];

/* Where a value comes from: one entry per group of keys of a catalogue file. */
struct source_note {
    const char *keys;   /* space-separated keys of the file it speaks for */
    const char *source; /* repository and path, page, or paper */
    const char *date;   /* of the snapshot, ISO 8601, or of the statement */
    int mark;           /* SOURCE_* */
};
enum { SOURCE_PRIMARY, SOURCE_COMPUTED, SOURCE_PUBLISHED, SOURCE_UNVERIFIED };
extern const struct field hardware_source_fields[];
extern const struct field hardware_source_item; /* of a list of them */

/* Latency of a collective and the share of the one-way link rate it reaches (facts of measured
 * tables; models/collective.h says how they are used). */
struct link_cost {
    int64_t latency_ps; /* TIME_NONE: the algorithm is not available */
    double efficiency;  /* (0, 1] */
};

struct gpu_collectives {
    struct link_cost one_shot;  /* every GPU reads all others' buffers */
    struct link_cost two_shot;  /* reduce-scatter and all-gather by direct reads */
    struct link_cost ring;      /* latency is per hop, 2(n-1) hops */
    struct link_cost nvls;      /* the switch reduces; needs NVLink SHARP */
    struct link_cost dispatch;  /* expert all-to-all in the domain, tokens out */
    struct link_cost combine;   /* expert all-to-all in the domain, results back */
    int64_t network_latency_ps; /* one hop between nodes */
};

/* A measured expert all-to-all: one row of a latency table, for 8 of 256 experts of a model 7,168
 * wide, FP8 out and BF16 back. */
struct exchange_point {
    int64_t ranks;
    double tokens; /* per rank */
    int64_t dispatch_ps;
    int64_t combine_ps;
};

struct gpu_spec {
    const char *name;
    const char *vendor;
    double peak_flops[MATH_COUNT]; /* dense; NaN: no such math units */
    double hbm_sheet_bytes;        /* what the data sheet says */
    double hbm_real_bytes;         /* what the driver reports; NaN: not known */
    double hbm_bytes_per_s;
    double link_bytes_per_s; /* scale-up network, one way, per GPU */
    int64_t domain;          /* GPUs that the scale-up network joins */
    int64_t node;            /* GPUs of one server */
    double nic_bytes_per_s;  /* one way, per GPU */
    double host_bytes_per_s; /* host link, one way; NaN: not known */
    double tdp_w;            /* NaN: not known */
    double node_power_w;     /* whole server at full load; NaN: not known */
    struct gpu_collectives collectives;
    struct field_list exchange; /* struct exchange_point, by ranks, then tokens */
    struct field_list sources;  /* struct source_note */
};

extern const struct field hardware_fields[];

/* HBM bytes by convention: sheet decimals, or what the driver reports (sheet when unknown). */
double hardware_hbm(const struct gpu_spec *gpu, bool real);
/* Reports what the field table cannot: no BF16 peak, a node that does not divide the domain. */
bool hardware_check(const struct gpu_spec *gpu, struct errors *errors,
                    const struct source_pos *where);

#endif
