import Crypto
import Testing

@testable import TOTP

@Suite("Time-based codes") struct TimeCodeTests {
  /// RFC 6238 appendix B: SHA-1, the last six of its eight digits.
  @Test(
    "equal the codes of the RFC",
    arguments: [
      (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
      (2_000_000_000, "279037"),
      (20_000_000_000, "353130"),
    ] as [(Int64, String)])
  func vectors(seconds: Int64, code: String) {
    let key = Array("12345678901234567890".utf8)
    #expect(TimeCode.code(TimeCode.step(at: seconds * 1000), key: key) == Array(code.utf8))
  }

  /// RFC 4226 appendix D.
  @Test("equal the codes of the counter") func counter() {
    let codes = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
    for (count, code) in codes.enumerated() {
      #expect(TimeCode.code(Int64(count), key: Array("12345678901234567890".utf8)) == Array(code.utf8))
    }
  }

  static let key = [UInt8](1...20)

  @Test(
    "are valid in their period and in one on each side",
    arguments: [(-2, false), (-1, true), (0, true), (1, true), (2, false)])
  func neighbours(offset: Int64, isRight: Bool) {
    let now: Int64 = 1_795_176_000_000
    let code = TimeCode.code(TimeCode.step(at: now) + offset, key: Self.key)
    let match = TimeCode.match(code, key: Self.key, at: now, drift: 1, after: nil)
    #expect(match == (isRight ? .fresh(step: TimeCode.step(at: now) + offset) : .none))
    #expect(
      TimeCode.match(code, key: Self.key, at: now, drift: 0, after: nil)
        == (offset == 0 ? .fresh(step: TimeCode.step(at: now)) : .none))
  }

  @Test("change at the boundary to the millisecond") func boundary() {
    #expect(TimeCode.step(at: 29_999) == 0 && TimeCode.step(at: 30_000) == 1)
  }

  @Test("are used up together with all earlier ones", arguments: [(-1, false), (0, false), (1, true)]) func spent(
    offset: Int64, isFresh: Bool
  ) {
    let now: Int64 = 1_795_176_000_000
    let current = TimeCode.step(at: now)
    let match = TimeCode.match(
      TimeCode.code(current + offset, key: Self.key), key: Self.key, at: now, drift: 1, after: current)
    #expect(match == (isFresh ? .fresh(step: current + offset) : .used))
  }

  @Test("of other lengths are refused") func lengths() {
    for typed in [[], Array("28708".utf8), Array("2870820".utf8)] {
      #expect(TimeCode.match(typed, key: Self.key, at: 0, drift: 1, after: nil) == .none)
    }
  }

  @Test("the QR code contains issuer and account") func address() {
    let address = KeyAddress.make(key: Array("foobar".utf8), issuer: "My: Shop", person: "asha@example.com")
    #expect(
      address
        == "otpauth://totp/My%20Shop:asha@example.com?secret=MZXW6YTBOI&issuer=My%20Shop&algorithm=SHA1&digits=6&period=30"
    )
  }
}

@Suite("Recovery codes") struct RecoveryCodeTests {
  private static func made() -> (kept: RecoveryCodes, shown: [String]) {
    var next: UInt8 = 0
    return RecoveryCodes.make { count in
      (0..<count).map { _ in
        next = next &* 31 &+ 17
        return next
      }
    }
  }

  @Test("are ten, have ten letters, and work once") func spending() throws {
    let (kept, shown) = Self.made()
    #expect(shown.count == 10 && shown.allSatisfy { $0.wholeMatch(of: /[A-Z2-7]{5}-[A-Z2-7]{5}/) != nil })
    var left = kept
    for code in shown.reversed() {
      let typed = try #require(RecoveryCodes.read(" \(code.lowercased()) "))
      let rest = try #require(left.spending(typed))
      #expect(rest.spending(typed) == nil)
      left = rest
    }
    #expect(left.hashes.isEmpty)
  }

  @Test("are stored as hashes") func hashed() throws {
    let (kept, shown) = Self.made()
    let bytes = String(decoding: try TOTPRecord(key: [1], step: 2, recovery: kept).bytes, as: UTF8.self)
    for code in shown { #expect(!bytes.contains(code) && !bytes.contains(code.replacing("-", with: ""))) }
  }

  @Test("invalid codes are refused", arguments: ["", "ABCDE", "ABCDE-FGHI1", "ABCDE-FGHIJK", "ÄBCDE-FGHIJ"])
  func reading(typed: String) {
    #expect(RecoveryCodes.read(typed) == nil)
  }
}
