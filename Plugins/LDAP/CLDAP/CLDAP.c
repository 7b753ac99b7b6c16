#define _GNU_SOURCE
#include "CLDAP.h"

#include <fcntl.h>
#include <ldap.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct cldap_connection {
  LDAP *ld;
  ldap_conncb callbacks;
  bool starts_tls;
  bool is_local_only;
  struct timeval patience;
  ber_len_t longest;
  /// Protects the fields below, which `cldap_abort` uses.
  pthread_mutex_t lock;
  bool is_aborted;
  /// A duplicate of the connected socket, which stays open until `cldap_free`; -1 before.
  int socket;
};

static pthread_once_t signals = PTHREAD_ONCE_INIT;

// A write to a closed connection raises SIGPIPE, which ends a program that has not ignored it yet, such as a command.
static void ignore_pipe_signal(void) { signal(SIGPIPE, SIG_IGN); }

static void copy_text(cldap_result *result, const char *text) {
  const size_t length = text == NULL ? 0 : strnlen(text, sizeof result->text - 1);
  if (length > 0) memcpy(result->text, text, length);
  result->text[length] = 0;
}

static cldap_result result_of(int code) {
  cldap_result result = {.code = code, .policy = CLDAP_NO_POLICY};
  return result;
}

/// A failure of the client, with libldap's message for it, such as why a certificate is not trusted.
static cldap_result failure(cldap_connection *connection, int code) {
  cldap_result result = result_of(code);
  char *text = NULL;
  ldap_get_option(connection->ld, LDAP_OPT_DIAGNOSTIC_MESSAGE, &text);
  copy_text(&result, text != NULL && text[0] != 0 ? text : ldap_err2string(code));
  ldap_memfree(text);
  return result;
}

static int error_of(cldap_connection *connection) {
  int code = LDAP_OTHER;
  ldap_get_option(connection->ld, LDAP_OPT_RESULT_CODE, &code);
  return code == LDAP_SUCCESS ? LDAP_SERVER_DOWN : code;
}

static bool is_loopback(const struct sockaddr *address) {
  if (address == NULL) return false;
  if (address->sa_family == AF_INET) {
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family != AF_INET6) return false;
  const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

// Called when a socket is connected, before anything is sent.
//
// Attack: the name of a server on this machine leads to another one, which would get the password unencrypted. The
// address that was connected to counts, not the name.
static int connected(LDAP *ld, Sockbuf *buffer, LDAPURLDesc *server, struct sockaddr *address, ldap_conncb *callbacks) {
  (void)ld;
  (void)server;
  cldap_connection *connection = callbacks->lc_arg;
  if (connection->is_local_only && !is_loopback(address)) return -1;
  // Attack: an entry of 10 MB, or a message that claims to be one of 2 GB.
  ber_sockbuf_ctrl(buffer, LBER_SB_OPT_SET_MAX_INCOMING, &connection->longest);
  ber_socket_t descriptor = -1;
  ber_sockbuf_ctrl(buffer, LBER_SB_OPT_GET_FD, &descriptor);
  if (descriptor < 0) return -1;
  pthread_mutex_lock(&connection->lock);
  if (connection->socket >= 0) close(connection->socket);
  connection->socket = connection->is_aborted ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  const bool is_usable = connection->socket >= 0;
  pthread_mutex_unlock(&connection->lock);
  return is_usable ? 0 : -1;
}

static void disconnected(LDAP *ld, Sockbuf *buffer, ldap_conncb *callbacks) {
  (void)ld;
  (void)buffer;
  (void)callbacks;
}

// Sets every option on which security depends. The defaults come from ldap.conf and the environment.
//
// Attack: LDAPTLS_REQCERT=never in the environment, or an ldap.conf for other programs, and any certificate is trusted,
// or an old version of TLS or a weak cipher is accepted.
static bool configure(cldap_connection *connection, const cldap_options *options) {
  LDAP *ld = connection->ld;
  const int version = LDAP_VERSION3, demand = LDAP_OPT_X_TLS_DEMAND;
  const int oldest = LDAP_OPT_X_TLS_PROTOCOL_TLS1_2, never = LDAP_DEREF_NEVER, client = 0;
  const int seconds = (int)connection->patience.tv_sec + 1;
  bool is_set = ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version) == LDAP_OPT_SUCCESS;
  // Attack: a referral leads to a server of the attacker's, which gets the password.
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_DEREF, &never) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_TIMELIMIT, &seconds) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_TIMEOUT, &connection->patience) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &connection->patience) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_CONNECT_CB, &connection->callbacks) == LDAP_OPT_SUCCESS;
  if (!is_set || options->is_local_only) return is_set;
  is_set = ldap_set_option(ld, LDAP_OPT_X_TLS_CACERTDIR, NULL) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_CACERTFILE, options->authority) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_CERTFILE, NULL) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_KEYFILE, NULL) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_PROTOCOL_MIN, &oldest) == LDAP_OPT_SUCCESS;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_REQUIRE_CERT, &demand) == LDAP_OPT_SUCCESS;
  // GnuTLS ignores the version above. It takes versions and ciphers from one text; other libraries get their defaults.
  char *package = NULL;
  is_set = is_set && ldap_get_option(NULL, LDAP_OPT_X_TLS_PACKAGE, &package) == LDAP_OPT_SUCCESS;
  const bool is_gnutls = package != NULL && strcmp(package, "GnuTLS") == 0;
  ldap_memfree(package);
  const char *ciphers = is_gnutls ? "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" : NULL;
  is_set = is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_CIPHER_SUITE, ciphers) == LDAP_OPT_SUCCESS;
  // The context of this connection is made of the options above.
  return is_set && ldap_set_option(ld, LDAP_OPT_X_TLS_NEWCTX, &client) == LDAP_OPT_SUCCESS;
}

