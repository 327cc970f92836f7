#define _GNU_SOURCE
#include "address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

int clinux_epoll_create(void) {
  int fd = epoll_create1(EPOLL_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int clinux_epoll_add_readable(int epoll, int fd, uint64_t token) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = token};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int clinux_epoll_change(int epoll, int fd, uint64_t token, bool readable, bool writable) {
  struct epoll_event event = {.events = (readable ? EPOLLIN : 0) | (writable ? EPOLLOUT : 0), .data.u64 = token};
  return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) < 0 ? -errno : 0;
}

int clinux_epoll_add_edges(int epoll, int fd, uint64_t token) {
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = token};
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* epoll_pwait2 came with Linux 5.11; older container filters return EPERM for calls that they do not know. */
static atomic_bool coarse;

static int wait_for(int epoll, struct epoll_event *events, int capacity, int64_t nanoseconds) {
  if (!atomic_load_explicit(&coarse, memory_order_relaxed)) {
    struct timespec t = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    int n = epoll_pwait2(epoll, events, capacity, nanoseconds < 0 ? NULL : &t, NULL);
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) return n;
    atomic_store_explicit(&coarse, true, memory_order_relaxed);
  }
  int64_t milliseconds = nanoseconds < 0 ? -1 : (nanoseconds + 999999) / 1000000;
  return epoll_wait(epoll, events, capacity, milliseconds > 1000000 ? 1000000 : (int)milliseconds);
}

int clinux_epoll_wait(int epoll, uint64_t *tokens, int capacity, int64_t nanoseconds) {
  struct epoll_event events[16];
  int n = wait_for(epoll, events, capacity < 16 ? capacity : 16, nanoseconds);
  if (n < 0) return errno == EINTR ? 0 : -errno;
  for (int i = 0; i < n; i++) tokens[i] = events[i].data.u64;
  return n;
}

int clinux_eventfd_create(void) {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

/* EAGAIN means that the counter is full: the reader will wake up anyway. */
void clinux_eventfd_signal(int fd) {
  uint64_t one = 1;
  while (write(fd, &one, sizeof one) < 0 && errno == EINTR) {}
}

void clinux_eventfd_drain(int fd) {
  uint64_t count;
  while (read(fd, &count, sizeof count) < 0 && errno == EINTR) {}
}

int clinux_processors(int *processors, int capacity) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) < 0) return 0;
  int count = 0;
  for (int i = 0; i < CPU_SETSIZE && count < capacity; i++)
    if (CPU_ISSET(i, &set)) processors[count++] = i;
  return count;
}

int clinux_pin_thread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return -pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void clinux_lower_thread(void) { setpriority(PRIO_PROCESS, gettid(), 10); }

void clinux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int clinux_visit_addresses(clinux_address_visitor visit, void *context) {
  struct ifaddrs *list;
  if (getifaddrs(&list) < 0) return -errno;
  for (struct ifaddrs *i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
    if (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6)
      visit(context, clinux_read_address(i->ifa_addr));
  }
  freeifaddrs(list);
  return 0;
}
