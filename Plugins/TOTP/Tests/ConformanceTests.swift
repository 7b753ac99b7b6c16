import MoongateConformance
import MoongateSDK
import Synchronization
import Testing

@testable import TOTP

@Suite("Conformance") struct ConformanceTests {
  /// Somebody with an app: it takes the key that it is shown, and shows codes by the suite's clock.
  private final class App: Sendable {
    private let key = Mutex<[UInt8]>([])

    func answer(_ step: ConformanceSubject.Step, offset: Int64 = 0) -> [String: InputValue] {
      for case .secret(let shown) in step.shown { key.withLock { $0 = Self.bytes(shown) } }
      // The recovery codes are shown: there is nothing to type.
      guard !step.fields.isEmpty else { return [:] }
      let code = TimeCode.code(TimeCode.step(at: step.now) + offset, key: key.withLock { $0 })
      return ["code": .text(String(decoding: code, as: UTF8.self))]
    }

    /// RFC 4648 section 6.
    private static func bytes(_ text: String) -> [UInt8] {
      var (bits, count, bytes) = (0, 0, [UInt8]())
      for letter in text.utf8 where letter != UInt8(ascii: " ") {
        bits = bits << 5 | Int(letter >= 65 ? letter - 65 : letter - 50 + 26)
        count += 5
        if count >= 8 {
          count -= 8
          bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
      }
      return bytes
    }
  }

  @Test("holds every rule of a provider whose codes are good once and for a while") func holds() async {
    let app = App()
    var subject = ConformanceSubject(of: TOTP().descriptor)
    subject.setsUp = true
    subject.right = { step in app.answer(step) }
    // Of an hour ago.
    subject.wrong = { step in app.answer(step, offset: -120) }
    subject.malformedSubmits = [["code": .text("12345")], ["code": .text("12345x")], ["code": .other], ["recovery_code": .text("ABCDE-FGH23")]]
    subject.isOneTime = true
    // Its own period and the one after.
    subject.lifetime = .milliseconds(2 * TimeCode.period)
    let report = await Conformance.run(TOTP(), subject)
    #expect(report.findings == [])
    let held = report.lines.filter { $0.verdict == .held }.map(\.rule)
    #expect(
      held == [
        .descriptor, .malformed, .proof, .beginTwice, .expiry, .concurrency, .refusals, .outcomes, .faults, .secrets, .cancellation, .cleanup,
      ])
  }
}
