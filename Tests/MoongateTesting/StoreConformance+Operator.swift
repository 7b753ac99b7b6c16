import MoongateCore
import MoongateSDK
import Testing

// Operators' changes of accounts.

extension StoreConformance {
  static let operated: [StoreConformance] = [
    StoreConformance("accounts are listed in the order of their ids, page by page") { bench async throws in
      for id in ["ac_3", "ac_1", "ac_5", "ac_2", "ac_4"] {
        try await bench.apply(.createAccount(bench.account(id, verified: [bench.phone("+91999999999\(id.suffix(1))")])))
      }
      #expect(try await bench.store.accounts(after: nil, limit: 2).map(\.id) == ["ac_1", "ac_2"])
      #expect(try await bench.store.accounts(after: "ac_2", limit: 10).map(\.id) == ["ac_3", "ac_4", "ac_5"])
      #expect(try await bench.store.accounts(after: "ac_5", limit: 10).isEmpty)
    },
    StoreConformance("all accounts with an address are found by it: the verified one first, then the newest claim") {
      bench async throws in
      let address = bench.email()
      try await bench.apply(.createAccount(bench.account("ac_1", claimed: [address])))
      bench.clock.advance(by: .seconds(1))
      try await bench.apply(.createAccount(bench.account("ac_2", claimed: [address])))
      #expect(try await bench.store.accounts(naming: address).map(\.id) == ["ac_2", "ac_1"])
      try await bench.apply(.createAccount(bench.account("ac_3", verified: [bench.email("rao@example.com")])))
      #expect(try await bench.store.accounts(naming: bench.email("rao@example.com")).map(\.id) == ["ac_3"])
      #expect(try await bench.store.accounts(naming: bench.email("nobody@example.com")).isEmpty)
    },
    StoreConformance("an operator's lock ends all sessions and lets none begin, until it is lifted") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      try await bench.apply(
        .putSession(bench.session("se_1", of: "ac_1")), .putSession(bench.session("se_2", of: "ac_1")))
      let before = try await bench.store.sessionChanges(after: .max).latest
      #expect(try await bench.apply(.setLocked(account: "ac_1", true)) == .applied(locks: []))
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      #expect(try await bench.store.account("ac_1")?.isLocked == true)
      #expect(try await bench.store.sessionChanges(after: before).accounts == ["ac_1"], "every process learns of it")
      #expect(try await bench.apply(.putSession(bench.session("se_3", of: "ac_1"))) == .conflict(.accountUnavailable))
      try await bench.apply(.setLocked(account: "ac_1", false))
      #expect(try await bench.apply(.putSession(bench.session("se_3", of: "ac_1"))) == .applied(locks: []))
      #expect(try await bench.apply(.setLocked(account: "nobody", true)) == .conflict(.accountUnavailable))
    },
    StoreConformance("deletion removes identifiers, records, sessions and flows; events name no user") {
      bench async throws in
      let phone = bench.phone()
      let address = bench.email("asha+/x@example.com")
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [phone], claimed: [address])))
      try await bench.apply(.createAccount(bench.account("ac_2", verified: [bench.phone("+918888888888")])))
      try await bench.apply(
        .putProviderRecord(account: "ac_1", ProviderName(test: "pin"), sealed: [1, 2, 3]),
        .putSession(bench.session("se_1", of: "ac_1")))
      var own = bench.flow("own")
      own.account = "ac_1"
      var open = bench.flow("open")
      open.step = StepRecord(
        provider: ProviderName(test: "phone_otp"), identifier: address, isSkippable: false, account: nil, challenge: nil
      )
      let others = bench.flow("others")
      try await bench.apply(.putFlow(own), .putFlow(open), .putFlow(others))
      func event(_ id: String, account: String?, identifier: String?) -> AuditEvent {
        AuditEvent(
          id: DecisionID(text: id), at: bench.now, kind: .refused, flow: "login", flowPrefix: "fl_abc",
          provider: ProviderName(test: "phone_otp"),
          account: account, identifier: identifier, address: "192.0.2.1", code: "invalid_code",
          detail: ["fact.client.ip": "192.0.2.1"])
      }
      try await bench.store.append([
        event("dc_1", account: "ac_1", identifier: nil), event("dc_2", account: nil, identifier: "trace"),
        event("dc_3", account: "ac_2", identifier: "other"),
      ])
      let before = try await bench.store.sessionChanges(after: .max).latest
      #expect(try await bench.apply(.deleteAccount("ac_1", traces: ["trace"])) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1") == nil)
      #expect(try await bench.store.account(holding: phone) == nil)
      #expect(try await bench.store.accounts(naming: address).isEmpty)
      #expect(try await bench.store.providerRecord(of: "ac_1", for: ProviderName(test: "pin")) == nil)
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      #expect(try await bench.store.flow(own.id) == nil)
      #expect(try await bench.store.flow(open.id) == nil)
      #expect(try await bench.store.flow(others.id) != nil)
      #expect(try await bench.store.sessionChanges(after: before).accounts == ["ac_1"])
      for id in ["dc_1", "dc_2"] {
        let left = try await bench.store.event(DecisionID(text: id))
        #expect(left == event(id, account: nil, identifier: nil).anonymous, "\(id)")
      }
      #expect(
        try await bench.store.event(DecisionID(text: "dc_3")) == event("dc_3", account: "ac_2", identifier: "other"))
      #expect(try await bench.store.account("ac_2") != nil)
      #expect(try await bench.apply(.deleteAccount("ac_1", traces: [])) == .conflict(.accountUnavailable))
      // Attack: the owner of an account that claims another user's address deletes that account, and with it the other
      // user's running sign-in.
      for id in ["ac_5", "ac_6"] { try await bench.apply(.createAccount(bench.account(id, claimed: [address]))) }
      var shared = bench.flow("shared")
      shared.step = StepRecord(
        provider: ProviderName(test: "phone_otp"), identifier: address, isSkippable: false, account: nil, challenge: nil
      )
      try await bench.apply(.putFlow(shared))
      #expect(try await bench.apply(.deleteAccount("ac_5", traces: [])) == .applied(locks: []))
      #expect(try await bench.store.flow(shared.id) != nil)
      // The number can be registered again.
      #expect(try await bench.apply(.createAccount(bench.account("ac_4", verified: [phone]))) == .applied(locks: []))
    },
  ]
}
