import MoongateCore
import MoongateSDK

/// Finds the way that gateway.lua names for a message. All providers that say `outbox()` share the one.
package struct Deliveries: DeliveryService {
  /// What `GET /outbox` shows.
  package let outbox: Outbox

  package init(outbox: Outbox) { self.outbox = outbox }

  package func messenger(for settings: DeliverySettings) -> any Messenger {
    switch settings {
    case .outbox: outbox
    }
  }
}
