import MoongateSDK

/// The apps to which the user of a browser has agreed, in a cookie that only the gateway can make.
///
/// Attack: a service or a neighbouring host writes the cookie, so that nobody is asked. It is sealed.
///
/// Attack: a neighbouring host plants the cookie that the attacker's own browser was given. It is sealed for the
/// browser in which the user agreed.
package struct RememberedApps: Sendable, Equatable {
  /// The maximum number of apps. Older ones are forgotten.
  private static let most = 20

  private static func owner(_ browser: TokenHash) -> String { "apps of a browser \(Base64URL.encode(browser.bytes))" }

  /// The client ids, oldest first.
  package let ids: [String]
  private let browser: TokenHash?

  /// - Parameters:
  ///   - cookie: as a client sent it. Text that the gateway did not make for this browser is ignored.
  ///   - browser: the hash of the browser's flow cookie; nil: no app is remembered.
  init(_ cookie: SecretText?, of browser: TokenHash?, keys: KeyRing) {
    self.browser = browser
    guard let browser, let text = cookie?.reveal(), text.utf8.count <= 4096, let sealed = Base64URL.decode(text),
      let bytes = try? keys.open(sealed, for: Self.owner(browser))
    else {
      ids = []
      return
    }
    ids = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private init(ids: [String], browser: TokenHash?) {
    self.ids = ids
    self.browser = browser
  }

  func adding(_ id: String) -> Self {
    Self(ids: (ids.filter { $0 != id } + [id]).suffix(Self.most), browser: browser)
  }

  /// The value of the cookie; nil without a browser.
  func cookie(_ keys: KeyRing) throws -> SecretText? {
    guard let browser else { return nil }
    let sealed = try keys.seal(Array(ids.joined(separator: "\n").utf8), for: Self.owner(browser))
    return SecretText(Base64URL.encode(sealed))
  }
}
