import Foundation

/// The answer of a browser's credential API, whichever call it answers (Web Authentication, Level 3, section 5.1.8).
struct Answer: Decodable {
  struct Response: Decodable { let clientDataJSON: String }

  let id: String
  let rawId: String
  let type: String
  let response: Response

  /// Whether the text has the form of one. Whether it is right is judged later, and counted.
  static func isOne(_ text: String) -> Bool { (try? JSONDecoder().decode(Self.self, from: Data(text.utf8))) != nil }
}
