import HTTPTypes
import Hummingbird
import MoongateCore

/// `/.well-known/moongate/forwarding`: answers the probe of `moongate doctor` with how it arrived.
struct ForwardingCall: Sendable {
  let keys: KeyRing
  let clock: any GatewayClock

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, ForwardingProbe.path) { exchange throws(Refusal) in
        let headers = exchange.request.headers
        let values = { (name: String) in HTTPField.Name(name).map { headers[values: $0] } ?? [] }
        let tickets = values(ForwardingProbe.header)
        // Attack: anyone asks for the addresses of the proxies.
        guard tickets.count == 1, ForwardingProbe.isValid(tickets[0], keys, at: clock.now()) else {
          throw exchange.refusal(.notFound)
        }
        let report = ForwardingReport(
          peer: exchange.peer.description, forwardedFor: values("X-Forwarded-For"),
          client: exchange.client.address.description, origin: exchange.client.origin)
        return .json(report.document)
      }
    ]
  }
}

extension ForwardingReport {
  fileprivate var document: JSONValue {
    .members([
      CodingKeys.peer.rawValue: .text(peer), CodingKeys.forwardedFor.rawValue: .list(forwardedFor.map { .text($0) }),
      CodingKeys.client.rawValue: .text(client), CodingKeys.origin.rawValue: .optional(origin),
    ])
  }
}