cldap_connection *cldap_new(const cldap_options *options) {
  pthread_once(&signals, ignore_pipe_signal);
  cldap_connection *connection = calloc(1, sizeof *connection);
  if (connection == NULL) return NULL;
  pthread_mutex_init(&connection->lock, NULL);
  connection->socket = -1;
  connection->starts_tls = options->starts_tls;
  connection->is_local_only = options->is_local_only;
  connection->patience.tv_sec = options->milliseconds / 1000;
  connection->patience.tv_usec = options->milliseconds % 1000 * 1000;
  connection->longest = options->longest;
  connection->callbacks.lc_add = connected;
  connection->callbacks.lc_del = disconnected;
  connection->callbacks.lc_arg = connection;
  if (ldap_initialize(&connection->ld, options->url) == LDAP_SUCCESS && configure(connection, options)) {
    return connection;
  }
  cldap_free(connection);
  return NULL;
}

void cldap_free(cldap_connection *connection) {
  if (connection == NULL) return;
  if (connection->ld != NULL) ldap_unbind_ext_s(connection->ld, NULL, NULL);
  if (connection->socket >= 0) close(connection->socket);
  pthread_mutex_destroy(&connection->lock);
  free(connection);
}

void cldap_abort(cldap_connection *connection) {
  pthread_mutex_lock(&connection->lock);
  connection->is_aborted = true;
  if (connection->socket >= 0) shutdown(connection->socket, SHUT_RDWR);
  pthread_mutex_unlock(&connection->lock);
}

cldap_result cldap_connect(cldap_connection *connection) {
  const int code =
      connection->starts_tls ? ldap_start_tls_s(connection->ld, NULL, NULL) : ldap_connect(connection->ld);
  return code == LDAP_SUCCESS ? result_of(code) : failure(connection, code);
}

/// Waits for the next message of an operation, one at a time, so that at most one is in memory.
static int await_message(cldap_connection *connection, int id, LDAPMessage **message) {
  struct timeval patience = connection->patience;
  const int type = ldap_result(connection->ld, id, LDAP_MSG_ONE, &patience, message);
  return type == 0 ? LDAP_TIMEOUT : type < 0 ? error_of(connection) : LDAP_SUCCESS;
}

/// Reads the final message of an operation, and frees it.
static cldap_result final_result(cldap_connection *connection, LDAPMessage *message) {
  int code = LDAP_OTHER;
  char *text = NULL;
  LDAPControl **controls = NULL;
  const int parsed = ldap_parse_result(connection->ld, message, &code, NULL, &text, NULL, &controls, 1);
  cldap_result result = result_of(parsed == LDAP_SUCCESS ? code : parsed);
  copy_text(&result, text);
  ldap_memfree(text);
  LDAPControl *answer =
      controls == NULL ? NULL : ldap_control_find(LDAP_CONTROL_PASSWORDPOLICYRESPONSE, controls, NULL);
  ber_int_t expires = 0, left = 0;
  LDAPPasswordPolicyError error = PP_noError;
  if (answer != NULL &&
      ldap_parse_passwordpolicy_control(connection->ld, answer, &expires, &left, &error) == LDAP_SUCCESS &&
      error != PP_noError) {
    result.policy = (int)error;
  }
  ldap_controls_free(controls);
  return result;
}

