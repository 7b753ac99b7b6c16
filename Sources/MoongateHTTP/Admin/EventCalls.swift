import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK
import NIOCore
import ServiceLifecycle

/// `/events` and `/decisions/{id}`: what was decided, newest first; followed, oldest first, as it happens.
struct EventCalls: Sendable {
  private static let usual = 1_000
  /// As many as are kept.
  private static let most = AuditQuota.allCases.map(\.most).reduce(0, +)
  /// How often a follower is told.
  private static let interval: Duration = .milliseconds(250)

  let audit: AuditTrail

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/events") { exchange throws(Refusal) in
        let query = try exchange.query()
        if query["follow"] == "1" { return follow() }
        let limit = query["limit"].flatMap(Int.init).map { max(1, min(Self.most, $0)) } ?? Self.usual
        let events = try await exchange.asking { () async throws(StoreFault) in try await audit.events(limit: limit) }
        return .json(.list(events.map { .event($0) }))
      },
      Endpoint(.call, .get, "/decisions/{}") { exchange throws(Refusal) in
        let id = DecisionID(text: exchange.parameters[0])
        guard let event = try await exchange.asking({ () async throws(StoreFault) in try await audit.event(id) }) else {
          throw exchange.refusal(.notFound, detail: "There is no such decision, or it is no longer kept.")
        }
        return .json(.event(event))
      },
    ]
  }

  /// Server-sent events (WHATWG HTML section 9.2), until the reader goes or we stop.
  private func follow() -> Response {
    var response = Response.plain(.ok, type: "text/event-stream", [])
    response.body = ResponseBody { [audit] writer in
      var latest = try await audit.events(limit: 1).first?.id
      try await writer.write(ByteBuffer(string: ": following\n\n"))
      while !Task.isCancelled, !Task.isShuttingDownGracefully {
        let events = try await audit.events(limit: Self.usual).prefix { $0.id != latest }
        latest = events.first?.id ?? latest
        for event in events.reversed() {
          try await writer.write(ByteBuffer(bytes: "id: \(event.id)\ndata: ".utf8 + JSONValue.event(event).bytes + "\n\n".utf8))
        }
        try await Task.sleep(for: Self.interval)
      }
      try await writer.finish(nil)
    }
    response.headers[.contentLength] = nil
    return response
  }
}

extension JSONValue {
  fileprivate static func event(_ event: AuditEvent) -> JSONValue {
    .members([
      "id": .text(event.id.text), "at": .text(event.at.exactText), "kind": .text(event.kind.rawValue), "code": .optional(event.code),
      "flow": .optional(event.flow), "flow_prefix": .optional(event.flowPrefix), "provider": .optional(event.provider?.rawValue),
      "account": .optional(event.account), "identifier": .optional(event.identifier), "address": .optional(event.address),
      "count": event.count.map { .number($0) } ?? .null,
      "detail": .object(event.detail.sorted { $0.key < $1.key }.map { JSONMember(name: $0.key, value: .text($0.value)) }),
    ])
  }
}
