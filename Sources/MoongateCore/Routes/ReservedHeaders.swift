/// The request headers that only the gateway may send to a service: the client's identity, its address and connection,
/// and the original request. They are removed from client requests, and no route may set one. This is the only list of
/// them.
///
/// Attack: services and their frameworks trust such headers, no matter who sent them.
package enum ReservedHeaders {
  /// Full names, folded like `prefixes`: lower case, with `-` for every byte that is not a letter or digit. Careless
  /// services read names that way (CGI turns all of them into `_`).
  package static let names: [StaticString] = [
    "forwarded", "x-forwarded", "x-real-ip", "x-client-ip", "true-client-ip", "x-remote-user", "proxy",
    // These claim another address or method than the authorised one.
    "x-rewrite-url", "x-http-method", "x-http-method-override", "x-method-override",
    // The client's device token, and an upgrade to HTTP/2 in cleartext (RFC 7540 section 3.2.1).
    "moongate-device", "http2-settings",
  ]

  /// The reserved prefixes of names.
  package static let prefixes: [StaticString] = ["remote-", "x-forwarded-", "x-moongate-", "x-original-", "x-webauth-"]

  /// Whether a header of this name is reserved, in any spelling that a service may treat as the same.
  package static func contains(_ name: String) -> Bool {
    let folded = folded(name)
    return names.contains { $0.description == folded } || prefixes.contains { folded.hasPrefix($0.description) }
  }

  /// Whether a service may treat the name as the same as `known`, which is folded already.
  package static func equal(_ known: StaticString, _ name: String) -> Bool { known.description == folded(name) }

  /// The name as careless services read it: lower case, with `-` for every byte that is not a letter or digit.
  package static func folded(_ name: String) -> String {
    let bytes = name.utf8.map { byte in
      let lower = (0x41...0x5a).contains(byte) ? byte | 0x20 : byte
      return (0x30...0x39).contains(lower) || (0x61...0x7a).contains(lower) ? lower : UInt8(ascii: "-")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
