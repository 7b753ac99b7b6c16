import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK
import NIOCore
import ServiceLifecycle

/// `/events` and `/decisions/{id}`: the audit trail, newest event first. A client that follows it receives new events
/// as they happen, oldest first.
struct EventCalls: Sendable {
  private static let usual = 1_000
  /// How often a follower receives new events.
  private static let interval: Duration = .milliseconds(250)

  let store: any AuditSearch
  let audit: AuditTrail
  let administration: AccountAdministration
  let clock: any GatewayClock
  let suggestion: AdminQuery.Suggestion

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .events) { exchange throws(Refusal) in
        let known = ["account", "identifier", "kind", "since", "decision", "limit", "follow"]
        let query = try AdminQuery(exchange, known: known, suggestion: suggestion)
        let limit = try query.count("limit", usual: Self.usual, most: Operation.mostEventsOfTrail)
        let filter = try await filter(query, exchange)
        if try query.flag("follow") { return follow(filter) }
        let events = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await audit.events(matching: filter, limit: limit, in: store)
        }
        return .json(.list(events.map { .event($0) }))
      },
      Endpoint(.call, .decision) { exchange throws(Refusal) in
        let id = DecisionID(text: exchange.parameters[0])
        guard let event = try await exchange.mappingFaults({ () async throws(StoreFault) in try await audit.event(id) })
        else {
          throw exchange.refusal(.notFound, detail: "There is no such decision, or it is no longer kept.")
        }
        return .json(
          .event(
            try await exchange.mappingFaults { () async throws(StoreFault) in
              try await administration.explained(event)
            }))
      },
    ]
  }

  private func filter(_ query: AdminQuery, _ exchange: Exchange) async throws(Refusal) -> AuditFilter {
    var filter = AuditFilter(
      kinds: try query.kinds("kind"), since: try query.since("since", before: clock.now()),
      decision: try query.decision("decision"))
    if let name = query["account"] {
      filter.people = try await exchange.mappingFaults { () async throws(StoreFault) in
        try await administration.people(named: name, region: exchange.gateway.region)
      }
    }
    if let name = query["identifier"] {
      let traces = administration.traces(named: name, region: exchange.gateway.region)
      // With both parameters: the events of the account that concern this identifier.
      filter.people = AuditFilter.People(traces: filter.people.map { $0.traces.intersection(traces) } ?? traces)
    }
    return filter
  }

  /// Sends server-sent events (WHATWG HTML, section 9.2) until the client disconnects or the gateway stops.
  private func follow(_ filter: AuditFilter) -> Response {
    var response = Response.plain(.ok, type: "text/event-stream", [])
    response.body = ResponseBody { [audit] writer in
      // Compares with all recent events, not only the last one: an event that counts a flood moves to the end of the
      // trail when its count is known.
      var told = Set(try await audit.events(limit: Self.usual).map(\.id))
      try await writer.write(ByteBuffer(string: ": following\n\n"))
      while !Task.isCancelled, !Task.isShuttingDownGracefully {
        let events = try await audit.events(limit: Self.usual)
        for event in events.reversed() where !told.contains(event.id) && filter.matches(event) {
          try await writer.write(
            ByteBuffer(bytes: "id: \(event.id)\ndata: ".utf8 + JSONValue.event(event).bytes + "\n\n".utf8))
        }
        told = Set(events.map(\.id))
        try await Task.sleep(for: Self.interval)
      }
      try await writer.finish(nil)
    }
    response.headers[.contentLength] = nil
    return response
  }
}
