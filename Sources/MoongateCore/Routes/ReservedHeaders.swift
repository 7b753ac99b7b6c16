/// The request headers that only the gateway may say to a service: who the client is, how the request came, what it is
/// about. The one list of them: from clients they are removed, and no route may set one (http.md, "Proxy").
///
/// Attack: services and their frameworks believe such headers, whoever sent them.
package enum ReservedHeaders {
  /// Whole names. Like `prefixes` as careless services read them: lower case, with `-` for every byte but letters and
  /// digits (CGI makes `_` of all of them).
  package static let names: [StaticString] = [
    "forwarded", "x-forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "x-remote-user", "proxy",
    // Another address, or another method, than the one that was judged.
    "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
    // The client's own: what the gateway keeps on a device, and an upgrade to HTTP/2 in the clear (RFC 7540 section
    // 3.2.1).
    "moongate-device", "http2-settings",
  ]

  /// What names begin with.
  package static let prefixes: [StaticString] = ["remote-", "x-forwarded-", "x-moongate-", "x-original-", "x-webauth-"]

  /// Whether a header of this name is reserved, in any spelling that a service may take for it.
  package static func contains(_ name: String) -> Bool {
    let folded = folded(name)
    return names.contains { $0.description == folded } || prefixes.contains { folded.hasPrefix($0.description) }
  }

  /// Whether the name may be taken for the other one, which is folded.
  package static func equal(_ known: StaticString, _ name: String) -> Bool { known.description == folded(name) }

  private static func folded(_ name: String) -> String {
    let bytes = name.utf8.map { byte in
      let lower = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte
      return (0x30...0x39).contains(lower) || (0x61...0x7a).contains(lower) ? lower : UInt8(ascii: "-")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
