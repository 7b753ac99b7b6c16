import MoongateCore
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Which upstream a request tries first (`balance`).
@Suite struct UpstreamOrderTests {
  private let now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
  private let targets: [UpstreamTarget]
  private let keys: KeyRing

  init() throws {
    let loop = EmbeddedEventLoop()
    let (tls, spare) = (UpstreamTLS(), SpareFields())
    targets = (1...3).map {
      UpstreamTarget(
        Upstream(isSecure: false, host: "10.0.0.\($0)", port: 80), eventLoop: loop, tls: tls, spare: spare)
    }
    keys = try KeyRing(master: Array(repeating: 7, count: 32))
  }

  private func order(
    _ balance: UpstreamBalance, health: [UpstreamHealth] = [], keys other: KeyRing? = nil
  ) -> UpstreamOrder {
    var route = Route.test(ports: [1], open: true)
    route.balance = balance
    return UpstreamOrder(route, targets: targets, health: health, keys: other ?? keys)
  }

  private func take(_ order: inout UpstreamOrder, _ account: String = "ac_a") -> [Int] {
    order.take(for: .account(account), at: now)
  }

  @Test func theFirstThatWorksIsFirst() {
    var order = order(.first)
    #expect(take(&order) == [0, 1, 2] && take(&order) == [0, 1, 2])
    targets[0].failed(at: now)
    #expect(take(&order) == [1, 2, 0])
    targets[1].refusedConnection(at: now)
    #expect(take(&order) == [2, 0, 1])
    targets[0].succeeded()
    #expect(take(&order) == [0, 2, 1])
    #expect(order.take(for: .account("ac_a"), at: now + .seconds(4)) == [0, 1, 2])
  }

  @Test func upstreamsTakeTurns() {
    var order = order(.roundRobin)
    #expect((0..<4).map { _ in take(&order) } == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]])
    targets[1].failed(at: now)
    #expect(take(&order) == [2, 0, 1])
  }

  @Test func theLeastBusyIsFirst() {
    var order = order(.leastBusy)
    for _ in 0..<2 { targets[0].requestBegan() }
    targets[2].requestBegan()
    #expect(take(&order) == [1, 2, 0])
    targets[1].requestBegan()
    targets[1].requestBegan()
    #expect(take(&order)[0] == 2)
    for target in targets { while target.busy > 0 { target.requestEnded() } }
    #expect(Set((0..<3).map { _ in take(&order)[0] }) == [0, 1, 2], "equal ones take turns")
    // Attack: an upstream that fails at once is the least busy one.
    targets[1].failed(at: now)
    #expect((0..<3).allSatisfy { _ in take(&order).last == 1 })
  }

  // MARK: sticky

  private let accounts = (0..<3_000).map { "ac_\($0)" }

  @Test func anAccountKeepsItsUpstream() {
    var one = order(.sticky)
    var other = order(.sticky)
    let firsts = accounts.map { take(&one, $0)[0] }
    // On other event loops, gateways, and after a restart too.
    #expect(accounts.map { take(&other, $0)[0] } == firsts)
    for index in targets.indices { #expect((850...1_150).contains(firsts.count { $0 == index })) }
  }

  @Test func onlyTheAccountsOfAFailedUpstreamMove() {
    var order = order(.sticky)
    let before = accounts.map { take(&order, $0)[0] }
    targets[1].refusedConnection(at: now)
    let during = accounts.map { take(&order, $0)[0] }
    for (was, isNow) in zip(before, during) where was != 1 { #expect(was == isNow) }
    let moved = zip(before, during).filter { $0.0 == 1 }.map(\.1)
    #expect(!moved.contains(1) && moved.count { $0 == 0 } > 300 && moved.count { $0 == 2 } > 300)
    targets[1].succeeded()
    #expect(accounts.map { take(&order, $0)[0] } == before, "they return")
  }

  /// Attack: a user sends a request that the service does not survive, and all others lose their work.
  @Test func noRequestMovesOtherUsersOfAStickyRoute() {
    var order = order(.sticky)
    let before = accounts.map { take(&order, $0) }
    for target in targets { target.failed(at: now) }
    #expect(accounts.map { take(&order, $0) } == before)
  }

  /// Attack: an address that is chosen so that it belongs to one upstream. Without the keys, nobody knows which.
  @Test func theChoiceIsKeyed() throws {
    var one = order(.sticky)
    var other = order(.sticky, keys: try KeyRing(master: Array(repeating: 8, count: 32)))
    let same = accounts.count { take(&one, $0)[0] == take(&other, $0)[0] }
    #expect((850...1_150).contains(same))
  }

  @Test func anAddressKeepsItsUpstream() throws {
    var order = order(.sticky)
    let take = { (order: inout UpstreamOrder, text: String) throws -> [Int] in
      let address = try #require(IPAddressText.parse(text.utf8.map { $0 }))
      return order.take(for: .address(address), at: now)
    }
    let firsts = try (1..<200).map { try take(&order, "192.0.2.\($0)")[0] }
    #expect(try (1..<200).map { try take(&order, "192.0.2.\($0)")[0] } == firsts)
    #expect(Set(firsts) == [0, 1, 2])
    // A device changes the second half of its IPv6 address.
    #expect(try take(&order, "2001:db8:1:2::1") == take(&order, "2001:db8:1:2:ffff::9"))
  }

  // MARK: health

  @Test(arguments: UpstreamBalance.allCases) func upstreamsThatFailTheirChecksComeLast(_ balance: UpstreamBalance) {
    var route = Route.test(ports: [1, 2, 3])
    route.health = HealthCheck(path: "/healthz", interval: .seconds(1))
    let health = HealthCheckTable().health(of: route)
    var order = order(balance, health: health)
    #expect(!health[1].record(failures: 1), "one failure may be chance")
    #expect(health[1].record(failures: 2))
    for account in accounts.prefix(20) { #expect(take(&order, account).last == 1) }
    // If all fail, a check may be wrong: all are tried.
    for index in [0, 2] { #expect(health[index].record(failures: 2)) }
    #expect(take(&order).sorted() == [0, 1, 2])
    #expect(health[1].record(failures: 0))
    #expect(take(&order)[0] == 1)
  }
}
