#ifndef CONCLAVE_COPENSSL_CIPHER_H
#define CONCLAVE_COPENSSL_CIPHER_H

#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

// A cipher under one key, using the functions of OpenSSL's provider (provider-cipher(7), a stable interface) without
// EVP in between. EVP looks up the length of the nonce by name at each message, which costs as much as encrypting some
// hundred bytes.
typedef struct {
  EVP_CIPHER *cipher;
  void *context;
  OSSL_FUNC_cipher_encrypt_init_fn *init;
  OSSL_FUNC_cipher_update_fn *update;
  OSSL_FUNC_cipher_final_fn *final;
  OSSL_FUNC_cipher_get_ctx_params_fn *get;
  OSSL_FUNC_cipher_set_ctx_params_fn *set;
  OSSL_FUNC_cipher_newctx_fn *new_context;
  OSSL_FUNC_cipher_freectx_fn *free_context;
} copenssl_cipher;

static inline void copenssl_cipher_take(copenssl_cipher *cipher, const OSSL_DISPATCH *function, int encrypts) {
  for (; function->function_id != 0; function++) {
    switch (function->function_id) {
    case OSSL_FUNC_CIPHER_ENCRYPT_INIT:
      if (encrypts) cipher->init = OSSL_FUNC_cipher_encrypt_init(function);
      break;
    case OSSL_FUNC_CIPHER_DECRYPT_INIT:
      if (!encrypts) cipher->init = OSSL_FUNC_cipher_decrypt_init(function);
      break;
    case OSSL_FUNC_CIPHER_UPDATE: cipher->update = OSSL_FUNC_cipher_update(function); break;
    case OSSL_FUNC_CIPHER_FINAL: cipher->final = OSSL_FUNC_cipher_final(function); break;
    case OSSL_FUNC_CIPHER_GET_CTX_PARAMS: cipher->get = OSSL_FUNC_cipher_get_ctx_params(function); break;
    case OSSL_FUNC_CIPHER_SET_CTX_PARAMS: cipher->set = OSSL_FUNC_cipher_set_ctx_params(function); break;
    case OSSL_FUNC_CIPHER_NEWCTX: cipher->new_context = OSSL_FUNC_cipher_newctx(function); break;
    case OSSL_FUNC_CIPHER_FREECTX: cipher->free_context = OSSL_FUNC_cipher_freectx(function); break;
    }
  }
}

static inline void copenssl_cipher_free(copenssl_cipher *cipher) {
  if (cipher->context != NULL) cipher->free_context(cipher->context);
  EVP_CIPHER_free(cipher->cipher);
  OPENSSL_free(cipher);
}

// `name` as the provider lists it first, like AES-128-GCM. NULL if OpenSSL cannot be used this way.
static inline copenssl_cipher *copenssl_cipher_new(const char *name, const unsigned char *key, size_t length,
                                                   int encrypts) {
  copenssl_cipher *cipher = (copenssl_cipher *)OPENSSL_zalloc(sizeof *cipher);
  if (cipher == NULL) return NULL;
  cipher->cipher = EVP_CIPHER_fetch(NULL, name, NULL);
  if (cipher->cipher != NULL) {
    const OSSL_PROVIDER *provider = EVP_CIPHER_get0_provider(cipher->cipher);
    int no_cache = 0;
    size_t count = strlen(name);
    const OSSL_ALGORITHM *all = OSSL_PROVIDER_query_operation(provider, OSSL_OP_CIPHER, &no_cache);
    for (const OSSL_ALGORITHM *one = all; one != NULL && one->algorithm_names != NULL; one++) {
      char end = strncmp(one->algorithm_names, name, count) == 0 ? one->algorithm_names[count] : 'x';
      if (end == ':' || end == 0) copenssl_cipher_take(cipher, one->implementation, encrypts);
    }
    OSSL_PROVIDER_unquery_operation(provider, OSSL_OP_CIPHER, all);
    int is_whole = cipher->init && cipher->update && cipher->final && cipher->get && cipher->set &&
                   cipher->new_context && cipher->free_context;
    if (is_whole) cipher->context = cipher->new_context(OSSL_PROVIDER_get0_provider_ctx(provider));
  }
  if (cipher->context != NULL && cipher->init(cipher->context, key, length, NULL, 0, NULL) == 1) return cipher;
  copenssl_cipher_free(cipher);
  return NULL;
}

// These return 1, or 0 for an error.

static inline int copenssl_cipher_begin(copenssl_cipher *cipher, const unsigned char *nonce, size_t length) {
  return cipher->init(cipher->context, NULL, 0, nonce, length, NULL);
}
// Without a destination the bytes are only authenticated.
static inline int copenssl_cipher_add(copenssl_cipher *cipher, const void *source, void *destination, size_t count) {
  size_t written = 0;
  return cipher->update(cipher->context, (unsigned char *)destination, &written, count, (const unsigned char *)source,
                        count);
}
static inline int copenssl_cipher_seal(copenssl_cipher *cipher, void *tag, size_t length) {
  size_t written = 0;
  unsigned char nothing = 0;
  OSSL_PARAM wanted[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, length), OSSL_PARAM_END};
  return cipher->final(cipher->context, &nothing, &written, 0) && cipher->get(cipher->context, wanted);
}
static inline int copenssl_cipher_opens(copenssl_cipher *cipher, void *tag, size_t length) {
  size_t written = 0;
  unsigned char nothing = 0;
  const OSSL_PARAM given[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, length), OSSL_PARAM_END};
  return cipher->set(cipher->context, given) && cipher->final(cipher->context, &nothing, &written, 0);
}

#endif
