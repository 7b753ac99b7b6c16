import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// `POST /api/auth/client-events`: accepts a fixed list of events and records them in the audit trail.
@Suite struct ClientEventTests {
  private func noted(_ client: Client) async throws -> [AuditEvent] {
    try await client.gateway.audit.events(limit: 1000).filter { $0.kind == .client }.reversed()
  }

  @Test func reachTheAuditTrailWithAKeyedHashInPlaceOfTheNumber() async throws {
    try await HTTPGateway().run { client in
      let id = try await client.begin("register")
      let body = """
        {"flow":"\(id)","events":[{"name":"screen_view","screen_name":"otp_verification","phone_number":"+919999999999"},
        {"name":"otp_digit_entered","digit_position":0,"total_entered":1},{"name":"otp_verification_failed","error":"invalid_code","attempt_number":2},
        {"name":"otp_screen_back","confirmed":false},{"name":"login_otp_requested","phone_country_code":"+91"}]}
        """
      let answer = try await client.call(.post, "/api/auth/client-events", body)
      #expect(answer.status == 204, "\(answer.text)")
      let events = try await noted(client)
      #expect(
        events.map(\.detail) == [
          ["name": "screen_view", "screen_name": "otp_verification"],
          ["name": "otp_digit_entered", "digit_position": "0", "total_entered": "1"],
          ["name": "otp_verification_failed", "error": "invalid_code", "attempt_number": "2"],
          ["name": "otp_screen_back", "confirmed": "false"],
          ["name": "login_otp_requested", "phone_country_code": "+91"],
        ])
      #expect(
        events.allSatisfy { $0.flow == "register" && $0.identifier == client.gateway.keys.logHash("+919999999999") })
      #expect(!events.contains { "\($0)".contains("9999999999") })
    }
  }

  @Test(
    arguments: [
      #"{"name":"anything"}"#, #"{"name":7}"#, "{}", "7", #"{"name":"otp_digit_entered","digit_position":"5"}"#,
      #"{"name":"otp_digit_entered","digit_position":-1}"#, #"{"name":"otp_digit_entered","digit_position":1e9}"#,
      #"{"name":"otp_verification_failed","error":"+919999999999"}"#,
      #"{"name":"login_otp_requested","phone_country_code":"+919999999999"}"#,
      #"{"name":"screen_view","screen_name":"<script>"}"#, #"{"name":"otp_screen_back","confirmed":1}"#,
    ])
  func areOfAClosedList(_ event: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(
        .post, "/api/auth/client-events", #"{"events":[{"name":"otp_auto_verify_triggered"},\#(event)]}"#)
      #expect(answer.problem() == "invalid_input")
      #expect(answer["field"] as? String == "events[1]")
      #expect(try await noted(client).isEmpty)
    }
  }

  @Test func areBounded() async throws {
    try await HTTPGateway().run { client in
      let batch = { (count: Int) in
        #"{"events":[\#(Array(repeating: #"{"name":"otp_auto_verify_triggered"}"#, count: count).joined(separator: ","))]}"#
      }
      #expect(try await client.call(.post, "/api/auth/client-events", batch(51)).problem() == "invalid_input")
      for _ in 0..<4 { #expect(try await client.call(.post, "/api/auth/client-events", batch(50)).status == 204) }
      let refused = try await client.call(.post, "/api/auth/client-events", batch(10))
      #expect(refused.problem() == "rate_limited")
      #expect(refused["retry_after"] as? Int == 5)
      #expect(refused.header("Retry-After") == "5")
      #expect(try await client.call(.post, "/api/auth/client-events", #"{"events":[]}"#).status == 429)
      client.gateway.clock.advance(by: .seconds(5))
      #expect(try await client.call(.post, "/api/auth/client-events", batch(10)).status == 204)
      #expect(try await noted(client).count == 210)
    }
  }

  @Test func eventsForAForeignFlowRevealNothing() async throws {
    try await HTTPGateway().run { client in
      let created = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"register"}"#, headers: [("Origin", "http://localhost:8080")])
      let id = try #require(created["id"] as? String)
      for flow in [id, "fl_none"] {
        let body = #"{"flow":"\#(flow)","events":[{"name":"edit_phone_tapped"}]}"#
        #expect(try await client.call(.post, "/api/auth/client-events", body).status == 204)
      }
      #expect(try await noted(client).allSatisfy { $0.flow == nil && $0.identifier == nil })
      #expect(
        try await client.call(.post, "/api/auth/client-events", #"{"flow":1,"events":[]}"#)["field"] as? String
          == "flow")
    }
  }
}
