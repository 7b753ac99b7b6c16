import MoongateCore
import MoongateSDK

/// Reads `registration` of accounts.lua: a word, or `{ "invited", domains = { "example.com" } }`.
struct RegistrationReader {
  let problems: Problems
  private let path = "registration"

  /// - Returns: nil, with problems, if something is wrong.
  func read(_ node: LuaNode) -> RegistrationRule? {
    guard case .table = node.value else { return word(node).map { Self.rule($0, []) } }
    guard let reader = TableReader(node, .registration, path: path, problems: problems, allowsItems: true) else {
      return nil
    }
    guard let first = reader.items.first, reader.items.count == 1 else {
      problems.add(
        node.location, path, "must begin with one word, as in { \"invited\", domains = { \"example.com\" } }")
      return nil
    }
    guard let word = word(first) else { return nil }
    guard let listed = reader.explicitValue("domains") else { return Self.rule(word, []) }
    guard word == .invited else {
      problems.add(
        listed.location, reader.path("domains"),
        "belongs to \"invited\": \"\(word.rawValue)\" makes no difference between users")
      return nil
    }
    return domains(listed, reader.path("domains")).map { Self.rule(word, $0) }
  }

  private func word(_ node: LuaNode) -> RegistrationRule.Word? {
    Field.choice(node, path, problems, RegistrationRule.Word.self)
  }

  private static func rule(_ word: RegistrationRule.Word, _ domains: Set<String>) -> RegistrationRule {
    switch word {
    case .open: .open
    case .invited: .invited(domains: domains)
    case .closed: .closed
    }
  }

  private func domains(_ node: LuaNode, _ path: String) -> Set<String>? {
    guard let texts = Field.texts(node, path, problems) else { return nil }
    var domains: Set<String> = []
    for (text, item) in texts {
      // Read as the domain of an address, so that case and international names compare as addresses do.
      guard let domain = EmailAddress("x@\(text)")?.domain else {
        problems.add(
          item.location, path,
          "\"\(text)\" is not the domain of an email address: write one such as \"example.com\", without @ and *")
        return nil
      }
      domains.insert(domain)
    }
    return domains
  }
}
