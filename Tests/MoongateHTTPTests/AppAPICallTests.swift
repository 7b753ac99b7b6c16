import HTTPTypes
import MoongateAppAPI
import MoongateCore
import MoongateHTTP
import MoongateTesting
import PhoneOTP
import Testing

/// The calls of the App API (v1) for a phone number.
@Suite struct AppAPICallTests {
  @Test(arguments: ["", "/"]) func registerSignInAndOut(slash: String) async throws {
    try await HTTPGateway().run { client in
      let sent = try await client.call(.post, "/api/auth/send-otp\(slash)", #"{"phone_number":"+919999999999"}"#)
      #expect(sent.status == 200)
      #expect(sent.json.keys.sorted() == ["expires_in", "resend_in", "verification_id"])
      #expect(sent["expires_in"] as? Int == 600)
      #expect(sent["resend_in"] as? Int == 60)
      let id = try #require(sent["verification_id"] as? String)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(
        .post, "/api/auth/verify-otp\(slash)", #"{"verification_id":"\#(id)","code":"\#(code)"}"#)
      #expect(done.status == 200)
      let user = try #require(done["user"] as? [String: Any])
      #expect(user["id"] is String)
      #expect(user["is_new_user"] as? Bool == true)
      #expect(user["account_type"] as? String == "free")
      let token = try #require(done["token"] as? String)
      #expect(
        try await client.call(.post, "/api/auth/logout\(slash)", "{}", headers: [("Authorization", "Bearer \(token)")])
          .status == 204)
      #expect(
        try await client.call(.post, "/api/auth/logout\(slash)", "{}", headers: [("Authorization", "Bearer \(token)")])
          .problem() == "unauthenticated"
      )
    }
  }

  @Test(
    arguments: [
      (#"{"phone_number":"+919999999999","flow":"login"}"#, 404, "account_not_found", nil),
      (#"{"phone_number":"12","flow":"enter"}"#, 422, "invalid_phone", "phone_number"),
      (#"{}"#, 422, "invalid_input", "phone_number"), (#"{"phone_number":12}"#, 422, "invalid_input", "phone_number"),
      (#"{"phone_number":"+919999999999","flow":"step_up"}"#, 422, "invalid_input", "flow"),
      (#"{"phone_number":"+919999999999","region":"QQ"}"#, 422, "invalid_input", "region"),
    ] as [(String, Int, String, String?)])
  func refusals(_ body: String, _ status: Int, _ code: String, _ field: String?) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.post, "/api/auth/send-otp", body)
      #expect(answer.status == status)
      #expect(answer.problem() == code)
      #expect(answer["field"] as? String == field)
    }
  }

  /// If registration is closed, apps learn it. Users who have an account sign in as before, and nothing suggests to
  /// others that they register.
  @Test func closedRegistration() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      var closed = TestGeneration.gateway(for: [PhoneOTP()])
      let names = closed.flows.values.filter(\.isForNewAccounts).map(\.name)
      closed.flows = closed.flows.filter { !names.contains($0.key) }
      closed.closedRegistrations = Set(names)
      client.gateway.generations.activate(closed, at: client.gateway.clock.now())
      for (path, body) in [
        ("flows", #"{"flow":"register"}"#),
        ("send-otp", #"{"phone_number":"+919999999998","flow":"register"}"#),
        ("register", #"{"email":"a@b.test","password":"correct horse 9","first_name":"A","last_name":"B"}"#),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "registration_closed", "\(path) \(body): \(answer.text)")
      }
      #expect(try await client.call(.post, "/api/auth/flows", #"{"flow":"nothing"}"#).problem() == "invalid_input")
      for flow in ["", #","flow":"enter""#] {
        let stranger = try await client.call(
          .post, "/api/auth/send-otp", #"{"phone_number":"+919999999998"\#(flow)}"#)
        #expect(stranger.problem() == "account_not_found" && stranger.detail == "No account found.")
      }
      let sent = try await client.call(.post, "/api/auth/send-otp", #"{"phone_number":"+919999999999"}"#)
      let id = try #require(sent["verification_id"] as? String)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(
        .post, "/api/auth/verify-otp", #"{"verification_id":"\#(id)","code":"\#(code)"}"#)
      #expect(done.status == 200 && done["token"] is String)
    }
  }

  /// A folder without any file of a flow that creates accounts. Apps ask for registration by calls of their own, and
  /// any other flow that does not exist is one that the app must not name.
  @Test func registrationWithoutAFlowIsClosed() async throws {
    try await HTTPGateway { generation in
      generation.flows = generation.flows.filter { !$0.value.isForNewAccounts }
    }.run { client in
      for (path, body) in [
        ("send-otp", #"{"phone_number":"+919999999998","flow":"register"}"#),
        ("register", #"{"email":"a@b.test","password":"correct horse 9","first_name":"A","last_name":"B"}"#),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "registration_closed", "\(path): \(answer.text)")
      }
      let unknown = try await client.call(.post, "/api/auth/flows", #"{"flow":"register"}"#)
      #expect(unknown.status == 422 && unknown.problem() == "invalid_input")
    }
  }

  /// Without `app_api = true`, its paths are unknown. Nothing describes them, and no page uses them.
  @Test func withoutTheSettingNothingOfItIsThere() async throws {
    try await HTTPGateway(hasAppAPI: false).run { client in
      let description = try await client.call(.get, "/api/auth/openapi.json").text
      for name in ["\"Calls for apps\"", "\"User\"", "\"ClientEventName\""] {
        #expect(!description.contains(name), "\(name)")
      }
      for call in AppAPI.calls {
        let path = String(call.address.drop { $0 != "/" })
        #expect(!description.contains("\"\(path)\""), "\(path)")
        for target in [path, path + "/"] {
          let answers = [try await client.call(.get, target), try await client.call(.post, target, "{}")]
          #expect(answers.allSatisfy { $0.status == 404 && $0.problem() == "not_found" }, "\(target)")
        }
      }
      let page = try await client.send(.get, "/auth/login")
      #expect(page.status == 200 && !page.text.contains("data-events"))
    }
    try await HTTPGateway().run { client in
      #expect(try await client.call(.get, "/api/auth/openapi.json").text.contains(#""name":"Calls for apps""#))
      let page = try await client.send(.get, "/auth/login")
      #expect(page.text.contains(#"data-events="/api/auth/client-events""#))
    }
  }

  /// Attack: accounts.lua closes registration, and an app registers all the same: by a number, by an address with a
  /// password, or by a code that was sent before.
  @Test func registrationClosedByAccounts() async throws {
    let http = try HTTPGateway()
    try await http.run { client in
      let early = try await client.call(
        .post, "/api/auth/send-otp", #"{"phone_number":"+919999999997","flow":"register"}"#)
      let id = try #require(early["verification_id"] as? String)
      let code = try #require(client.gateway.code(for: "+919999999997"))
      var closed = TestGeneration.gateway(for: [PhoneOTP()])
      closed.accounts.registration = .closed
      client.gateway.generations.activate(closed, at: client.gateway.clock.now())
      for (path, body) in [
        ("flows", #"{"flow":"register"}"#),
        ("send-otp", #"{"phone_number":"+919999999998","flow":"register"}"#),
        ("send-otp", #"{"phone_number":"+919999999998","flow":"enter"}"#),
        ("register", #"{"email":"a@b.test","password":"correct horse 9","first_name":"A","last_name":"B"}"#),
        ("verify-otp", #"{"verification_id":"\#(id)","code":"\#(code)"}"#),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "registration_closed", "\(path) \(body): \(answer.text)")
      }
      #expect(try await client.gateway.store.accounts(after: nil, limit: 1).isEmpty)
    }
  }

  @Test func theSameLimitsAsEverywhere() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      #expect(
        try await client.call(.post, "/api/auth/send-otp", #"{"phone_number":"9999999999","flow":"register"}"#)
          .problem() == "already_registered")
      client.gateway.clock.advance(by: .seconds(900))
      let id = try #require(
        try await client.call(.post, "/api/auth/send-otp", #"{"phone_number":"9999999999"}"#)["verification_id"]
          as? String)
      #expect(
        try await client.call(.post, "/api/auth/send-otp", #"{"phone_number":"9999999999"}"#).problem()
          == "resend_too_soon")
      let right = try #require(client.gateway.code(for: "+919999999999"))
      let wrong = right == "000000" ? "000001" : "000000"
      for left in [4, 3, 2, 1] {
        let answer = try await client.call(
          .post, "/api/auth/verify-otp", #"{"verification_id":"\#(id)","code":"\#(wrong)"}"#)
        #expect(answer.problem() == "invalid_code")
        #expect(answer["attempts_left"] as? Int == left)
      }
      #expect(
        try await client.call(.post, "/api/auth/verify-otp", #"{"verification_id":"\#(id)","code":"\#(wrong)"}"#)
          .problem() == "too_many_attempts")
      #expect(
        try await client.call(.post, "/api/auth/verify-otp", #"{"verification_id":"fl_x","code":"\#(wrong)"}"#)
          .problem() == "flow_not_found")
      #expect(
        try await client.call(.post, "/api/auth/verify-otp", #"{"verification_id":7,"code":"\#(wrong)"}"#)["field"]
          as? String == "verification_id")
    }
  }

  @Test func inABrowserItSignsIn() async throws {
    try await HTTPGateway().run { client in
      let origin = ("Origin", "http://localhost:8080")
      let sent = try await client.call(
        .post, "/api/auth/send-otp", #"{"phone_number":"9999999999"}"#, headers: [origin])
      let cookie = try #require(sent.setCookies.first?.prefix { $0 != ";" })
      let id = try #require(sent["verification_id"] as? String)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let body = #"{"verification_id":"\#(id)","code":"\#(code)"}"#
      #expect(
        try await client.call(.post, "/api/auth/verify-otp", body, headers: [origin]).problem() == "flow_not_found")
      let done = try await client.call(
        .post, "/api/auth/verify-otp", body, headers: [origin, ("Cookie", String(cookie))])
      #expect(done.setCookies.first?.hasPrefix("moongate=") == true)
    }
  }
}
