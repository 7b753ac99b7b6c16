import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// Values of identity headers: templates, encodings, and HTTP Basic.
@Suite struct IdentityTextTests {
  private let entitlements = Entitlements(
    groups: [GroupName(rawValue: "staff")!, GroupName(rawValue: "a,b")!],
    claims: ["plan": .text("pro"), "seats": .integer(-3), "share": .number(0.5), "beta": .flag(true)])

  private func account(
    first: String? = "Asha", last: String? = "Rao", username: String? = nil, emailVerified: Bool = true
  ) -> Account {
    let now = ManualClock.start
    var identifiers = [
      HeldIdentifier(
        identifier: Identifier(kind: .email, value: "asha@example.com", display: "asha@example.com"),
        verifiedAt: emailVerified ? now : nil),
      HeldIdentifier(
        identifier: Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999"), verifiedAt: now),
    ]
    if let username {
      identifiers.append(
        HeldIdentifier(identifier: Identifier(kind: .name, value: username, display: username), verifiedAt: nil))
    }
    return Account(
      id: "ac_asha", firstName: first, lastName: last, createdAt: now, lastSeenAt: now, identifiers: identifiers)
  }

  private func text(_ parts: IdentityTemplate.Part..., of account: Account) -> String? {
    IdentityTemplate(parts).text(of: account, entitlements)
  }

  @Test func placeholdersAreReplaced() {
    let asha = account(username: "asha.rao")
    #expect(text(.id, of: asha) == "ac_asha")
    #expect(text(.email, of: asha) == "asha@example.com")
    #expect(text(.phone, of: asha) == "+919999999999")
    #expect(text(.name, of: asha) == "Asha Rao")
    #expect(text(.username, of: asha) == "asha.rao")
    #expect(text(.lastName, .text(", "), .firstName, of: asha) == "Rao, Asha")
    #expect(text(.groups, of: asha) == "a%2Cb,staff")
    #expect(text(.claim("plan"), .text("/"), .claim("seats"), of: asha) == "pro/-3")
    #expect(text(.claim("share"), .text(" "), .claim("beta"), of: asha) == "0.5 true")
    #expect(text(.text("guest"), of: asha) == "guest")
  }

  /// Attack: `{username}@example.com` of an account without a user name would be `@example.com`, for many users.
  @Test func missingValueGivesNoText() {
    #expect(text(.username, .text("@example.com"), of: account()) == nil)
    #expect(text(.email, of: account(emailVerified: false)) == nil, "an address that nobody has verified")
    #expect(text(.firstName, .text("@example.com"), of: account(first: " \u{1}\r\n")) == nil)
    #expect(text(.claim("other"), of: account()) == nil)
    #expect(text(.firstName, .text(" "), .lastName, of: account(last: nil)) == nil)
    #expect(text(.name, of: account(last: nil)) == "Asha")
    #expect(text(.name, of: account(first: nil, last: "")) == nil)
  }

  /// Attack: a name that ends the header and begins another one.
  @Test func controlCharactersAreRemoved() {
    let mallory = account(first: "Eve\r\nX-User: root\u{0}\u{7f}\u{85}", last: nil)
    #expect(text(.firstName, of: mallory) == "EveX-User: root")
  }

  @Test(arguments: [
    ("Asha Rao", "Asha Rao"), ("Zoë Ünal", "Zo%C3%AB%20%C3%9Cnal"), ("अ", "%E0%A4%85"), ("", ""),
    ("a.b-c_d~e@example.com", "a.b-c_d~e@example.com"), ("é.b-c_d~e@(!)", "%C3%A9.b-c_d~e%40%28%21%29"),
  ]) func percentEncodesOtherCharactersThanASCII(_ text: String, _ value: String) {
    #expect(HeaderEncoding.percent.value(of: text) == value)
    #expect(value.removingPercentEncoding == text)
  }

  @Test(arguments: [
    ("Asha Rao", "Asha Rao"), ("Zoë", "=?UTF-8?B?Wm/Dqw==?="), ("", ""),
    (String(repeating: "é", count: 23), "=?UTF-8?B?\(String(repeating: "w6nDqcOp", count: 7))w6k=?= =?UTF-8?B?w6k=?="),
  ]) func wordsEncodeOtherCharactersThanASCII(_ text: String, _ value: String) {
    #expect(HeaderEncoding.rfc2047.value(of: text) == value)
  }

  /// RFC 2047 section 2 and 5: at most 75 characters, and whole characters in each word.
  @Test(arguments: ["é", "अ", "👩🏽‍🚀", "aé", "aaअ", "x👩"]) func encodedWordsAreShortAndWhole(_ unit: String) throws {
    for count in 1...60 {
      let text = String(repeating: unit, count: count)
      let words = HeaderEncoding.rfc2047.value(of: text).split(separator: " ")
      var decoded = ""
      for word in words {
        #expect(word.utf8.count <= 75 && word.hasPrefix("=?UTF-8?B?") && word.hasSuffix("?="))
        let bytes = try #require(Data(base64Encoded: String(word.dropFirst(10).dropLast(2))))
        decoded += try #require(String(bytes: bytes, encoding: .utf8))
      }
      #expect(decoded == text)
    }
  }

  /// Attack: a user takes an ASCII name that a service decodes to the name of somebody else.
  @Test func textThatLooksEncodedIsEncoded() throws {
    #expect(HeaderEncoding.percent.value(of: "%72oot") == "%2572oot")
    let value = HeaderEncoding.rfc2047.value(of: "=?UTF-8?B?cm9vdA==?=")
    let bytes = try #require(Data(base64Encoded: String(value.dropFirst(10).dropLast(2))))
    #expect(String(decoding: bytes, as: UTF8.self) == "=?UTF-8?B?cm9vdA==?=")
    #expect(HeaderEncoding.utf8.value(of: "%72oot Zoë =?UTF-8?B?cm9vdA==?=") == "%72oot Zoë =?UTF-8?B?cm9vdA==?=")
  }

  private func basic(_ parts: IdentityTemplate.Part..., of account: Account) -> String? {
    ServiceIdentity.Basic(user: IdentityTemplate(parts), password: SecretText("p:w é")).value(
      for: account, entitlements)
  }

  @Test func basicHasUserAndPassword() throws {
    let value = try #require(basic(.email, of: account()))
    #expect(value == "Basic " + Data("asha@example.com:p:w é".utf8).base64EncodedString())
  }

  /// Attack: the user `root:x` would be the user `root` with another password (RFC 7617 section 2).
  @Test func basicHasNoUserWithAColon() {
    #expect(basic(.firstName, of: account(first: "root:x")) == nil)
    #expect(basic(.username, of: account()) == nil)
    #expect(basic(.text("all"), of: account()) != nil)
  }

  @Test func headersReplaceOnlyWhatIsNamed() {
    var identity = ServiceIdentity()
    #expect(identity.isUsual)
    identity.headers[.user] = ServiceIdentity.Header(name: "X-WEBAUTH-USER", value: IdentityTemplate([.username]))
    identity.headers[.name] = ServiceIdentity.Header(name: "X-Name", value: IdentityTemplate([.firstName]))
    identity.encoding = .percent
    let headers = IdentityHeaders(identity, of: account(first: "Zoë"), entitlements)
    #expect(
      headers.values.map { "\($0.name): \($0.value)" } == [
        "X-WEBAUTH-USER: ", "Remote-Email: asha@example.com", "Remote-Phone: +919999999999", "X-Name: Zo%C3%AB",
        "Remote-Groups: a%252Cb%2Cstaff",
      ])
    #expect(String(decoding: headers.lines, as: UTF8.self).hasPrefix("Remote-Email: asha@example.com\r\n"))
    #expect(headers.authorization.isEmpty)
  }

