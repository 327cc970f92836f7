#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

typedef struct {
  struct sockaddr_in6 address;
  struct iovec data;
  /*
   * UDP_SEGMENT is a uint16_t when sending, UDP_GRO an int when receiving; the local address in both directions; the
   * time of arrival when receiving.
   */
  _Alignas(struct cmsghdr) char
    control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct timespec))];
} slot;

struct clinux_messages {
  bool ipv6;
  /* Headers to which the last receive has written and which the next must reset. */
  unsigned used;
  struct mmsghdr *headers;
  slot *slots;
};

clinux_messages *clinux_messages_create(unsigned capacity, bool ipv6) {
  clinux_messages *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->ipv6 = ipv6;
  m->headers = calloc(capacity, sizeof *m->headers);
  m->slots = calloc(capacity, sizeof *m->slots);
  if (!m->headers || !m->slots) {
    clinux_messages_destroy(m);
    return NULL;
  }
  for (unsigned i = 0; i < capacity; i++) {
    struct msghdr *h = &m->headers[i].msg_hdr;
    h->msg_name = &m->slots[i].address;
    h->msg_iov = &m->slots[i].data;
    h->msg_iovlen = 1;
    h->msg_control = m->slots[i].control;
  }
  return m;
}

void clinux_messages_destroy(clinux_messages *m) {
  free(m->headers);
  free(m->slots);
  free(m);
}

/* Appends a control message to `h`. */
static void attach(struct msghdr *h, int level, int type, const void *value, size_t size) {
  struct cmsghdr *c = (struct cmsghdr *)((char *)h->msg_control + h->msg_controllen);
  c->cmsg_level = level;
  c->cmsg_type = type;
  c->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(c), value, size);
  h->msg_controllen += CMSG_SPACE(size);
}

/*
 * The interface stays open, because routes decide it, except for link-local destinations, whose address names it (RFC
 * 3542 section 6.2).
 */
static void attach_local(clinux_messages *m, struct msghdr *h, const clinux_address *from) {
  if (m->ipv6) {
    struct in6_pktinfo info = {.ipi6_ifindex = 0};
    uint64_t words[2] = {htobe64(from->high), htobe64(from->low)};
    memcpy(&info.ipi6_addr, words, sizeof words);
    attach(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
  } else {
    struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl((uint32_t)from->low)};
    attach(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
}

void clinux_messages_set(
  clinux_messages *m, unsigned index, void *base, size_t length, uint16_t segment, clinux_address to,
  const clinux_address *from) {
  struct msghdr *h = &m->headers[index].msg_hdr;
  slot *s = &m->slots[index];
  h->msg_namelen = clinux_write_address(&s->address, to, m->ipv6);
  s->data = (struct iovec){.iov_base = base, .iov_len = length};
  h->msg_controllen = 0;
  if (segment) attach(h, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
  if (from) attach_local(m, h, from);
}

int clinux_messages_send(clinux_messages *m, int fd, unsigned first, unsigned count) {
  int sent;
  do sent = sendmmsg(fd, m->headers + first, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

static void reset(clinux_messages *m, unsigned index) {
  struct msghdr *h = &m->headers[index].msg_hdr;
  h->msg_namelen = sizeof m->slots[index].address;
  h->msg_controllen = sizeof m->slots[index].control;
  h->msg_flags = 0;
}

void clinux_messages_prepare(clinux_messages *m, unsigned index, void *base, size_t capacity) {
  m->slots[index].data = (struct iovec){.iov_base = base, .iov_len = capacity};
  reset(m, index);
}

int clinux_messages_receive(clinux_messages *m, int fd, unsigned count) {
  for (unsigned i = 0; i < m->used; i++) reset(m, i);
  m->used = 0;
  int received;
  do received = recvmmsg(fd, m->headers, count, MSG_DONTWAIT, NULL);
  while (received < 0 && errno == EINTR);
  if (received < 0) return -errno;
  m->used = (unsigned)received;
  return received;
}

clinux_received clinux_messages_received(const clinux_messages *m, unsigned index) {
  struct msghdr *h = &m->headers[index].msg_hdr;
  clinux_received r = {
    .source = clinux_read_address(h->msg_name),
    .length = m->headers[index].msg_len,
    .truncated = (h->msg_flags & MSG_TRUNC) != 0};
  for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
    if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      int segment;
      memcpy(&segment, CMSG_DATA(c), sizeof segment);
      if (segment > 0 && (uint32_t)segment < r.length) r.segment = (uint32_t)segment;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      struct in6_pktinfo info;
      memcpy(&info, CMSG_DATA(c), sizeof info);
      uint64_t words[2];
      memcpy(words, &info.ipi6_addr, sizeof words);
      r.local = (clinux_address){.high = be64toh(words[0]), .low = be64toh(words[1])};
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      struct in_pktinfo info;
      memcpy(&info, CMSG_DATA(c), sizeof info);
      r.local = (clinux_address){.low = clinux_mapped | ntohl(info.ipi_addr.s_addr)};
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec time;
      memcpy(&time, CMSG_DATA(c), sizeof time);
      r.arrival = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    }
  }
  return r;
}
