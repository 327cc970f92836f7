// Preloaded into the server, this sendmmsg keeps the thread busy for NANOSECONDS per 1,200 bytes, so that a small call is more than a worker can carry.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static unsigned long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ul + time.tv_nsec;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
  unsigned long bytes = 0;
  for (unsigned i = 0; i < count; i++) bytes += messages[i].msg_hdr.msg_iov->iov_len;
  unsigned long end = now() + bytes * strtoul(getenv("NANOSECONDS"), NULL, 10) / 1200;
  while (now() < end) {}
  int (*send)(int, struct mmsghdr *, unsigned, int) = dlsym(RTLD_NEXT, "sendmmsg");
  return send(fd, messages, count, flags);
}
