// A bare loop with the minimum work of forwarding a packet to 50 receivers, done as in the manuals of OpenSSL and Linux: the baseline of `deploy/bench`.
// It knows its packets and checks none of their lengths.
// Prints "NAME NANOSECONDS" for each part, CPU time of this thread, the best of several rounds.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { RECEIVERS = 50, RUN = 16, ROUNDS = 20 };

static unsigned char key[20] = "a key for this loop";
static unsigned char nonce[16];
static unsigned char input[1500];
static unsigned char plain[1500];
// The packets of a receiver are contiguous.
static unsigned char output[RECEIVERS][RUN * 1216];
static EVP_CIPHER_CTX *sealing, *opening, *counter;
static HMAC_CTX *mac;
static int length;
static volatile uint64_t sum;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static void check(int isRight) {
  if (!isRight) exit(1);
}

static void measure(const char *name, int count, int each, void (*body)(int)) {
  double best = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now();
    for (int i = 0; i < count; i++) body(i);
    double spent = (now() - start) / count / each;
    if (spent < best) best = spent;
  }
  printf("%s %.1f\n", name, best);
}

static void parse(int i) {
  plain[3] = i;
  unsigned offset = 12 + 4 * (plain[0] & 15);
  unsigned words = plain[offset + 2] << 8 | plain[offset + 3];
  unsigned at = offset + 4;
  while (at < offset + 4 + 4 * words && plain[at] >> 4 != 2) at += plain[at] == 0 ? 1 : 2 + (plain[at] & 15);
  const unsigned char *payload = plain + offset + 4 + 4 * words;
  sum += plain[3] + at + (payload[2] & 0x80 ? (payload[2] & 0x7f) << 8 | payload[3] : payload[2]);
}

static void write_header(unsigned char *packet, int i) {
  uint16_t number = htons(i);
  uint32_t timestamp = htonl(7), source = htonl(9);
  memcpy(packet + 2, &number, 2);
  memcpy(packet + 4, &timestamp, 4);
  memcpy(packet + 8, &source, 4);
}

static void rewrite(int i) {
  unsigned char *packet = output[0];
  memcpy(packet, plain, 34);
  write_header(packet, i);
  packet[1] = 97;
  packet[30] = i >> 8 | 0x80;
  packet[31] = i;
  sum += packet[31];
}

static void seal(unsigned char *packet, int i) {
  int count;
  memcpy(packet, plain, 12);
  write_header(packet, i);
  memcpy(nonce, &i, sizeof i);
  check(EVP_CipherInit_ex(sealing, NULL, NULL, NULL, nonce, -1) && EVP_CipherUpdate(sealing, NULL, &count, packet, 12) &&
        EVP_CipherUpdate(sealing, packet + 12, &count, plain + 12, length - 12) &&
        EVP_CipherFinal_ex(sealing, packet + length, &count) &&
        EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, 16, packet + length));
}

static void gcm(int i) { seal(output[0], i); }

static void cm(int i) {
  unsigned char *packet = output[0], tag[20];
  unsigned size;
  int count;
  uint32_t rollovers = 0;
  memcpy(packet, plain, 12);
  write_header(packet, i);
  memcpy(nonce, &i, sizeof i);
  check(EVP_CipherInit_ex(counter, NULL, NULL, NULL, nonce, -1) &&
        EVP_CipherUpdate(counter, packet + 12, &count, plain + 12, length - 12) && HMAC_Init_ex(mac, NULL, 0, NULL, NULL) &&
        HMAC_Update(mac, packet, length) && HMAC_Update(mac, (unsigned char *)&rollovers, 4) && HMAC_Final(mac, tag, &size));
  memcpy(packet + length, tag, 10);
}

// Opens one packet and seals it for each receiver.
static void forward(int i) {
  int count;
  memset(nonce, 0, sizeof nonce);
  check(EVP_CipherInit_ex(opening, NULL, NULL, NULL, nonce, -1) && EVP_CipherUpdate(opening, NULL, &count, input, 12) &&
        EVP_CipherUpdate(opening, plain + 12, &count, input + 12, length - 12) &&
        EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, 16, input + length) &&
        EVP_CipherFinal_ex(opening, plain + length, &count) > 0);
  for (int receiver = 0; receiver < RECEIVERS; receiver++) seal(output[receiver] + i % RUN * (length + 16), i + 1);
}

