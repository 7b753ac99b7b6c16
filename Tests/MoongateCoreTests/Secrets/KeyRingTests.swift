import Crypto
import MoongateTesting
import Testing

@testable import MoongateCore

/// Keys, codes at rest, and secrets that do not print.
@Suite struct KeyRingTests {
  private func keys(_ byte: UInt8 = 1) throws -> KeyRing { try KeyRing(master: [UInt8](repeating: byte, count: 32)) }

  @Test func aCodeIsBoundToAllThatItIsGoodFor() throws {
    let flow = TokenHash(of: "f".utf8)
    let mac = try keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login")
    let others = try [
      keys().codeMAC("012346", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC("012345", flow: TokenHash(of: "g".utf8), provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "email_code", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999998", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "register"),
      // The same bytes, cut at another place.
      keys().codeMAC("012345", flow: flow, provider: "phone_otp+", identifier: "919999999999", purpose: "login"),
      keys(2).codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
    ]
    #expect(others.allSatisfy { $0 != mac })
    #expect(try keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login") == mac)
  }

  @Test func aSealedRecordOpensForItsOwnerAlone() throws {
    let sealed = try keys().seal([1, 2, 3], for: "pin ac_1")
    #expect(try keys().open(sealed, for: "pin ac_1") == [1, 2, 3])
    #expect(throws: (any Error).self) { try keys().open(sealed, for: "pin ac_2") }
    #expect(throws: (any Error).self) { try keys(2).open(sealed, for: "pin ac_1") }
  }

  @Test func aShortKeyIsRefused() { #expect(throws: KeyRingError.self) { try KeyRing(master: [UInt8](repeating: 1, count: 31)) } }

  @Test func theAssertionKeyIsTheSameAfterARestart() throws {
    #expect(try keys().assertionKey(period: 7).rawRepresentation == keys().assertionKey(period: 7).rawRepresentation)
    #expect(try keys().assertionKey(period: 7).rawRepresentation != keys(2).assertionKey(period: 7).rawRepresentation)
    #expect(try keys().assertionKey(period: 7).rawRepresentation != keys().assertionKey(period: 8).rawRepresentation)
  }

  @Test(arguments: [([1, 2], [1, 2], true), ([1, 2], [1, 3], false), ([1, 2], [1, 2, 3], false), ([], [], true)])
  func comparingIsByValue(left: [UInt8], right: [UInt8], same: Bool) { #expect(KeyRing.equal(left, right) == same) }

  @Test func secretsDoNotPrint() {
    let secret = SecretText("hunter2")
    let token = SessionToken(from: SeededRandom())
    let flow = FlowID(from: SeededRandom())
    var dumped = ""
    dump((secret, token, flow), to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\(token)", "\(flow)", dumped] {
      #expect(!text.contains("hunter2"))
      #expect(!text.contains(token.secret.reveal()))
      #expect(!text.contains(flow.secret.reveal()))
    }
  }

  @Test(arguments: [([], ""), ([0], "AA"), ([255, 255], "__8"), ([1, 2, 3], "AQID"), ([0xfb, 0xff], "-_8")])
  func base64urlIsAsInTheRFC(bytes: [UInt8], text: String) { #expect(Base64URL.encode(bytes) == text) }
}
