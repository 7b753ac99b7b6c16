import Crypto
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// Keys, stored codes, and secrets that do not print.
@Suite struct KeyRingTests {
  private func keys(_ byte: UInt8 = 1) throws -> KeyRing { try KeyRing(master: [UInt8](repeating: byte, count: 32)) }

  @Test func macBindsACodeToItsContext() throws {
    let flow = TokenHash(of: "f".utf8)
    let mac = try keys().codeMAC(
      "012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login")
    let others = try [
      keys().codeMAC("012346", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC(
        "012345", flow: TokenHash(of: "g".utf8), provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "email_code", identifier: "+919999999999", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999998", purpose: "login"),
      keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "register"),
      // The same bytes, divided differently.
      keys().codeMAC("012345", flow: flow, provider: "phone_otp+", identifier: "919999999999", purpose: "login"),
      keys(2).codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login"),
    ]
    #expect(others.allSatisfy { $0 != mac })
    #expect(
      try keys().codeMAC("012345", flow: flow, provider: "phone_otp", identifier: "+919999999999", purpose: "login")
        == mac)
  }

  @Test func aSealedRecordOpensForItsOwnerAlone() throws {
    let sealed = try keys().seal([1, 2, 3], for: "pin ac_1")
    #expect(try keys().open(sealed, for: "pin ac_1") == [1, 2, 3])
    #expect(throws: (any Error).self) { try keys().open(sealed, for: "pin ac_2") }
    #expect(throws: (any Error).self) { try keys(2).open(sealed, for: "pin ac_1") }
  }

  @Test func aShortKeyIsRefused() {
    #expect(throws: KeyRingError.self) { try KeyRing(master: [UInt8](repeating: 1, count: 31)) }
  }

  @Test func theAssertionKeyIsTheSameAfterARestart() throws {
    #expect(try keys().signer(for: .assertions, period: 7).id == keys().signer(for: .assertions, period: 7).id)
    #expect(try keys().signer(for: .assertions, period: 7).id != keys(2).signer(for: .assertions, period: 7).id)
    #expect(try keys().signer(for: .assertions, period: 7).id != keys().signer(for: .assertions, period: 8).id)
  }

