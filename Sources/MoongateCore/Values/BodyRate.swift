/// The minimum rate of a request body while the gateway waits for it: a number of bytes per window.
///
/// Attack: a body that is sent very slowly. Each request holds a connection to the service, which has only few, for as
/// long as the client likes. An average over the whole body would not help: bytes sent fast at first would allow a long
/// silence.
package struct BodyRate: Sendable, Hashable {
  /// Bytes of the body itself, at least 1. Framing does not count.
  package let bytes: Int
  package let window: Duration

  package init(bytes: Int, window: Duration) {
    self.bytes = bytes
    self.window = window
  }

  /// The default, slower than any usable network.
  package static let standard = BodyRate(bytes: 1024, window: .seconds(10))
}
