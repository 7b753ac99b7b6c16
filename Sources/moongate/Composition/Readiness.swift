import Logging
import MoongateCore
import Synchronization

/// Says once that the gateway is ready, in the log and to the service manager: when both listeners listen.
final class Readiness: Sendable {
  enum Part: Hashable {
    case gateway, admin
  }

  private let waiting = Mutex<Set<Part>>([.gateway, .admin])
  private let publicURL: PublicURL
  private let listen: ListenAddress
  private let admin: ListenAddress
  private let generation: String
  private let notifier: ServiceNotifier
  private let predecessor: Predecessor?
  private let logger: Logger

  init(
    publicURL: PublicURL, listen: ListenAddress, admin: ListenAddress, generation: String,
    notifier: ServiceNotifier = .none,
    predecessor: Predecessor? = nil, logger: Logger
  ) {
    self.predecessor = predecessor
    self.publicURL = publicURL
    self.listen = listen
    self.admin = admin
    self.generation = generation
    self.notifier = notifier
    self.logger = logger
  }

  /// What the service manager shows while a generation serves.
  static func status(_ generation: String) -> String { "Serving generation \(generation.prefix(8))" }

  func isListening(_ part: Part) {
    let isLast = waiting.withLock { $0.remove(part) != nil && $0.isEmpty }
    guard isLast else { return }
    if let predecessor {
      // That process tells the service manager, which believes no other one yet.
      predecessor.say(.serving(generation: generation))
    } else {
      notifier.ready(Self.status(generation))
    }
    logger.notice(
      "ready",
      metadata: [
        "gateway": "\(publicURL)", "listen": "\(listen)", "admin": "http://\(admin)",
        "generation": "\(generation.prefix(8))",
      ])
  }
}
