#ifndef CONCLAVE_CSRTP_SHIM_H
#define CONCLAVE_CSRTP_SHIM_H

#include <string.h>

#include <srtp2/srtp.h>

// One session for all SSRCs of one direction. `key` is the master key followed by the salt.
static inline srtp_err_status_t csrtp_create(srtp_t *session, srtp_profile_t profile, srtp_ssrc_type_t direction,
                                             unsigned char *key, unsigned long window) {
  srtp_policy_t policy;
  memset(&policy, 0, sizeof policy);
  srtp_err_status_t status = srtp_crypto_policy_set_from_profile_for_rtp(&policy.rtp, profile);
  if (status != srtp_err_status_ok) return status;
  status = srtp_crypto_policy_set_from_profile_for_rtcp(&policy.rtcp, profile);
  if (status != srtp_err_status_ok) return status;
  policy.ssrc.type = direction;
  policy.key = key;
  policy.window_size = window;
  return srtp_create(session, &policy);
}

#endif
