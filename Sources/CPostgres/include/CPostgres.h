// The client library of PostgreSQL.
#ifndef CPOSTGRES_H
#define CPOSTGRES_H

#include <postgresql/libpq-fe.h>

/// Why the certificate of a server was refused. libpq reports only that verification failed.
typedef enum {
  /// No certificate error, or another one.
  CPOSTGRES_CERTIFICATE_UNKNOWN,
  /// The certificate or one of its issuers has expired or is not valid yet.
  CPOSTGRES_CERTIFICATE_EXPIRED,
  /// The issuer is not trusted.
  CPOSTGRES_CERTIFICATE_UNTRUSTED,
  CPOSTGRES_CERTIFICATE_REVOKED,
} cpostgres_certificate;

/// The OpenSSL result for the last server whose TLS connection ended on this thread, for example after a failed
/// connection.
cpostgres_certificate cpostgres_found_certificate(void);

#endif
