import Foundation

/// JSON output for programs.
package enum ToolJSON {
  /// Reformats existing JSON like `text(_ value:)`.
  package static func text(_ json: [UInt8]) throws -> String {
    let value = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
    let options: JSONSerialization.WritingOptions = [
      .sortedKeys, .withoutEscapingSlashes, .prettyPrinted, .fragmentsAllowed,
    ]
    return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
  }

  package static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}
