import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK
import ServiceLifecycle

/// Sends recorded spans in batches to the collector of gateway.lua. Spans that the collector does not accept are
/// dropped and counted, because spans must cost no memory and delay no request.
struct TraceSending: Service {
  private static let pause: Duration = .milliseconds(500)
  private static let batch = 512
  private static let reportInterval: Duration = .seconds(60)

  let spans: SpanQueue
  let generations: ActiveGeneration
  let web: any WebClient
  let clock: any GatewayClock
  /// Identifies this gateway instance.
  let instance: String
  let logger: Logger

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var reportedAt: Timestamp?
      while !Task.isCancelled {
        if let fault = await step(), reportedAt.map({ clock.now() - $0 >= Self.reportInterval }) ?? true {
          reportedAt = clock.now()
          logger.warning("spans cannot be sent to the collector and are dropped", metadata: ["fault": "\(fault)"])
        }
        try await Task.sleep(for: Self.pause)
      }
    }
    _ = await step()
  }

  /// Sends all waiting spans.
  /// - Returns: the reason for the last failure, or nil.
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
