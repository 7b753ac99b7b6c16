import ServiceLifecycle

/// Tells the service manager at the start of a shutdown.
struct ShutdownNotice: Service {
  let notifier: ServiceNotifier

  func run() async throws {
    try? await gracefulShutdown()
    notifier.stopping()
  }
}
