import Logging

/// Logs forwarding headers of trusted proxies that cannot be read, each at most once a minute with its count.
///
/// Without the log, an operator would not notice that all clients share the limits of the proxy's address.
package final class ForwardingFaultLog: Sendable {
  private struct Key: Hashable {
    let header: ForwardingHeader
    let proxy: ClientAddress
  }

  private struct Line {
    let fault: ForwardingFault
    let proxy: ClientAddress
  }

  private let logger: Logger
  private let clock: any GatewayClock
  private let lines = FoldedLines<Key, Line>()

  package init(logger: Logger, clock: any GatewayClock) {
    self.logger = logger
    self.clock = clock
  }

  /// - Parameter proxy: the address of the trusted peer.
  package func report(_ fault: ForwardingFault, from proxy: ClientAddress) {
    let key = Key(header: fault.header, proxy: proxy)
    guard let suppressed = lines.admit(key, Line(fault: fault, proxy: proxy), at: clock.now()) else { return }
    log(Line(fault: fault, proxy: proxy), "a forwarding header cannot be read", suppressed: suppressed)
  }

  /// Logs and resets the counts of faults whose minute is over.
  package func logSuppressed() {
    for (line, count) in lines.takeOver(at: clock.now()) {
      log(line, "a forwarding header still cannot be read", suppressed: count)
    }
  }

  private func log(_ line: Line, _ message: Logger.Message, suppressed: Int) {
    let effect =
      line.fault.header == .address ? "the proxy's own address counts as the client's" : "the request gets 400"
    var metadata: Logger.Metadata = [
      "header": "\(line.fault.header.rawValue)", "value": "\(line.fault.value)", "proxy": "\(line.proxy)",
      "reason": "\(line.fault.reason)", "effect": "\(effect)",
    ]
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.warning(message, metadata: metadata)
  }
}
