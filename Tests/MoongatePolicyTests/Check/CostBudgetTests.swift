import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The bounds of limits on `send`, `begin` and `register`.
@Suite struct CostBudgetTests {
  private static let phone = ProviderName(test: "phone_otp")
  private static let hour: Duration = .seconds(3600)

  private func cost(_ limits: Limit...) -> CostBudget { CostBudget(.test(Self.phone, limits: limits)) }

  @Test func theShippedPoliciesBoundEverything() throws {
    let policies = try ShippedProviders.generation().policies
    let costs = ["phone_otp", "email_code", "password"].compactMap {
      ProviderName(rawValue: $0).flatMap { policies[$0] }
    }.map(CostBudget.init)
    #expect(costs.map(\.messagesToOnePerDay) == [20, 20, nil])
    #expect(costs.map(\.messagesPerHour) == [5_000, 20_000, nil])
    #expect(costs.map(\.accountsPerHour) == [nil, nil, 5_000])
  }

  @Test func limitsPerAddressPrefixAndCountryDoNotBoundACapableAttacker() {
    let limits = [LimitKey.ip, .network, .clientCountry, .asn, .prefix, .country, .device, .flow].map {
      Limit.test("\($0)", on: .send, per: $0, max: 1, window: Self.hour)
    }
    #expect(CostBudget(.test(Self.phone, limits: limits)).messagesPerHour == nil)
    #expect(cost(.test("ip", on: .register, per: .ip, max: 1, window: Self.hour)).accountsPerHour == nil)
  }

  @Test func strictestLimitAndItsWindowsDetermineTheCost() {
    let both = cost(
      .test("a", on: .send, per: .phone, max: 4, window: .seconds(900)),
      .test("b", on: .send, per: .phone, max: 10, window: .seconds(86_400)),
      .test("c", on: .send, per: .global, max: 100, window: .seconds(1800)),
      .test("d", on: .register, per: .provider, max: 7, window: Self.hour * 24)
    )
    #expect(both.messagesToOnePerDay == 20)
    #expect(both.messagesPerHour == 200)
    #expect(both.accountsPerHour == 7)
  }

  @Test func tableMarksUnboundedCosts() {
    #expect(
      CostBudget.table([cost(.test("a", on: .send, per: .phone, max: 10, window: .seconds(86_400)))], colour: false)
        == """
        cost budget    to one a day   messages an hour   accounts an hour
        phone_otp                20          unlimited          unlimited
        for attackers with any number of addresses; limits per address bound those with few
        """)
  }
}
