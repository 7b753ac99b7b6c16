import ServiceLifecycle

/// A service that runs until the gateway shuts down.
struct Background: Service {
  private let work: @Sendable () async -> Void

  /// - Parameter work: must return soon after its task is cancelled.
  init(_ work: @escaping @Sendable () async -> Void) { self.work = work }

  func run() async throws { await cancelWhenGracefulShutdown { await work() } }

  /// Waits until the gateway shuts down, for a service that has nothing more to do: one that returned would end it.
  static func idle() async {
    while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
  }

  /// Works in batches until the gateway shuts down.
  /// - Parameters:
  ///   - interval: the pause after the last batch. Between batches, the pause is short.
  ///   - batch: returns whether there may be more to do.
  static func batches(every interval: Duration, _ batch: @escaping @Sendable () async -> Bool) async {
    try? await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        let hasMore = await batch()
        try await Task.sleep(for: hasMore ? .milliseconds(100) : interval)
      }
    }
  }
}
