import MoongateCore

extension EventLoopMetrics {
  /// The metrics for `GET /metrics`.
  var families: [MetricFamily] {
    typealias Sample = MetricFamily.Sample
    let known = upstreams.sorted { $0.key < $1.key }
    let byUpstream = { (value: (Upstream) -> Int) in
      known.map { Sample([("upstream", $0.key)], Double(value($0.value))) }
    }
    return [
      MetricFamily(.requestsTotal, routes.flatMap(Self.counts)),
      MetricFamily(
        .requestDurationSeconds,
        routes.filter { !$0.duration.isEmpty }.flatMap { $0.duration.samples([("route", $0.label)]) }),
      MetricFamily(
        .upstreamErrorsTotal,
        routes.flatMap { route in
          zip(UpstreamFailureCause.allCases, route.upstreamErrors).filter { $0.1 > 0 }.map { cause, count in
            Sample([("route", route.label), ("cause", cause.rawValue)], Double(count))
          }
        }),
      MetricFamily(
        .rateLimitedTotal,
        routes.filter { $0.rateLimited > 0 }.map { Sample([("route", $0.label)], Double($0.rateLimited)) }),
      MetricFamily(
        .openConnections, HTTPVersion.allCases.map { Sample([("protocol", $0.name)], Double(connections[$0].now)) }),
      MetricFamily(
        .connectionsTotal, HTTPVersion.allCases.map { Sample([("protocol", $0.name)], Double(connections[$0].opened)) }),
      MetricFamily(.connectionsRefusedTotal, refusedConnections),
      MetricFamily(.tlsHandshakesFailedTotal, failedHandshakes),
      MetricFamily(.tunnels, tunnels),
      MetricFamily(
        .upstreamConnections,
        known.flatMap { name, metrics in
          [
            Sample([("upstream", name), ("state", "idle")], Double(metrics.idle)),
            Sample([("upstream", name), ("state", "busy")], Double(max(0, metrics.open - metrics.idle))),
          ]
        }),
      MetricFamily(.upstreamConnectionsOpenedTotal, byUpstream(\.opened)),
      MetricFamily(.upstreamConnectionsFailedTotal, byUpstream(\.failed)),
      MetricFamily(
        .upstreamRetriesTotal,
        known.flatMap { name, metrics in
          metrics.retries.sorted { $0.key.rawValue < $1.key.rawValue }.map { cause, count in
            Sample([("upstream", name), ("cause", cause.rawValue)], Double(count))
          }
        }),
      MetricFamily(.upstreamReusesTotal, byUpstream(\.reused)),
      MetricFamily(
        .sessionLookupsTotal,
        [
          Sample([("result", "live")], Double(cache.live)), Sample([("result", "dead")], Double(cache.dead)),
          Sample([("result", "asked")], Double(cache.asked)),
          Sample([("result", "unavailable")], Double(cache.unavailable)),
        ]),
      MetricFamily(.sessionCacheEntries, cache.entries),
      MetricFamily(.policySeconds, policy.samples([])),
    ]
  }

  private static func counts(_ route: Route) -> [MetricFamily.Sample] {
    Outcome.allCases.flatMap { outcome in
      (0..<5).compactMap { status in
        let count = route.counts[outcome.rawValue * 5 + status]
        guard count > 0 else { return nil }
        return MetricFamily.Sample(
          [("route", route.label), ("outcome", outcome.name), ("status", "\(status + 1)xx")], Double(count))
      }
    }
  }
}