  /// Attack: a proxy that replaces only the headers that an answer has.
  @Test func forwardAnswerHasTheNamesOfAllRoutes() {
    var identity = ServiceIdentity()
    identity.headers[.user] = ServiceIdentity.Header(name: "X-USER", value: IdentityTemplate([.id]))
    let names = ["Remote-User", "Remote-Email", "X-Mail", "X-User"]
    let answer = IdentityHeaders(identity, of: account(), entitlements).forwardAnswer(names, assertion: [], [])
    let text = String(buffer: answer)
    #expect(
      text.hasPrefix(
        "HTTP/1.1 200 OK\r\nRemote-User: \r\nRemote-Email: asha@example.com\r\nX-Mail: \r\nX-User: ac_asha\r\n"))
    #expect(String(buffer: IdentityHeaders().forwardAnswer(names, assertion: [], [])).contains("\r\nX-User: \r\n"))
  }

  // MARK: tokens

  private let app = App(
    id: "reports", name: "Reports", redirectURIs: [], consent: .never, signing: .es256,
    accessToken: .jwt(audience: ["https://reports.example.com"]))

  @Test func tokenIsRenewedBeforeItExpires() {
    var lines = BearerLines()
    let start = ManualClock.start
    let key = BearerKey(app, version: 1, from: .unspecified)
    #expect(lines.line(key, at: start) == nil)
    lines.keep(key, (SecretText("one"), start + .seconds(600)), at: start)
    #expect(lines.line(key, at: start + .seconds(449)) == Array("Authorization: Bearer one\r\n".utf8))
    #expect(lines.line(key, at: start + .seconds(450)) == nil)
    lines.keep(key, nil, at: start + .seconds(450))
    #expect(lines.line(key, at: start + .seconds(459)) == [])
    #expect(lines.line(key, at: start + .seconds(460)) == nil)
  }

  /// A token of a session that is about to end is not asked for again and again, and is never sent after its end.
  @Test func shortTokenIsNotSentAfterItsEnd() {
    var lines = BearerLines()
    let start = ManualClock.start
    let key = BearerKey(app, version: 1, from: .unspecified)
    lines.keep(key, (SecretText("one"), start + .milliseconds(500)), at: start)
    #expect(lines.line(key, at: start + .milliseconds(499)) == Array("Authorization: Bearer one\r\n".utf8))
    #expect(lines.line(key, at: start + .milliseconds(500)) == [])
    #expect(lines.line(key, at: start + .seconds(1)) == nil)
  }

  /// Attack: a token that was made under the rules before a reload, or for a client in another network, is sent on.
  @Test func tokenIsForItsRulesAndItsClient() throws {
    let judged = App(
      id: "reports", name: "Reports", redirectURIs: [], consent: .never, decide: FunctionName("reports.decide"))
    let (office, home) = (ClientAddress(bytes: [192, 0, 2, 7]), ClientAddress(bytes: [198, 51, 100, 9]))
    var lines = BearerLines()
    let start = ManualClock.start
    let here = BearerKey(judged, version: 1, from: try #require(office))
    lines.keep(here, (SecretText("one"), start + .seconds(600)), at: start)
    #expect(lines.line(here, at: start) != nil)
    #expect(lines.line(BearerKey(judged, version: 1, from: try #require(home)), at: start) == nil)
    #expect(lines.line(BearerKey(judged, version: 2, from: try #require(office)), at: start) == nil)
    // Without `decide`, the client does not matter.
    #expect(
      BearerKey(app, version: 1, from: try #require(office)) == BearerKey(app, version: 1, from: try #require(home)))
    for index in 0..<10 {
      let address = try #require(ClientAddress(bytes: [192, 0, 2, UInt8(index)]))
      lines.keep(
        BearerKey(judged, version: 1, from: address), (SecretText("x"), start + .seconds(600)), at: start)
    }
    #expect(lines.line(here, at: start) != nil, "the address ending in 7 was kept again")
    let first = try #require(ClientAddress(bytes: [192, 0, 2, 0]))
    #expect(lines.line(BearerKey(judged, version: 1, from: first), at: start) == nil, "memory is bounded")
  }
}
