import MoongateCore
import NIOCore

/// What a route changes between its clients and its service: the path, Host, and the addresses and headers of
/// responses, and which sites may show these in a frame. Routes that change nothing have no such object.
final class ServiceRewriting {
  /// The Host that the service receives.
  enum SentHost {
    case kept
    /// Another one for each upstream (`head(_:for:)`).
    case ofUpstream
    case named([UInt8])
  }

  /// A host by which the service may name itself in responses, and whether it is reached by https.
  typealias OwnName = (host: HostName, isSecure: Bool)

  let path: PathMapping
  let sentHost: SentHost
  /// `X-Forwarded-Prefix` as a header line, by which the service learns what `strip` removes; empty without `strip`.
  let prefixLine: [UInt8]
  /// `response_headers` as header lines, without those that are only removed, and the policy of `frames`.
  let responseLines: [UInt8]
  /// The names of `response_headers` in lower case, and of what `frames` replaces.
  private let responseNames: [[UInt8]]
  /// Whether `frames` decides which sites may show responses in a frame, and not the service.
  let decidesFrames: Bool
  /// Whether `response_headers` sets or removes `Date`, so that the gateway adds none.
  let decidesDate: Bool
  /// Whether addresses in responses differ from those that clients use.
  let changesAddresses: Bool
  private let ownNames: [OwnName]

  /// - Returns: nil if the route changes nothing.
  init?(_ route: Route) {
    guard
      !route.rewrite.isIdentity || route.hostHeader != .kept || !route.responseHeaders.isEmpty || !route.frames.isEmpty
    else { return nil }
    path = PathMapping(route.rewrite)
    var names = route.upstreams.map { (HostName(Self.authority(of: $0)), $0.isSecure) }
    switch route.hostHeader {
    case .kept: sentHost = .kept
    case .upstream: sentHost = .ofUpstream
    case .named(let name):
      sentHost = .named(Array(name.utf8))
      names.append((HostName(name), route.upstreams.first?.isSecure ?? false))
    }
    ownNames = names.compactMap { name, isSecure in name.map { ($0, isSecure) } }
    changesAddresses = !path.isIdentity || route.hostHeader != .kept
    prefixLine = path.prefix.isEmpty ? [] : Array("X-Forwarded-Prefix: ".utf8) + path.prefix + [0x0d, 0x0a]
    decidesFrames = !route.frames.isEmpty
    let policy: [(name: String, value: String?)] =
      decidesFrames
      ? [("X-Frame-Options", nil), ("Content-Security-Policy", FramePolicy.directive(for: route.frames))] : []
    responseLines = (route.responseHeaders + policy).flatMap { header in
      header.value.map { Array("\(header.name): \($0)\r\n".utf8) } ?? []
    }
    // The service's Content-Security-Policy keeps its other directives (`FramePolicy.written`).
    responseNames = (route.responseHeaders + policy.prefix(1)).map { header in
      header.name.utf8.map { ByteClass.lower($0) }
    }
    decidesDate = responseNames.contains(Array("date".utf8))
  }

  /// Whether `response_headers` names the field.
  func replaces(_ bytes: Span<UInt8>, _ name: Range<Int>) -> Bool {
    responseNames.contains { wanted in
      guard wanted.count == name.count else { return false }
      for offset in wanted.indices where wanted[offset] != ByteClass.lower(bytes[name.lowerBound + offset]) {
        return false
      }
      return true
    }
  }

  /// Whether the service means itself by the host of an address.
  /// - Parameter isSecure: whether the address is one of https.
  func isOwn(_ host: HostName, isSecure: Bool) -> Bool {
    ownNames.contains { Self.isSame(host, isSecure, $0.host, $0.isSecure) }
  }

  /// Whether the service has this name, with any port. Cookies do not depend on ports (RFC 6265 section 8.5).
  func isOwn(_ name: String) -> Bool { ownNames.contains { $0.host.name == name } }

  /// Whether two hosts are the same: written alike, or with the same name and port. Services often write an address of
  /// the wrong scheme with the Host that they received.
  static func isSame(_ left: HostName, _ leftIsSecure: Bool, _ right: HostName, _ rightIsSecure: Bool) -> Bool {
    left.name == right.name
      && (left.port == right.port
        || (left.port ?? (leftIsSecure ? 443 : 80)) == (right.port ?? (rightIsSecure ? 443 : 80)))
  }

  /// Adds the upstream's own Host to a head that `RequestRewriter` has written with an empty one.
  static func head(_ head: ByteBuffer, for upstream: Upstream) -> ByteBuffer {
    let view = head.readableBytesView
    let field = "\r\nHost: ".utf8.count
    guard let line = view.firstIndex(of: 0x0d), view.endIndex - line >= field else { return head }
    let start = line + field
    var named = ByteBuffer()
    named.reserveCapacity(head.readableBytes + 64)
    named.writeBytes(view[..<start])
    named.writeString(authority(of: upstream))
    named.writeBytes(view[start...])
    return named
  }

  /// Host and port, without the default port of the scheme (RFC 9110 section 4.2.3).
  static func authority(of upstream: Upstream) -> String {
    upstream.port == (upstream.isSecure ? 443 : 80) ? upstream.host : "\(upstream.host):\(upstream.port)"
  }
}
