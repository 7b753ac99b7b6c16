import ServiceLifecycle

/// Work that goes on until the gateway ends, as a service.
struct Background: Service {
  private let work: @Sendable () async -> Void

  /// - Parameter work: returns soon after its task was cancelled.
  init(_ work: @escaping @Sendable () async -> Void) { self.work = work }

  func run() async throws { await cancelWhenGracefulShutdown { await work() } }
}
