/// Why bytes are not taken for a message. After any of them the connection can not be read further: where the next
/// message would begin is not known.
package enum MessageFault: Error, Sendable, Equatable {
  /// Not RFC 9112's grammar, or framing that two readers could read in two ways. Says what, for the operator.
  case malformed(String)
  /// The start line and the fields are longer than the limit.
  case headTooLarge
  /// Well formed, of a version other than 1.0 and 1.1.
  case versionNotSupported
  /// CONNECT or TRACE.
  case methodNotAllowed
}
