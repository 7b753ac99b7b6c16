import Foundation
import MoongateSDK

/// The relying party of Web Authentication.
struct Site: Equatable {
  let id: String
  let name: String
  /// The allowed origins of ceremonies; the gateway's own origin is first.
  let origins: [String]

  init(id: String, name: String, origins: [String]) { (self.id, self.name, self.origins) = (id, name, origins) }

  /// - Returns: nil if the step has no callback URL.
  init?(_ step: StepContext) {
    guard let address = step.callback.flatMap({ URLComponents(string: $0.address) }), let scheme = address.scheme,
      let host = address.host
    else {
      return nil
    }
    let settings = step.tools.settings
    id = settings.text("rp_id") ?? host
    name = settings.text("rp_name") ?? "Moongate"
    origins = ["\(scheme)://\(host)\(address.port.map { ":\($0)" } ?? "")"] + settings.list("origins")
  }
}
