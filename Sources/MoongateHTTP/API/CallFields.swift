import MoongateCore
import MoongateSDK

/// The fields of a request body.
package struct CallFields: Sendable {
  private let exchange: Exchange
  private let body: JSONValue

  /// - Throws: as `Exchange.object`.
  package init(_ exchange: Exchange) async throws(Refusal) {
    self.exchange = exchange
    body = try await exchange.object()
  }

  /// The text; nil if the field is missing or null.
  /// - Throws: 422 with the field if it is not text.
  package func optionalText(_ name: String) throws(Refusal) -> String? {
    switch body[name] {
    case .text(let text): return text
    case nil, .null: return nil
    default: throw exchange.refusal(.invalidInput, detail: "\(name) must be a string.", field: name)
    }
  }

  /// The flag; nil if the field is missing or null.
  /// - Throws: 422 with the field if it is neither true nor false.
  func optionalFlag(_ name: String) throws(Refusal) -> Bool? {
    switch body[name] {
    case .flag(let flag): return flag
    case nil, .null: return nil
    default: throw exchange.refusal(.invalidInput, detail: "\(name) must be true or false.", field: name)
    }
  }

  /// - Throws: 422 with the field if it is missing or not text.
  package func text(_ name: String) throws(Refusal) -> String {
    guard let text = try optionalText(name) else {
      throw exchange.refusal(.invalidInput, detail: "\(name) is missing.", field: name)
    }
    return text
  }

  /// The texts of a list; empty if the field is missing or null.
  /// - Throws: 422 with the field if it is not a list of texts.
  func texts(_ name: String) throws(Refusal) -> [String] {
    let wrong = { exchange.refusal(.invalidInput, detail: "\(name) must be a list of strings.", field: name) }
    switch body[name] {
    case nil, .null: return []
    case .list(let items):
      var texts: [String] = []
      for item in items {
        guard case .text(let text) = item else { throw wrong() }
        texts.append(text)
      }
      return texts
    default: throw wrong()
    }
  }

  /// The user's choice to stay signed in; nil: the request says nothing.
  /// - Throws: as `optionalFlag`.
  func remember() throws(Refusal) -> Bool? { try optionalFlag(Self.remember) }

  /// The code of the invitation with which a flow is to begin; nil: none.
  /// - Throws: as `optionalText`.
  package func invitation() throws(Refusal) -> SecretText? { try optionalText("invitation").map { SecretText($0) } }

  private static let remember = "remember"

  /// All fields as providers receive them, without `remember`. Null is treated as absent.
  var inputs: [String: InputValue] {
    guard case .object(let members) = body else { return [:] }
    let pairs: [(String, InputValue)] = members.filter { $0.name != Self.remember }.compactMap { member in
      switch member.value {
      case .null: nil
      case .text(let text): (member.name, .text(text))
      case .flag(let flag): (member.name, .flag(flag))
      case .object: (member.name, .object(String(decoding: member.value.bytes, as: UTF8.self)))
      case .number, .list: (member.name, .other)
      }
    }
    return Dictionary(pairs) { first, _ in first }
  }
}
