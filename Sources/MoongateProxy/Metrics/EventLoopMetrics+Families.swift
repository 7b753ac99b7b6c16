import MoongateCore

extension EventLoopMetrics {
  /// As `GET /metrics` shows them.
  var families: [MetricFamily] {
    typealias Sample = MetricFamily.Sample
    let known = upstreams.sorted { $0.key < $1.key }
    let byUpstream = { (value: (Upstream) -> Int) in known.map { Sample([("upstream", $0.key)], Double(value($0.value))) } }
    return [
      MetricFamily(
        "moongate_requests_total", .counter,
        "Requests by route, by what became of them, and by the class of the status. (own): the gateway's pages and calls; (none): no route.",
        routes.flatMap(Self.counts)),
      MetricFamily(
        "moongate_request_duration_seconds", .histogram, "From a request's first byte to its answer's last, by route.",
        routes.filter { !$0.duration.isEmpty }.flatMap { $0.duration.samples([("route", $0.label)]) }),
      MetricFamily(
        "moongate_upstream_errors_total", .counter,
        "Requests without a whole answer, by route and cause: unreachable, timeout, closed, unreadable, or cut (inside the answer).",
        routes.flatMap { route in
          zip(UpstreamFailureLog.Cause.allCases, route.upstreamErrors).filter { $0.1 > 0 }.map { cause, count in
            Sample([("route", route.label), ("cause", cause.rawValue)], Double(count))
          }
        }),
      MetricFamily(
        "moongate_open_connections", .gauge, "Connections of clients, by protocol.",
        Wire.allCases.map { Sample([("protocol", $0.name)], Double(connections[$0].now)) }),
      MetricFamily(
        "moongate_connections_total", .counter, "Connections of clients since the start, by protocol.",
        Wire.allCases.map { Sample([("protocol", $0.name)], Double(connections[$0].opened)) }),
      MetricFamily("moongate_connections_refused_total", .counter, "Connections closed at once, because of a limit.", refusedConnections),
      MetricFamily("moongate_tls_handshakes_failed_total", .counter, "TLS handshakes that came to nothing.", failedHandshakes),
      MetricFamily("moongate_tunnels", .gauge, "WebSockets and other upgrades that are open.", tunnels),
      MetricFamily(
        "moongate_upstream_connections", .gauge, "Connections to upstreams, by what they do.",
        known.flatMap { name, numbers in
          [
            Sample([("upstream", name), ("state", "idle")], Double(numbers.idle)),
            Sample([("upstream", name), ("state", "busy")], Double(max(0, numbers.open - numbers.idle))),
          ]
        }),
      MetricFamily("moongate_upstream_connections_opened_total", .counter, "Connections opened to upstreams.", byUpstream(\.opened)),
      MetricFamily(
        "moongate_upstream_connections_failed_total", .counter, "Connections to upstreams that could not be opened.", byUpstream(\.failed)),
      MetricFamily("moongate_upstream_reuses_total", .counter, "Requests that went out on a connection that was there.", byUpstream(\.reused)),
      MetricFamily(
        "moongate_session_lookups_total", .counter,
        "Tokens looked for in the cache: live and dead were known, asked went to the store, unavailable could not be answered.",
        [
          Sample([("result", "live")], Double(cache.live)), Sample([("result", "dead")], Double(cache.dead)),
          Sample([("result", "asked")], Double(cache.asked)), Sample([("result", "unavailable")], Double(cache.unavailable)),
        ]),
      MetricFamily("moongate_session_cache_entries", .gauge, "Sessions remembered, over all event loops.", cache.entries),
      MetricFamily("moongate_policy_seconds", .histogram, "How long judging took where a route has `decide`.", policy.samples([])),
    ]
  }

  private static func counts(_ route: Route) -> [MetricFamily.Sample] {
    Outcome.allCases.flatMap { outcome in
      (0..<5).compactMap { status in
        let count = route.counts[outcome.rawValue * 5 + status]
        guard count > 0 else { return nil }
        return MetricFamily.Sample([("route", route.label), ("outcome", outcome.name), ("status", "\(status + 1)xx")], Double(count))
      }
    }
  }
}
