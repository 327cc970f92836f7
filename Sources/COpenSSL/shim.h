#ifndef CONCLAVE_COPENSSL_SHIM_H
#define CONCLAVE_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

// Functions for what OpenSSL offers only as macros or variadics.

static inline EVP_PKEY *copenssl_p256_key(void) { return EVP_EC_gen("P-256"); }
static inline EVP_PKEY *copenssl_rsa_key(unsigned bits) { return EVP_RSA_gen(bits); }

static inline int copenssl_set_dtls12_only(SSL_CTX *context) {
  return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) &&
         SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION);
}
static inline int copenssl_set_groups(SSL_CTX *context, const char *groups) {
  return (int)SSL_CTX_set1_groups_list(context, groups);
}
static inline void copenssl_disable_session_cache(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
static inline void copenssl_set_max_cert_list(SSL_CTX *context, long bytes) {
  SSL_CTX_set_max_cert_list(context, bytes);
}
// The caller sets the path's MTU; sessions are neither renewed nor resumed.
static inline void copenssl_set_options(SSL_CTX *context) {
  SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
}
static inline void copenssl_set_mtu(SSL *ssl, long bytes) { SSL_set_mtu(ssl, bytes); }
static inline void copenssl_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void copenssl_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

// A state of SHA-1 that can be copied. OpenSSL 3 deprecates these functions in favour of EVP, which allocates for each copy of a state.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline void copenssl_sha1_begin(SHA_CTX *state) { SHA1_Init(state); }
static inline void copenssl_sha1_add(SHA_CTX *state, const void *bytes, size_t count) { SHA1_Update(state, bytes, count); }
// Writes 20 bytes.
static inline void copenssl_sha1_end(SHA_CTX *state, unsigned char *digest) { SHA1_Final(digest, state); }
#pragma GCC diagnostic pop

#endif