static int udp(struct sockaddr_in *address) {
  int descriptor = socket(AF_INET, SOCK_DGRAM, 0), size = 4 << 20, on = 1;
  socklen_t room = sizeof *address;
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  check(descriptor >= 0 && bind(descriptor, (struct sockaddr *)address, room) == 0 &&
        getsockname(descriptor, (struct sockaddr *)address, &room) == 0);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(descriptor, SOL_UDP, UDP_GRO, &on, sizeof on);
  return descriptor;
}

static int sender;
static struct sockaddr_in receiver;

// Another thread reads what arrives, so that the kernel delivers all of it.
static void *drain(void *descriptor) {
  static unsigned char datagram[65536];
  while (recv(*(int *)descriptor, datagram, sizeof datagram, 0) > 0) {}
  return NULL;
}

// Sends RUN packets to each receiver, as one message each, by one call.
static void forward_run(int i) {
  struct mmsghdr messages[RECEIVERS];
  struct iovec parts[RECEIVERS];
  char controls[RECEIVERS][CMSG_SPACE(sizeof(uint16_t))] = {0};
  uint16_t segment = length + 16;
  for (int k = 0; k < RUN; k++) forward(i * RUN + k);
  memset(messages, 0, sizeof messages);
  for (int k = 0; k < RECEIVERS; k++) {
    parts[k] = (struct iovec){output[k], (size_t)segment * RUN};
    messages[k].msg_hdr = (struct msghdr){.msg_name = &receiver, .msg_namelen = sizeof receiver, .msg_iov = &parts[k],
                                          .msg_iovlen = 1, .msg_control = controls[k], .msg_controllen = sizeof controls[k]};
    struct cmsghdr *control = CMSG_FIRSTHDR(&messages[k].msg_hdr);
    control->cmsg_level = SOL_UDP;
    control->cmsg_type = UDP_SEGMENT;
    control->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(control), &segment, sizeof segment);
  }
  check(sendmmsg(sender, messages, RECEIVERS, 0) == RECEIVERS);
}

int main(void) {
  struct sockaddr_in own;
  int receiving = udp(&receiver);
  sender = udp(&own);
  pthread_t thread;
  check(pthread_create(&thread, NULL, drain, &receiving) == 0);
  sealing = EVP_CIPHER_CTX_new();
  opening = EVP_CIPHER_CTX_new();
  counter = EVP_CIPHER_CTX_new();
  mac = HMAC_CTX_new();
  check(EVP_CipherInit_ex(sealing, EVP_aes_128_gcm(), NULL, key, NULL, 1) &&
        EVP_CipherInit_ex(opening, EVP_aes_128_gcm(), NULL, key, NULL, 0) &&
        EVP_CipherInit_ex(counter, EVP_aes_128_ctr(), NULL, key, NULL, 1) && HMAC_Init_ex(mac, key, 20, EVP_sha1(), NULL));
  plain[0] = 0x90;
  memcpy(plain + 12, (unsigned char[]){0xbe, 0xde, 0, 3, 0x15, 'v', 'i', 'd', 'e', 'o', '0', 0x21, 0, 77}, 14);
  memcpy(plain + 28, (unsigned char[]){0x90, 0xd0, 0x81, 2, 3, 5}, 6);
  measure("parse", 20000, 1, parse);
  measure("rewrite", 20000, 1, rewrite);
  for (int i = 0; i < 2; i++) {
    char name[32];
    length = i == 0 ? 1200 : 137;
    snprintf(name, sizeof name, "gcm-%d", length);
    measure(name, 2000, 1, gcm);
    snprintf(name, sizeof name, "cm-%d", length);
    measure(name, 2000, 1, cm);
    seal(input, 0);
    snprintf(name, sizeof name, "forward-%d", length);
    measure(name, 200, RECEIVERS, forward);
    snprintf(name, sizeof name, "sent-%d", length);
    measure(name, 20, RECEIVERS * RUN, forward_run);
  }
  return 0;
}
