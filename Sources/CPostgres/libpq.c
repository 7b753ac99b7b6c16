#include "CPostgres.h"

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

// OpenSSL takes itself apart when the process exits. Threads of ours that connect then would find it in pieces, and a program that was told to end, or that
// says why it cannot start, would end with a crash. Only the first to call OpenSSL can say so.
__attribute__((constructor)) static void outlive_exit(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

// libpq takes the connection's TLS away before it says that it failed: what was found is kept here, where the same thread looks for it.
static _Thread_local int found;

static int note(int is_good, X509_STORE_CTX *context) {
  if (!is_good && found == X509_V_OK) found = X509_STORE_CTX_get_error(context);
  return is_good;
}

void cpostgres_watch_certificate(PGconn *connection) {
  SSL *tls = PQsslStruct(connection, "OpenSSL");
  if (tls == NULL) {
    found = X509_V_OK;
    return;
  }
  // As libpq has it, but for the callback: where nobody asked for a certificate that is good, none is looked at.
  int mode = SSL_get_verify_mode(tls);
  if (mode & SSL_VERIFY_PEER) SSL_set_verify(tls, mode, note);
}

cpostgres_certificate cpostgres_found_certificate(void) {
  switch (found) {
    case X509_V_OK: return CPOSTGRES_CERTIFICATE_UNKNOWN;
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
