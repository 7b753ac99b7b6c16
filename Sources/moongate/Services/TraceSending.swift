import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK
import ServiceLifecycle

/// Sends recorded spans to the collector that gateway.lua names, in batches. What the collector does not take is
/// dropped and counted: spans are worth no memory and no request's time.
struct TraceSending: Service {
  private static let pause: Duration = .milliseconds(500)
  private static let batch = 512
  private static let reportInterval: Duration = .seconds(60)

  let spans: SpanQueue
  let generations: ActiveGeneration
  let web: any WebClient
  let clock: any GatewayClock
  /// Names this gateway among several.
  let instance: String
  let logger: Logger

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var reportedAt: Timestamp?
      while !Task.isCancelled {
        if let fault = await step(), reportedAt.map({ clock.now() - $0 >= Self.reportInterval }) ?? true {
          reportedAt = clock.now()
          logger.warning("spans cannot be sent to the collector; they are dropped", metadata: ["fault": "\(fault)"])
        }
        try await Task.sleep(for: Self.pause)
      }
    }
    _ = await step()
  }

  /// Sends all that waits.
  /// - Returns: why the last batch that failed could not be sent.
  private func step() async -> String? {
    let gateway = generations.current.gateway
    spans.isOpen = gateway.tracing != nil
    guard let settings = gateway.tracing else { return nil }
    let collector = SpanCollector(
      settings, web: web, service: gateway.service, version: BuildVersion.number, instance: instance)
    var fault: String?
    while true {
      let batch = spans.take(Self.batch)
      if batch.isEmpty { return fault }
      let refused = await collector.send(batch)
      spans.settle(batch.count, wereSent: refused == nil)
      fault = refused ?? fault
    }
  }
}
