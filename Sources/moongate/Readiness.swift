import Logging
import MoongateCore
import Synchronization

/// Says once that the gateway is ready: when both listeners listen.
final class Readiness: Sendable {
  enum Part: Hashable {
    case gateway, admin
  }

  private let waiting = Mutex<Set<Part>>([.gateway, .admin])
  private let settings: GatewaySettings
  private let generation: String
  private let logger: Logger

  init(settings: GatewaySettings, generation: String, logger: Logger) {
    self.settings = settings
    self.generation = generation
    self.logger = logger
  }

  func isListening(_ part: Part) {
    let isLast = waiting.withLock { $0.remove(part) != nil && $0.isEmpty }
    guard isLast else { return }
    logger.notice(
      "ready",
      metadata: [
        "gateway": "\(settings.publicURL)", "listen": "\(settings.listen)", "admin": "http://\(settings.admin)",
        "generation": "\(generation.prefix(8))",
      ])
  }
}
