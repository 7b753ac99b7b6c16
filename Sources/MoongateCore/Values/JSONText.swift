import Foundation

/// Checks JSON from other sources (RFC 8259) for its outermost type.
package enum JSONText {
  /// Whether the text is a single JSON object.
  package static func isObject(_ text: String) -> Bool {
    ((try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]) != nil
  }
}
