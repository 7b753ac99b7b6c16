import Foundation
import MoongateCore
import MoongateSDK

extension IdentityTemplate {
  /// The value of a statement without `identity`.
  init(usual statement: ServiceIdentity.Statement) {
    switch statement {
    case .user: self.init([.id])
    case .email: self.init([.email])
    case .phone: self.init([.phone])
    case .name: self.init([.name])
    case .groups: self.init([.groups])
    }
  }

  /// The text for a user.
  ///
  /// Attack: a user removes the user name of the account, and `{username}@example.com` becomes `@example.com`, which
  /// many users have. Without the value of one placeholder, there is no text.
  /// - Returns: nil if a placeholder has no value.
  func text(of account: Account, _ entitlements: Entitlements) -> String? {
    var text = ""
    for part in parts {
      if case .text(let literal) = part {
        text += literal
        continue
      }
      let value = part.value(of: account, entitlements).map(Self.withoutControls) ?? ""
      guard value.contains(where: { !$0.isWhitespace }) else { return nil }
      text += value
    }
    return text
  }

  /// Attack: a name with a line break would inject a header.
  private static func withoutControls(_ text: String) -> String {
    let kept = text.unicodeScalars.filter { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
    return String(String.UnicodeScalarView(kept))
  }
}

extension IdentityTemplate.Part {
  fileprivate func value(of account: Account, _ entitlements: Entitlements) -> String? {
    switch self {
    case .text(let text): text
    case .id: account.id
    case .email: account.verified(.email)?.value
    case .phone: account.verified(.phone)?.value
    case .name: [account.firstName, account.lastName].compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    case .username: account.identifier(.name)?.identifier.value
    case .firstName: account.firstName
    case .lastName: account.lastName
    case .groups: entitlements.groups.headerValue
    case .claim(let name): entitlements.claims[name]?.text
    }
  }
}

extension ClaimValue {
  /// The value as in JSON, without the quotation marks of a text.
  fileprivate var text: String {
    switch self {
    case .text(let text): text
    case .integer(let integer): "\(integer)"
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    }
  }
}

extension HeaderEncoding {
  /// The number of bytes in one encoded word, so that it has at most 75 characters (RFC 2047 section 2).
  private static let bytesOfWord = 45

  /// The text as the value of a header. A service that decodes each value gets the text.
  ///
  /// Attack: a user takes the name `=?UTF-8?B?cm9vdA==?=` or `%72oot`, which a service decodes to `root`. Text that
  /// looks encoded is encoded too.
  func value(of text: String) -> String {
    switch self {
    case .utf8: text
    case .percent: Self.isASCII(text) && !text.utf8.contains(UInt8(ascii: "%")) ? text : PercentEncoding.encode(text)
    case .rfc2047: Self.isASCII(text) && !text.contains("=?") ? text : Self.words(text).joined(separator: " ")
    }
  }

  private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

  /// The encoded words. A character is never divided between two of them (RFC 2047 section 5).
  private static func words(_ text: String) -> [String] {
    var words: [String] = []
    var bytes: [UInt8] = []
    for scalar in text.unicodeScalars {
      let next = Array(String(scalar).utf8)
      if bytes.count + next.count > bytesOfWord {
        words.append(word(bytes))
        bytes = []
      }
      bytes += next
    }
    return words + [word(bytes)]
  }

  private static func word(_ bytes: [UInt8]) -> String { "=?UTF-8?B?\(Data(bytes).base64EncodedString())?=" }
}

extension ServiceIdentity.Basic {
  /// The value of Authorization (RFC 7617 section 2).
  ///
  /// Attack: a user with a colon in the name. The service would read the rest as the beginning of the password.
  /// - Returns: nil if the user has no name for the service.
  func value(for account: Account, _ entitlements: Entitlements) -> String? {
    guard let name = user.text(of: account, entitlements), !name.isEmpty, !name.contains(":") else { return nil }
    return "Basic " + Data("\(name):\(password.reveal())".utf8).base64EncodedString()
  }
}
