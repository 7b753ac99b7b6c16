import MoongateSDK
import Testing

@testable import MoongateCore

/// Key rings in files.
@Suite struct MasterKeysTests {
  private static func master(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 32) }

  private static func line(_ role: String, _ byte: UInt8) -> String {
    "\(role) \(DerivedKeys.name(of: master(byte))) \(Base64URL.encode(master(byte)))"
  }

  private func read(_ lines: [String], end: String = "\n") throws -> MasterKeys {
    try MasterKeys(reading: Array((lines.joined(separator: "\n") + end).utf8))
  }

  private func problem(_ text: String) -> KeyRingError? {
    do {
      _ = try MasterKeys(reading: Array(text.utf8))
      return nil
    } catch {
      return error
    }
  }

  @Test func singleKeyFileIsReadAsBytes() throws {
    // Any 32 bytes are a key; a final newline belongs to them.
    for bytes in [
      Self.master(0), Self.master(255), Array("0123456789abcdef0123456789abcdef\n".utf8),
      Array("current".utf8) + Self.master(9),
    ] {
      let masters = try MasterKeys(reading: bytes)
      #expect(masters.members.count == 1 && masters.current.master == bytes && masters.oldest.role == .current)
      #expect(KeyRing(masters).fingerprint == (try KeyRing(master: bytes)).fingerprint)
    }
    #expect(problem(String(repeating: "x", count: 31)) == .tooShort)
    #expect(problem("") == .tooShort)
    #expect(problem(String(repeating: "x", count: 4097)) == .tooLong)
  }

  @Test func writtenRingIsReadBack() throws {
    let ring = try read([
      Self.line("former", 1), Self.line("former", 2), Self.line("current", 3), Self.line("coming", 4),
    ])
    #expect(ring.members.map(\.role) == [.former, .former, .current, .coming])
    #expect(ring.current.master == Self.master(3) && ring.oldest.master == Self.master(1))
    #expect(try MasterKeys(reading: Array(ring.text.utf8)).text == ring.text)
    // A variable has lost its final newline; an editor may have added some.
    #expect(try read([Self.line("current", 3)], end: "").members.count == 1)
    #expect(try read(["", Self.line("former", 1), "  " + Self.line("current", 3) + "\r", ""]).members.count == 2)
  }

  @Test func itIsRotatedAndRetired() throws {
    let one = try MasterKeys(only: Self.master(1))
    #expect(one.rotated() == nil && one.without(one.current.name) == nil)
    let two = try #require(try one.adding(Self.master(2)).rotated())
    #expect(two.members.map(\.role) == [.former, .current] && two.current.master == Self.master(2))
    let three = try #require(try two.adding(Self.master(3)).rotated())
    #expect(three.members.map(\.role) == [.former, .former, .current])
    let left = try #require(three.without(one.current.name))
    #expect(left.oldest.master == Self.master(2) && left.current.master == Self.master(3))
    #expect(left.without("00000000") == nil)
    var full = one
    for byte in 2...16 as ClosedRange<UInt8> { full = try full.adding(Self.master(byte)) }
    #expect(throws: KeyRingError.full) { try full.adding(Self.master(17)) }
  }

  /// Attack on ourselves: a damaged ring is taken for another ring, or for one long key.
  @Test func damagedRingIsReportedByLine() throws {
    let whole = [Self.line("former", 1), Self.line("current", 2)].joined(separator: "\n") + "\n"
    // Wherever the file is cut it is refused, unless only the final newline is missing.
    for length in 0..<(whole.utf8.count - 1) {
      let cut = String(whole.prefix(length))
      #expect(problem(cut) != nil, "\(length)")
      if length > 33 {
        #expect(
          problem(cut).map { if case .malformed = $0 { true } else { false } } == true, "\(length): taken for one key")
      }
    }
    let name = DerivedKeys.name(of: Self.master(2))
    for (lines, line, words) in [
      ([Self.line("former", 1)], 2, "ends without a current key"),
      ([Self.line("current", 1), Self.line("current", 2)], 2, "second current key"),
      ([Self.line("current", 1), Self.line("former", 2)], 2, "former keys stand before"),
      ([Self.line("former", 1), Self.line("coming", 2), Self.line("current", 3)], 2, "before there is a current one"),
      ([Self.line("former", 1), Self.line("current", 1)], 2, "same key as line 1"),
      (
        [Self.line("former", 1), "", "current \(name) \(Base64URL.encode(Self.master(3)))"], 3,
        "does not match its name"
      ),
      ([Self.line("current", 1), "currant \(name) x"], 2, "a line of a ring is"),
      ([Self.line("former", 1), "-----", Self.line("current", 2)], 2, "a line of a ring is"),
      (["\u{feff}" + Self.line("former", 1), Self.line("current", 2)], 1, "a line of a ring is"),
      (["Current \(name) \(Base64URL.encode(Self.master(2)))"], 1, "a line of a ring is"),
      ([Self.line("current", 1) + " more"], 1, "a line of a ring is"),
      (["current \(DerivedKeys.name(of: [1, 2])) \(Base64URL.encode([1, 2]))"], 1, "under 32 bytes"),
    ] {
      guard case .malformed(line, let told)? = problem(lines.joined(separator: "\n") + "\n") else {
        Issue.record("\(words): \(String(describing: problem(lines.joined(separator: "\n") + "\n")))")
        continue
      }
      #expect(told.contains(words))
      #expect(!told.contains(Base64URL.encode(Self.master(2))), "no byte of a key")
    }
  }

  @Test func descriptionsContainNoKeys() throws {
    let ring = try #require(try MasterKeys(only: Self.master(0x41)).adding(Self.master(0x42)).rotated())
    var dumped = ""
    dump(ring, to: &dumped)
    for text in ["\(ring)", String(reflecting: ring), dumped] {
      #expect(!text.contains("65, 65") && !text.contains("66, 66") && !text.contains("AAAA") && !text.contains("QUFB"))
    }
  }
}
