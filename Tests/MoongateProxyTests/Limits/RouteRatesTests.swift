import MoongateCore
import MoongateSDK
import NIOCore
import Testing

@testable import MoongateProxy

/// The counters of `rate`.
@Suite struct RouteRatesTests {
  private func counter(_ route: Route, in rates: RouteRates = RouteRates()) throws -> RouteRateCounter {
    try #require(rates.counters(of: [route])[0])
  }

  private func address(_ number: Int) -> RateSubject {
    let bytes = [10, UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)]
    return .address(AddressKey(ClientAddress(bytes: bytes) ?? .unspecified))
  }

  /// Attack: bursts at the boundary of two windows. No interval contains more than the limit, and after the time that a
  /// refusal names, a request is accepted.
  @Test(arguments: [(1, 1), (7, 60), (100, 1), (1_000, 3_600)])
  func noIntervalExceedsTheRate(_ count: Int, _ seconds: Int) throws {
    let counter = try counter(.test(ports: []).limited(to: count, per: .global, in: .seconds(seconds)))
    var random = SystemRandomNumberGenerator()
    let window = UInt64(seconds) * 1_000_000_000
    var now: UInt64 = 5_000_000_000
    var accepted: [UInt64] = []
    for step in 0..<20_000 {
      now += UInt64.random(
        in: 0..<(step % 500 == 0 ? window * 3 / 2 : max(2, 2 * window / UInt64(count * 2))), using: &random)
      guard let excess = counter.take(.everybody, at: .uptimeNanoseconds(now)) else {
        accepted.append(now)
        continue
      }
      #expect(excess.wait > .zero && excess.wait <= .seconds(seconds) + .seconds(seconds) / 20)
      if step % 100 == 0 {
        let wait = UInt64(excess.wait.wholeNanoseconds)
        #expect(counter.take(.everybody, at: .uptimeNanoseconds(now + wait - 1)) != nil)
        now += wait
        #expect(counter.take(.everybody, at: .uptimeNanoseconds(now)) == nil)
        accepted.append(now)
      }
    }
    #expect(accepted.count > 100)
    for index in accepted.indices.dropFirst(count) { #expect(accepted[index] - accepted[index - count] >= window) }
  }

  @Test func fieldsStateThePolicyAndTheWait() throws {
    let counter = try counter(.test(ports: []).limited(to: 2, per: .account, in: .seconds(60)))
    for _ in 1...2 { #expect(counter.take(.account("a"), at: .uptimeNanoseconds(60_000_000_000)) == nil) }
    let excess = try #require(counter.take(.account("a"), at: .uptimeNanoseconds(61_500_000_000)))
    #expect(excess.wait == .milliseconds(61_500))
    #expect(
      excess.fields.map { "\($0.0): \($0.1)" } == [
        "RateLimit-Policy: \"account\";q=2;w=60", "RateLimit: \"account\";r=0;t=62",
      ])
  }

  @Test func subjectsCountSeparately() throws {
    let counter = try counter(.test(ports: []).limited(to: 1, per: .ip))
    let now = NIODeadline.uptimeNanoseconds(1)
    let v6 = ["2001:db8::1", "2001:db8:0:1::1"].map {
      RateSubject.address(AddressKey(ClientAddress(bytes: IPAddressBytes.parseV6($0.utf8) ?? []) ?? .unspecified))
    }
    for subject in [address(1), address(2), .account("1"), .token("1"), .everybody] + v6 {
      #expect(counter.take(subject, at: now) == nil)
      #expect(counter.take(subject, at: now) != nil)
    }
    let sibling = ClientAddress(bytes: IPAddressBytes.parseV6("2001:db8::ffff".utf8) ?? []) ?? .unspecified
    #expect(counter.take(.address(AddressKey(sibling)), at: now) != nil, "of the same /64")
  }

  @Test func hugeNumbersDoNotOverflow() throws {
    let counter = try counter(.test(ports: []).limited(to: .max, per: .global, in: .seconds(Int64.max / 2)))
    for now in [0, 1, UInt64(Int64.max) / 4] {
      #expect(counter.take(.everybody, at: .uptimeNanoseconds(now)) == nil)
    }
  }

  /// A reload that does not change the route must not give everybody a fresh limit.
  @Test func unchangedRouteKeepsItsCountersAcrossGenerations() throws {
    let rates = RouteRates()
    let route = Route.test("/a/**", ports: [1]).limited(to: 1, per: .global)
    let first = try counter(route, in: rates)
    #expect(first.take(.everybody, at: .uptimeNanoseconds(1)) == nil)
    let next = rates.counters(of: [.test("/b/**", ports: [1]).limited(to: 1, per: .global), route, .test(ports: [1])])
    #expect(next[1] === first && next[0] !== first && next[2] == nil)
    #expect(next[1]?.take(.everybody, at: .uptimeNanoseconds(1)) != nil)
    #expect(next[0]?.take(.everybody, at: .uptimeNanoseconds(1)) == nil)
    let changed = try counter(.test("/a/**", ports: [1]).limited(to: 2, per: .global), in: rates)
    #expect(changed !== first)
    #expect(try counter(route, in: rates) !== first, "it was not part of the last generation")
    #expect(rates.counters(of: [.test(ports: [1])]).allSatisfy { $0 == nil })
  }

  /// Attack: a new address with every request fills the memory, or pushes out the counter of an account or of an
  /// address that is in use.
  @Test func floodOfAddressesIsBoundedAndPushesOutNothingInUse() throws {
    let rates = RouteRates(capacity: 6_400)
    let counter = try counter(.test(ports: []).limited(to: 1, per: .account), in: rates)
    let now = NIODeadline.uptimeNanoseconds(1)
    #expect(counter.take(.account("mallory"), at: now) == nil)
    #expect(counter.take(address(0), at: now) == nil)
    for number in 1...100_000 {
      #expect(counter.take(address(number), at: now) == nil)
      if number % 500 == 0 { #expect(counter.take(address(0), at: now) != nil) }
    }
    #expect(rates.table.count <= 6_400)
    #expect(counter.take(.account("mallory"), at: now) != nil)
    #expect(counter.take(address(1), at: now) == nil, "forgotten")
  }

  @Test func threadsCountTogether() async throws {
    let counter = try counter(.test(ports: []).limited(to: 1_000, per: .global))
    let accepted = await withTaskGroup(of: Int.self) { group in
      for _ in 1...8 {
        group.addTask {
          (1...500).count { _ in counter.take(.everybody, at: .uptimeNanoseconds(1_000)) == nil }
        }
      }
      return await group.reduce(0, +)
    }
    #expect(accepted == 1_000)
  }
}
