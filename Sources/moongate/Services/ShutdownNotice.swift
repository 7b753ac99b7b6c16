import ServiceLifecycle

/// Tells the service manager and `/readyz` at the start of a shutdown.
struct ShutdownNotice: Service {
  let readiness: Readiness

  func run() async throws {
    try? await gracefulShutdown()
    readiness.end()
  }
}
