import Hummingbird
import MoongateCore
import MoongateHTTP

/// `POST /api/auth/client-events`: events that only the browser knows, for the audit trail.
struct ClientEventCall: Sendable {
  let driver: FlowDriver
  let clock: any GatewayClock
  let audit: AuditTrail
  private let allowance = EventAllowances()

  init(driver: FlowDriver, clock: any GatewayClock, audit: AuditTrail) {
    self.driver = driver
    self.clock = clock
    self.audit = audit
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .clientEvents) { exchange throws(Refusal) in
        try await take(exchange)
      }
    ]
  }

  private func take(_ exchange: Exchange) async throws(Refusal) -> Response {
    let body = try await exchange.object()
    guard case .list(let items)? = body["events"], items.count <= Operation.mostEvents else {
      throw exchange.refusal(
        .invalidInput, detail: "events must be a list of at most \(Operation.mostEvents).", field: "events")
    }
    let sites = SiteEvent.sites(of: exchange.providers)
    var events: [ClientEvent] = []
    for (index, item) in items.enumerated() {
      guard let event = ClientEvent(item, sites: sites) else {
        throw exchange.refusal(
          .invalidInput, detail: "The event is unknown, or one of its values is not allowed.", field: "events[\(index)]"
        )
      }
      events.append(event)
    }
    var flow: FlowID?
    switch body["flow"] {
    case .text(let id): flow = FlowID(text: id)
    case nil, .null: break
    default: throw exchange.refusal(.invalidInput, detail: "flow must be a string.", field: "flow")
    }
    if let wait = allowance.take(events.count, from: exchange.client.address.countingKey, at: clock.now()) {
      throw exchange.refusal(.rateLimited, retryAfter: wait)
    }
    let about = try await subject(flow, exchange)
    for event in events {
      audit.record(
        AuditEvent(
          id: DecisionID(from: driver.random), at: clock.now(), kind: .client, flow: about?.flow,
          flowPrefix: flow?.prefix, provider: about?.provider,
          account: about?.account, identifier: about?.identifier, address: exchange.client.address.description,
          detail: event.detail))
    }
    return .nothing
  }

  /// The subject of the events: the flow's, if it belongs to this browser. The identifier is recorded only as a keyed
  /// hash.
  private func subject(_ flow: FlowID?, _ exchange: Exchange) async throws(Refusal) -> FlowSubject? {
    guard let flow else { return nil }
    let client = try await driver.caller(exchange)
    return await driver.engine.about(flow, client: client)
  }
}
