/// The headers that are valid for one connection only (RFC 9110 section 7.6.1). No route, webhook or trace exporter may
/// set one.
///
/// `FieldKind` in MoongateProxy finds them on the data path without a list; a test compares it with this one. HTTP/2
/// forbids some of them (RFC 9113 section 8.2.2): `RequestText` there finds these, and a test compares them too.
package enum HopByHopHeaders {
  /// In lower case.
  package static let names: [StaticString] = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
  ]
}
