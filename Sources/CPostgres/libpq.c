#include "CPostgres.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

// libpq takes a connection's TLS away before it says that it failed: what was found is kept here, where the same thread
// looks for it.
static _Thread_local long found;

// Called by OpenSSL when a connection's TLS goes.
static void note(void *tls, void *value, CRYPTO_EX_DATA *data, int index, long number, void *pointer) {
  (void)value, (void)data, (void)index, (void)number, (void)pointer;
  found = SSL_get_verify_result(tls);
}

__attribute__((constructor)) static void prepare(void) {
  // OpenSSL takes itself apart when the process exits. Threads of ours that connect then would find it in pieces, and a
  // program that was told to end, or that says why it cannot start, would end with a crash. Only the first to call
  // OpenSSL can say so.
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
