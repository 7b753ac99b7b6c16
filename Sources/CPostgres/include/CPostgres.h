// PostgreSQL's own client library.
#ifndef CPOSTGRES_H
#define CPOSTGRES_H

#include <postgresql/libpq-fe.h>

/// What was wrong with a server's certificate. libpq's own words say no more than that it could not be verified.
typedef enum {
  /// Nothing, or something else.
  CPOSTGRES_CERTIFICATE_UNKNOWN,
  /// Out of its time, or one of those that sign it is.
  CPOSTGRES_CERTIFICATE_EXPIRED,
  /// Signed by nobody whom we know.
  CPOSTGRES_CERTIFICATE_UNTRUSTED,
  CPOSTGRES_CERTIFICATE_REVOKED,
} cpostgres_certificate;

/// What OpenSSL found wrong with the certificate of the server whose TLS this thread ended last: of one to which it
/// could not connect just now.
cpostgres_certificate cpostgres_found_certificate(void);

#endif
