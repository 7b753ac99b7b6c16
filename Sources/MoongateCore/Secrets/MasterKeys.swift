import MoongateSDK

/// The master keys of an installation, oldest first, as a key file holds them.
///
/// A file holds either one key as raw bytes, or a ring with one key per line: `former NAME KEY` and `retired NAME REST`
/// first, then `current NAME KEY`, then `coming NAME KEY`. The key is in base64url. The name is derived from the key,
/// so that a truncated or mixed-up line is detected.
package struct MasterKeys: Sendable {
  /// The role of a key in the ring.
  package enum Role: String, Sendable, CaseIterable {
    /// Deleted, except for the derived keys for counters and device tokens (`RetiredKey`).
    case retired
    /// Items made with it stay valid.
    case former
    /// New items are made with it.
    case current
    /// The next current key: distributed to all nodes before any of them uses it.
    case coming
  }

  /// A key of the ring. Its description does not contain the key.
  package struct Member: Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package fileprivate(set) var role: Role
    /// Empty if the key is retired.
    let master: [UInt8]
    /// What is left of a retired key.
    let retired: RetiredKey?

    fileprivate init(_ master: [UInt8], _ role: Role) {
      name = DerivedKeys.name(of: master)
      self.role = role
      self.master = master
      retired = nil
    }

    fileprivate init(_ retired: RetiredKey) {
      name = retired.name
      role = .retired
      master = []
      self.retired = retired
    }

    fileprivate var line: String { "\(role.rawValue) \(name) \(retired?.text ?? Base64URL.encode(master))\n" }

    package var description: String { "\(role.rawValue) \(name)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
  }

  /// In bytes. Shorter keys can be guessed.
  package static let shortest = 32
  /// The maximum number of keys. Opening an item tries each of them.
  package static let most = 16
  /// The maximum length of a single raw key, in bytes.
  private static let longest = 4096

  /// At least one; exactly one is the current one.
  package private(set) var members: [Member]

  /// A ring with one key.
  /// - Throws: `KeyRingError.tooShort`.
  package init(only master: [UInt8]) throws(KeyRingError) {
    guard master.count >= Self.shortest else { throw .tooShort }
    self.init(members: [Member(master, .current)])
  }

  /// Parses the content of a key file or environment variable.
  /// - Throws: the problem, by line for a ring. Never contains a byte of a key.
  package init(reading bytes: [UInt8]) throws(KeyRingError) {
    let lines = String(decoding: bytes, as: UTF8.self).split(
      omittingEmptySubsequences: false, whereSeparator: \.isNewline
    )
    .map { $0.split { $0 == " " || $0 == "\t" } }
    // Attack on ourselves: a ring with a damaged beginning, read as a single long key, would open nothing and restart
    // all counters.
    let isRing = lines.contains { words in
      words.count > 1 && Role.allCases.contains { $0.rawValue == words[0].lowercased() }
    }
    guard isRing else {
      guard bytes.count <= Self.longest else { throw .tooLong }
      try self.init(only: bytes)
      return
    }
    var members: [Member] = []
    var numbers: [Int] = []
    for (index, words) in lines.enumerated() where !words.isEmpty {
      let number = index + 1
      members.append(try Self.member(words, line: number, after: members, at: numbers))
      numbers.append(number)
    }
    guard members.contains(where: { $0.role == .current }) else {
      throw .malformed(line: lines.count, "it ends without a current key: a part of it is missing")
    }
    guard members.count <= Self.most else {
      throw .malformed(line: numbers[Self.most], "more than \(Self.most) keys: retire some")
    }
    self.init(members: members)
  }

  private init(members: [Member]) { self.members = members }

  private static func member(
    _ words: [Substring], line: Int, after before: [Member], at numbers: [Int]
  ) throws(KeyRingError) -> Member {
    guard words.count == 3, let role = Role(rawValue: String(words[0])) else {
      throw .malformed(
        line: line, "a line of a ring is `former`, `retired`, `current` or `coming`, the key's name, and the key")
    }
    let member = try member(role, named: words[1], words[2], line: line)
    if let same = before.firstIndex(where: { $0.name == member.name }) {
      throw .malformed(line: line, "it has the same key as line \(numbers[same])")
    }
    let last = before.last?.role.place ?? .former
    switch (last, role.place) {
    case (.current, .current): throw .malformed(line: line, "a second current key: a ring has only one")
    case (.current, .former), (.coming, .former), (.coming, .current):
      throw .malformed(line: line, "former keys stand before the current one, coming ones after it, the oldest first")
    case (.former, .coming): throw .malformed(line: line, "a coming key before there is a current one")
    default: return member
    }
  }

  private static func member(_ role: Role, named name: Substring, _ text: Substring, line: Int) throws(KeyRingError)
    -> Member
  {
    let mixedUp = KeyRingError.malformed(
      line: line, "its key does not match its name: one of them was cut off or changed")
    if role == .retired {
      guard let retired = RetiredKey(reading: String(text), name: String(name)) else { throw mixedUp }
      return Member(retired)
    }
    guard let master = Base64URL.decode(String(text)), DerivedKeys.name(of: master) == name else { throw mixedUp }
    guard master.count >= shortest else { throw .malformed(line: line, "its key has under \(shortest) bytes") }
    return Member(master, role)
  }

  /// The current key.
  package var current: Member { members.first { $0.role == .current } ?? members[0] }
  /// The key from which counter keys, log hashes and the store's fingerprint are derived.
  package var oldest: Member { members[0] }

  /// The content of the key file.
  package var text: String {
    members.map(\.line).joined()
  }

  // MARK: Changes

  /// The ring with another key that will become the current one.
  /// - Parameter master: 32 bytes or more from a secure random source.
  /// - Throws: `KeyRingError.full`.
  package func adding(_ master: [UInt8]) throws(KeyRingError) -> Self {
    guard master.count >= Self.shortest else { throw .tooShort }
    guard members.count < Self.most else { throw .full }
    var ring = self
    ring.members.append(Member(master, .coming))
    return ring
  }

  /// The ring after its first coming key has become the current one; nil if no key is coming.
  package func rotated() -> Self? {
    guard let next = members.firstIndex(where: { $0.role == .coming }),
      let now = members.firstIndex(where: { $0.role == .current })
    else {
      return nil
    }
    var ring = self
    ring.members[now].role = .former
    ring.members[next].role = .current
    return ring
  }

  /// The ring after the named former key is reduced to what counters and device tokens need. Remains of other retired
  /// keys that are no longer needed are removed.
  /// - Parameter recognising: whether devices with marks of this key stay trusted until the marks expire. Use false if
  ///   the key was compromised.
  /// - Returns: nil if the ring has no former key of the name.
  package func retiring(_ name: String, recognising: Bool, at now: Timestamp) -> Self? {
    guard let place = members.firstIndex(where: { $0.name == name && $0.role == .former }) else { return nil }
    var ring = self
    let until = recognising ? now + DeviceToken.lifetime : Timestamp(milliseconds: 0)
    ring.members[place] = Member(RetiredKey(members[place].master, devicesUntil: until))
    let oldest = ring.oldest.name
    ring.members.removeAll { member in member.name != oldest && member.retired.map { $0.devicesUntil <= now } ?? false }
    return ring
  }

  /// The ring without the named key; nil if it is the current one or not in the ring.
  package func without(_ name: String) -> Self? {
    guard members.contains(where: { $0.name == name && $0.role != .current }) else { return nil }
    var ring = self
    ring.members.removeAll { $0.name == name }
    return ring
  }
}

extension MasterKeys.Role {
  /// Retired keys have the same place in the order as former ones.
  fileprivate var place: Self { self == .retired ? .former : self }
}

/// Why master keys cannot be used. Never contains a byte of them.
package enum KeyRingError: Error, Sendable, Equatable {
  /// Shorter than 32 bytes.
  case tooShort
  /// A single key of more than 4096 bytes.
  case tooLong
  /// A malformed line of a ring, numbered from 1, and the problem.
  case malformed(line: Int, String)
  /// The ring already has the maximum number of keys.
  case full
  /// Sealed under a key that is not in the ring, or changed since.
  case notOurs
}
