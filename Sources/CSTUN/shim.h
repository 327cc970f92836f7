#ifndef CONCLAVE_CSTUN_SHIM_H
#define CONCLAVE_CSTUN_SHIM_H

#include <endian.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <stun/stunagent.h>
#include <stun/usages/ice.h>

// The attributes that this side understands. Any other one below 0x8000 causes a request to be answered with 420 (RFC
// 8489 section 6.3.1).
static const uint16_t cstun_known_attributes[] = {
    STUN_ATTRIBUTE_MAPPED_ADDRESS, STUN_ATTRIBUTE_USERNAME,
    STUN_ATTRIBUTE_MESSAGE_INTEGRITY, STUN_ATTRIBUTE_ERROR_CODE,
    STUN_ATTRIBUTE_UNKNOWN_ATTRIBUTES, STUN_ATTRIBUTE_XOR_MAPPED_ADDRESS,
    STUN_ATTRIBUTE_PRIORITY, STUN_ATTRIBUTE_USE_CANDIDATE, 0};

static inline void cstun_agent_init(StunAgent *agent) {
  stun_agent_init(agent, cstun_known_attributes, STUN_COMPATIBILITY_RFC5389,
                  (StunAgentUsageFlags)(STUN_AGENT_USAGE_SHORT_TERM_CREDENTIALS |
                                        STUN_AGENT_USAGE_USE_FINGERPRINT));
}

// Whether the datagram is exactly one well-formed message whose MESSAGE-INTEGRITY is as long as a SHA-1 tag:
// stun_agent_validate reads 20 bytes there without checking the attribute's length. Finds USERNAME.
static inline bool cstun_inspect(StunAgent *agent, const uint8_t *datagram, size_t length,
                                 const uint8_t **username, uint16_t *username_length) {
  if (stun_message_validate_buffer_length(datagram, length, true) != (int)length) return false;
  StunMessage message = {.agent = agent, .buffer = (uint8_t *)datagram, .buffer_len = length};
  uint16_t integrity_length = 0;
  if (!stun_message_find(&message, STUN_ATTRIBUTE_MESSAGE_INTEGRITY, &integrity_length)) return false;
  if (integrity_length != 20) return false;
  *username = (const uint8_t *)stun_message_find(&message, STUN_ATTRIBUTE_USERNAME, username_length);
  return true;
}

typedef struct {
  const uint8_t *bytes;
  size_t length;
} cstun_key;

static inline bool cstun_give_key(StunAgent *agent, StunMessage *message, uint8_t *username,
                                  uint16_t username_length, uint8_t **password,
                                  size_t *password_length, void *key) {
  *password = (uint8_t *)((cstun_key *)key)->bytes;
  *password_length = ((cstun_key *)key)->length;
  return true;
}

// The message keeps pointing to the datagram and the key.
static inline StunValidationStatus cstun_validate(StunAgent *agent, StunMessage *message,
                                                  const uint8_t *datagram, size_t length,
                                                  const uint8_t *password, size_t password_length) {
  cstun_key key = {password, password_length};
  return stun_agent_validate(agent, message, datagram, length, cstun_give_key, &key);
}

// Answers a validated request in a role that never changes: with the lowest tie-breaker as the controlled agent and the
// highest as the controlling one, so that a peer that wants the same role is told by error 487 to switch (RFC 8445
// section 7.3.1.1). The address is in two host-order words of its big-endian bytes, IPv4 as ::ffff:a.b.c.d.
static inline StunUsageIceReturn cstun_reply(StunAgent *agent, StunMessage *request, uint8_t *reply,
                                             size_t *length, uint64_t high, uint64_t low, uint16_t port,
                                             bool controlling) {
  struct sockaddr_storage source;
  socklen_t source_length;
  memset(&source, 0, sizeof source);
  if (high == 0 && low >> 32 == 0xffff) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&source;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    v4->sin_addr.s_addr = htonl((uint32_t)low);
    source_length = sizeof *v4;
  } else {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&source;
    uint64_t words[2] = {htobe64(high), htobe64(low)};
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    memcpy(&v6->sin6_addr, words, sizeof words);
    source_length = sizeof *v6;
  }
  StunMessage message;
  memset(&message, 0, sizeof message);
  return stun_usage_ice_conncheck_create_reply(agent, request, &message, reply, length, &source,
                                               source_length, &controlling, controlling ? UINT64_MAX : 0,
                                               STUN_USAGE_ICE_COMPATIBILITY_RFC5245);
}

// The mapped address of a validated response.
static inline StunUsageIceReturn cstun_mapped_address(StunMessage *response, uint64_t *high,
                                                      uint64_t *low, uint16_t *port) {
  struct sockaddr_storage mapped;
  socklen_t length = sizeof mapped;
  memset(&mapped, 0, sizeof mapped);
  StunUsageIceReturn result = stun_usage_ice_conncheck_process(
      response, &mapped, &length, STUN_USAGE_ICE_COMPATIBILITY_RFC5245);
  if (result != STUN_USAGE_ICE_RETURN_SUCCESS) return result;
  if (mapped.ss_family == AF_INET) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)&mapped;
    *high = 0;
    *low = 0xffff00000000 | ntohl(v4->sin_addr.s_addr);
    *port = ntohs(v4->sin_port);
  } else {
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&mapped;
    uint64_t words[2];
    memcpy(words, &v6->sin6_addr, sizeof words);
    *high = be64toh(words[0]);
    *low = be64toh(words[1]);
    *port = ntohs(v6->sin6_port);
  }
  return result;
}

#endif
