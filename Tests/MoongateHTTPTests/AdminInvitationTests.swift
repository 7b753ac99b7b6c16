import Foundation
import HTTPTypes
import MoongateCore
import MoongateDelivery
import MoongateSDK
import MoongateTesting
import PhoneOTP
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

  /// A sent invitation is answered without its code: only the message has it.
  @Test func invitationsAreSent() async throws {
    let http = try HTTPGateway { $0.accounts.registration = .invited() }
    try await http.run { client in
      try await AdminTests.run(http.gateway) { admin in
        let made = try await admin.call(
          .post, "/invitations?as=ravi", #"{"recipient":"+919999999999","send":true}"#)
        #expect(made.status == 201 && made["sent"] as? Bool == true, "\(made.text)")
        #expect(made["code"] == nil && made["link"] == nil && !made.text.contains("mgi_"))
        let message = try #require(http.gateway.outbox.entries.first?.message)
        let code = try #require(message.text.firstMatch(of: /code=(mgi_[A-Za-z0-9_\-]{43})/)).1
        #expect(message.to == "+919999999999" && message.code == nil)
        let flow = try await client.call(
          .post, "/api/auth/flows", #"{"flow":"register","invitation":"\#(code)"}"#)
        #expect(flow.status == 201, "\(flow.text)")
        let id = try #require(made["id"] as? String)
        let events = try await admin.send(.get, "/events?kind=invitation_sent").text
        #expect(events.contains(id) && events.contains("ravi") && !events.contains(code))
        #expect(!http.gateway.log.lines.contains { $0.contains(code) })
      }
    }
  }

  /// Attack: an admin token sends message after message to one number.
  @Test func oneNumberGetsFew() async throws {
    let gateway = try AdminTests.gateway()
    try await AdminTests.run(gateway) { admin in
      let body = #"{"recipient":"+919999999999","send":true}"#
      for _ in 0..<FlowEngine.maxInvitationsToOne {
        #expect(try await admin.call(.post, "/invitations", body).status == 201)
      }
      let refused = try await admin.call(.post, "/invitations?as=ravi", body)
      #expect(refused.problem() == "rate_limited" && refused.header("Retry-After") != nil, "\(refused.text)")
      #expect(refused.detail?.contains("without `--send`") == true)
      #expect(try await admin.send(.get, "/events?kind=refused").text.contains("ravi"))
      #expect(gateway.sent == FlowEngine.maxInvitationsToOne)
    }
  }

  /// Attack: a fault of the carrier loses the only link. The answer has it, and the operator can revoke the invitation.
  @Test func anUndeliveredInvitationIsShown() async throws {
    let phone = PhoneOTP()
    var generation = TestGeneration.gateway(for: [phone])
    generation.gateway.providers[phone.descriptor.name] = ProviderSettings(deliveries: [
      "sms": .webhook(WebhookSettings(url: "https://sms.example.com/send"))
    ])
    try await AdminTests.run(try TestGateway(providers: [phone], generation: generation)) { admin in
      let made = try await admin.call(.post, "/invitations", #"{"recipient":"+919999999999","send":true}"#)
      #expect(made.status == 201 && made["sent"] as? Bool == false, "\(made.text)")
      #expect((made["link"] as? String)?.contains("/auth/invite?code=mgi_") == true)
      #expect((made["fault"] as? String)?.isEmpty == false)
      let id = try #require(made["id"] as? String)
      #expect(try await admin.send(.delete, "/invitations/\(id)").status == 204)
    }
  }

  /// Attack: an address with line ends adds a header to the mail.
  @Test(arguments: [
    (#"{"send":true}"#, "recipient"), (#"{"recipient":"+919999999999","send":"yes"}"#, "send"),
    (#"{"recipient":"asha@example.com","send":true}"#, "send"),
    (#"{"recipient":"+919999999999","language":"en"}"#, "language"),
    (#"{"recipient":"+919999999999","send":true,"language":"xx"}"#, "language"),
    (#"{"recipient":"asha@example.com\r\nBcc: x@evil.example","send":true}"#, "recipient"),
  ]) func nothingIsSentForInvalidInput(_ body: String, _ field: String) async throws {
    let gateway = try AdminTests.gateway()
    try await AdminTests.run(gateway) { admin in
      let answer = try await admin.call(.post, "/invitations", body)
      #expect(answer.status == 422 && answer["field"] as? String == field, "\(answer.text)")
      #expect(gateway.sent == 0)
      #expect(try await !admin.send(.get, "/invitations").text.contains("\"id\""))
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
