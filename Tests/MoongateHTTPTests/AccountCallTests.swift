import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The admin listener's account calls.
@Suite struct AccountCallTests {
  @Test func accountsAreListedLockedAndDeleted() async throws {
    let http = try HTTPGateway()
    let gateway = http.gateway
    try await http.run { client in
      _ = try await client.register()
      let id = try #require(try await gateway.store.accounts(after: nil, limit: 1).first?.id)
      try await AdminTests.run(gateway) { admin in
        func list(_ path: String) async throws -> [[String: Any]] {
          let answer = try await admin.send(.get, path)
          #expect(answer.status == 200)
          return try #require(try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [[String: Any]])
        }
        #expect(try await list("/accounts").map { $0["id"] as? String } == [id])
        #expect(try await list("/accounts?after=\(id)").isEmpty)
        for name in ["%2B919999999999", "99999%2099999", id] {
          #expect(try await list("/accounts?name=\(name)").count == 1, "\(name)")
        }
        #expect(try await list("/accounts?name=nobody%40example.com").isEmpty)
        let one = try await admin.send(.get, "/accounts/\(id)")
        #expect(one["locked"] as? Bool == false)
        #expect(one.text.contains(#""kind":"phone","value":"+919999999999","verified_at":"2026-"#))
        #expect(try await list("/accounts/\(id)/sessions").count == 1)

        #expect(try await admin.send(.post, "/accounts/\(id)/lock").status == 204)
        #expect(try await list("/accounts/\(id)/sessions").isEmpty, "an operator's lock ends all sessions")
        gateway.clock.advance(by: .seconds(900))
        let refused = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)
        let flow = try #require(refused["id"] as? String)
        let begun = try await client.call(
          .post, "/api/auth/flows/\(flow)/begin", #"{"provider":"phone_otp","phone":"99999 99999"}"#)
        #expect(begun.status == 403 && begun["code"] as? String == "disabled")
        let unlocked = try await admin.send(.post, "/accounts/\(id)/unlock")
        #expect(
          unlocked.status == 200 && unlocked["was_locked"] as? Bool == true
            && (unlocked["locks"] as? [Any])?.isEmpty == true)
        #expect(
          try await client.call(
            .post, "/api/auth/flows/\(flow)/begin", #"{"provider":"phone_otp","phone":"99999 99999"}"#
          ).status == 200)

        _ = try await gateway.store.apply(
          [.putProviderRecord(account: id, "pin", sealed: [1])], at: gateway.clock.now())
        #expect(try await admin.send(.post, "/accounts/\(id)/disable").status == 204)
        let disabled = try #require(try await gateway.store.account(id))
        #expect(disabled.isLocked && disabled.credentials.isEmpty)

        #expect(try await admin.send(.delete, "/accounts/\(id)").status == 204)
        for path in ["/accounts/\(id)"] { #expect(try await admin.send(.get, path).problem() == "not_found") }
        #expect(try await admin.send(.delete, "/accounts/\(id)").problem() == "not_found")
        #expect(try await admin.send(.post, "/accounts/\(id)/lock").problem() == "not_found")
        #expect(try await gateway.store.accounts(after: nil, limit: 10).isEmpty)
      }
    }
  }

  /// Attack: a page on another site makes the operator's browser delete accounts.
  @Test func anotherSitesPageIsRefused() async throws {
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let answer = try await admin.send(.post, "/accounts/ac_1/lock", headers: [("Origin", "https://evil.example")])
      #expect(answer.status == 403)
    }
  }
}
