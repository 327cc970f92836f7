#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_ADDR_PREFERENCES
#define IPV6_ADDR_PREFERENCES 72
#endif
#define CLINUX_PREFER_SRC_PUBLIC 0x0002 /* linux/in6.h, which can't stand beside netinet/in.h */

int clinux_udp_open(bool ipv6, uint16_t port) {
  int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  if (ipv6) {
    int off = 0, public = CLINUX_PREFER_SRC_PUBLIC;
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) goto fail;
    /* Candidates are the stable addresses; an answer from a temporary one (RFC 8981) would fail the peer's check. */
    setsockopt(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, &public, sizeof public);
  }
  struct sockaddr_in6 any;
  socklen_t length = clinux_write_address(&any, (clinux_address){.port = port}, ipv6);
  if (bind(fd, (struct sockaddr *)&any, length) == 0) return fd;
fail:;
  int code = errno;
  close(fd);
  return -code;
}

void clinux_udp_size_buffers(int fd, int bytes) {
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) < 0)
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static int integer(int fd, int level, int option) {
  int value = 0;
  socklen_t length = sizeof value;
  return getsockopt(fd, level, option, &value, &length) < 0 ? -errno : value;
}

/* The kernel reports twice the requested size, for its own book-keeping (socket(7)). */
int clinux_udp_receive_buffer(int fd) { return integer(fd, SOL_SOCKET, SO_RCVBUF) / 2; }
int clinux_udp_send_buffer(int fd) { return integer(fd, SOL_SOCKET, SO_SNDBUF) / 2; }

int clinux_udp_enable_gro(int fd) {
  int on = 1;
  return setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) < 0 ? -errno : 0;
}

int clinux_udp_enable_local_addresses(int fd, bool ipv6) {
  int on = 1;
  /* On a socket of both families the IPv6 option also reports mapped IPv4 addresses. */
  int result = ipv6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) : setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  return result < 0 ? -errno : 0;
}

int clinux_udp_enable_arrival_times(int fd) {
  int on = 1;
  return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0 ? -errno : 0;
}

bool clinux_udp_knows_gso(int fd) { return integer(fd, IPPROTO_UDP, UDP_SEGMENT) >= 0; }

int clinux_udp_port(int fd) {
  struct sockaddr_in6 address;
  socklen_t length = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &length) < 0) return -errno;
  return clinux_read_address(&address).port;
}

uint32_t clinux_udp_receive_drops(int fd) {
  uint32_t info[SK_MEMINFO_VARS] = {0};
  socklen_t length = sizeof info;
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) < 0) return 0;
  return info[SK_MEMINFO_DROPS];
}
