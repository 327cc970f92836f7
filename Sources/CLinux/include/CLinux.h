#ifndef CONCLAVE_CLINUX_H
#define CONCLAVE_CLINUX_H

/* Linux calls for datagrams that Swift's Glibc module does not show. Errors come back as -errno. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address in the form of MediaModel's SocketAddress: 16 bytes as two words in host order, IPv4 as ::ffff:a.b.c.d. */
typedef struct {
  uint64_t high, low;
  uint32_t scope;
  uint16_t port;
} clinux_address;

/* --- UDP sockets --- */

/* A non-blocking UDP socket on all addresses; `ipv6` means both families. */
int clinux_udp_open(bool ipv6, uint16_t port);
/* Requests buffers of `bytes`, beyond the system's limit if the process may. */
void clinux_udp_size_buffers(int fd, int bytes);
int clinux_udp_receive_buffer(int fd);
int clinux_udp_send_buffer(int fd);
int clinux_udp_enable_gro(int fd);
/* Makes the kernel report with each datagram to which local address it came. */
int clinux_udp_enable_local_addresses(int fd, bool ipv6);
/* Makes the kernel report with each datagram when it arrived. */
int clinux_udp_enable_arrival_times(int fd);
/* Whether the kernel supports UDP_SEGMENT (4.18). */
bool clinux_udp_knows_gso(int fd);
int clinux_udp_port(int fd);
/* Datagrams that the kernel dropped because the receive buffer was full; wraps at 2^32. */
uint32_t clinux_udp_receive_drops(int fd);

/* --- TCP --- */

/* A non-blocking listener on all addresses; `ipv6` means both families. */
int clinux_tcp_listen(bool ipv6, uint16_t port);
/* A non-blocking connection whose sends return -EAGAIN while `unsent` bytes wait in the kernel. */
int clinux_tcp_accept(int fd, clinux_address *from, int unsent);
/* Number of bytes; when receiving, 0 at the end. */
int clinux_tcp_receive(int fd, void *bytes, size_t capacity);
int clinux_tcp_send(int fd, const void *bytes, size_t length);

/* --- Batches: an array of mmsghdr with everything that its entries point at --- */

typedef struct clinux_messages clinux_messages;

typedef struct {
  clinux_address source;
  /* The local address to which it came, with port 0; all zero if the kernel did not say. */
  clinux_address local;
  uint32_t length;
  /* Length of each datagram in it (UDP_GRO), or 0 if it is one datagram. */
  uint32_t segment;
  bool truncated;
  /* CLOCK_REALTIME in nanoseconds when the kernel received it; 0 if the kernel did not say. */
  uint64_t arrival;
} clinux_received;

clinux_messages *clinux_messages_create(unsigned capacity, bool ipv6);
void clinux_messages_destroy(clinux_messages *messages);

/*
 * `segment` 0: one datagram; else UDP_SEGMENT. `from` is a local address from which to send; with NULL the kernel
 * chooses.
 */
void clinux_messages_set(
  clinux_messages *messages, unsigned index, void *base, size_t length, uint16_t segment, clinux_address to,
  const clinux_address *from);
/* Number of messages sent, or -errno of the first. */
int clinux_messages_send(clinux_messages *messages, int fd, unsigned first, unsigned count);

void clinux_messages_prepare(clinux_messages *messages, unsigned index, void *base, size_t capacity);
/* Number of messages received into the prepared ones, or -errno. */
int clinux_messages_receive(clinux_messages *messages, int fd, unsigned count);
clinux_received clinux_messages_received(const clinux_messages *messages, unsigned index);

/* --- Waiting --- */

int clinux_epoll_create(void);
int clinux_epoll_add_readable(int epoll, int fd, uint64_t token);
/* From now on reports the given events; failure and the end are always reported. */
int clinux_epoll_change(int epoll, int fd, uint64_t token, bool readable, bool writable);
/* Both directions, edge-triggered. */
int clinux_epoll_add_edges(int epoll, int fd, uint64_t token);
/*
 * Fills `tokens` with those that are readable (or failed); a negative timeout waits forever. Returns their number or
 * -errno.
 */
int clinux_epoll_wait(int epoll, uint64_t *tokens, int capacity, int64_t nanoseconds);

int clinux_eventfd_create(void);
void clinux_eventfd_signal(int fd);
void clinux_eventfd_drain(int fd);

/* --- Threads and interfaces --- */

/* The processors on which this process may run: writes up to `capacity` numbers, returns how many. */
int clinux_processors(int *processors, int capacity);
int clinux_pin_thread(int processor);
void clinux_name_thread(const char *name);
/*
 * Raises the nice value of only this thread, so that it runs while other threads of the process do not need the
 * processor.
 */
void clinux_lower_thread(void);

typedef void (*clinux_address_visitor)(void *context, clinux_address address);
/* Calls `visit` for each address of each interface that is up. */
int clinux_visit_addresses(clinux_address_visitor visit, void *context);

#endif
