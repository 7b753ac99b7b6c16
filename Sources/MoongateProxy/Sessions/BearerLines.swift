import MoongateCore

/// Identifies an access token that a service receives for a session.
struct BearerKey: Hashable {
  /// The `client_id`.
  let app: String
  /// The version of the generation that has judged the user. Attack: a reload removes a group, or an app's rule
  /// changes, and the token from before is sent on.
  let version: UInt64
  /// The client, if the app has `decide`. Attack: a function lets in only one network, and the token that was made
  /// there is sent for requests of the same session from another one.
  let address: ClientAddress?

  init(_ app: App, version: UInt64, from address: ClientAddress) {
    self.app = app.id
    self.version = version
    self.address = app.decide == nil ? nil : address
  }
}

/// The access tokens of one session for the services of routes with `bearer`, as header lines.
struct BearerLines {
  /// An access token; nil if the user gets none.
  typealias Token = (text: SecretText, until: Timestamp)

  /// The minimum time between two questions for one token.
  private static let pause: Duration = .seconds(1)
  /// How long it is known that the user gets no token.
  private static let refusalLife: Duration = .seconds(10)
  private static let most = 4

  private struct Entry {
    let key: BearerKey
    let line: [UInt8]
    let until: Timestamp
    let renewsAt: Timestamp
  }

  private var entries: [Entry] = []

  /// - Returns: the line, empty if the user gets no token; nil if `Apps` must be asked.
  func line(_ key: BearerKey, at now: Timestamp) -> [UInt8]? {
    guard let entry = entries.first(where: { $0.key == key }), now < entry.renewsAt else { return nil }
    return now < entry.until ? entry.line : []
  }

  /// Remembers the answer of `Apps`. A token is renewed after three quarters of its life, so that a service never gets
  /// one that is about to expire.
  mutating func keep(_ key: BearerKey, _ token: Token?, at now: Timestamp) {
    entries.removeAll { $0.key == key || $0.key.version != key.version }
    if entries.count >= Self.most { entries.removeFirst() }
    let life = token.map { $0.until - now } ?? .zero
    let rest = token == nil ? Self.refusalLife : max(Self.pause, life * 3 / 4)
    entries.append(
      Entry(
        key: key, line: token.map { Array("Authorization: Bearer \($0.text.reveal())\r\n".utf8) } ?? [],
        until: token?.until ?? now, renewsAt: now + rest))
  }
}
