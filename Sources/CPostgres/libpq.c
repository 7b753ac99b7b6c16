#include "CPostgres.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

// libpq frees the TLS connection before it reports a failure, so the result is stored here for the same thread.
static _Thread_local long found;

// More than five parameters: OpenSSL's type CRYPTO_EX_free. Called when a TLS connection is freed.
static void note(void *tls, void *value, CRYPTO_EX_DATA *data, int index, long number, void *pointer) {
  (void)value, (void)data, (void)index, (void)number, (void)pointer;
  found = SSL_get_verify_result(tls);
}

__attribute__((constructor)) static void prepare(void) {
  // Disables OpenSSL's cleanup at exit: threads that still connect during an exit would use freed state and crash. Only
  // the first initialization of OpenSSL can set this option.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  SSL_get_ex_new_index(0, NULL, NULL, NULL, note);
}

cpostgres_certificate cpostgres_found_certificate(void) {
  switch (found) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return CPOSTGRES_CERTIFICATE_EXPIRED;
    case X509_V_ERR_CERT_REVOKED: return CPOSTGRES_CERTIFICATE_REVOKED;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: return CPOSTGRES_CERTIFICATE_UNTRUSTED;
    default: return CPOSTGRES_CERTIFICATE_UNKNOWN;
  }
}
