import MoongateSDK

/// The master keys of an installation, the oldest first: what a key file holds.
///
/// A file holds either one key, whatever bytes it has, or a ring, a line each: `former NAME KEY` and
/// `retired NAME REST`, then `current NAME KEY`, then `coming NAME KEY`. The key is in base64url; the name follows from
/// it, so that a line that was cut or mixed up is found.
package struct MasterKeys: Sendable {
  /// What a key is for.
  package enum Role: String, Sendable, CaseIterable {
    /// Gone, but for what counts, and what recognises devices (`RetiredKey`).
    case retired
    /// What was made with it stays good.
    case former
    /// All is made with it.
    case current
    /// The next current one: known to this node before another makes anything with it.
    case coming
  }

  /// One of the keys. Prints without it.
  package struct Member: Sendable, CustomStringConvertible, CustomReflectable {
    package let name: String
    package fileprivate(set) var role: Role
    /// Empty where it is retired.
    let master: [UInt8]
    /// What is left of one that is retired.
    let rest: RetiredKey?

    fileprivate init(_ master: [UInt8], _ role: Role) {
      name = DerivedKeys.name(of: master)
      self.role = role
      self.master = master
      rest = nil
    }

    fileprivate init(_ rest: RetiredKey) {
      name = rest.name
      role = .retired
      master = []
      self.rest = rest
    }

    fileprivate var line: String { "\(role.rawValue) \(name) \(rest?.text ?? Base64URL.encode(master))\n" }

    package var description: String { "\(role.rawValue) \(name)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
  }

  /// In bytes: less can be guessed.
  package static let shortest = 32
  /// Each is tried wherever something is opened.
  package static let most = 16
  /// In bytes: what is longer and no ring is no key.
  private static let longest = 4096

  /// One at least; one of them is the current one.
  package private(set) var members: [Member]

  /// One key.
  /// - Throws: `KeyRingError.tooShort`.
  package init(only master: [UInt8]) throws(KeyRingError) {
    guard master.count >= Self.shortest else { throw .tooShort }
    self.init(members: [Member(master, .current)])
  }

  /// Reads what a key file, or a variable, holds.
  /// - Throws: what is wrong with it, by line for a ring; never a byte of a key.
  package init(reading bytes: [UInt8]) throws(KeyRingError) {
    let lines = String(decoding: bytes, as: UTF8.self).split(
      omittingEmptySubsequences: false, whereSeparator: \.isNewline
    )
    .map { $0.split { $0 == " " || $0 == "\t" } }
    // Attack on ourselves: a ring whose beginning was damaged, read as one key of many bytes, would open nothing and
    // begin all counts anew.
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
    case (.current, .current): throw .malformed(line: line, "a second current key: there is one")
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
      line: line, "its key does not go with its name: one of them was cut or changed")
    if role == .retired {
      guard let rest = RetiredKey(reading: String(text), name: String(name)) else { throw mixedUp }
      return Member(rest)
    }
    guard let master = Base64URL.decode(String(text)), DerivedKeys.name(of: master) == name else { throw mixedUp }
    guard master.count >= shortest else { throw .malformed(line: line, "its key has under \(shortest) bytes") }
    return Member(master, role)
  }

  /// The current key.
  package var current: Member { members.first { $0.role == .current } ?? members[0] }
  /// By which the store's counters, log hashes and mark are made.
  package var oldest: Member { members[0] }

  /// The ring as its file holds it.
  package var text: String {
    members.map(\.line).joined()
  }

  // MARK: changing

  /// The ring with a key more that is to become the current one.
  /// - Parameter master: 32 bytes or more of good randomness.
  /// - Throws: `KeyRingError.full`.
  package func adding(_ master: [UInt8]) throws(KeyRingError) -> Self {
    guard master.count >= Self.shortest else { throw .tooShort }
    guard members.count < Self.most else { throw .full }
    var ring = self
    ring.members.append(Member(master, .coming))
    return ring
  }

  /// The ring whose first coming key has become the current one; nil where none is coming.
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

  /// The ring in which only that is left of the named former key by which is counted and devices are recognised. What
  /// is left of others, and of no use any more, is removed.
  /// - Parameter recognising: whether devices that carry its mark are known for as long as a mark is good; not where
  ///   somebody else has the key.
  /// - Returns: nil where the ring has no former key of the name.
  package func retiring(_ name: String, recognising: Bool, at now: Timestamp) -> Self? {
    guard let place = members.firstIndex(where: { $0.name == name && $0.role == .former }) else { return nil }
    var ring = self
    let until = recognising ? now + DeviceToken.lifetime : Timestamp(milliseconds: 0)
    ring.members[place] = Member(RetiredKey(members[place].master, devicesUntil: until))
    let oldest = ring.oldest.name
    ring.members.removeAll { member in member.name != oldest && member.rest.map { $0.devicesUntil <= now } ?? false }
    return ring
  }

  /// The ring without the named key; nil where it is the current one, or not there.
  package func without(_ name: String) -> Self? {
    guard members.contains(where: { $0.name == name && $0.role != .current }) else { return nil }
    var ring = self
    ring.members.removeAll { $0.name == name }
    return ring
  }
}

extension MasterKeys.Role {
  /// Retired keys stand where former ones do.
  fileprivate var place: Self { self == .retired ? .former : self }
}

/// What keeps master keys from being used. Never says a byte of them.
package enum KeyRingError: Error, Sendable, Equatable {
  /// Under 32 bytes.
  case tooShort
  /// No ring, and over 4096 bytes.
  case tooLong
  /// A line of a ring, counted from 1, and what is wrong with it.
  case malformed(line: Int, String)
  /// The ring has as many keys as it may have.
  case full
  /// Sealed under a key that is not in the ring, or changed since.
  case notOurs
}
