// Mail delivery by libcurl. Swift cannot call the variadic function that sets its options.
#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

/// A set of connections to mail servers, for one thread at a time. Connections are reused for 30 seconds.
typedef struct ccurl_session ccurl_session;

/// Returns NULL if memory is exhausted.
ccurl_session *ccurl_session_new(void);

/// Closes the connections and frees the session.
void ccurl_session_free(ccurl_session *session);

/// One mail to one recipient.
typedef struct {
  /// smtp://host:port/name or smtps://host:port/name, with the percent-encoded name of the client for EHLO.
  const char *url;
  /// Addresses in angle brackets.
  const char *from;
  const char *to;
  /// Both or neither.
  const char *user;
  const char *password;
  /// A PEM file of certificate authorities that replaces the system's; may be NULL.
  const char *authority;
  /// Whether smtp:// must use STARTTLS.
  bool must_encrypt;
  /// Time limits for the connection and for the whole transfer.
  long connect_milliseconds;
  long total_milliseconds;
  /// The mail (RFC 5322) with CR LF line ends. Leading dots are escaped during the transfer.
  const char *bytes;
  size_t count;
} ccurl_mail;

typedef struct {
  /// 0 if the server has accepted the mail.
  int error;
  /// The last reply code of the server (RFC 5321 section 4.2); 0 before its first reply.
  long reply;
  /// Whether the server refused this mail (MAIL, RCPT, DATA), not the connection.
  bool of_this_mail;
  /// The reason in words, without the mail and the password.
  char reason[256];
  /// The last line with which the server refused something, without its line end; empty if there was none. A long line
  /// is cut.
  char line[512];
} ccurl_outcome;

/// Sends a mail. Blocks the thread; raises no signal.
ccurl_outcome ccurl_send_mail(ccurl_session *session, const ccurl_mail *mail);

#endif
