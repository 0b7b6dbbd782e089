/* Field tables. A config struct is described once, in the file that owns it, by a table of fields;
 * that table drives parsing, unknown-key errors with the nearest name, defaults, range checks, the
 * echo of applied values, `fleetsim explain`, and the reference pages. sim/scenario walks it
 * against YAML; nothing else ever sees YAML.
 *
 *   static const struct field engine_fields[] = {
 *       {.name = "block_size", .kind = FIELD_INT, .unit = UNIT_TOKENS, .offset = offsetof(struct
 * engine_config, block_size), .fallback = "16", .min = 1, .max = 1024, .doc = "KV tokens per
 * block"}, {0}};
 */
#ifndef FLEETSIM_SIM_BASE_FIELD_H
#define FLEETSIM_SIM_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/units.h"

enum field_kind {
    FIELD_END,    /* closes a table */
    FIELD_BOOL,   /* bool */
    FIELD_INT,    /* int64_t */
    FIELD_REAL,   /* double */
    FIELD_TIME,   /* int64_t, picoseconds, read exactly */
    FIELD_STAMP,  /* int64_t, Unix seconds, read from ISO 8601 UTC ("2026-03-02T00:00:00Z") */
    FIELD_TEXT,   /* const char *, in the arena */
    FIELD_PATH,   /* const char *, in the arena; made relative to the file that names it */
    FIELD_CHOICE, /* int: index into .choices */
    FIELD_STRUCT, /* a nested struct at .offset, described by .fields */
    FIELD_INLINE, /* a nested struct at .offset, described by .fields, whose keys sit beside ours */
    FIELD_VARIANT, /* struct variant_value; the key .tag names one of .variants, whose fields sit
                      beside the tag */
    FIELD_LIST,    /* struct field_list of items of size .item_size, each described by .item */
};

enum field_flags {
    FIELD_REQUIRED = 1,  /* no default: absence is an error */
    FIELD_OPTIONAL = 2,  /* absence leaves the unset value of the kind (below) */
    FIELD_UNLIMITED = 4, /* INT: the word "unlimited" means FIELD_INT_UNLIMITED */
    FIELD_MIN_OPEN = 8,  /* value must be > min, not ≥ */
};

/* Unset values of optional fields: INT and TIME and STAMP FIELD_INT_UNSET, REAL NaN, TEXT and PATH
 * NULL, CHOICE -1, VARIANT type NULL, LIST items NULL and count 0. BOOL and STRUCT cannot be
 * optional. */
#define FIELD_INT_UNSET     INT64_MIN
#define FIELD_INT_UNLIMITED INT64_MAX

struct field {
    const char *name;
    enum field_kind kind;
    enum unit unit; /* INT, REAL */
    unsigned flags;
    size_t offset;
    const char *fallback; /* the default as a user would write it; NULL with REQUIRED or OPTIONAL;
                             for VARIANT the tag's value; STRUCT and LIST have none (a STRUCT's
                             fields have their own; a LIST is empty) */
    double min, max;      /* INT and REAL in .unit, TIME in s, LIST: count; both 0: no range (only
                             "> 0" with MIN_OPEN); max below min: no upper limit */
    double bare_max;      /* TIME: a number without a unit above this many seconds is refused, for
                             it was most likely meant in another unit; 0: any will do */
    const char *doc;      /* one line, what it means */
    const char *const *choices;            /* CHOICE: NULL-terminated */
    const struct field *fields;            /* STRUCT */
    const struct variant *const *variants; /* VARIANT: NULL-terminated */
    const char *tag;  /* VARIANT: the key that selects ("policy", "process", "dist", …) */
    const char *bare; /* VARIANT: the variant whose first field a bare scalar is the value of
                         when it names no variant, in files and in .fallback; NULL: none */
    const struct field *item; /* LIST: how one item is described; its name and offset are ignored */
    size_t item_size;         /* LIST */
    const char *const *later; /* VARIANT, CHOICE: names of the design that are not built yet,
                                 refused by name; may be NULL */
};

/* One way to fill a VARIANT: a policy, a process, a distribution. Registered by listing its address
 * in the table that .variants points at. `ops` is the const struct of callbacks, whose type the
 * owner of the registry defines. */
struct variant {
    const char *name;
    const char *doc;            /* one line */
    const struct field *fields; /* of its config; NULL: it has none */
    size_t size;                /* of its config struct; 0: none */
    const void *ops;
};

struct variant_value {
    const struct variant *type;
    void *config; /* arena; type->size bytes; NULL when size is 0 */
};

struct field_list {
    void *items; /* arena */
    size_t count;
};

/* Room for any reason field_parse gives; a smaller buffer cuts the text off. */
enum { FIELD_WHY_MAX = 256 };
/* BOOL … CHOICE: what field_parse reads and field_text writes. */
bool field_is_scalar(const struct field *field);
/* Reads one scalar (BOOL … CHOICE, not STRUCT/VARIANT/LIST) from its text into target (already
 * offset) and checks its range. PATH is copied as it is. On failure returns false with a reason in
 * why ("must be at least 1, not 0"; "'5 x' is not a time such as 30 s") and leaves target alone. */
bool field_parse(const struct field *field, const char *text, void *target, struct arena *arena,
                 char *why, size_t why_size);
/* Fills the struct at base with every default and unset value, nested structs and default variants
 * included. */
void field_defaults(const struct field *fields, void *base, struct arena *arena);
/* Makes a VARIANT's value the given variant, with its config's defaults. */
void field_variant_init(const struct variant *variant, struct variant_value *value,
                        struct arena *arena);
/* Writes the unset value of an optional field. Not for STRUCT and INLINE; BOOL becomes false. */
void field_unset(const struct field *field, void *target);
/* The field of that key, looked for in INLINE tables too (never an INLINE itself); NULL when there
 * is none. *offset (may be NULL): where its value is in the struct that fields describes. */
const struct field *field_find(const struct field *fields, const char *name, size_t *offset);
/* Of a VARIANT with .bare, the variant that a bare scalar stands for; NULL when the text names a
 * variant, or the field has no .bare. */
const struct variant *field_bare(const struct field *field, const char *text);
/* The variant of that name, or NULL. */
const struct variant *field_variant(const struct field *field, const char *name);
/* Why a name is none of names (NULL-terminated): not built yet (in later, which may be NULL), a
 * slip with the nearest name, or unknown with the known names. kind: "router policy". */
void field_name_refuse(const char *text, const char *const *names, const char *const *later,
                       const char *kind, char *why, size_t why_size);
/* Whether min and max bind, and a limit as text in the field's unit (buffer: UNITS_TEXT_MAX). */
bool field_has_min(const struct field *field);
bool field_has_max(const struct field *field);
char *field_limit_text(const struct field *field, double limit, char *buffer);
/* The value as text that field_parse reads back to the same value; NULL when unset. In the arena.
 */
const char *field_text(const struct field *field, const void *target, struct arena *arena);
/* The whole struct as YAML (2-space indent, every applied value, unset ones left out). Reads back
 * to the same struct, given from the same working directory (a PATH is written as it was resolved).
 * In the arena. Lives in field_yaml.c. */
char *field_yaml(const struct field *fields, const void *base, struct arena *arena);
/* The next bytes of a UTF-8 text as they stand between YAML's double quotes: those that would not
 * be read back (quotes, controls, line separators) escaped, a character at a time, all others as
 * they are. Moves *at behind them; **at is not the end. Returns the length. */
enum { FIELD_ESCAPE_MAX = 8 };
size_t field_yaml_escape(const char **at, char escaped[FIELD_ESCAPE_MAX]);

#endif
