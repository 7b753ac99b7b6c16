import Foundation
import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// The admin listener's calls for invitations.
@Suite struct AdminInvitationTests {
  @Test func invitationsAreMadeListedAndRevoked() async throws {
    let http = try HTTPGateway {
      $0.accounts.registration = .invited()
      $0.accounts.groups = GroupName(rawValue: "staff").map { [$0: .members] } ?? [:]
    }
    try await http.run { client in
      try await AdminTests.run(http.gateway) { admin in
        let made = try await admin.call(
          .post, "/invitations", #"{"recipient":"Asha@Example.com","groups":["staff"],"expires":"3d"}"#)
        #expect(made.status == 201 && made["recipient"] as? String == "asha@example.com", "\(made.text)")
        let (id, code) = (try #require(made["id"] as? String), try #require(made["code"] as? String))
        let listed = try await admin.send(.get, "/invitations")
        #expect(listed.status == 200 && listed.text.contains(id) && !listed.text.contains(code))
        let other = try await admin.call(.post, "/invitations", "{}")
        let flow = try await client.call(
          .post, "/api/auth/flows", #"{"flow":"register","invitation":"\#(try #require(other["code"] as? String))"}"#)
        #expect(flow.status == 201, "\(flow.text)")
        #expect(try await admin.send(.delete, "/invitations/\(id)").status == 204)
        #expect(try await admin.send(.delete, "/invitations/\(id)").status == 404)
        #expect(try await !admin.send(.get, "/invitations").text.contains(id))
        let events = try await admin.send(.get, "/events?kind=invitation_created,invitation_revoked").text
        #expect(events.contains(id) && !events.contains(code) && !events.lowercased().contains("asha@"))
      }
    }
  }

  @Test(arguments: [
    (#"{"recipient":"asha"}"#, "recipient"), (#"{"groups":["none"]}"#, "groups"), (#"{"expires":"30s"}"#, "expires"),
    (#"{"expires":"91d"}"#, "expires"), (#"{"groups":"staff"}"#, "groups"),
  ]) func invalidInputIsRefused(_ body: String, _ field: String) async throws {
    try await AdminTests.run(try AdminTests.gateway()) { admin in
      let answer = try await admin.call(.post, "/invitations", body)
      #expect(answer.status == 422 && answer["field"] as? String == field, "\(answer.text)")
    }
  }
}
