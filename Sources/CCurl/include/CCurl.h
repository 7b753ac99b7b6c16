// Mail by libcurl. Its options are set by a variadic function, which Swift cannot call.
#ifndef CCURL_H
#define CCURL_H

#include <stdbool.h>
#include <stddef.h>

/// Connections to mail servers. For one thread at a time; what one mail opened the next one uses, for 30 seconds.
typedef struct ccurl_session ccurl_session;

/// NULL where there is no memory.
ccurl_session *ccurl_session_new(void);

/// Says goodbye to the servers and frees all.
void ccurl_session_free(ccurl_session *session);

/// One mail to one person.
typedef struct {
  /// smtp://host:port or smtps://host:port
  const char *url;
  /// Addresses in angle brackets.
  const char *from;
  const char *to;
  /// Both or none.
  const char *user;
  const char *password;
  /// A PEM file of authorities in place of the system's; may be NULL.
  const char *authority;
  /// Whether smtp:// must become TLS by STARTTLS before anything else is said.
  bool must_encrypt;
  /// For connecting, and for all of it.
  long connect_milliseconds;
  long total_milliseconds;
  /// RFC 5322, lines end in CR LF; leading dots are doubled on the way.
  const char *bytes;
  size_t count;
} ccurl_mail;

typedef struct {
  /// 0: the server has taken it.
  int error;
  /// The last reply of the server (RFC 5321 section 4.2); 0 where there was none.
  long reply;
  /// Whether it was the server's answer to this mail (MAIL, RCPT, DATA), and not to the connection.
  bool of_this_mail;
  /// In words, without the mail and without the password.
  char reason[256];
} ccurl_outcome;

/// Sends it and waits. Blocks the thread; raises no signal.
ccurl_outcome ccurl_send_mail(ccurl_session *session, const ccurl_mail *mail);

#endif
