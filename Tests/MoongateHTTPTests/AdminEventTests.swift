import Foundation
import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// The admin listener's calls for the audit trail and locks.
@Suite struct AdminEventTests {
  /// Runs the test with an account that is locked after five wrong codes.
  private func locked(_ body: @escaping @Sendable (_ admin: Client, _ account: String) async throws -> Void)
    async throws
  {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      let id = try #require(try await http.gateway.store.accounts(after: nil, limit: 1).first?.id)
      client.gateway.clock.advance(by: .seconds(900))
      let flow = try await client.begin()
      for _ in 0..<5 {
        let code = client.gateway.code(for: "+919999999999") == "000000" ? "000001" : "000000"
        _ = try await client.call(.post, "/api/auth/flows/\(flow)/submit", #"{"code":"\#(code)"}"#)
      }
      try await AdminTests.run(http.gateway) { admin in try await body(admin, id) }
    }
  }

  private func list(_ admin: Client, _ path: String) async throws -> [[String: Any]] {
    let answer = try await admin.send(.get, path)
    #expect(answer.status == 200, "\(path): \(answer.text)")
    return try #require(try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [[String: Any]])
  }

  @Test func locksAreListedByPersonAndLiftedByNumber() async throws {
    try await locked { admin, id in
      let lock = try #require(try await list(admin, "/locks").first)
      #expect(
        lock["account"] as? String == id && (lock["identifier"] as? [String: String])?["value"] == "+919999999999")
      #expect(
        lock["failures"] as? Int == 5 && lock["remaining"] as? Int == 900 && lock["per"] as? String == "identifier")
      #expect((lock["sources"] as? [[String: Any]])?.map { $0["count"] as? Int } == [5])
      let overview = try await admin.send(.get, "/accounts/\(id)")
      #expect((overview["locks"] as? [Any])?.count == 1 && (overview["sign_ins"] as? [Any])?.count == 1)
      #expect((overview["devices"] as? [Any])?.count == 1 && (overview["factors"] as? [Any])?.isEmpty == true)
      #expect(try await admin.send(.delete, "/locks/%2B912222222222").status == 404)
      #expect(try await admin.send(.delete, "/locks/99999%2099999").status == 204)
      #expect(try await list(admin, "/locks").isEmpty)
      let lifted = try #require(try await list(admin, "/events?kind=lock_lifted").first)
      #expect(lifted["account"] as? String == id)
    }
  }

  @Test func unlockingEndsLimitsLocksToo() async throws {
    try await locked { admin, id in
      let answer = try await admin.send(.post, "/accounts/%2B919999999999/unlock")
      #expect(
        answer["account"] as? String == id && answer["was_locked"] as? Bool == false
          && (answer["locks"] as? [Any])?.count == 1)
      let again = try await admin.send(.post, "/accounts/\(id)/unlock")
      #expect((again["locks"] as? [Any])?.isEmpty == true)
    }
  }

  @Test func eventsAreFoundByPersonAndKind() async throws {
    try await locked { admin, id in
      let own = try await list(admin, "/events?account=\(id)&kind=refused")
      #expect(
        own.count == 5 && own.allSatisfy { $0["account"] as? String == id },
        "refusals name their account")
      #expect(try await list(admin, "/events?account=%2B919999999999&kind=refused,locked").count == 6)
      #expect(try await list(admin, "/events?identifier=99999%2099999&kind=refused").count == 5)
      #expect(try await list(admin, "/events?account=ac_nobody").isEmpty)
      #expect(try await list(admin, "/events?identifier=%2B912222222222").isEmpty)
      let decision = try #require(own.last?["id"] as? String)
      #expect(try await list(admin, "/events?decision=\(decision)").map { $0["id"] as? String } == [decision])
      #expect(try await list(admin, "/events?since=1s&kind=refused").count == 5)
      #expect(try await admin.send(.get, "/events?since=2030-01-01T00:00:00Z").status == 400)
      #expect(try await list(admin, "/events?limit=2").count == 2)
      #expect(try await admin.send(.get, "/events?account=").status == 400, "an empty name is invalid")
    }
  }

  @Test(arguments: [
    "acount=ac_1", "kinds=refused", "kind=lockd", "kind=refused,", "since=yesterday", "since=2026-11-20", "since=-1d",
    "decision=1", "limit=0", "limit=300001",
    "limit=x", "follow=yes", "account=a&account=b", "x",
  ]) func unknownParametersAreRefused(_ query: String) async throws {
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let answer = try await admin.send(.get, "/events?\(query)")
      #expect(answer.problem() == "bad_request" && answer.status == 400, "\(answer.text)")
    }
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let answer = try await admin.send(.get, "/accounts?nam=x")
      #expect(answer.status == 400)
    }
  }

  @Test func exportOfAUsersDataIsAudited() async throws {
    try await locked { admin, id in
      let export = try await admin.send(.get, "/accounts/\(id)/export")
      #expect(export.status == 200 && (export["account"] as? [String: Any])?["id"] as? String == id)
      #expect(try await list(admin, "/events?kind=account_exported").map { $0["account"] as? String } == [id])
    }
  }
}

/// The admin listener's `openapi.json`. Every test of the listener checks the answers it gets against the document.
@Suite struct AdminDescriptionTests {
  static let calls: Set<String> = [
    "get /healthz", "get /readyz", "get /metrics", "get /policy", "get /policy/values", "post /policy/reload",
    "post /upgrade", "post /policy/shadow",
    "post /policy/shadow/promote", "delete /policy/shadow", "get /locks", "delete /locks/{name}", "get /accounts",
    "get /accounts/{name}", "delete /accounts/{name}", "get /accounts/{name}/sessions",
    "delete /accounts/{name}/sessions", "get /accounts/{name}/devices", "delete /accounts/{name}/devices/{device}",
    "get /accounts/{name}/export", "post /accounts/{name}/lock", "post /accounts/{name}/unlock",
    "post /accounts/{name}/disable",
    "delete /accounts/{name}/factors/{provider}", "get /events", "get /decisions/{decision}", "get /outbox",
    "get /openapi.json",
    "get /groups", "get /groups/{group}", "put /groups/{group}/members/{name}", "delete /groups/{group}/members/{name}",
    "get /invitations", "post /invitations", "delete /invitations/{invitation}",
    "get /tokens", "post /tokens", "post /tokens/{name}/rotate", "delete /tokens/{name}",
  ]

  @Test func listsEveryCall() async throws {
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let description = try APIDescription(try await admin.send(.get, "/openapi.json").text)
      #expect(Set(description.paths.flatMap { path, methods in methods.keys.map { "\($0) \(path)" } }) == Self.calls)
      var names: Set<String> = []
      for (path, methods) in description.paths {
        let there = try await admin.send(.patch, path.replacing(/\{[a-z]+\}/, with: "x"))
        #expect(there.status == 405)
        #expect(
          Set((there.header("Allow") ?? "").lowercased().components(separatedBy: ", ")).subtracting(["head"])
            == Set(methods.keys), "\(path)")
        for operation in methods.values {
          #expect(names.insert(try #require(operation["operationId"] as? String)).inserted)
        }
      }
    }
  }
}
