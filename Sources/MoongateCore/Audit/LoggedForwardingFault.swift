import Logging

/// The log entry of a trusted proxy's forwarding header that cannot be read.
///
/// Without it, an operator would not notice that all clients share the limits of the proxy's address.
package struct LoggedForwardingFault: FoldedEntry {
  /// Identifies the header of a proxy, whatever its value.
  package struct Key: Hashable, Sendable {
    let header: ForwardingHeader
    let proxy: ClientAddress
  }

  private let fault: ForwardingFault
  private let proxy: ClientAddress

  /// - Parameter proxy: the address of the trusted peer.
  package init(_ fault: ForwardingFault, from proxy: ClientAddress) {
    self.fault = fault
    self.proxy = proxy
  }

  package var key: Key { Key(header: fault.header, proxy: proxy) }
  package var level: Logger.Level { .warning }
  package var message: Logger.Message { "a forwarding header cannot be read" }
  package var messageOfMore: Logger.Message { "a forwarding header still cannot be read" }

  package var metadata: Logger.Metadata {
    let effect = fault.header == .address ? "the proxy's own address counts as the client's" : "the request gets 400"
    return [
      "header": "\(fault.header.rawValue)", "value": "\(fault.value)", "proxy": "\(proxy)",
      "reason": "\(fault.reason)", "effect": "\(effect)",
    ]
  }
}
