/// A metric of `GET /metrics`. All metrics are defined here with name, type, labels and help text; the reference is
/// generated from them.
package struct MetricDefinition: Sendable {
  package let name: String
  package let kind: MetricFamily.Kind
  /// The labels of its samples, except for the `le` of histograms.
  package let labels: [String]
  package let help: String

  init(_ name: String, _ kind: MetricFamily.Kind, labels: [String] = [], _ help: String) {
    self.name = name
    self.kind = kind
    self.labels = labels
    self.help = help
  }
}

extension MetricDefinition {
  package static let accessLogDroppedTotal = MetricDefinition(
    "moongate_access_log_dropped_total", .counter,
    "Access log lines dropped because the buffer was full.")
  package static let accessLogLinesTotal = MetricDefinition(
    "moongate_access_log_lines_total", .counter, "Lines written to the access log.")
  package static let adminTurnedAwayTotal = MetricDefinition(
    "moongate_admin_turned_away_total", .counter,
    "Requests to the admin listener that were rejected without being read, after too many wrong tokens from their address."
  )
  package static let adminWrongTokensTotal = MetricDefinition(
    "moongate_admin_wrong_tokens_total", .counter,
    "Requests to the admin listener with a wrong token.")
  package static let appTokensTotal = MetricDefinition(
    "moongate_app_tokens_total", .counter, labels: ["app", "outcome"],
    "Token requests of apps, by app and outcome: issued, refreshed, refused (a wrong or ended code, token or secret, or a rule that is not met), revoked."
  )
  package static let attemptsTotal = MetricDefinition(
    "moongate_attempts_total", .counter, labels: ["provider", "outcome"],
    "Verification attempts by provider and outcome: verified, or the error code of the refusal (wrong codes, locks, limits)."
  )
  package static let auditBacklogEvents = MetricDefinition(
    "moongate_audit_backlog_events", .gauge, labels: ["sink"],
    "Audit events that wait to be sent to the sink, at most 100,000.")
  package static let auditEventsSentTotal = MetricDefinition(
    "moongate_audit_events_sent_total", .counter, labels: ["sink"],
    "Audit events that this gateway has sent, by sink.")
  package static let auditFailuresTotal = MetricDefinition(
    "moongate_audit_failures_total", .counter, labels: ["sink"],
    "Failed attempts to send audit events, by sink.")
  package static let auditLagSeconds = MetricDefinition(
    "moongate_audit_lag_seconds", .gauge, labels: ["sink"],
    "Age of the oldest audit event that waits to be sent to the sink.")
  package static let buildInfo = MetricDefinition(
    "moongate_build_info", .gauge, labels: ["version", "commit", "swift"],
    "Version, commit and Swift compiler of the build; always 1.")
  package static let candidateProblems = MetricDefinition(
    "moongate_candidate_problems", .gauge,
    "Problems in the most recently refused configuration candidate; 0 if the last candidate was accepted.")
  package static let candidatesRefusedTotal = MetricDefinition(
    "moongate_candidates_refused_total", .counter, "Configuration candidates refused.")
  package static let certificateExpiryTimestampSeconds = MetricDefinition(
    "moongate_certificate_expiry_timestamp_seconds", .gauge,
    "Expiry time of the certificate in use for new connections, in Unix time.")
  package static let connectionsRefusedTotal = MetricDefinition(
    "moongate_connections_refused_total", .counter,
    "Connections closed at once because of a connection limit.")
  package static let connectionsTotal = MetricDefinition(
    "moongate_connections_total", .counter, labels: ["protocol"],
    "Client connections accepted since the start, by protocol.")
  package static let deliveriesTotal = MetricDefinition(
    "moongate_deliveries_total", .counter, labels: ["channel", "outcome"],
    "Messages (codes and notices) handed to an SMS provider, a mail server or the outbox, by channel and outcome.")
  package static let deliveryBreakerState = MetricDefinition(
    "moongate_delivery_breaker_state", .gauge, labels: ["site"],
    "State of the circuit breaker of an SMS provider or mail server: 0 closed (messages are sent), 1 half-open (one message is tried), 2 open (no message is sent)."
  )
  package static let deliverySeconds = MetricDefinition(
    "moongate_delivery_seconds", .histogram, labels: ["channel"],
    "Time until an SMS provider or mail server accepted a message, by channel.")
  package static let generationActiveSinceSeconds = MetricDefinition(
    "moongate_generation_active_since_seconds", .gauge,
    "When the active generation became active, in Unix time.")
  package static let generationInfo = MetricDefinition(
    "moongate_generation_info", .gauge, labels: ["generation"], "The active generation of the configuration.")
  package static let generationSwitchesTotal = MetricDefinition(
    "moongate_generation_switches_total", .counter, "Generations that became active since the start.")
  package static let generations = MetricDefinition(
    "moongate_generations", .gauge,
    "Different generations in use by the gateways of this store; more than 1 if a change has not reached all of them.")
  package static let generationsLive = MetricDefinition(
    "moongate_generations_live", .gauge, "Generations held in memory.")
  package static let hashesTotal = MetricDefinition(
    "moongate_hashes_total", .counter, "PINs and passwords that a hashing thread has started to hash.")
  package static let hashingPermits = MetricDefinition(
    "moongate_hashing_permits", .gauge,
    "PINs and passwords that are being hashed or wait to be hashed; at the limit, further requests get 503.")
  package static let hashingPermitsLimit = MetricDefinition(
    "moongate_hashing_permits_limit", .gauge,
    "Limit of moongate_hashing_permits.")
  package static let hashingWaiting = MetricDefinition(
    "moongate_hashing_waiting", .gauge, "PINs and passwords that wait for a free hashing thread.")
  package static let locks = MetricDefinition(
    "moongate_locks", .gauge, "Active locks, and credentials that a limit has disabled.")
  package static let nodes = MetricDefinition("moongate_nodes", .gauge, "Gateways that are serving from this store.")
  package static let openConnections = MetricDefinition(
    "moongate_open_connections", .gauge, labels: ["protocol"], "Open client connections, by protocol.")
  package static let policySeconds = MetricDefinition(
    "moongate_policy_seconds", .histogram, "Time to evaluate `decide` of a route.")
  package static let providerCallSeconds = MetricDefinition(
    "moongate_provider_call_seconds", .histogram, labels: ["provider", "call"],
    "Duration of provider calls.")
  package static let providerCallsTotal = MetricDefinition(
    "moongate_provider_calls_total", .counter, labels: ["provider", "call", "outcome"],
    "Provider calls by outcome.")
  package static let rateLimitedTotal = MetricDefinition(
    "moongate_rate_limited_total", .counter, labels: ["route"],
    "Requests refused because they exceeded the `rate` of their route.")
  package static let refusalsTotal = MetricDefinition(
    "moongate_refusals_total", .counter, labels: ["code"], "Requests refused, by code.")
  package static let requestDurationSeconds = MetricDefinition(
    "moongate_request_duration_seconds", .histogram, labels: ["route"],
    "Time from the first byte of a request to the last byte of its response, by route.")
  package static let requestsTotal = MetricDefinition(
    "moongate_requests_total", .counter, labels: ["route", "outcome", "status"],
    "Requests by route, outcome and status class. Route (own): the gateway's own pages and API; (none): no matching route."
  )
  package static let sendsTotal = MetricDefinition(
    "moongate_sends_total", .counter, labels: ["provider", "channel", "country", "outcome"],
    "Codes handed to an SMS provider or mail server, by provider, channel, country of the phone number (none: no number) and outcome."
  )
  package static let sessionCacheEntries = MetricDefinition(
    "moongate_session_cache_entries", .gauge, "Sessions in the caches of all event loops.")
  package static let sessionLookupsTotal = MetricDefinition(
    "moongate_session_lookups_total", .counter, labels: ["result"],
    "Session and token lookups: live and dead were cached, asked went to the store, unavailable failed because the store did not answer."
  )
  package static let sessions = MetricDefinition("moongate_sessions", .gauge, "Sessions that have not expired.")
  package static let shadow = MetricDefinition(
    "moongate_shadow", .gauge, "1 while a shadow candidate is loaded (moongate policy shadow), else 0.")
  package static let shadowDifferingTotal = MetricDefinition(
    "moongate_shadow_differing_total", .counter, labels: ["kind"],
    "Decisions on which the shadow candidate differs from the active configuration.")
  package static let shadowDroppedTotal = MetricDefinition(
    "moongate_shadow_dropped_total", .counter, labels: ["kind"],
    "Decisions that were not compared with the shadow candidate because its queue was full.")
  package static let shadowJudgedTotal = MetricDefinition(
    "moongate_shadow_judged_total", .counter, labels: ["kind"],
    "Decisions that were compared with the shadow candidate.")
  package static let signInsTotal = MetricDefinition(
    "moongate_sign_ins_total", .counter, labels: ["flow", "outcome"],
    "Flows by outcome: completed (opened or changed a session), or refused (each refused request of a flow)."
  )
  package static let storeBusyTotal = MetricDefinition(
    "moongate_store_busy_total", .counter,
    "Store operations refused because no database connection was free in time.")
  package static let storeBytes = MetricDefinition(
    "moongate_store_bytes", .gauge, labels: ["part"],
    "Size of the store by part; wal is SQLite's write-ahead log.")
  package static let storeConnections = MetricDefinition(
    "moongate_store_connections", .gauge, labels: ["state"],
    "Connections to the store's database, by state.")
  package static let storeConnectsFailedTotal = MetricDefinition(
    "moongate_store_connects_failed_total", .counter,
    "Failed attempts to connect to the store's database.")
  package static let storeConnectsTotal = MetricDefinition(
    "moongate_store_connects_total", .counter,
    "Connections opened to the store's database.")
  package static let storeFaultsTotal = MetricDefinition(
    "moongate_store_faults_total", .counter,
    "Transactions that failed in the database.")
  package static let storeNotificationsTotal = MetricDefinition(
    "moongate_store_notifications_total", .counter,
    "Notifications of session changes received from the database.")
  package static let storeRoundTripsTotal = MetricDefinition(
    "moongate_store_round_trips_total", .counter,
    "Round trips to the store's database.")
  package static let storeStatementsTotal = MetricDefinition(
    "moongate_store_statements_total", .counter,
    "Statements sent to the store's database.")
  package static let storeTransactionSeconds = MetricDefinition(
    "moongate_store_transaction_seconds", .histogram, labels: ["kind"],
    "Duration of store transactions, including the time in the queue.")
  package static let storeTransactionsTotal = MetricDefinition(
    "moongate_store_transactions_total", .counter, labels: ["outcome"],
    "Store transactions by outcome.")
  package static let storeWaiting = MetricDefinition(
    "moongate_store_waiting", .gauge, "Store operations that wait for a database connection.")
  package static let tlsHandshakesFailedTotal = MetricDefinition(
    "moongate_tls_handshakes_failed_total", .counter,
    "Failed TLS handshakes.")
  package static let traceSpansTotal = MetricDefinition(
    "moongate_trace_spans_total", .counter, labels: ["outcome"],
    "Trace spans: sent to the collector, or dropped because it did not accept them.")
  package static let tunnels = MetricDefinition(
    "moongate_tunnels", .gauge, "Open WebSockets and other upgraded connections.")
  package static let upstreamConnections = MetricDefinition(
    "moongate_upstream_connections", .gauge, labels: ["upstream", "state"],
    "Connections to upstreams, by state.")
  package static let upstreamConnectionsFailedTotal = MetricDefinition(
    "moongate_upstream_connections_failed_total", .counter, labels: ["upstream"],
    "Failed attempts to connect to upstreams.")
  package static let upstreamConnectionsOpenedTotal = MetricDefinition(
    "moongate_upstream_connections_opened_total", .counter, labels: ["upstream"],
    "Connections opened to upstreams.")
  package static let upstreamErrorsTotal = MetricDefinition(
    "moongate_upstream_errors_total", .counter, labels: ["route", "cause"],
    "Requests without a complete response from an upstream, by route and cause: unreachable, timeout, closed, unreadable, cut (closed within the response), or silent (nothing more of the response came)."
  )
  package static let upstreamHealthChecksTotal = MetricDefinition(
    "moongate_upstream_health_checks_total", .counter, labels: ["upstream", "outcome"],
    "Health checks of upstreams by outcome: passed or failed.")
  package static let upstreamHealthy = MetricDefinition(
    "moongate_upstream_healthy", .gauge, labels: ["upstream"],
    "1 while an upstream passes its health checks, else 0; only upstreams of routes with health.")
  package static let upstreamRetriesTotal = MetricDefinition(
    "moongate_upstream_retries_total", .counter, labels: ["upstream", "cause"],
    "Failed attempts at an upstream after which the request was sent again, there or to another one, by cause: unreachable, timeout, closed, or status (a status that retry names)."
  )
  package static let upstreamReusesTotal = MetricDefinition(
    "moongate_upstream_reuses_total", .counter, labels: ["upstream"],
    "Requests sent on an existing upstream connection.")
  package static let processCpuSecondsTotal = MetricDefinition(
    "process_cpu_seconds_total", .counter, "CPU time of this process.")
  package static let processOpenFds = MetricDefinition("process_open_fds", .gauge, "Open files and sockets.")
  package static let processResidentMemoryBytes = MetricDefinition(
    "process_resident_memory_bytes", .gauge,
    "Resident memory of this process in bytes.")
  package static let processStartTimeSeconds = MetricDefinition(
    "process_start_time_seconds", .gauge, "Start time of this process, in Unix time.")

