import Logging
import MoongateCore

/// Why a connection is closed because of `proxy_protocol`.
enum ProxyHeaderFault: Sendable, Hashable {
  /// The peer is not in `trusted_proxies`, and has sent a header.
  case untrusted
  /// A second header follows the first one, so a client behind the proxy has sent it.
  case second
  /// A trusted proxy has sent something else.
  case missing
  /// The header did not end in time, or the connection ended inside it.
  case unfinished
  /// - Parameter part: what is wrong.
  case malformed(part: String)

  /// The cause in a log line, and what to do.
  var words: String {
    switch self {
    case .untrusted: "it has sent a PROXY header and is not in trusted_proxies"
    case .second: "it has sent a PROXY header after that of the proxy"
    case .missing:
      "it is in trusted_proxies and has sent no PROXY header; let it send one, or set proxy_protocol = false"
    case .unfinished: "it is in trusted_proxies, and its PROXY header did not end in time"
    case .malformed(let part): "its PROXY header is malformed: \(part)"
    }
  }

  /// Whether clients cause it, and not a proxy of the operator.
  fileprivate var isOfClients: Bool { self == .untrusted || self == .second }
}

/// The log entry of connections that are closed because of `proxy_protocol`.
struct LoggedProxyHeader: FoldedEntry {
  struct Key: Hashable, Sendable {
    let fault: ProxyHeaderFault
    /// nil for what clients do. Attack: a line for each of their addresses.
    let proxy: ClientAddress?
  }

  let fault: ProxyHeaderFault
  let peer: ClientAddress

  var key: Key { Key(fault: fault, proxy: fault.isOfClients ? nil : peer) }
  var level: Logger.Level { .warning }
  var message: Logger.Message { "a connection was refused because of the PROXY protocol" }
  var messageOfMore: Logger.Message { "further connections were refused because of the PROXY protocol" }
  var metadata: Logger.Metadata { ["peer": "\(peer)", "reason": "\(fault.words)"] }
}
