// PostgreSQL's own client library.
#ifndef CPOSTGRES_H
#define CPOSTGRES_H

#include <postgresql/libpq-fe.h>

/// What was wrong with a server's certificate. libpq's own words say no more than that it could not be verified.
typedef enum {
  /// Nothing, or nobody looked.
  CPOSTGRES_CERTIFICATE_UNKNOWN,
  /// Out of its time, or one of those that sign it is.
  CPOSTGRES_CERTIFICATE_EXPIRED,
  /// Signed by nobody whom we know.
  CPOSTGRES_CERTIFICATE_UNTRUSTED,
  CPOSTGRES_CERTIFICATE_REVOKED,
} cpostgres_certificate;

/// Has this thread remember what OpenSSL finds wrong with the certificate of the server to which it connects. Changes nothing of what is found wrong. To be
/// called between the steps of connecting; forgets what was remembered of another connection where there is no TLS yet.
void cpostgres_watch_certificate(PGconn *connection);

/// What this thread remembers.
cpostgres_certificate cpostgres_found_certificate(void);

#endif
