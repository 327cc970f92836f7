// The ways in which Linux lets a program send runs of datagrams to 50 receivers, from one thread. `loadtest/tools/send-ways` runs it on two devices.
//   send-ways ROUNDS DESTINATION [DEVICE SOURCE-MAC DESTINATION-MAC]
// Prints "NAME|1|4|16": the CPU time of this process in ns for each datagram of 1,200 bytes, in runs of 1, 4 and 16 for each receiver, the best of several
// rounds; "-" where a way is not available. Without a device the datagrams go to sockets that nobody reads.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/if_xdp.h>
#include <linux/io_uring.h>
#include <linux/net_tstamp.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RECEIVERS = 50, LONGEST = 16, LENGTH = 1200, PORT = 40000, SLOT = 2048, RING = 2048 };

static unsigned char payload[RECEIVERS][LONGEST * LENGTH];
static struct sockaddr_in inet_address[RECEIVERS];
static struct sockaddr_in6 mapped_address[RECEIVERS];
static int rounds, run;

static void check(int isRight, const char *what) {
  if (isRight) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static int open_socket(int family) {
  int descriptor = socket(family, SOCK_DGRAM, 0), size = 8 << 20;
  check(descriptor >= 0, "socket");
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
  return descriptor;
}

// Messages with ancillary data: a run for each receiver.

static int messages_socket;
static struct mmsghdr messages[RECEIVERS * LONGEST];
static struct iovec parts[RECEIVERS * LONGEST];
static unsigned char ancillary[RECEIVERS][128];
static int message_count, message_flags;

static void *add_ancillary(struct msghdr *message, int level, int type, int length) {
  struct cmsghdr *header = (struct cmsghdr *)((char *)message->msg_control + message->msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(length);
  message->msg_controllen += CMSG_SPACE(length);
  return CMSG_DATA(header);
}

/// One message for each receiver, or for each datagram.
static void make_messages(int isMapped, int isRun, int hasSource, int hasTime) {
  memset(messages, 0, sizeof messages);
  memset(ancillary, 0, sizeof ancillary);
  messages_socket = open_socket(isMapped ? AF_INET6 : AF_INET);
  message_count = isRun ? RECEIVERS : RECEIVERS * run;
  message_flags = 0;
  for (int i = 0; i < message_count; i++) {
    int receiver = isRun ? i : i / run;
    struct msghdr *message = &messages[i].msg_hdr;
    message->msg_name = isMapped ? (void *)&mapped_address[receiver] : (void *)&inet_address[receiver];
    message->msg_namelen = isMapped ? sizeof mapped_address[0] : sizeof inet_address[0];
    parts[i].iov_base = payload[receiver] + (isRun ? 0 : i % run * LENGTH);
    parts[i].iov_len = isRun ? run * LENGTH : LENGTH;
    message->msg_iov = &parts[i];
    message->msg_iovlen = 1;
    if (!isRun) continue;
    message->msg_control = ancillary[i];
    if (run > 1) *(uint16_t *)add_ancillary(message, SOL_UDP, UDP_SEGMENT, 2) = LENGTH;
    if (hasSource) {
      // Any interface, and any local IPv4 address.
      struct in6_pktinfo *source = add_ancillary(message, IPPROTO_IPV6, IPV6_PKTINFO, sizeof *source);
      source->ipi6_addr.s6_addr[10] = source->ipi6_addr.s6_addr[11] = 0xff;
    }
    if (hasTime) add_ancillary(message, SOL_SOCKET, SCM_TXTIME, 8);
  }
}

static void send_messages(void) {
  for (int sent = 0; sent < message_count;) {
    int result = sendmmsg(messages_socket, messages + sent, message_count - sent < 64 ? message_count - sent : 64, message_flags);
    if (result < 0 && errno == ECONNREFUSED) continue;
    check(result > 0, "sendmmsg");
    sent += result;
  }
}

static void close_messages(void) { close(messages_socket); }

static int mapped_run(void) { return make_messages(1, 1, 0, 0), 1; }
static int mapped_run_source(void) { return make_messages(1, 1, 1, 0), 1; }
static int inet_run(void) { return make_messages(0, 1, 0, 0), 1; }
static int inet_single(void) { return make_messages(0, 0, 0, 0), 1; }

static int inet_time(void) {
  struct sock_txtime option = {.clockid = CLOCK_MONOTONIC};
  make_messages(0, 1, 0, 1);
  return setsockopt(messages_socket, SOL_SOCKET, SO_TXTIME, &option, sizeof option) == 0;
}

static void send_timed(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t due = time.tv_sec * 1000000000ull + time.tv_nsec;
  for (int i = 0; i < RECEIVERS; i++) {
    struct msghdr *message = &messages[i].msg_hdr;
    memcpy((char *)message->msg_control + message->msg_controllen - CMSG_SPACE(8) + CMSG_LEN(0), &due, 8);
  }
  send_messages();
}

static int inet_zero_copy(void) {
  int on = 1;
  make_messages(0, 1, 0, 0);
  message_flags = MSG_ZEROCOPY;
  return setsockopt(messages_socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0;
}

/// Sends, and waits until the kernel has released the memory.
static void send_zero_copy(void) {
  send_messages();
  for (int left = message_count; left > 0;) {
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(messages_socket, &message, MSG_ERRQUEUE) < 0) continue;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    struct sock_extended_err *error = (struct sock_extended_err *)CMSG_DATA(header);
    if (error->ee_origin == SO_EE_ORIGIN_ZEROCOPY) left -= error->ee_data - error->ee_info + 1;
  }
}

// A connected socket for each receiver.

static int connected[RECEIVERS];

static int connect_all(void) {
  for (int i = 0; i < RECEIVERS; i++) {
    int length = LENGTH;
    connected[i] = open_socket(AF_INET);
    check(connect(connected[i], (struct sockaddr *)&inet_address[i], sizeof inet_address[i]) == 0, "connect");
    if (run > 1) check(setsockopt(connected[i], SOL_UDP, UDP_SEGMENT, &length, sizeof length) == 0, "UDP_SEGMENT");
  }
  return 1;
}

static void send_connected(void) {
  for (int i = 0; i < RECEIVERS; i++) {
    while (send(connected[i], payload[i], run * LENGTH, 0) < 0) check(errno == ECONNREFUSED, "send");
  }
}

static void close_all(void) {
  for (int i = 0; i < RECEIVERS; i++) close(connected[i]);
}

// io_uring, without its library: one submission for all receivers.

static struct {
  int descriptor;
  void *memory, *entries_memory;
  size_t length, entries_length;
  unsigned *submit_tail, submit_mask, *submit_array, *complete_head, *complete_tail, complete_mask;
  struct io_uring_sqe *entries;
  struct io_uring_cqe *results;
} ring;

static int open_ring(void) {
  struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
  ring.descriptor = syscall(SYS_io_uring_setup, 128, &parameters);
  if (ring.descriptor < 0) return 0;
  ring.length = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
  ring.entries_length = parameters.sq_entries * sizeof(struct io_uring_sqe);
  char *memory = ring.memory = mmap(0, ring.length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.descriptor, IORING_OFF_SQ_RING);
  ring.entries_memory = mmap(0, ring.entries_length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.descriptor, IORING_OFF_SQES);
  check(memory != MAP_FAILED && ring.entries_memory != MAP_FAILED, "mmap");
  ring.entries = ring.entries_memory;
  ring.submit_tail = (unsigned *)(memory + parameters.sq_off.tail);
  ring.submit_mask = *(unsigned *)(memory + parameters.sq_off.ring_mask);
  ring.submit_array = (unsigned *)(memory + parameters.sq_off.array);
  ring.complete_head = (unsigned *)(memory + parameters.cq_off.head);
  ring.complete_tail = (unsigned *)(memory + parameters.cq_off.tail);
  ring.complete_mask = *(unsigned *)(memory + parameters.cq_off.ring_mask);
  ring.results = (struct io_uring_cqe *)(memory + parameters.cq_off.cqes);
  return 1;
}

static void close_ring(void) {
  munmap(ring.memory, ring.length);
  munmap(ring.entries_memory, ring.entries_length);
  close(ring.descriptor);
}

static struct io_uring_sqe *entry(int i) {
  unsigned index = (*ring.submit_tail + i) & ring.submit_mask;
  ring.submit_array[index] = index;
  memset(&ring.entries[index], 0, sizeof ring.entries[index]);
  return &ring.entries[index];
}

/// Submits the entries and waits for that number of results.
static void submit(int entries, int results) {
  __atomic_store_n(ring.submit_tail, *ring.submit_tail + entries, __ATOMIC_RELEASE);
  for (int left = results; left > 0; entries = 0) {
    int result = syscall(SYS_io_uring_enter, ring.descriptor, entries, left < 64 ? left : 64, IORING_ENTER_GETEVENTS, 0, 0);
    check(result >= 0, "io_uring_enter");
    unsigned head = *ring.complete_head, tail = __atomic_load_n(ring.complete_tail, __ATOMIC_ACQUIRE);
    for (; head != tail; head++, left--) {
      int code = ring.results[head & ring.complete_mask].res;
      errno = -code;
      check(code >= 0 || code == -ECONNREFUSED, "a send of io_uring");
    }
    __atomic_store_n(ring.complete_head, head, __ATOMIC_RELEASE);
  }
}

static int ring_run(void) {
  make_messages(0, 1, 0, 0);
  return open_ring();
}

static void send_by_ring(void) {
  for (int i = 0; i < RECEIVERS; i++) {
    struct io_uring_sqe *next = entry(i);
    next->opcode = IORING_OP_SENDMSG;
    next->fd = messages_socket;
    next->addr = (uint64_t)(uintptr_t)&messages[i].msg_hdr;
    next->len = 1;
  }
  submit(RECEIVERS, RECEIVERS);
}

static void close_ring_run(void) {
  close_ring();
  close_messages();
}

/// Uses registered memory without copying; the segment length is a socket option.
static int ring_zero_copy(void) {
  int length = LENGTH;
  struct iovec memory = {payload, sizeof payload};
  messages_socket = open_socket(AF_INET);
  if (run > 1) check(setsockopt(messages_socket, SOL_UDP, UDP_SEGMENT, &length, sizeof length) == 0, "UDP_SEGMENT");
  return open_ring() && syscall(SYS_io_uring_register, ring.descriptor, IORING_REGISTER_BUFFERS, &memory, 1) == 0;
}

static void send_zero_copy_by_ring(void) {
  for (int i = 0; i < RECEIVERS; i++) {
    struct io_uring_sqe *next = entry(i);
    next->opcode = IORING_OP_SEND_ZC;
    next->fd = messages_socket;
    next->addr = (uint64_t)(uintptr_t)payload[i];
    next->len = run * LENGTH;
    next->addr2 = (uint64_t)(uintptr_t)&inet_address[i];
    next->addr_len = sizeof inet_address[i];
    next->ioprio = IORING_RECVSEND_FIXED_BUF;
  }
  // One result when it has been sent, another when the memory is free again.
  submit(RECEIVERS, 2 * RECEIVERS);
}

// AF_XDP: whole frames, bypassing the kernel's IP and UDP. The kernel copies them, since the drivers of these devices do not share memory.

static const char *device;
static unsigned char link_header[14];
static struct {
  int descriptor;
  unsigned char *memory;
  struct xdp_mmap_offsets offsets;
  void *transmit, *complete;
  unsigned sent;
} express;

static int open_express(void) {
  if (!device) return 0;
  int size = RING;
  socklen_t length = sizeof express.offsets;
  express.memory = mmap(0, RING * SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  struct xdp_umem_reg memory = {.addr = (uint64_t)(uintptr_t)express.memory, .len = RING * SLOT, .chunk_size = SLOT};
  express.descriptor = socket(AF_XDP, SOCK_RAW, 0);
  express.sent = 0;
  if (express.descriptor < 0 || setsockopt(express.descriptor, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) < 0) return 0;
  check(setsockopt(express.descriptor, SOL_XDP, XDP_UMEM_FILL_RING, &size, sizeof size) == 0, "XDP_UMEM_FILL_RING");
  check(setsockopt(express.descriptor, SOL_XDP, XDP_UMEM_COMPLETION_RING, &size, sizeof size) == 0, "XDP_UMEM_COMPLETION_RING");
  check(setsockopt(express.descriptor, SOL_XDP, XDP_TX_RING, &size, sizeof size) == 0, "XDP_TX_RING");
  check(getsockopt(express.descriptor, SOL_XDP, XDP_MMAP_OFFSETS, &express.offsets, &length) == 0, "XDP_MMAP_OFFSETS");
  express.transmit = mmap(0, express.offsets.tx.desc + RING * sizeof(struct xdp_desc), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, express.descriptor, XDP_PGOFF_TX_RING);
  express.complete = mmap(0, express.offsets.cr.desc + RING * 8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, express.descriptor, XDP_UMEM_PGOFF_COMPLETION_RING);
  check(express.transmit != MAP_FAILED && express.complete != MAP_FAILED, "mmap");
  struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_ifindex = if_nametoindex(device), .sxdp_flags = XDP_COPY};
  // The kernel frees an earlier socket's queue a moment after it was closed.
  for (int tries = 0; tries < 200; tries++) {
    if (bind(express.descriptor, (struct sockaddr *)&address, sizeof address) == 0) return 1;
    if (errno != EBUSY) return 0;
    usleep(10000);
  }
  return 0;
}

static uint16_t header_sum(const unsigned char *bytes) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += bytes[i] << 8 | bytes[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum;
}

static void write_frame(unsigned char *frame, int receiver, int index) {
  memcpy(frame, link_header, 14);
  struct iphdr *ip = (struct iphdr *)(frame + 14);
  *ip = (struct iphdr){.version = 4, .ihl = 5, .tot_len = htons(LENGTH + 28), .ttl = 64, .protocol = IPPROTO_UDP, .saddr = inet_addr("10.98.0.1"), .daddr = inet_address[receiver].sin_addr.s_addr};
  ip->check = htons(header_sum(frame + 14));
  struct udphdr *udp = (struct udphdr *)(frame + 34);
  // No checksum: IPv4 allows that.
  *udp = (struct udphdr){.source = htons(39999), .dest = inet_address[receiver].sin_port, .len = htons(LENGTH + 8)};
  memcpy(frame + 42, payload[receiver] + index * LENGTH, LENGTH);
}

static void send_express(void) {
  uint32_t *producer = (uint32_t *)((char *)express.transmit + express.offsets.tx.producer);
  uint32_t *completed = (uint32_t *)((char *)express.complete + express.offsets.cr.producer);
  uint32_t *released = (uint32_t *)((char *)express.complete + express.offsets.cr.consumer);
  struct xdp_desc *frames = (struct xdp_desc *)((char *)express.transmit + express.offsets.tx.desc);
  for (int i = 0; i < RECEIVERS * run; i++) {
    unsigned slot = (express.sent + i) % RING;
    write_frame(express.memory + slot * SLOT, i / run, i % run);
    frames[slot] = (struct xdp_desc){.addr = slot * SLOT, .len = LENGTH + 42};
  }
  express.sent += RECEIVERS * run;
  __atomic_store_n(producer, express.sent, __ATOMIC_RELEASE);
  while (__atomic_load_n(completed, __ATOMIC_ACQUIRE) != express.sent) {
    if (sendto(express.descriptor, 0, 0, MSG_DONTWAIT, 0, 0) < 0) check(errno == EAGAIN || errno == EBUSY || errno == ENOBUFS, "sendto");
  }
  __atomic_store_n(released, express.sent, __ATOMIC_RELEASE);
}

static void close_express(void) {
  munmap(express.transmit, express.offsets.tx.desc + RING * sizeof(struct xdp_desc));
  munmap(express.complete, express.offsets.cr.desc + RING * 8);
  close(express.descriptor);
  munmap(express.memory, RING * SLOT);
}

static const struct {
  const char *name;
  int (*open)(void);
  void (*send)(void);
  void (*close)(void);
} ways[] = {
  {"`sendmmsg` of runs, dual-stack socket, with the source address", mapped_run_source, send_messages, close_messages},
  {"the same without the source address", mapped_run, send_messages, close_messages},
  {"the same by an AF_INET socket", inet_run, send_messages, close_messages},
  {"AF_INET, each datagram a message of its own", inet_single, send_messages, close_messages},
  {"AF_INET, a connected socket for each receiver", connect_all, send_connected, close_all},
  {"AF_INET, `SO_TXTIME`", inet_time, send_timed, close_messages},
  {"AF_INET, `MSG_ZEROCOPY`", inet_zero_copy, send_zero_copy, close_messages},
  {"AF_INET, io_uring", ring_run, send_by_ring, close_ring_run},
  {"AF_INET, io_uring, registered memory without a copy", ring_zero_copy, send_zero_copy_by_ring, close_ring_run},
  {"AF_XDP", open_express, send_express, close_express},
};

static double measure(int way) {
  if (!ways[way].open()) return 0;
  int passes = 200 / run + 4;
  double best = 1e18;
  for (int round = 0; round < rounds; round++) {
    double start = now();
    for (int i = 0; i < passes; i++) ways[way].send();
    double spent = (now() - start) / passes / RECEIVERS / run;
    if (spent < best) best = spent;
  }
  ways[way].close();
  return best;
}

static void read_address(const char *text, unsigned char *bytes) {
  unsigned values[6];
  check(sscanf(text, "%x:%x:%x:%x:%x:%x", values, values + 1, values + 2, values + 3, values + 4, values + 5) == 6, "a MAC address");
  for (int i = 0; i < 6; i++) bytes[i] = values[i];
}

int main(int count, char **arguments) {
  check(count == 3 || count == 6, "send-ways ROUNDS DESTINATION [DEVICE SOURCE-MAC DESTINATION-MAC]");
  rounds = atoi(arguments[1]);
  if (count == 6) {
    device = arguments[3];
    read_address(arguments[5], link_header);
    read_address(arguments[4], link_header + 6);
    link_header[12] = 8;
  }
  for (int i = 0; i < RECEIVERS; i++) {
    inet_address[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT + i)};
    check(inet_pton(AF_INET, arguments[2], &inet_address[i].sin_addr) == 1, "an IPv4 address");
    mapped_address[i] = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(PORT + i)};
    mapped_address[i].sin6_addr.s6_addr[10] = mapped_address[i].sin6_addr.s6_addr[11] = 0xff;
    memcpy(&mapped_address[i].sin6_addr.s6_addr[12], &inet_address[i].sin_addr, 4);
    memset(payload[i], i, sizeof payload[i]);
    if (device) continue;
    int receiver = socket(AF_INET, SOCK_DGRAM, 0), size = 1;
    setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    check(bind(receiver, (struct sockaddr *)&inet_address[i], sizeof inet_address[i]) == 0, "bind");
  }
  for (unsigned way = 0; way < sizeof ways / sizeof ways[0]; way++) {
    printf("%s", ways[way].name);
    for (run = 1; run <= LONGEST; run *= 4) {
      double spent = measure(way);
      if (spent > 0) printf("|%.0f", spent);
      else printf("|-");
    }
    printf("\n");
    fflush(stdout);
  }
}
