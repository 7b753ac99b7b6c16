import Testing

@testable import PIN

@Suite("Weak PINs") struct WeakPINTests {
  @Test(
    "are the PINs guessed first",
    arguments: [
      "000000", "111111", "999999", "111123", "511115", "191111", "121212", "122122", "123123", "454545", "123321",
      "112233", "223344", "995511",
      "123456", "654321", "012345", "987654", "901234", "234599", "123499", "991234", "439876", "135791", "024680",
      "246802", "147258", "258147",
      "159357", "357951", "789456", "456123", "321654", "963852", "258012", "002580", "085299", "147369", "010190",
      "311299", "123199", "199012",
      "290204", "991231", "197005", "201207", "051985", "122003",
    ])
  func weak(text: String) { #expect(WeakPIN.isWeak(Self.pin(text)), "\(text)") }

  @Test(
    "do not include ordinary PINs",
    arguments: ["739154", "402917", "860493", "597382", "648075", "370846", "915073", "708264"])
  func strong(text: String) { #expect(!WeakPIN.isWeak(Self.pin(text)), "\(text)") }

  @Test("are about a tenth of all PINs") func share() {
    let refused = (0..<1_000_000).count { WeakPIN.isWeak(PINDigits(number: $0)) }
    #expect(refused == WeakPIN.refused)
    #expect((0.08...0.12).contains(Double(refused) / 1_000_000), "\(refused)")
  }

  @Test(
    "include six digits of the user's own number, in either direction",
    arguments: ["876543", "543210", "987654", "012345", "345678", "919876"])
  func own(text: String) { #expect(WeakPIN.isWeak(Self.pin(text), phones: ["+919876543210"])) }

  @Test("do not include digits of another user's number") func stranger() {
    #expect(WeakPIN.isWeak(Self.pin("604817"), phones: ["+493060481790"]))
    #expect(WeakPIN.isWeak(Self.pin("718406"), phones: ["+12025550123", "+493060481790"]))
    #expect(!WeakPIN.isWeak(Self.pin("604817"), phones: ["+12025550123"]))
    #expect(!WeakPIN.isWeak(Self.pin("604817"), phones: ["+60481", "", "+"]))
  }

  private static func pin(_ text: String) -> PINDigits { PINDigits(number: Int(text) ?? 0) }
}
