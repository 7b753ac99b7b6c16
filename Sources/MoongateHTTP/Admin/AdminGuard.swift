import HTTPTypes
import Hummingbird
import MoongateCore

/// Who may talk to the admin listener from a browser: its own pages, and nobody else's.
///
/// Attack: DNS rebinding. A page of `evil.example` makes its name point at 127.0.0.1 and reads the outbox as its own site.
/// So the host that is asked for must be an address, which no one can rebind, `localhost`, or the name that we listen on.
struct AdminGuard: Sendable {
  let listen: ListenAddress

  /// - Throws: 403 `denied` or `origin_refused`.
  func check(_ exchange: Exchange) throws(Refusal) {
    guard let host = exchange.request.head.authority.flatMap({ HostName($0) }), isOurs(host) else {
      throw exchange.refusal(.denied, detail: "The admin listener is not known by this name.")
    }
    switch exchange.request.method {
    case .get, .head, .options: return
    default: break
    }
    // Programs send no Origin; a browser's must be that of the page that we served.
    guard exchange.credentials.origins.allSatisfy({ $0 == "http://\(host.authority)" }) else { throw exchange.refusal(.originRefused) }
  }

  private func isOurs(_ host: HostName) -> Bool {
    host.name == "localhost" || host.name == listen.host.lowercased() || host.name.hasPrefix("[") || IPAddressText.parse(Array(host.name.utf8)) != nil
  }
}
