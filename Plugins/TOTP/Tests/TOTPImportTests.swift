import MoongateSDK
import Testing

@testable import TOTP

@Suite struct TOTPImportTests {
  private let now: Int64 = 1_795_176_000_000

  private func problem(_ json: String) -> String? {
    do throws(FactorImportProblem) {
      _ = try TOTP().record(importing: Array(json.utf8), at: now)
      return nil
    } catch {
      return error.sentence
    }
  }

  @Test("the key of another system is imported, with no recovery codes") func imported() throws {
    // RFC 6238, appendix B: "12345678901234567890" at 59 seconds.
    let json = #"{"secret":"gezd gnbv gy3t qojq gezd gnbv gy3t qojq"}"#
    let record = try TOTPRecord(bytes: try TOTP().record(importing: Array(json.utf8), at: now))
    #expect(record.key == Array("12345678901234567890".utf8) && record.step == 0)
    #expect(TimeCode.match(Array("287082".utf8), key: record.key, at: 59_000, drift: 0, after: 0) == .fresh(step: 1))
    #expect(record.recovery == .empty && record.recovery.spending(Array("ABCDEFGHIJ".utf8)) == nil)
    #expect(TOTP().importedField == "totp")
  }

  @Test("what cannot be imported says why, without the key") func refused() {
    for json in ["null", "\"GEZDGNBVGY3TQOJQ\"", "[]", "{}", #"{"secret":5}"#, "not json"] {
      #expect(problem(json) == "must be an object with `secret`, the key in Base32", "\(json)")
    }
    // Attack: a key of a few bits is guessed.
    for secret in ["", "GEZDGNBV", "GEZDGNBVGY3TQOJ1", String(repeating: "A", count: 104)] {
      #expect(problem(#"{"secret":"\#(secret)"}"#)?.hasPrefix("must have a `secret` of 16 to 103 letters") == true)
    }
    let other = problem(#"{"secret":"GEZDGNBVGY3TQOJQ","digits":8}"#)
    #expect(other?.hasPrefix("has the field `digits`, but only `secret` is read") == true)
    #expect(problem(#"{"secret":"GEZDGNBVGY3TQOJQ"}"#) == nil, "Google Authenticator's keys have 80 bits")
  }
}
