#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int clinux_tcp_listen(bool ipv6, uint16_t port) {
  int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int on = 1, off = 0;
  struct sockaddr_in6 any;
  socklen_t length = clinux_write_address(&any, (clinux_address){.port = port}, ipv6);
  /* Connections of a previous server process may still be in TIME_WAIT. */
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0
      && (!ipv6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0)
      && bind(fd, (struct sockaddr *)&any, length) == 0 && listen(fd, SOMAXCONN) == 0)
    return fd;
  int code = errno;
  close(fd);
  return -code;
}

int clinux_tcp_accept(int fd, clinux_address *from, int unsent) {
  struct sockaddr_in6 address;
  socklen_t length = sizeof address;
  int connection;
  do connection = accept4(fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  while (connection < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (connection < 0) return -errno;
  int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(connection, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
  *from = clinux_read_address(&address);
  return connection;
}

int clinux_tcp_receive(int fd, void *bytes, size_t capacity) {
  ssize_t count;
  do count = recv(fd, bytes, capacity, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : (int)count;
}

int clinux_tcp_send(int fd, const void *bytes, size_t length) {
  ssize_t count;
  do count = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (count < 0 && errno == EINTR);
  return count < 0 ? -errno : (int)count;
}
