#ifndef CONCLAVE_CCURL_SHIM_H
#define CONCLAVE_CCURL_SHIM_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>

// Functions for what libcurl offers only as variadics. libcurl copies the texts, the body and the certificates.

static inline CURLMcode ccurl_limit_connections(CURLM *multi, long of_host, long idle) {
  CURLMcode code = curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, of_host);
  return code == CURLM_OK ? curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, idle) : code;
}

static inline CURLcode ccurl_set_number(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode ccurl_set_text(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}
// The list must outlive the transfer.
static inline CURLcode ccurl_set_headers(CURL *handle, struct curl_slist *headers) {
  return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
}
// The request becomes a POST.
static inline CURLcode ccurl_set_body(CURL *handle, const void *bytes, size_t count) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_COPYPOSTFIELDS, count > 0 ? bytes : "") : code;
}
// PEM, in place of the system's file of authorities.
static inline CURLcode ccurl_set_authorities(CURL *handle, const void *bytes, size_t count) {
  struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
  return curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
}

// The context is passed to the callbacks, and must outlive the transfer.

static inline CURLcode ccurl_on_header(CURL *handle, curl_write_callback callback, void *context) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, callback);
  return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_HEADERDATA, context) : code;
}
static inline CURLcode ccurl_on_body(CURL *handle, curl_write_callback callback, void *context) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
  return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_WRITEDATA, context) : code;
}
static inline CURLcode ccurl_on_open_socket(CURL *handle, curl_opensocket_callback callback, void *context) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
  return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, context) : code;
}

// 0 before there is an answer.
static inline long ccurl_status(CURL *handle) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return status;
}
// In seconds, from a number or a date; 0 for none.
static inline int64_t ccurl_retry_after(CURL *handle) {
  curl_off_t seconds = 0;
  curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
  return seconds;
}
// The file of the system's authorities, as libcurl was built; NULL for none.
static inline const char *ccurl_system_authorities(CURL *handle) {
  char *name = NULL;
  curl_easy_getinfo(handle, CURLINFO_CAINFO, &name);
  return name;
}

// An address that libcurl is about to connect to: the 16 bytes of IPv6, or ::ffff:a.b.c.d for IPv4, as two words in host order.
typedef struct {
  uint64_t high, low;
  uint16_t port;
} ccurl_address;

// Returns 0 if it is not an address of IPv4 or IPv6.
static inline int ccurl_read_address(const struct curl_sockaddr *from, ccurl_address *to) {
  // `addr` is larger than its declaration where the family needs it.
  const char *bytes = (const char *)from + offsetof(struct curl_sockaddr, addr);
  if (from->family == AF_INET && from->addrlen >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in address;
    memcpy(&address, bytes, sizeof address);
    to->high = 0;
    to->low = 0xffff00000000 | ntohl(address.sin_addr.s_addr);
    to->port = ntohs(address.sin_port);
    return 1;
  }
  if (from->family == AF_INET6 && from->addrlen >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 address;
    memcpy(&address, bytes, sizeof address);
    const uint8_t *octets = address.sin6_addr.s6_addr;
    to->high = to->low = 0;
    for (int i = 0; i < 8; i++) to->high = to->high << 8 | octets[i];
    for (int i = 8; i < 16; i++) to->low = to->low << 8 | octets[i];
    to->port = ntohs(address.sin6_port);
    return 1;
  }
  return 0;
}

// A socket for that address, or -1.
static inline curl_socket_t ccurl_open_socket(const struct curl_sockaddr *address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

#endif
