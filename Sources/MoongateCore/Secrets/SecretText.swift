/// Secret text. It always prints as `•••`, so that a log line or an error cannot leak it.
package struct SecretText: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  private let text: String

  package init(_ text: String) { self.text = text }

  /// The secret itself. Call this only where the secret is used.
  package func reveal() -> String { text }

  package var description: String { "•••" }
  package var debugDescription: String { "•••" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