cldap_result cldap_bind(cldap_connection *connection, const char *name, const char *password, size_t length) {
  // Attack (RFC 4513 section 5.1.2): a name with an empty password is an anonymous bind, which succeeds.
  if (length == 0 && name[0] != 0) return result_of(LDAP_PARAM_ERROR);
  LDAPControl request = {.ldctl_oid = LDAP_CONTROL_PASSWORDPOLICYREQUEST};
  LDAPControl *controls[] = {&request, NULL};
  struct berval credential = {length, (char *)password};
  int id = 0;
  int code = ldap_sasl_bind(connection->ld, name, LDAP_SASL_SIMPLE, &credential, controls, NULL, &id);
  LDAPMessage *message = NULL;
  if (code == LDAP_SUCCESS) code = await_message(connection, id, &message);
  if (code != LDAP_SUCCESS) return failure(connection, code);
  if (ldap_msgtype(message) == LDAP_RES_BIND) return final_result(connection, message);
  ldap_msgfree(message);
  return result_of(LDAP_PROTOCOL_ERROR);
}

// Attack: millions of empty values, or of long names. Each text also costs what is stored beside it.
static bool takes(size_t *left, size_t length) {
  const bool fits = length < *left && length + 64 <= *left;
  if (fits) *left -= length + 64;
  return fits;
}

/// Visits an entry.
/// - left: how many bytes of names and values may follow; reduced by those of the entry.
/// - Returns: whether the entry was within them.
static bool visit_entry(LDAP *ld, LDAPMessage *entry, size_t *left, cldap_visit visit, void *context) {
  char *name = ldap_get_dn(ld, entry);
  const size_t length = name == NULL ? 0 : strlen(name);
  bool fits = takes(left, length);
  if (fits) visit(context, NULL, name == NULL ? "" : name, length);
  ldap_memfree(name);
  int attributes = 0;
  BerElement *place = NULL;
  // Attack: an entry with a hundred thousand attributes. libldap searches the whole entry for the values of each.
  for (char *attribute = fits ? ldap_first_attribute(ld, entry, &place) : NULL; attribute != NULL;
       attribute = fits ? ldap_next_attribute(ld, entry, place) : NULL) {
    attributes += 1;
    fits = attributes <= 200 && takes(left, strlen(attribute));
    struct berval **values = fits ? ldap_get_values_len(ld, entry, attribute) : NULL;
    for (size_t index = 0; fits && values != NULL && values[index] != NULL; index += 1) {
      fits = takes(left, values[index]->bv_len);
      if (fits) visit(context, attribute, values[index]->bv_val, values[index]->bv_len);
    }
    ldap_value_free_len(values);
    ldap_memfree(attribute);
  }
  ber_free(place, 0);
  return fits;
}

cldap_result cldap_search(
    cldap_connection *connection, const cldap_query *query, cldap_visit visit, void *context) {
  LDAP *ld = connection->ld;
  int id = 0, entries = 0, references = 0;
  size_t left = query->bytes;
  int code = ldap_search_ext(
      ld, query->base, LDAP_SCOPE_SUBTREE, query->filter, query->attributes, 0, NULL, NULL,
      &connection->patience, query->entries, &id);
  while (code == LDAP_SUCCESS) {
    LDAPMessage *message = NULL;
    code = await_message(connection, id, &message);
    if (code != LDAP_SUCCESS) break;
    switch (ldap_msgtype(message)) {
      case LDAP_RES_SEARCH_RESULT: return final_result(connection, message);
      case LDAP_RES_SEARCH_ENTRY:
        entries += 1;
        if (entries > query->entries) code = LDAP_SIZELIMIT_EXCEEDED;
        else if (!visit_entry(ld, message, &left, visit, context)) code = CLDAP_TOO_LARGE;
        break;
      // Attack: references without end, each a message.
      case LDAP_RES_SEARCH_REFERENCE:
        references += 1;
        if (references > 1000) code = CLDAP_TOO_LARGE;
        break;
      default: code = LDAP_PROTOCOL_ERROR;
    }
    ldap_msgfree(message);
    if (code == LDAP_SUCCESS) continue;
    // Attack: the rest of the entries would be read and stored while the next answer is awaited.
    ldap_abandon_ext(ld, id, NULL, NULL);
    return result_of(code);
  }
  return failure(connection, code);
}
