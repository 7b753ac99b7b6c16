import MoongateCore
import MoongateSDK

/// Whether an upstream of a route is the gateway itself.
///
/// Such a gateway seems to work, because it answers as its own upstream. But it forwards no session, so every request
/// of a signed-in user is refused with 401.
enum OwnAddress {
  /// Whether the upstream is the gateway's own listener.
  static func isListener(_ upstream: Upstream, of gateway: GatewaySettings) -> Bool {
    let listen = gateway.listen
    guard listen.port > 0, upstream.port == listen.port else { return false }
    let (own, named) = (HostAddress(listen.host), HostAddress(upstream.host))
    if own == named { return true }
    switch (own, named) {
    case (.any(let family), .address(let bytes)):
      // A listener of all IPv6 addresses takes IPv4 connections too.
      return Loopback.isAddress(bytes) && (bytes.count == 4 || family == 16)
    case (.any, .any), (.any, .localhost), (.localhost, .any): return true
    // The system connects to 0.0.0.0 and :: as to this machine.
    case (.address(let bytes), .any(let family)): return bytes == loopback(family)
    // Other addresses in 127.0.0.0/8 are listeners of their own.
    case (.localhost, .address(let bytes)), (.address(let bytes), .localhost): return bytes == loopback(bytes.count)
    default: return false
    }
  }

  /// Whether the upstream is the origin of `public_url`.
  static func isPublic(_ upstream: Upstream, of gateway: GatewaySettings) -> Bool {
    let url = gateway.publicURL
    return upstream.isSecure == url.isSecure && upstream.host == url.host && upstream.port == url.port
  }

  private static func loopback(_ length: Int) -> [UInt8] {
    length == 4 ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1]
  }

  /// A host as far as it can be known without name resolution.
  private enum HostAddress: Equatable {
    /// All addresses of a family, by the length of its addresses in bytes.
    case any(Int)
    case address([UInt8])
    case localhost
    case name(String)

    init(_ host: String) {
      let host = host.lowercased()
      let bare = IPAddressBytes.withoutBrackets(host)
      if let bytes = IPAddressBytes.parseV4(bare.utf8) ?? IPAddressBytes.parseV6(bare.utf8) {
        self = bytes.allSatisfy { $0 == 0 } ? .any(bytes.count) : .address(bytes)
      } else {
        self = bare == "localhost" ? .localhost : .name(bare)
      }
    }
  }
}

extension UpstreamReader {
  /// Warns of an upstream that is the gateway itself. It is not a problem, because sockets of systemd and `--listen`
  /// replace `listen`, and inside a network the name of `public_url` may lead to the service.
  func warnOfOwnAddress(_ upstream: Upstream, _ text: String, _ node: LuaNode, _ path: String) {
    guard let gateway else { return }
    if OwnAddress.isListener(upstream, of: gateway) {
      problems.warn(
        node.location, path,
        "\"\(text)\" leads back to the gateway, which listens on \(gateway.listen): write the address of your service, or correct `listen` in gateway.lua"
      )
    } else if OwnAddress.isPublic(upstream, of: gateway) {
      problems.warn(
        node.location, path,
        "\"\(text)\" is `public_url`, which leads back to the gateway unless this machine resolves \(upstream.host) to your service: write the address of your service"
      )
    }
  }
}
