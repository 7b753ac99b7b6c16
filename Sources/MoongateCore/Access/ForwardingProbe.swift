import Foundation
import MoongateSDK

/// The request with which `moongate doctor` tests whether the gateway trusts the headers of the right proxies. It
/// reaches the gateway through all proxies and claims to come from an address that no client has.
package enum ForwardingProbe {
  package static let path = "/.well-known/moongate/forwarding"
  /// The header with the ticket.
  package static let header = "Moongate-Probe"
  /// The address that the request claims in `X-Forwarded-For`: one for documentation (RFC 5737).
  package static let claimed = "198.51.100.77"
  /// For how long a ticket is valid. Clocks may differ by this much.
  private static let lifetime: Duration = .seconds(300)
  private static let purpose = "forwarding probe"

  /// A ticket that only somebody with the master key can make.
  package static func ticket(_ keys: KeyRing, at now: Timestamp) throws -> String {
    Base64URL.encode(try keys.seal(Array(String(now.milliseconds).utf8), for: purpose))
  }

  /// Whether somebody with the master key made the ticket a short time ago.
  package static func isValid(_ ticket: String, _ keys: KeyRing, at now: Timestamp) -> Bool {
    guard let sealed = Base64URL.decode(ticket), let opened = try? keys.open(sealed, for: purpose),
      let made = Int64(String(decoding: opened, as: UTF8.self))
    else { return false }
    let age = now - Timestamp(milliseconds: made)
    return age <= lifetime && .zero - lifetime <= age
  }
}

/// How a `ForwardingProbe` arrived at the gateway.
package struct ForwardingReport: Decodable, Equatable, Sendable {
  /// The address of the connection's peer: the last proxy, or the client itself.
  package let peer: String
  /// The values of `X-Forwarded-For`, one per line, in order.
  package let forwardedFor: [String]
  /// The address that counts as the client's.
  package let client: String
  /// The origin that the client asked for; nil if it is not known.
  package let origin: String?

  package init(peer: String, forwardedFor: [String], client: String, origin: String?) {
    self.peer = peer
    self.forwardedFor = forwardedFor
    self.client = client
    self.origin = origin
  }

  /// The names of the members in JSON.
  package enum CodingKeys: String, CodingKey {
    case peer
    case forwardedFor = "forwarded_for"
    case client, origin
  }

  /// The elements of `X-Forwarded-For`, in order.
  package var addresses: [String] {
    forwardedFor.flatMap { $0.split(separator: ",") }.map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
