import MoongateSDK

/// The fields of a form or query (`application/x-www-form-urlencoded`, WHATWG URL, section 5.1), parsed strictly.
package struct FormFields: Sendable, Equatable {
  private let values: [String: String]

  /// No fields.
  static let empty = FormFields(values: [:])

  private init(values: [String: String]) { self.values = values }

  /// - Returns: nil if the text is ambiguous or invalid (`PercentEncoding.fields`).
  package init?(_ text: some Collection<UInt8>) {
    guard let values = PercentEncoding.fields(in: text) else { return nil }
    self.values = values
  }

  /// The value of a field; nil if it is absent or empty.
  package subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Whether the field is there with an empty value.
  package func isEmpty(_ name: String) -> Bool { values[name]?.isEmpty == true }

  /// The names of all fields, sorted.
  package var names: [String] { values.keys.sorted() }

  /// A URL with a query of the fields that have a value.
  package static func address(_ path: String, _ fields: KeyValuePairs<String, String?>) -> String {
    let query = fields.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encode($0))" } }
    return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
  }
}
