#define _GNU_SOURCE
#include "CCurl.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ccurl_session {
  CURL *easy;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;

static void prepare(void) { is_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

ccurl_session *ccurl_session_new(void) {
  pthread_once(&once, prepare);
  if (!is_ready) return NULL;
  ccurl_session *session = calloc(1, sizeof *session);
  if (!session) return NULL;
  session->easy = curl_easy_init();
  if (!session->easy) {
    free(session);
    return NULL;
  }
  return session;
}

// Blocks SIGPIPE in this thread and discards a pending one afterwards. A write to a closed connection would raise it
// and end the process, and libcurl's own protection would change signals for the whole process.
static bool hold_pipe_signal(sigset_t *before) {
  sigset_t pipe_signal, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigemptyset(&pending);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, before);
  return !sigismember(&pending, SIGPIPE);
}

static void release_pipe_signal(const sigset_t *before, bool is_ours) {
  if (is_ours) {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    const struct timespec at_once = {0, 0};
    while (sigtimedwait(&pipe_signal, NULL, &at_once) > 0) {}
  }
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

void ccurl_session_free(ccurl_session *session) {
  if (!session) return;
  sigset_t before;
  bool is_ours = hold_pipe_signal(&before);
  curl_easy_cleanup(session->easy);
  release_pipe_signal(&before, is_ours);
  free(session);
}

struct reading {
  const char *bytes;
  size_t left;
};

static size_t read_mail(char *buffer, size_t size, size_t items, void *context) {
  struct reading *reading = context;
  size_t count = size * items < reading->left ? size * items : reading->left;
  memcpy(buffer, reading->bytes, count);
  reading->bytes += count;
  reading->left -= count;
  return count;
}

// Discards the server's output.
static size_t drop(char *bytes, size_t size, size_t items, void *context) {
  (void)bytes;
  (void)context;
  return size * items;
}

// Keeps the last line in which the server refuses something (RFC 5321 section 4.2.1), not its answer to QUIT.
static size_t keep_line(char *bytes, size_t size, size_t items, void *context) {
  ccurl_outcome *outcome = context;
  size_t count = size * items;
  if (count == 0 || (bytes[0] != '4' && bytes[0] != '5')) return count;
  while (count > 0 && (bytes[count - 1] == '\r' || bytes[count - 1] == '\n')) count -= 1;
  if (count >= sizeof outcome->line) count = sizeof outcome->line - 1;
  memcpy(outcome->line, bytes, count);
  outcome->line[count] = 0;
  return size * items;
}

// The context is the mail's text that is read, and the outcome that keeps the server's last line.
struct context {
  struct reading reading;
  ccurl_outcome outcome;
};

static CURLcode set_up(CURL *easy, const ccurl_mail *mail, struct context *context, struct curl_slist *to,
  char *reason) {
  CURLcode code = CURLE_OK;
#define SET(option, value) if (code == CURLE_OK) code = curl_easy_setopt(easy, option, value)
  SET(CURLOPT_ERRORBUFFER, reason);
  SET(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  SET(CURLOPT_URL, mail->url);
  SET(CURLOPT_PROXY, "");
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  SET(CURLOPT_USE_SSL, mail->must_encrypt ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_NONE);
  if (mail->authority) {
    SET(CURLOPT_CAINFO, mail->authority);
    SET(CURLOPT_CAPATH, NULL);
  }
  if (mail->user && mail->password) {
    SET(CURLOPT_USERNAME, mail->user);
    SET(CURLOPT_PASSWORD, mail->password);
  }
  SET(CURLOPT_SASL_IR, 1L);
  SET(CURLOPT_CONNECTTIMEOUT_MS, mail->connect_milliseconds);
  SET(CURLOPT_TIMEOUT_MS, mail->total_milliseconds);
  SET(CURLOPT_MAXAGE_CONN, 30L);
  SET(CURLOPT_MAIL_FROM, mail->from);
  SET(CURLOPT_MAIL_RCPT, to);
  SET(CURLOPT_UPLOAD, 1L);
  SET(CURLOPT_READFUNCTION, read_mail);
  SET(CURLOPT_READDATA, &context->reading);
  SET(CURLOPT_HEADERFUNCTION, keep_line);
  SET(CURLOPT_HEADERDATA, &context->outcome);
  SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)mail->count);
  SET(CURLOPT_WRITEFUNCTION, drop);
#undef SET
  return code;
}

ccurl_outcome ccurl_send_mail(ccurl_session *session, const ccurl_mail *mail) {
  struct context context = {{mail->bytes, mail->count}, {0}};
  ccurl_outcome *outcome = &context.outcome;
  struct curl_slist *to = curl_slist_append(NULL, mail->to);
  char reason[CURL_ERROR_SIZE] = "";
  sigset_t before;
  bool is_ours = hold_pipe_signal(&before);
  // Resets the options but keeps the connections.
  curl_easy_reset(session->easy);
  CURLcode code = to ? set_up(session->easy, mail, &context, to, reason) : CURLE_OUT_OF_MEMORY;
  if (code == CURLE_OK) {
    code = curl_easy_perform(session->easy);
    curl_easy_getinfo(session->easy, CURLINFO_RESPONSE_CODE, &outcome->reply);
  }
  curl_easy_setopt(session->easy, CURLOPT_HEADERFUNCTION, NULL);
  curl_easy_setopt(session->easy, CURLOPT_HEADERDATA, NULL);
  curl_easy_setopt(session->easy, CURLOPT_ERRORBUFFER, NULL);
  release_pipe_signal(&before, is_ours);
  curl_slist_free_all(to);
  outcome->error = code;
  // libcurl reports this error if MAIL, RCPT or DATA is refused, and also for a bad greeting, unless the mail was
  // already sent.
  bool has_gone = context.reading.left < mail->count;
  outcome->of_this_mail = outcome->reply >= 400 && (code == CURLE_SEND_ERROR ||
    (code == CURLE_WEIRD_SERVER_REPLY && has_gone));
  if (code != CURLE_OK) snprintf(outcome->reason, sizeof outcome->reason, "%s",
    reason[0] ? reason : curl_easy_strerror(code));
  return *outcome;
}
