#include "sim/workload/gzip_whole.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libdeflate.h>

#include "sim/base/arena.h"

enum {
    SMALL_BYTES = 1 << 20,
    TEXT_BYTES = 4 << 20,
    GZIP_BYTES_LEAST = 18, /* of a header and a trailer */
    HEADER_CHECKSUM = 2,   /* a flag; libdeflate does not look at it, zlib does */
};

static bool read_all(int file, unsigned char *to, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t count = read(file, to + got, size - got);
        if (count <= 0)
            return false;
        got += (size_t)count;
    }
    return true;
}

/* The bytes of a small regular file: malloc'd, or NULL. Others are not even opened: a pipe has one
 * reader. */
static unsigned char *small_read(const char *path, size_t *size)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < GZIP_BYTES_LEAST ||
        status.st_size > SMALL_BYTES)
        return NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    *size = (size_t)status.st_size;
    unsigned char *bytes = memory_alloc(*size);
    if (!read_all(file, bytes, *size)) {
        free(bytes);
        bytes = NULL;
    }
    close(file);
    return bytes;
}

/* What the trailer says of the text's length. */
static size_t text_size(const unsigned char *end)
{
    return (size_t)end[-4] | (size_t)end[-3] << 8 | (size_t)end[-2] << 16 | (size_t)end[-1] << 24;
}

static char *inflate_all(const unsigned char *bytes, size_t size, size_t room, size_t *length)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    if (!inflater)
        return NULL;
    char *text = memory_alloc(room + 1);
    size_t taken = 0;
    enum libdeflate_result result =
        libdeflate_gzip_decompress_ex(inflater, bytes, size, text, room, &taken, length);
    libdeflate_free_decompressor(inflater);
    if (result == LIBDEFLATE_SUCCESS && taken == size)
        return text;
    free(text);
    return NULL;
}

char *gzip_whole_read(const char *path, size_t *size)
{
    size_t packed = 0;
    unsigned char *bytes = small_read(path, &packed);
    if (!bytes)
        return NULL;
    char *text = NULL;
    size_t room = text_size(bytes + packed);
    bool gzip = bytes[0] == 0x1f && bytes[1] == 0x8b && (bytes[3] & HEADER_CHECKSUM) == 0;
    if (gzip && room <= TEXT_BYTES)
        text = inflate_all(bytes, packed, room, size);
    free(bytes);
    return text;
}
