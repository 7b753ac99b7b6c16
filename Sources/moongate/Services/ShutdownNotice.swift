import ServiceLifecycle

/// Tells the service manager and `/readyz` at the start of a shutdown.
struct ShutdownNotice: Service {
  /// Called when the gateway is told to stop.
  let begins: @Sendable () -> Void

  func run() async throws {
    try? await gracefulShutdown()
    begins()
  }
}
