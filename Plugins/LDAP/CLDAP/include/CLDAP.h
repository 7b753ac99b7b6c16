// An LDAP client (RFC 4511) by libldap. Swift cannot import libldap's macros, and must not see its types, because one
// of them has the name of the provider.
//
// All functions except `cldap_abort` are for one thread at a time, and block it. The process ignores SIGPIPE from the
// first connection on. Nothing is written to a log.
#ifndef CLDAP_H
#define CLDAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cldap_connection cldap_connection;

/// How to connect. Texts end with NUL.
typedef struct {
  /// ldap://host:port or ldaps://host:port.
  const char *url;
  /// Whether TLS must be negotiated before anything else is sent (StartTLS), on ldap://.
  bool starts_tls;
  /// Whether only a server on this machine may be connected to, because the connection is not encrypted.
  bool is_local_only;
  /// A PEM file of certificate authorities.
  const char *authority;
  /// The limit of a single wait for the server.
  long milliseconds;
  /// The maximum size of a message of the server, in bytes.
  size_t longest;
} cldap_options;

/// The code of a result that has none of LDAP: the answer exceeds a limit.
#define CLDAP_TOO_LARGE (-1000)
/// The value of `policy` without a password policy's answer.
#define CLDAP_NO_POLICY (-1)

typedef struct {
  /// 0 for success; a positive result code of the server (RFC 4511 section 4.1.9); a negative one of the client.
  int code;
  /// The error of the password policy (draft-behera-ldap-password-policy-10 section 6.2), or CLDAP_NO_POLICY.
  int policy;
  /// The server's diagnostic message, or the client's. A long one is cut.
  char text[256];
} cldap_result;

/// Allocates a connection without connecting. Copies the options. Returns NULL if memory is exhausted or the URL is
/// invalid.
cldap_connection *cldap_new(const cldap_options *options);

/// Closes the connection and frees it. Nothing else may use it at that time.
void cldap_free(cldap_connection *connection);

/// Ends the running call and all later ones. Any thread may call it until `cldap_free`.
void cldap_abort(cldap_connection *connection);

/// Connects and negotiates TLS.
cldap_result cldap_connect(cldap_connection *connection);

/// A simple bind (RFC 4513 section 5.1). Asks for the answer of a password policy. Without a name and a password, the
/// connection becomes anonymous. A name with an empty password is refused here: servers accept it as anonymous.
cldap_result cldap_bind(cldap_connection *connection, const char *name, const char *password, size_t length);

typedef struct {
  const char *base;
  /// RFC 4515.
  const char *filter;
  /// The names of the wanted attributes, ending with NULL.
  char **attributes;
  /// The maximum number of entries.
  int entries;
  /// The maximum size of all names and values, in bytes.
  size_t bytes;
} cldap_query;

/// Called for each entry with `attribute` NULL and the entry's name as value, and then for each of its values.
typedef void (*cldap_visit)(void *context, const char *attribute, const char *value, size_t length);

/// Searches the subtree of the base. Aliases and referrals are not followed. More entries than allowed have the code 4
/// (sizeLimitExceeded), after as many visits as allowed.
cldap_result cldap_search(
    cldap_connection *connection, const cldap_query *query, cldap_visit visit, void *context);

#endif
