import ServiceLifecycle

/// Tells the service manager that the gateway ends, as the first thing of a shutdown.
struct ShutdownNotice: Service {
  let notifier: ServiceNotifier

  func run() async throws {
    try? await gracefulShutdown()
    notifier.stopping()
  }
}
