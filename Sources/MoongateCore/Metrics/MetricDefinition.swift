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
    "Lines that the access log dropped because its buffer was full.")
  package static let accessLogLinesTotal = MetricDefinition(
    "moongate_access_log_lines_total", .counter, "Lines given to the access log.")
  package static let adminTurnedAwayTotal = MetricDefinition(
    "moongate_admin_turned_away_total", .counter,
    "Requests to the admin listener that were refused unread, because too many wrong tokens came from their address.")
  package static let adminWrongTokensTotal = MetricDefinition(
    "moongate_admin_wrong_tokens_total", .counter,
    "Requests to the admin listener with a wrong token.")
  package static let attemptsTotal = MetricDefinition(
    "moongate_attempts_total", .counter, labels: ["provider", "outcome"],
    "Attempts at steps, by provider: verified, or the code of the refusal (wrong codes, locks, limits).")
  package static let auditBacklogEvents = MetricDefinition(
    "moongate_audit_backlog_events", .gauge, labels: ["sink"],
    "Events of the audit trail that a sink does not have yet, at most 100,000.")
  package static let auditEventsSentTotal = MetricDefinition(
    "moongate_audit_events_sent_total", .counter, labels: ["sink"],
    "Events of the audit trail that this gateway has sent, by sink.")
  package static let auditFailuresTotal = MetricDefinition(
    "moongate_audit_failures_total", .counter, labels: ["sink"],
    "Attempts to send events of the audit trail that failed, by sink.")
  package static let auditLagSeconds = MetricDefinition(
    "moongate_audit_lag_seconds", .gauge, labels: ["sink"],
    "Age of the oldest event of the audit trail that a sink does not have yet.")
  package static let buildInfo = MetricDefinition(
    "moongate_build_info", .gauge, labels: ["version", "commit", "swift"],
    "The version of this program, and the commit and the Swift compiler that it was built from; always 1.")
  package static let candidateProblems = MetricDefinition(
    "moongate_candidate_problems", .gauge,
    "Problems of the candidate that was refused last; 0 when there is none.")
  package static let candidatesRefusedTotal = MetricDefinition(
    "moongate_candidates_refused_total", .counter, "Candidates refused.")
  package static let certificateExpiryTimestampSeconds = MetricDefinition(
    "moongate_certificate_expiry_timestamp_seconds", .gauge,
    "When the certificate for new connections expires, in Unix time.")
  package static let connectionsRefusedTotal = MetricDefinition(
    "moongate_connections_refused_total", .counter,
    "Connections closed at once, because of a limit.")
  package static let connectionsTotal = MetricDefinition(
    "moongate_connections_total", .counter, labels: ["protocol"],
    "Connections of clients since the start, by protocol.")
  package static let deliveriesTotal = MetricDefinition(
    "moongate_deliveries_total", .counter, labels: ["channel", "outcome"],
    "Messages handed to a carrier, a mail server or the outbox, by channel and outcome; codes and notices.")
  package static let deliveryBreakerState = MetricDefinition(
    "moongate_delivery_breaker_state", .gauge, labels: ["site"],
    "Whether messages are sent to the carrier or mail server: 0 they are; 1 a single one is tried after failures; 2 none is, because of consecutive failures."
  )
  package static let deliverySeconds = MetricDefinition(
    "moongate_delivery_seconds", .histogram, labels: ["channel"],
    "How long carriers and mail servers took to accept a message, by channel.")
  package static let generationActiveSinceSeconds = MetricDefinition(
    "moongate_generation_active_since_seconds", .gauge,
    "When the active generation was activated, in Unix time.")
  package static let generationInfo = MetricDefinition(
    "moongate_generation_info", .gauge, labels: ["generation"], "The generation that is active.")
  package static let generationSwitchesTotal = MetricDefinition(
    "moongate_generation_switches_total", .counter, "Generations activated.")
  package static let generations = MetricDefinition(
    "moongate_generations", .gauge,
    "Different generations that the gateways of this store serve with; 1 unless a change has not reached all of them.")
  package static let generationsLive = MetricDefinition("moongate_generations_live", .gauge, "Generations in memory.")
  package static let hashesTotal = MetricDefinition(
    "moongate_hashes_total", .counter, "PINs and passwords that a hashing thread has started on.")
  package static let hashingPermits = MetricDefinition(
    "moongate_hashing_permits", .gauge,
    "Hashing places that PINs and passwords occupy; at the limit, further requests get 503.")
  package static let hashingPermitsLimit = MetricDefinition(
    "moongate_hashing_permits_limit", .gauge,
    "The maximum number of hashing places.")
  package static let hashingWaiting = MetricDefinition(
    "moongate_hashing_waiting", .gauge, "PINs and passwords that wait for a hashing thread.")
  package static let locks = MetricDefinition(
    "moongate_locks", .gauge, "Locks in force, and credentials that a limit turned off.")
  package static let nodes = MetricDefinition("moongate_nodes", .gauge, "Gateways that serve from this store.")
  package static let openConnections = MetricDefinition(
    "moongate_open_connections", .gauge, labels: ["protocol"], "Connections of clients, by protocol.")
  package static let policySeconds = MetricDefinition(
    "moongate_policy_seconds", .histogram, "How long decisions took on routes with `decide`.")
  package static let providerCallSeconds = MetricDefinition(
    "moongate_provider_call_seconds", .histogram, labels: ["provider", "call"],
    "How long calls of providers took.")
  package static let providerCallsTotal = MetricDefinition(
    "moongate_provider_calls_total", .counter, labels: ["provider", "call", "outcome"],
    "Calls of providers, by outcome.")
  package static let refusalsTotal = MetricDefinition(
    "moongate_refusals_total", .counter, labels: ["code"], "Requests refused, by code.")
  package static let requestDurationSeconds = MetricDefinition(
    "moongate_request_duration_seconds", .histogram, labels: ["route"],
    "Time from a request's first byte to its response's last, by route.")
  package static let requestsTotal = MetricDefinition(
    "moongate_requests_total", .counter, labels: ["route", "outcome", "status"],
    "Requests, by route, outcome and class of the status. (own): the gateway's pages and calls; (none): no route."
  )
  package static let sendsTotal = MetricDefinition(
    "moongate_sends_total", .counter, labels: ["provider", "channel", "country", "outcome"],
    "Codes handed to a carrier or mail server, by provider, channel, country of the number (none: no number) and outcome."
  )
  package static let sessionCacheEntries = MetricDefinition(
    "moongate_session_cache_entries", .gauge, "Cached sessions, over all event loops.")
  package static let sessionLookupsTotal = MetricDefinition(
    "moongate_session_lookups_total", .counter, labels: ["result"],
    "Lookups of tokens in the session cache: live and dead were known, asked went to the store, unavailable could not be answered."
  )
  package static let sessions = MetricDefinition("moongate_sessions", .gauge, "Sessions that have not expired.")
  package static let shadow = MetricDefinition(
    "moongate_shadow", .gauge, "Whether there is a shadow candidate (moongate policy shadow).")
  package static let shadowDifferingTotal = MetricDefinition(
    "moongate_shadow_differing_total", .counter, labels: ["kind"],
    "Decisions that the candidate makes differently.")
  package static let shadowDroppedTotal = MetricDefinition(
    "moongate_shadow_dropped_total", .counter, labels: ["kind"],
    "Decisions that were dropped because there was no room for them.")
  package static let shadowJudgedTotal = MetricDefinition(
    "moongate_shadow_judged_total", .counter, labels: ["kind"],
    "Decisions that the candidate was asked about.")
  package static let signInsTotal = MetricDefinition(
    "moongate_sign_ins_total", .counter, labels: ["flow", "outcome"],
    "Flows, by outcome: completed opened a session or changed one; refused counts each refused request of a flow."
  )
  package static let storeBusyTotal = MetricDefinition(
    "moongate_store_busy_total", .counter,
    "Work turned away because no connection was free in time.")
  package static let storeBytes = MetricDefinition(
    "moongate_store_bytes", .gauge, labels: ["part"],
    "Size of the store; wal: SQLite's write-ahead log.")
  package static let storeConnections = MetricDefinition(
    "moongate_store_connections", .gauge, labels: ["state"],
    "Connections to the store's database, by state.")
  package static let storeConnectsFailedTotal = MetricDefinition(
    "moongate_store_connects_failed_total", .counter,
    "Connections to the store's database that could not be opened.")
  package static let storeConnectsTotal = MetricDefinition(
    "moongate_store_connects_total", .counter,
    "Connections that were opened to the store's database.")
  package static let storeFaultsTotal = MetricDefinition(
    "moongate_store_faults_total", .counter,
    "Transactions that the database could not carry out.")
  package static let storeNotificationsTotal = MetricDefinition(
    "moongate_store_notifications_total", .counter,
    "Notifications of session changes from the database, each of which saved the wait for the next poll.")
  package static let storeRoundTripsTotal = MetricDefinition(
    "moongate_store_round_trips_total", .counter,
    "Round trips of the store to its database.")
  package static let storeStatementsTotal = MetricDefinition(
    "moongate_store_statements_total", .counter,
    "Statements sent to the store's database.")
  package static let storeTransactionSeconds = MetricDefinition(
    "moongate_store_transaction_seconds", .histogram, labels: ["kind"],
    "How long transactions of the store took, including the time in the queue.")
  package static let storeTransactionsTotal = MetricDefinition(
    "moongate_store_transactions_total", .counter, labels: ["outcome"],
    "Transactions of the store, by how they ended.")
  package static let storeWaiting = MetricDefinition(
    "moongate_store_waiting", .gauge, "Work that waits for a connection to the store's database.")
  package static let tlsHandshakesFailedTotal = MetricDefinition(
    "moongate_tls_handshakes_failed_total", .counter,
    "TLS handshakes that failed.")
  package static let traceSpansTotal = MetricDefinition(
    "moongate_trace_spans_total", .counter, labels: ["outcome"],
    "Spans of traces: sent to the collector, or dropped because it did not accept them.")
  package static let tunnels = MetricDefinition(
    "moongate_tunnels", .gauge, "Open WebSockets and other upgraded connections.")
  package static let upstreamConnections = MetricDefinition(
    "moongate_upstream_connections", .gauge, labels: ["upstream", "state"],
    "Connections to upstreams, by state.")
  package static let upstreamConnectionsFailedTotal = MetricDefinition(
    "moongate_upstream_connections_failed_total", .counter, labels: ["upstream"],
    "Connections to upstreams that could not be opened.")
  package static let upstreamConnectionsOpenedTotal = MetricDefinition(
    "moongate_upstream_connections_opened_total", .counter, labels: ["upstream"],
    "Connections opened to upstreams.")
  package static let upstreamErrorsTotal = MetricDefinition(
    "moongate_upstream_errors_total", .counter, labels: ["route", "cause"],
    "Requests without a complete response, by route and cause: unreachable, timeout, closed, unreadable, or cut (within the response)."
  )
  package static let upstreamReusesTotal = MetricDefinition(
    "moongate_upstream_reuses_total", .counter, labels: ["upstream"],
    "Requests sent on an existing connection.")
  package static let processCpuSecondsTotal = MetricDefinition(
    "process_cpu_seconds_total", .counter, "CPU time of this process.")
  package static let processOpenFds = MetricDefinition("process_open_fds", .gauge, "Open files and sockets.")
  package static let processResidentMemoryBytes = MetricDefinition(
    "process_resident_memory_bytes", .gauge,
    "Resident memory of this process.")
  package static let processStartTimeSeconds = MetricDefinition(
    "process_start_time_seconds", .gauge, "When this process started, in Unix time.")

  /// All metrics, sorted by name.
  package static let all: [MetricDefinition] = [
    .accessLogDroppedTotal, .accessLogLinesTotal, .adminTurnedAwayTotal, .adminWrongTokensTotal, .attemptsTotal,
    .auditBacklogEvents, .auditEventsSentTotal, .auditFailuresTotal, .auditLagSeconds, .buildInfo, .candidateProblems,
    .candidatesRefusedTotal, .certificateExpiryTimestampSeconds, .connectionsRefusedTotal, .connectionsTotal,
    .deliveriesTotal, .deliveryBreakerState, .deliverySeconds, .generationActiveSinceSeconds, .generationInfo,
    .generationSwitchesTotal, .generations, .generationsLive, .hashesTotal, .hashingPermits, .hashingPermitsLimit,
    .hashingWaiting, .locks, .nodes, .openConnections, .policySeconds, .providerCallSeconds, .providerCallsTotal,
    .refusalsTotal, .requestDurationSeconds, .requestsTotal, .sendsTotal, .sessionCacheEntries, .sessionLookupsTotal,
    .sessions, .shadow, .shadowDifferingTotal, .shadowDroppedTotal, .shadowJudgedTotal, .signInsTotal, .storeBusyTotal,
    .storeBytes, .storeConnections, .storeConnectsFailedTotal, .storeConnectsTotal, .storeFaultsTotal,
    .storeNotificationsTotal, .storeRoundTripsTotal, .storeStatementsTotal, .storeTransactionSeconds,
    .storeTransactionsTotal, .storeWaiting, .tlsHandshakesFailedTotal, .traceSpansTotal, .tunnels, .upstreamConnections,
    .upstreamConnectionsFailedTotal, .upstreamConnectionsOpenedTotal, .upstreamErrorsTotal, .upstreamReusesTotal,
    .processCpuSecondsTotal, .processOpenFds, .processResidentMemoryBytes, .processStartTimeSeconds,
  ]
}
