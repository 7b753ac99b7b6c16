import ServiceLifecycle

/// A service that runs until the gateway shuts down.
struct Background: Service {
  private let work: @Sendable () async -> Void

  /// - Parameter work: must return soon after its task is cancelled.
  init(_ work: @escaping @Sendable () async -> Void) { self.work = work }

  func run() async throws { await cancelWhenGracefulShutdown { await work() } }
}
