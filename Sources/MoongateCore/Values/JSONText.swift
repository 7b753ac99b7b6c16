import Foundation

/// JSON that others wrote (RFC 8259), of which only the outermost shape matters here.
package enum JSONText {
  /// Whether the text is one JSON object.
  package static func isObject(_ text: String) -> Bool {
    ((try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]) != nil
  }
}
