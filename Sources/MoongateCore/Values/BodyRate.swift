/// The least that a client sends of a request's body while the gateway waits for it: so many bytes in each window.
///
/// Attack: a body that drips. Each request holds a connection to the service, of which a service has few, for as long
/// as the client likes. A rate over the whole body would not do: bytes sent fast at first would pay for a long silence.
package struct BodyRate: Sendable, Hashable {
  /// Bytes of the body itself, at least 1: framing does not count.
  package let bytes: Int
  package let window: Duration

  package init(bytes: Int, window: Duration) {
    self.bytes = bytes
    self.window = window
  }

  /// What holds where nothing is said: slower than any network that a person would call working.
  package static let standard = BodyRate(bytes: 1024, window: .seconds(10))
}
