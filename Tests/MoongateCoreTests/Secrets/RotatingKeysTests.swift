import Foundation
import MoongateCore
import MoongateTesting
import Testing

/// Keys rotate, and every assertion can be verified at any time.
@Suite struct RotatingKeysTests {
  private func ids(_ keySet: String) throws -> [String] {
    let set = try #require(try JSONSerialization.jsonObject(with: Data(keySet.utf8)) as? [String: [[String: String]]])
    return try #require(set["keys"]).compactMap { $0["kid"] }
  }

  @Test func publishedKeysOverlap() throws {
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let change = (ManualClock.start.seconds / SigningPeriod.length + 1) * SigningPeriod.length
    let assertions = RotatingKeys(keys, for: .assertions, at: ManualClock.start)
    let at = { (seconds: Int64) in Timestamp(milliseconds: (change + seconds) * 1000) }
    let old = try #require(try ids(assertions.keySet(at: at(-601))).first)
    #expect(try ids(assertions.keySet(at: at(-601))) == [old])
    // The next key is published ten minutes before its first signature, and the old one until ten minutes after its
    // last.
    let both = try ids(assertions.keySet(at: at(-600)))
    #expect(both.first == old && both.count == 2)
    let new = try #require(both.last)
    #expect(try ids(assertions.keySet(at: at(-1))) == [old, new])
    #expect(try ids(assertions.keySet(at: at(0))) == [new, old])
    #expect(try ids(assertions.keySet(at: at(599))) == [new, old])
    #expect(try ids(assertions.keySet(at: at(600))) == [new])
    #expect(
      assertions.signer(at: at(-1)).publicKey.contains(old) && assertions.signer(at: at(0)).publicKey.contains(new))
    // Another node, or this one after a restart, has the same keys.
    #expect(try ids(RotatingKeys(keys, for: .assertions, at: at(5)).keySet(at: at(5))) == [new, old])
  }

  /// At any time, the key of a valid assertion is in every key set that a client may have cached.
  @Test(arguments: [-700, -600, -301, -300, -1, 0, 1, 299, 300, 599, 600, 900] as [Int64])
  func signingKeyIsInEveryCachedKeySet(
    _ offset: Int64
  ) throws {
    let keys = try KeyRing(master: Array(repeating: 9, count: 32))
    let change = (ManualClock.start.seconds / SigningPeriod.length + 1) * SigningPeriod.length
    let assertions = RotatingKeys(keys, for: .assertions, at: ManualClock.start)
    let signed = Timestamp(milliseconds: (change + offset) * 1000)
    let key = assertions.signer(at: signed).publicKey
    // A key set may be cached for five minutes, and an assertion is valid for five: check sets fetched from five
    // minutes before to five after.
    for fetched in stride(from: -300, through: 300, by: 20) as StrideThrough<Int64> {
      #expect(assertions.keySet(at: signed + .seconds(fetched)).contains(key), "fetched \(fetched) s after")
    }
  }

  /// While the master key is rotated, two nodes sign with two keys, and each publishes both.
  @Test func aRingPublishesAllOfItsKeys() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let two = try one.adding([UInt8](repeating: 8, count: 32))
    let before = RotatingKeys(KeyRing(two), for: .assertions, at: ManualClock.start)
    let after = RotatingKeys(KeyRing(try #require(two.rotated())), for: .assertions, at: ManualClock.start)
    let (old, new) = (try ids(before.keySet(at: ManualClock.start)), try ids(after.keySet(at: ManualClock.start)))
    #expect(old.count == 2 && Set(old) == Set(new) && old.first == new.last)
    #expect(
      before.signer(at: ManualClock.start).publicKey.contains(old[0])
        && after.signer(at: ManualClock.start).publicKey.contains(new[0]))
    let alone = RotatingKeys(KeyRing(one), for: .assertions, at: ManualClock.start)
    #expect(try ids(alone.keySet(at: ManualClock.start)) == [old[0]])
    // A running gateway signs with the new key as soon as it has it.
    let ring = KeyRing(two)
    let running = RotatingKeys(ring, for: .assertions, at: ManualClock.start)
    #expect(running.signer(at: ManualClock.start).publicKey.contains(old[0]))
    #expect(ring.replace(by: try #require(two.rotated())))
    #expect(running.signer(at: ManualClock.start).publicKey.contains(new[0]))
    #expect(try ids(running.keySet(at: ManualClock.start)) == new)
  }
}