  /// All metrics, sorted by name.
  package static let all: [MetricDefinition] = [
    .accessLogDroppedTotal, .accessLogLinesTotal, .adminTurnedAwayTotal, .adminWrongTokensTotal, .appTokensTotal,
    .attemptsTotal,
    .auditBacklogEvents, .auditEventsSentTotal, .auditFailuresTotal, .auditLagSeconds, .buildInfo, .candidateProblems,
    .candidatesRefusedTotal, .certificateExpiryTimestampSeconds, .connectionsRefusedTotal, .connectionsTotal,
    .deliveriesTotal, .deliveryBreakerState, .deliverySeconds, .generationActiveSinceSeconds, .generationInfo,
    .generationSwitchesTotal, .generations, .generationsLive, .hashesTotal, .hashingPermits, .hashingPermitsLimit,
    .hashingWaiting, .locks, .nodes, .openConnections, .policySeconds, .providerCallSeconds, .providerCallsTotal,
    .rateLimitedTotal, .refusalsTotal, .requestDurationSeconds, .requestsTotal, .sendsTotal, .sessionCacheEntries,
    .sessionLookupsTotal,
    .sessions, .shadow, .shadowDifferingTotal, .shadowDroppedTotal, .shadowJudgedTotal, .signInsTotal, .storeBusyTotal,
    .storeBytes, .storeConnections, .storeConnectsFailedTotal, .storeConnectsTotal, .storeFaultsTotal,
    .storeNotificationsTotal, .storeRoundTripsTotal, .storeStatementsTotal, .storeTransactionSeconds,
    .storeTransactionsTotal, .storeWaiting, .tlsHandshakesFailedTotal, .traceSpansTotal, .tunnels, .upstreamConnections,
    .upstreamConnectionsFailedTotal, .upstreamConnectionsOpenedTotal, .upstreamErrorsTotal,
    .upstreamHealthChecksTotal, .upstreamHealthy, .upstreamRetriesTotal, .upstreamReusesTotal,
    .processCpuSecondsTotal, .processOpenFds, .processResidentMemoryBytes, .processStartTimeSeconds,
  ]
}
