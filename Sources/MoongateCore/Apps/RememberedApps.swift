import MoongateSDK

/// The apps to which the user of a browser has agreed, in a cookie that only the gateway can make.
///
/// Attack: a service or a neighbouring host writes the cookie, so that nobody is asked. It is sealed.
package struct RememberedApps: Sendable, Equatable {
  /// The maximum number of apps. Older ones are forgotten.
  private static let most = 20
  private static let owner = "apps of a browser"

  /// The client ids, oldest first.
  package let ids: [String]

  /// - Parameter cookie: as a client sent it. Text that the gateway did not make is ignored.
  init(_ cookie: SecretText?, keys: KeyRing) {
    guard let text = cookie?.reveal(), text.utf8.count <= 4096, let sealed = Base64URL.decode(text),
      let bytes = try? keys.open(sealed, for: Self.owner)
    else {
      ids = []
      return
    }
    ids = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private init(ids: [String]) { self.ids = ids }

  func adding(_ id: String) -> Self { Self(ids: (ids.filter { $0 != id } + [id]).suffix(Self.most)) }

  /// The value of the cookie.
  func cookie(_ keys: KeyRing) throws -> SecretText {
    SecretText(Base64URL.encode(try keys.seal(Array(ids.joined(separator: "\n").utf8), for: Self.owner)))
  }
}
