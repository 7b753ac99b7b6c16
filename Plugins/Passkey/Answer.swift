import Foundation

/// A response of the credential API, from either call (Web Authentication, Level 3, section 5.1.8).
struct Answer: Decodable {
  struct Response: Decodable { let clientDataJSON: String }

  let id: String
  let rawId: String
  let type: String
  let response: Response

  /// Whether the text has the form of a response. Whether it is valid is checked later and counted.
  static func isOne(_ text: String) -> Bool { (try? JSONDecoder().decode(Self.self, from: Data(text.utf8))) != nil }
}
