#ifndef CONCLAVE_CLINUX_ADDRESS_H
#define CONCLAVE_CLINUX_ADDRESS_H

#include "CLinux.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

static const uint64_t clinux_mapped = 0xffffull << 32;

static inline socklen_t clinux_write_address(void *out, clinux_address a, bool ipv6) {
  if (!ipv6) {
    struct sockaddr_in *v4 = out;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(a.port)};
    v4->sin_addr.s_addr = htonl((uint32_t)a.low);
    return sizeof *v4;
  }
  struct sockaddr_in6 *v6 = out;
  uint64_t words[2] = {htobe64(a.high), htobe64(a.low)};
  *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(a.port), .sin6_scope_id = a.scope};
  memcpy(&v6->sin6_addr, words, sizeof words);
  return sizeof *v6;
}

static inline clinux_address clinux_read_address(const void *in) {
  const struct sockaddr *any = in;
  if (any->sa_family == AF_INET) {
    const struct sockaddr_in *v4 = in;
    return (clinux_address){.low = clinux_mapped | ntohl(v4->sin_addr.s_addr), .port = ntohs(v4->sin_port)};
  }
  const struct sockaddr_in6 *v6 = in;
  uint64_t words[2];
  memcpy(words, &v6->sin6_addr, sizeof words);
  return (clinux_address){
    .high = be64toh(words[0]), .low = be64toh(words[1]), .scope = v6->sin6_scope_id, .port = ntohs(v6->sin6_port)};
}

#endif