  /// Two nodes, or a node before and after a rotation: each accepts what the other makes, except what is bound to its
  /// place.
  @Test func rotatedRingsAcceptEachOthersValues() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 1, count: 32))
    let before = KeyRing(one)
    let ready = KeyRing(try one.adding([UInt8](repeating: 2, count: 32)))
    let after = KeyRing(try #require(try one.adding([UInt8](repeating: 2, count: 32)).rotated()))
    let flow = TokenHash(of: "f".utf8)
    let mac = { (keys: KeyRing) in keys.codeMAC("012345", flow: flow, provider: "pin", identifier: "", purpose: "login")
    }
    let isGood = { (keys: KeyRing, mac: [UInt8], code: String) in
      keys.isMAC(mac, of: code, flow: flow, provider: "pin", identifier: "", purpose: "login")
    }
    #expect(mac(before) == mac(ready) && mac(before) != mac(after))
    for (maker, reader) in [(before, after), (after, ready), (ready, after), (before, ready), (after, after)] {
      #expect(isGood(reader, mac(maker), "012345") && !isGood(reader, mac(maker), "012346"))
      #expect(try reader.open(maker.seal([1, 2], for: "pin ac_1"), for: "pin ac_1") == [1, 2])
      #expect(throws: (any Error).self) { try reader.open(maker.seal([1, 2], for: "pin ac_1"), for: "pin ac_2") }
      #expect(reader.peppered([3], by: maker.pepperName) == maker.peppered([3]).secret)
      #expect(reader.fingerprint == maker.fingerprint)
      #expect(reader.counterKey([[1]]) == maker.counterKey([[1]]))
      #expect(reader.logHash("a@b.c") == maker.logHash("a@b.c"))
      let published = reader.signers(for: .assertions, period: 7).map(\.id)
      #expect(published.contains(maker.signer(for: .assertions, period: 7).id))
      #expect(published.first == reader.signer(for: .assertions, period: 7).id)
    }
    #expect(after.pepperName != before.pepperName && after.currentName != before.currentName)
    #expect(try after.opening(before.seal([1], for: "x"), for: "x").key == before.currentName)
    #expect(
      after.peppering(Array("$argon2id$v=19$m=8,t=1,p=1,keyid=\(before.pepperName)$x$y".utf8)) == [before.currentName])
    // A node that has only one key refuses what was made with the other.
    #expect(!isGood(before, mac(after), "012345") && before.peppered([3], by: after.pepperName) == nil)
  }

  /// All parts of a gateway hold one ring: when its keys are replaced, each uses the new key at once and still accepts
  /// the old one.
  @Test func replacedKeysAreUsedByAllHoldersOfTheRing() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 1, count: 32))
    let both = try #require(try one.adding([UInt8](repeating: 2, count: 32)).rotated())
    let ring = KeyRing(one)
    let hashing = SecretHashing(keys: ring, random: SeededRandom(), cost: .cheap)
    let (sealed, hash) = (try ring.seal([1], for: "x"), try hashing.hash([7]))
    let (counter, names) = (ring.counterKey([[1]]), ring.names)
    #expect(ring.replace(by: both))
    #expect(ring.currentName == both.current.name && ring.names == [both.current.name] + names)
    #expect(try ring.open(sealed, for: "x") == [1])
    #expect(try ring.opening(try ring.seal([1], for: "x"), for: "x").key == both.current.name)
    #expect(ring.counterKey([[1]]) == counter)
    let verdict = try hashing.verify([7], against: hash)
    guard case .right(let rehashed) = verdict else {
      Issue.record("the hash is still good")
      return
    }
    #expect(ring.peppering(Array(try #require(rehashed).utf8)) == [both.current.name])
    // Attack on ourselves: the file of another installation, or a part of our ring, is copied over it.
    #expect(!ring.replace(by: try MasterKeys(only: [UInt8](repeating: 3, count: 32))))
    #expect(!ring.replace(by: try #require(both.without(one.current.name))))
    #expect(ring.currentName == both.current.name)
  }

  /// A hash names the pepper that was used, even if the ring is replaced while it is computed: otherwise no key could
  /// sign in with it.
  @Test func hashNamesThePepperThatWasUsed() async throws {
    let one = try MasterKeys(only: [UInt8](repeating: 1, count: 32))
    let both = try #require(try one.adding([UInt8](repeating: 2, count: 32)).rotated())
    let ring = KeyRing(one)
    await withTaskGroup(of: Bool.self) { group in
      for task in 0..<4 {
        group.addTask {
          for round in 0..<2000 {
            if task == 0 {
              _ = ring.replace(by: round.isMultiple(of: 2) ? both : one)
            } else {
              let (input, pepper) = ring.peppered([7])
              if let again = KeyRing(both).peppered([7], by: pepper), again != input { return false }
            }
          }
          return true
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }

  /// Attack: somebody has obtained a key that was removed from the ring.
  @Test func retiredKeyIsNotAccepted() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 1, count: 32))
    let retired = KeyRing(one)
    let both = try #require(try one.adding([UInt8](repeating: 2, count: 32)).rotated())
    let after = KeyRing(try #require(both.without(retired.currentName)))
    let flow = TokenHash(of: "f".utf8)
    let mac = retired.codeMAC("012345", flow: flow, provider: "pin", identifier: "", purpose: "login")
    #expect(!after.isMAC(mac, of: "012345", flow: flow, provider: "pin", identifier: "", purpose: "login"))
    #expect(throws: (any Error).self) { try after.open(retired.seal([1], for: "device"), for: "device") }
    #expect(after.peppered([1], by: retired.pepperName) == nil)
    #expect(
      !after.signers(for: .assertions, period: 7).map(\.id).contains(
        retired.signer(for: .assertions, period: 7).id))
    #expect(
      after.fingerprint != retired.fingerprint
        && after.fingerprint == DerivedKeys(both.current.master).counting.fingerprint)
  }

  @Test(arguments: [([1, 2], [1, 2], true), ([1, 2], [1, 3], false), ([1, 2], [1, 2, 3], false), ([], [], true)])
  func constantTimeComparisonIsByValue(left: [UInt8], right: [UInt8], same: Bool) {
    #expect(constantTimeEquals(left, right) == same)
  }

  @Test func descriptionsContainNoSecrets() {
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

  private func retired(recognising: Bool = true, at now: Timestamp) throws -> (
    before: KeyRing, after: KeyRing, text: String
  ) {
    let one = try MasterKeys(only: [UInt8](repeating: 1, count: 32))
    let two = try #require(try one.adding([UInt8](repeating: 2, count: 32)).rotated())
    let left = try #require(two.retiring(one.current.name, recognising: recognising, at: now))
    return (KeyRing(one), KeyRing(try MasterKeys(reading: Array(left.text.utf8))), left.text)
  }

  /// Attack: somebody who has used up the attempts at a code waits until the oldest key is retired, to get them all
  /// again.
  @Test func aRetiredKeyStillNamesCountersAndOpensNothing() throws {
    let (before, after, text) = try retired(at: ManualClock.start)
    #expect(after.counterKey([[1], [2]]) == before.counterKey([[1], [2]]))
    #expect(
      after.logHash("a") == before.logHash("a") && after.fingerprint == before.fingerprint
        && after.oldestName == before.oldestName)
    #expect(after.holder(of: before.fingerprint) == before.currentName)
    #expect(!text.contains(Base64URL.encode([UInt8](repeating: 1, count: 32))) && after.names == [after.currentName])
    let flow = TokenHash(of: "f".utf8)
    let mac = before.codeMAC("012345", flow: flow, provider: "pin", identifier: "", purpose: "login")
    #expect(!after.isMAC(mac, of: "012345", flow: flow, provider: "pin", identifier: "", purpose: "login"))
    #expect(throws: KeyRingError.notOurs) { try after.open(before.seal([1], for: "pin ac_1"), for: "pin ac_1") }
    #expect(after.peppered([3], by: before.pepperName) == nil && before.currentName != after.currentName)
    // A gateway that names counters by the whole key adopts the ring while it serves.
    let ring = try MasterKeys(reading: Array(text.utf8))
    #expect(before.replace(by: ring) && before.currentName == after.currentName)
  }

  /// Attack on ourselves: without the device mark of a retired key the owner's device would count as a stranger's,
  /// which strangers lock out.
  @Test func devicesOfARetiredKeyAreKnownUntilTheirMarksAgeOut() throws {
    let now = ManualClock.start
    let (before, after, _) = try retired(at: now)
    let text = try before.remember(
      DeviceToken(from: SeededRandom(seed: 1), at: now), "ac_1", as: "de_1", [ProviderName(test: "pin")], at: now)
    let device = after.device(text, at: now)
    #expect(after.trust(device, "ac_1", among: ["de_0", "de_1"], by: ProviderName(test: "pin")) == "de_1")
    #expect(after.trust(device, "ac_1", among: ["de_0"]) == nil && after.trust(device, "ac_2", among: ["de_1"]) == nil)
    #expect(after.mayTrust(device, "ac_1") && !after.mayTrust(device, "ac_2"))
    #expect(after.device(text, at: now + DeviceToken.lifetime) == nil)
    // Attack: an attacker with a stolen key makes device marks for a year, each with attempts of its own. `--leaked`
    // keeps nothing that opens them.
    let leaked = try retired(recognising: false, at: now)
    #expect(leaked.after.device(text, at: now) == nil && leaked.after.counterKey([[1]]) == before.counterKey([[1]]))
  }

  @Test func aRetiredLineThatWasChangedIsRefused() throws {
    let (_, _, text) = try retired(at: ManualClock.start)
    let lines = text.split(separator: "\n").map(String.init)
    let renamed = lines[0].replacing(" ", with: " 0", maxReplacements: 1)
    for changed in [String(lines[0].dropLast(4)), lines[0] + "AAAA", renamed] {
      #expect(throws: KeyRingError.self) { try MasterKeys(reading: Array("\(changed)\n\(lines[1])\n".utf8)) }
    }
  }

  @Test func expiredRetiredKeyIsDropped() throws {
    let now = ManualClock.start
    let ring = try (2...4 as ClosedRange<UInt8>).reduce(try MasterKeys(only: [UInt8](repeating: 1, count: 32))) {
      ring, byte in
      try #require(try ring.adding([UInt8](repeating: byte, count: 32)).rotated())
    }
    let names = ring.members.map(\.name)
    let one = try #require(
      ring.retiring(names[1], recognising: true, at: now)?.retiring(names[0], recognising: true, at: now))
    #expect(one.members.map(\.role) == [.retired, .retired, .former, .current])
    // A year later: the oldest key still names counters, the other recognises no device any more.
    let later = try #require(one.retiring(names[2], recognising: true, at: now + DeviceToken.lifetime))
    #expect(later.members.map(\.name) == [names[0], names[2], names[3]])
  }
}
