/* Runs every file of the folders named on the command line through the fuzz target it is linked
 * with. An empty or missing folder is a failure: a regression test that runs nothing is none. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

/* Feeds one file; the copy has the exact size, so that ASan sees a read past its end. */
static void driver_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long size = ftell(file);
    rewind(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (size < 0 || !data || fread(data, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static unsigned driver_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        exit(1);
    }
    unsigned inputs = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            driver_file(path);
            inputs++;
        }
    }
    closedir(dir);
    return inputs;
}

int main(int argc, char **argv)
{
    unsigned inputs = 0;
    for (int i = 1; i < argc; i++) {
        inputs += driver_folder(argv[i]);
    }
    printf("%u inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
