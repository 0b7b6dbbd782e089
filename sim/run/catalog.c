#include "sim/run/catalog.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/run/hf_config.h"
#include "sim/scenario/scenario.h"

#ifndef FLEETSIM_CATALOG_DIR
#define FLEETSIM_CATALOG_DIR "models/catalog"
#endif

enum { CATALOG_NAMES_MAX = 4096, PROGRAM_PATH_MAX = 4096 };

const char *const catalog_folders[CATALOG_KIND_COUNT] = {"llm", "gpu", "price", "cold_start"};
static const char *const kind_words[CATALOG_KIND_COUNT] = {"model", "gpu", "price",
                                                           "cold-start preset"};
static const char *const list_words[CATALOG_KIND_COUNT] = {"models", "gpus", "prices",
                                                           "cold-starts"};

static bool folder_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* PREFIX/share/fleetsim/catalog for a program at PREFIX/bin/fleetsim; or, for one in a build folder
 * of the source tree, the tree's own. */
static const char *beside_program(struct arena *arena)
{
    char program[PROGRAM_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return NULL;
    program[length] = '\0';
    for (char *slash = strrchr(program, '/'); slash; slash = strrchr(program, '/')) {
        *slash = '\0';
        const char *path = arena_printf(arena, "%s/share/fleetsim/catalog", program);
        if (folder_exists(path))
            return path;
        path = arena_printf(arena, "%s/models/catalog", program);
        if (folder_exists(path))
            return path;
    }
    return NULL;
}

const char *catalog_root(struct arena *arena)
{
    const char *given = getenv("FLEETSIM_CATALOG");
    if (given && *given)
        return folder_exists(given) ? arena_copy(arena, given) : NULL;
    const char *path = beside_program(arena);
    if (path)
        return path;
    return folder_exists(FLEETSIM_CATALOG_DIR) ? arena_copy(arena, FLEETSIM_CATALOG_DIR) : NULL;
}

const char *catalog_missing(struct arena *arena)
{
    const char *given = getenv("FLEETSIM_CATALOG");
    if (given && *given)
        return arena_printf(arena, "FLEETSIM_CATALOG names '%s', which is no folder", given);
    return "set FLEETSIM_CATALOG to its folder";
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *catalog_names(enum catalog_kind kind, struct arena *arena)
{
    const char **names = arena_alloc(arena, (CATALOG_NAMES_MAX + 1) * sizeof *names);
    size_t count = 0;
    const char *root = catalog_root(arena);
    DIR *dir = root ? opendir(arena_printf(arena, "%s/%s", root, catalog_folders[kind])) : NULL;
    for (struct dirent *entry; dir && count < CATALOG_NAMES_MAX && (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && dot != entry->d_name && strcmp(dot, ".yaml") == 0)
            names[count++] = arena_copyn(arena, entry->d_name, (size_t)(dot - entry->d_name));
    }
    if (dir)
        closedir(dir);
    qsort(names, count, sizeof *names, name_compare);
    names[count] = NULL;
    return names;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Whether every part of `few` between dashes is a part of `many`, whatever its case. */
static bool parts_within(const char *few, const char *many)
{
    while (*few) {
        size_t length = strcspn(few, "-_ ");
        bool found = false;
        for (const char *at = many; *at && !found;) {
            size_t other = strcspn(at, "-_ ");
            found = other == length && strncasecmp(few, at, length) == 0;
            at += other + (at[other] != '\0');
        }
        if (!found)
            return false;
        few += length + (few[length] != '\0');
    }
    return true;
}

/* ", did you mean 'A' or 'B'?" for the names that share their parts ("llama-70b" is part of
 * llama-3.1-70b, "Llama-3.1-70B-Instruct" holds it), else for the nearest spelling; "" for none. */
static const char *suggestion(enum catalog_kind kind, const char *name, struct arena *arena)
{
    enum { SUGGESTIONS_MAX = 4 };
    const char *const *names = catalog_names(kind, arena);
    const char *slash = strrchr(name, '/');
    const char *word = slash ? slash + 1 : name;
    const char *text = "";
    size_t count = 0;
    for (size_t i = 0; *word && names[i] && count < SUGGESTIONS_MAX; i++)
        if (parts_within(word, names[i]) || parts_within(names[i], word))
            text = arena_printf(arena, "%s%s'%s'", text, count++ ? " or " : "", names[i]);
    if (count > 0)
        return arena_printf(arena, ", did you mean %s?", text);
    const char *nearest = errors_nearest(word, names);
    return nearest ? arena_printf(arena, ", did you mean '%s'?", nearest) : "";
}

const char *catalog_path(enum catalog_kind kind, const char *name, struct arena *arena,
                         struct errors *errors, const struct source_pos *where)
{
    if (strchr(name, '/') || file_exists(name)) {
        const char *path = name;
        if (kind == CATALOG_LLM && folder_exists(name))
            path = arena_printf(arena, "%s/config.json", name);
        if (file_exists(path))
            return path;
        errors_add(errors, SEVERITY_ERROR, where, "cannot open %s file '%s'%s", kind_words[kind],
                   path, suggestion(kind, name, arena));
        return NULL;
    }
    const char *root = catalog_root(arena);
    if (!root) {
        errors_add(errors, SEVERITY_ERROR, where, "no catalogue to look up %s '%s': %s",
                   kind_words[kind], name, catalog_missing(arena));
        return NULL;
    }
    const char *path = arena_printf(arena, "%s/%s/%s.yaml", root, catalog_folders[kind], name);
    if (file_exists(path))
        return path;
    const char *near = suggestion(kind, name, arena);
    if (*near)
        errors_add(errors, SEVERITY_ERROR, where, "unknown %s '%s'%s", kind_words[kind], name,
                   near);
    else
        errors_add(errors, SEVERITY_ERROR, where,
                   "unknown %s '%s' (`fleetsim list %s` names them; a path works too)",
                   kind_words[kind], name, list_words[kind]);
    return NULL;
}

static bool load_yaml(const char *path, const struct field *fields, void *target,
                      struct arena *arena, struct errors *errors)
{
    static const char *const no_folders[] = {NULL};
    struct scenario_request request = {
        .name = path, .folders = no_folders, .root = fields, .target = target};
    struct scenario *file = scenario_load(&request, arena, errors);
    scenario_free(file);
    return file != NULL;
}

static bool ends_with(const char *text, const char *suffix)
{
    size_t length = strlen(text), end = strlen(suffix);
    return length >= end && strcmp(text + length - end, suffix) == 0;
}

const struct llm_spec *catalog_llm(const char *name, struct arena *arena, struct errors *errors,
                                   const struct source_pos *where)
{
    const char *path = catalog_path(CATALOG_LLM, name, arena, errors, where);
    if (!path)
        return NULL;
    struct llm_spec *llm = arena_alloc(arena, sizeof *llm);
    bool ok = ends_with(path, ".json") ? hf_config_load(path, llm, arena, errors)
                                       : load_yaml(path, llm_fields, llm, arena, errors);
    struct source_pos pos = {.file = path};
    return ok && llm_check(llm, errors, &pos) ? llm : NULL;
}

const struct gpu_spec *catalog_gpu(const char *name, struct arena *arena, struct errors *errors,
                                   const struct source_pos *where)
{
    const char *path = catalog_path(CATALOG_GPU, name, arena, errors, where);
    if (!path)
        return NULL;
    struct gpu_spec *gpu = arena_alloc(arena, sizeof *gpu);
    struct source_pos pos = {.file = path};
    bool ok = load_yaml(path, hardware_fields, gpu, arena, errors);
    return ok && hardware_check(gpu, errors, &pos) ? gpu : NULL;
}

const struct price_spec *catalog_price(const char *name, struct arena *arena, struct errors *errors,
                                       const struct source_pos *where)
{
    const char *path = catalog_path(CATALOG_PRICE, name, arena, errors, where);
    if (!path)
        return NULL;
    struct price_spec *price = arena_alloc(arena, sizeof *price);
    struct source_pos pos = {.file = path};
    bool ok = load_yaml(path, price_fields, price, arena, errors);
    return ok && price_check(price, errors, &pos) ? price : NULL;
}
