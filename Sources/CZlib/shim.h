#pragma once
#include <zlib.h>

// deflateInit2 is a macro. Window bits above 15 select the gzip format (RFC 1952).
static inline int conclave_begin_gzip(z_stream *stream) {
  return deflateInit2(stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY);
}
