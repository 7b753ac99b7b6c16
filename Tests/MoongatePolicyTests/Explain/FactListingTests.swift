import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// The facts of an account or identifier as policies read them.
@Suite struct FactListingTests {
  private static let number = "+13055550123"

  private func person() throws -> Identifier {
    try PhoneOTP().readIdentifier(ProviderInput(fields: ["phone": .text(Self.number)], defaultRegion: "IN"))
  }

  @Test func accountAndCountersAreListed() async throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" { limits = {
        send = { on = "send", per = "phone", window = "15m", max = vary(2, 4, function(f) return f.account.exists and 3 or 2 end) },
        ip = { on = "send", per = "ip", max = 30, window = "1h" }, flow = { on = "verify", per = "flow", max = 3, window = "1h" },
        verify = { on = "verify", per = "phone", max = 1, window = "24h", lock = "15m" },
      } }
      """, "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
    ])
    let generation = try folder.generation()
    let policy = try #require(generation.policies[ProviderName(test: "phone_otp")])
    let gateway = try VirtualGateway(generation, providers: ProviderRegistry([PhoneOTP()]), store: SQLiteStore.memory())
    let account = try await gateway.makeAccount(holding: [try person()])
    let flow = try await gateway.create("enter", by: gateway.client()).get().id
    _ = try await gateway.begin(flow, provider: nil, fields: ["phone": .text(Self.number)], by: gateway.client()).get()
    _ = await gateway.submit(flow, fields: ["code": .text("000000")], by: gateway.client())

    // The keys of a virtual gateway are its own.
    let asked = PersonFacts(policy, in: generation, keys: gateway.keys, at: gateway.clock.now())
    for _ in 0..<2 {
      let facts = try await asked.facts(of: try person(), account, from: nil, in: gateway.store)
      let listing = FactListing(facts, of: policy, in: generation, knowsAddress: false)
      let seen = Dictionary(listing.facts.map { ($0.fact, $0.value) }) { first, _ in first }
      #expect(
        listing.account == account.id && seen["f.phone.e164"] == .text(Self.number)
          && seen["f.phone.country"] == .text("US"))
      #expect(
        seen["f.account.exists"] == .flag(true) && seen["f.account.phone_verified"] == .flag(true)
          && seen["f.account.factors"] == .set([]))
      #expect(seen["f.limits.send.used"] == .integer(1) && seen["f.limits.send.max"] == .integer(3))
      #expect(seen["f.limits.verify.locked_until"] == .integer((gateway.clock.now() + .seconds(900)).seconds))
      // Facts of a request, and limits that count by one, are left out.
      #expect(
        seen["f.limits.ip.used"] == nil && seen["f.limits.flow.used"] == nil && seen["f.client.ip"] == nil
          && seen["f.flow.name"] == nil)
    }
    let facts = try await asked.facts(
      of: try person(), nil, from: ClientAddress(bytes: [192, 0, 2, 1]), in: gateway.store)
    let listing = FactListing(facts, of: policy, in: generation, knowsAddress: true)
    let text = listing.text(colour: false).replacing(#/ +/#, with: " ")
    #expect(text.contains("f.account.exists false whether the account exists\n"), "\(text)")
    #expect(
      text.contains("f.client.ip \"192.0.2.1\"") && text.contains("f.limits.ip.used")
        && text.contains("f.limits.send.max 2"))
    let json = String(decoding: try JSONEncoder().encode(listing), as: UTF8.self)
    #expect(json.contains("\"account\":null") && json.contains("\"provider\":\"phone_otp\""), "\(json)")
  }
}
