import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

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

        // An account whose import is not complete is opened by nothing else.
        let now = gateway.clock.now()
        let lease = try #require(try await gateway.store.beginImport(at: now))
        let pending = StoredImport(account: Account(id: "ac_pending", createdAt: now, lastSeenAt: now), records: [])
        _ = try await gateway.store.apply([.requireLease(lease), .importAccount(pending)], at: now)
        let refusedUnlock = try await admin.send(.post, "/accounts/ac_pending/unlock")
        #expect(refusedUnlock.problem() == "disabled" && refusedUnlock.text.contains("import"))
        #expect(try await admin.send(.delete, "/accounts/ac_pending").status == 204)

        #expect(try await admin.send(.delete, "/accounts/\(id)").status == 204)
        for path in ["/accounts/\(id)"] { #expect(try await admin.send(.get, path).problem() == "not_found") }
        #expect(try await admin.send(.delete, "/accounts/\(id)").problem() == "not_found")
        #expect(try await admin.send(.post, "/accounts/\(id)/lock").problem() == "not_found")
        #expect(try await gateway.store.accounts(after: nil, limit: 10).isEmpty)
      }
    }
  }

  /// A refusal by an operator's lock names the account, the flow and the provider, is in the account's history, and
  /// says who locked the account, when and why.
  @Test func lockExplainsItsRefusals() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      let id = try #require(try await http.gateway.store.accounts(after: nil, limit: 1).first?.id)
      try await AdminTests.run(http.gateway) { admin in
        #expect(try await admin.send(.post, "/accounts/\(id)/lock?reason=reported%20stolen").status == 204)
        #expect(try await admin.send(.post, "/accounts/\(id)/lock?resaon=x").status == 400)
        let locked = http.gateway.clock.now().text
        http.gateway.clock.advance(by: .seconds(900))
        let flow = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)
        let begun = try await client.call(
          .post, "/api/auth/flows/\(try #require(flow["id"] as? String))/begin",
          #"{"provider":"phone_otp","phone":"99999 99999"}"#)
        #expect(begun.problem() == "disabled")
        #expect(!begun.text.contains("operator_lock") && !begun.text.contains("stolen"), "clients do not learn it")
        let decision = try #require(begun["decision_id"] as? String)
        let found = try await admin.send(.get, "/decisions/\(decision)")
        #expect(
          found["account"] as? String == id && found["flow"] as? String == "login"
            && found["provider"] as? String == "phone_otp" && found["identifier"] is String, "\(found.text)")
        let detail = try #require(found["detail"] as? [String: String])
        #expect(detail["cause"] == "operator_lock" && detail["locked_reason"] == "reported stolen")
        #expect(detail["locked_by"]?.contains("admin listener") ?? false && detail["locked_at"] == locked)
        let history = try await admin.send(.get, "/events?account=\(id)&kind=refused")
        #expect(history.text.contains(decision))
      }
    }
  }

  /// A session that has ended says so, and by what it ended.
  @Test func endedSessionIsExplained() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      let bearer = [("Authorization", "Bearer \(try await client.register().token)")]
      let id = try #require(try await http.gateway.store.accounts(after: nil, limit: 1).first?.id)
      try await AdminTests.run(http.gateway) { admin in
        func explained(_ headers: [(String, String)]) async throws -> [String: String] {
          let refused = try await client.call(.get, "/api/auth/session", headers: headers)
          #expect(refused.problem() == "unauthenticated")
          let decision = try #require(refused["decision_id"] as? String)
          // The refusal itself, which has the same token, is then in the store.
          try await http.gateway.audit.flush()
          return try #require(try await admin.send(.get, "/decisions/\(decision)")["detail"] as? [String: String])
        }
        #expect(try await explained([])["cause"] == "no_session")
        let foreign = [("Authorization", "Bearer \(String(repeating: "x", count: 43))")]
        #expect(try await explained(foreign)["session_end"]?.hasPrefix("not known") ?? false)
        #expect(try await admin.send(.delete, "/accounts/\(id)/sessions").status == 204)
        let detail = try await explained(bearer)
        #expect(detail["cause"] == "session_ended" && detail["session_account"] == id, "\(detail)")
        #expect(detail["session_end"]?.contains("session_ended by admin listener") ?? false, "\(detail)")
      }
    }
  }

  /// The guide lists every call of the admin listener.
  @Test func everyCallIsInTheGuide() throws {
    let root = #filePath.components(separatedBy: "/Tests/")[0]
    let guide = try String(contentsOfFile: root + "/Documentation/guides/admin-access.md", encoding: .utf8)
    let plain = { (text: String) in text.replacing(/\{[a-z]+\}/, with: "{}") }
    let lines = plain(guide).split(separator: "\n")
    for operation in Operation.admin {
      let isListed = lines.contains { line in
        line.contains(operation.method.rawValue)
          && line.matches(of: /\/[a-z{}.\/]+/).contains { $0.output == plain(operation.path) }
      }
      #expect(isListed, "\(operation.method.rawValue) \(operation.path)")
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
