import MoongateSDK

/// Why a text cannot be registered as a redirect URI.
package struct RedirectURIProblem: Error, Equatable {
  /// What is wrong, and what to write instead.
  package let message: String
}

/// A redirect URI that an app has registered (RFC 6749 section 3.1.2): https, http to this machine, or a private scheme
/// (RFC 8252 section 7).
package struct RedirectURI: Sendable, Equatable {
  /// The maximum length in bytes.
  package static let longest = 2000

  /// What precedes and follows the port of an address of the user's own machine.
  private struct LoopbackForm: Sendable, Equatable {
    let head: String
    let tail: String
  }

  package let text: String
  /// nil for https and private schemes, whose addresses have no free port.
  private let loopback: LoopbackForm?

  /// - Throws: `RedirectURIProblem` if an app must not register it.
  package init(_ text: String) throws(RedirectURIProblem) {
    self.text = text
    loopback = try Self.read(text)
  }

  private static func read(_ text: String) throws(RedirectURIProblem) -> LoopbackForm? {
    let refuse = { (message: String) in RedirectURIProblem(message: message) }
    guard text.utf8.count <= longest else { throw refuse("is longer than \(longest) bytes") }
    guard !text.contains("*") else {
      throw refuse("has a wildcard, but redirect URIs are compared exactly: list each address")
    }
    guard !text.contains("#") else { throw refuse("has a fragment: remove the `#` and what follows it") }
    guard text.utf8.allSatisfy(isAllowed) else {
      throw refuse("has a character that a URI cannot contain: percent-encode it")
    }
    guard let colon = text.firstIndex(of: ":"), isScheme(text[..<colon]) else {
      throw refuse("is not an absolute URI, such as \"https://app.example.com/in\" or \"com.example.app:/in\"")
    }
    let scheme = String(text[..<colon])
    let rest = text[text.index(after: colon)...]
    guard scheme == "https" || scheme == "http" else {
      guard scheme.contains(".") else {
        throw refuse(
          "has the scheme `\(scheme):`; write https, or a private scheme with a dot, such as \"com.example.app:/in\"")
      }
      guard rest.hasPrefix("/") else { throw refuse("has no path: write \"\(scheme):/in\"") }
      return nil
    }
    guard rest.hasPrefix("//") else { throw refuse("has no host: write \"\(scheme)://app.example.com/in\"") }
    let authority = rest.dropFirst(2).prefix { $0 != "/" && $0 != "?" }
    guard !authority.contains("@") else { throw refuse("has user information before the host: remove it") }
    guard let address = WebAddress(text) else {
      throw refuse("has no valid host, as in \"https://app.example.com/in\"")
    }
    let canonical = "\(address.origin)\(address.tail)"
    // Clients and browsers write the host in lower case and leave the default port out, so another form never matches.
    guard canonical == text else { throw refuse("write \"\(canonical)\"") }
    if address.origin.isSecure { return nil }
    guard Loopback.isAddress(address.origin.host) else {
      throw refuse("uses http, which others can read on the way: write https, or an address of the user's own machine")
    }
    return LoopbackForm(head: "http://\(address.origin.host)", tail: String(address.tail))
  }

  /// Whether this is the registered address, byte for byte. For loopback addresses the port may differ, because an app
  /// takes any free one (RFC 8252 section 7.3).
  package func matches(_ address: String) -> Bool {
    // Strings compare equal if they are canonically equivalent. Attack: U+037E is not `;`.
    if text.utf8.elementsEqual(address.utf8) { return true }
    guard let loopback, let rest = Self.rest(of: address, after: loopback.head), let end = Self.end(ofPort: rest)
    else { return false }
    return rest[end...].elementsEqual(loopback.tail.utf8)
  }

  /// The origin of an address that matches; nil for a private scheme.
  func origin(of address: String) -> PublicURL? { WebAddress(address)?.origin }

  /// The origin that is registered; nil for a private scheme.
  package var origin: PublicURL? { origin(of: text) }

  /// Whether some address matches both.
  package func overlaps(_ other: RedirectURI) -> Bool { matches(other.text) || other.matches(text) }

  private static func rest(of address: String, after head: String) -> ArraySlice<UInt8>? {
    let (bytes, head) = (Array(address.utf8), Array(head.utf8))
    return bytes.starts(with: head) ? bytes[head.count...] : nil
  }

  /// The end of a port such as `:8080` at the beginning; the beginning without a port.
  /// - Returns: nil for an invalid port.
  private static func end(ofPort bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.first == UInt8(ascii: ":") else { return bytes.startIndex }
    let digits = bytes.dropFirst().prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard (1...5).contains(digits.count), digits.first != UInt8(ascii: "0"),
      let port = Int(String(decoding: digits, as: UTF8.self)), port <= 65_535
    else { return nil }
    return digits.endIndex
  }

  /// The characters of RFC 3986, without `#` and `*`.
  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~:/?[]@!$&'()+,;=%".utf8.contains(byte)
    }
  }

  /// Whether this is a scheme (RFC 3986 section 3.1) in lower case.
  private static func isScheme(_ text: Substring) -> Bool { text.wholeMatch(of: /[a-z][a-z0-9+.-]*/) != nil }
}
