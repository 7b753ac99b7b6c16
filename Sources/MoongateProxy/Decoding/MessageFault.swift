/// Why bytes are not a valid message. The connection cannot be used afterwards, because the start of the next message
/// is unknown.
package enum MessageFault: Error, Sendable, Equatable {
  /// Invalid by the grammar of RFC 9112, or ambiguous framing. The text describes the fault for the operator.
  case malformed(String)
  /// The start line and fields exceed the limit, or the fields are too many.
  case headTooLarge
  /// A well-formed message of a version other than 1.0 and 1.1.
  case versionNotSupported
  /// CONNECT or TRACE.
  case methodNotAllowed
}
