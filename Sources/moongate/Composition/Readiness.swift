import Logging
import MoongateCore
import Synchronization

/// Reports that the gateway is ready, to the log and the service manager, once both listeners are listening; and later
/// that it stops.
final class Readiness: Sendable {
  enum Part: Hashable {
    case gateway, admin
  }

  private let waiting = Mutex<Set<Part>>([.gateway, .admin])
  private let hasEnded = Atomic<Bool>(false)
  private let publicURL: PublicURL
  private let listen: ListenAddress
  private let admin: ListenAddress
  private let generation: String
  private let notifier: ServiceNotifier
  private let predecessor: Predecessor?
  private let logger: Logger

  /// More than five parameters: one for each field.
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

  /// Whether the gateway has been told to stop, and only finishes what is open.
  var isEnding: Bool { hasEnded.load(ordering: .relaxed) }

  func end() {
    hasEnded.store(true, ordering: .relaxed)
    notifier.stopping()
  }

  func isListening(_ part: Part) {
    let isLast = waiting.withLock { $0.remove(part) != nil && $0.isEmpty }
    guard isLast else { return }
    if let predecessor {
      // The previous process tells the service manager, which still accepts messages only from that process.
      predecessor.send(.serving(generation: generation))
    } else {
      notifier.ready(ServiceNotifier.serving(generation))
    }
    logger.notice(
      "ready",
      metadata: [
        "gateway": "\(publicURL)", "listen": "\(listen)", "admin": "http://\(admin)",
        "generation": "\(generation.prefix(8))",
      ])
  }
}
