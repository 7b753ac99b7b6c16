import MoongateSDK
import Testing

@testable import Password

@Suite("Weak passwords") struct WeakPasswordTests {
  private static func told(
    _ text: String, emails: [String] = ["ada@example.com"], names: [String] = ["Ada", "Lovelace"]
  ) throws -> String? {
    WeakPassword.sentence(try TypedPassword(text, field: "password"), identifiers: emails, names: names)
  }

  @Test(
    "fewer than eight Unicode scalars is too short", arguments: ["1", "correct", "пароль!", "👩‍🚀🔒🔑🗝"])
  func short(text: String)
    throws
  {
    #expect(try Self.told(text) == "Use at least 8 characters.")
  }

  @Test(
    "common passwords are refused",
    arguments: [
      "password", "Password", "PASSWORD1", "12345678", "123456789", "1234567890", "qwertyuiop", "iloveyou1", "letmein1",
      "football1", "sunshine",
      "princess",
      "aaaaaaaa", "????????????", "        ", "\0\0\0\0\0\0\0\0", "🔒🔒🔒🔒🔒🔒🔒🔒", "ada@example.com", "Ada@Example.com",
      "adalovelace", "Ada.Lovelace_99!",
      "lovelaceada1",
      "Lovelace!", "example.com", "Example1!",
    ])
  func weak(text: String) throws {
    #expect(try Self.told(text) == "This password is too easy to guess. Choose another.")
  }

  @Test("the own user name is refused", arguments: ["ada.lovelace9", "AdaLovelace", "ada.lovelace9!"])
  func userName(text: String) throws {
    #expect(
      try Self.told(text, emails: ["ada.lovelace9"], names: [])
        == "This password is too easy to guess. Choose another.")
  }

  @Test(
    "any other password is accepted",
    arguments: [
      "correct horse", "correct\0horse", "\0\0\0\0\0\0\0a", "пароль пароль", "密码密码密码密码", "🐎🔋📎🐴🗝🚪🌙✨", "   correct   ",
      "lovelace engine",
      "a b c d e f", "tr0ub4dor&3",
      "Ada likes engines",
    ])
  func strong(text: String) throws { #expect(try Self.told(text) == nil) }

  @Test("a short name does not make a password weak") func shortName() throws {
    #expect(try Self.told("yo-horse", emails: [], names: ["Yo"]) == nil)
  }

  @Test("up to 1,024 characters, all significant") func long() throws {
    let long = String(repeating: "ab", count: 512)
    #expect(try TypedPassword(long, field: "password").bytes.count == 1024)
    #expect(try Self.told(long) == nil)
    #expect(try TypedPassword(String(repeating: "🔒", count: 1024), field: "password").bytes.count == 4096)
    #expect(
      throws: InputProblem(field: "password", reason: .invalidInput, detail: "A password has at most 1,024 characters.")
    ) {
      try TypedPassword(long + "a", field: "password")
    }
    #expect(throws: InputProblem.self) {
      try TypedPassword(String(repeating: "e\u{301}", count: 200_000), field: "password")
    }
    #expect(throws: InputProblem.self) { try TypedPassword("", field: "password") }
  }

  @Test("equivalent spellings are equal, other passwords are not") func normalized() throws {
    let bytes = { (text: String) in try TypedPassword(text, field: "password").bytes }
    #expect(try bytes("caf\u{E9} au lait") == bytes("cafe\u{301} au lait"))
    #expect(try bytes("office 365 x") != bytes("o\u{FB03}ce 365 x"), "compatibility forms are left alone")
    #expect(try bytes("Correct horse") != bytes("correct horse"))
    #expect(try bytes("correct horse ") != bytes("correct horse"))
    #expect(try bytes("correct horse\0") != bytes("correct horse"))
  }

  @Test("the list contains common passwords and few false positives") func filter() {
    let ones = CommonPasswords.filter.reduce(0) { $0 + $1.nonzeroBitCount }
    #expect((0.49...0.51).contains(Double(ones) / Double(1 << 19)), "half of the bits: \(ones)")
    let strangers = (0..<200_000).count { CommonPasswords.contains("stranger number \($0 &* 2_654_435_761)") }
    #expect(strangers <= 2, "\(strangers)")
    for common in ["password", "12345678", "iloveyou", "trustno1", "superman", "computer"] {
      #expect(CommonPasswords.contains(common))
    }
  }
}
