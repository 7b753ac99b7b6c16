import EmailCode
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import PIN
import Password
import PhoneOTP
import Testing

/// The calls of the App API (v1) for email, password and passcode.
@Suite struct AppAPIAccountTests {
  private func gateway(
    store: (any Store)? = nil, seed: UInt64 = 1, registration: RegistrationRule = .open
  ) throws -> HTTPGateway {
    let providers: [any Provider] = [PhoneOTP(), EmailCode(), PIN(), Password()]
    return try HTTPGateway(providers: providers, store: store, seed: seed) { generation in
      generation.accounts.registration = registration
      let phone = StepRule.test("phone_otp")
      let flows: [FlowDefinition] = [
        .test("login", account: .existing, steps: [phone]), .test("register", account: .new, steps: [phone]),
        .test("enter", account: .any, steps: [phone]),
        .test("register_email", account: .new, steps: [.test("password"), .test("email_code", isSkippable: true)]),
        .test("login_password", account: .existing, steps: [.test("password")]),
        .test("verify_email", account: .existing, steps: [.test("email_code", isSkippable: true)]),
        .test("pin_set", account: .existing, steps: [.test("pin")]),
        .test("pin_change", account: .existing, steps: [.test("pin")]),
        .test("pin_unlock", account: .existing, steps: [.test("pin")]),
        .test("pin_disable", account: .existing, steps: [.test("pin")]),
        .test("pin_reset", account: .existing, steps: [.test("email_code", "phone_otp"), .test("pin")]),
      ]
      generation.flows = Dictionary(uniqueKeysWithValues: flows.map { ($0.name, $0) })
      generation.policies["pin"] = .test(
        "pin", limits: [.test("verify", on: .verify, per: .account, max: 5, window: .seconds(86_400))])
      for name in ["email_code", "password"] {
        guard let provider = generation.policies.keys.first(where: { $0.rawValue == name }) else { continue }
        generation.policies[provider] = .test(provider, unknownAccount: .conceal)
      }
    }
  }

  private func bearer(_ token: String) -> [(String, String)] { [("Authorization", "Bearer \(token)")] }

  private static let ada =
    #"{"email":"Ada@Example.com","password":"correct horse battery","first_name":"Ada","last_name":"Lovelace"}"#

  /// Calls the API and updates the token if the answer contains a new one.
  private func call(_ client: Client, _ name: String, _ body: String, _ token: inout String) async throws -> Answer {
    let answer = try await client.call(.post, "/api/auth/\(name)", body, headers: bearer(token))
    if let fresh = answer["token"] as? String {
      #expect(fresh != token)
      #expect(try await client.call(.get, "/api/auth/session", headers: bearer(token)).status == 401)
      token = fresh
    }
    return answer
  }

  /// An invalid address is refused before the flow is looked up, so the answer does not reveal whether the flow exists.
  @Test func invalidAddressIsReportedBeforeTheFlow() async throws {
    try await gateway().run { client in
      for provider in ["password", "email_code"] {
        for (typed, code) in [("no address", "invalid_email"), ("a@example.com", "flow_not_found")] {
          let answer = try await client.call(
            .post, "/api/auth/flows/fl_none/begin", #"{"provider":"\#(provider)","email":"\#(typed)"}"#)
          #expect(answer.problem() == code)
        }
      }
    }
  }

  /// Attack: accounts.lua requires an invitation or an address of a domain, and an app registers without one, or by an
  /// address of the domain that it only claims.
  @Test(arguments: [[], ["b.test"]]) func registrationByInvitation(_ domains: [String]) async throws {
    try await gateway(registration: .invited(domains: Set(domains))).run { client in
      let code = InvitationCode(from: SystemRandom())
      let now = client.gateway.clock.now()
      let invitation = Invitation(
        id: "in_1", code: code.hash, identifier: nil, groups: [], createdAt: now, expiresAt: now + .seconds(600))
      _ = try await client.gateway.store.apply([.putInvitation(invitation)], at: now)
      let register = { (more: String) in
        #"{"email":"a@b.test","password":"correct horse 9","first_name":"A","last_name":"B"\#(more)}"#
      }
      for (path, body) in [
        ("send-otp", #"{"phone_number":"+919999999998","flow":"register"}"#),
        ("send-otp", #"{"phone_number":"+919999999998","flow":"enter"}"#), ("register", register("")),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "invitation_required", "\(path) \(body): \(answer.text)")
      }
      for (path, body) in [
        ("flows", #"{"flow":"register","invitation":"mgi_none"}"#), ("register", register(#","invitation":"x""#)),
        ("send-otp", #"{"phone_number":"+919999999998","invitation":"x"}"#),
      ] {
        let answer = try await client.call(.post, "/api/auth/\(path)", body)
        #expect(answer.status == 403 && answer.problem() == "invitation_invalid", "\(path) \(body): \(answer.text)")
      }
      #expect(try await client.gateway.store.accounts(after: nil, limit: 1).isEmpty)
      let flow = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"register","invitation":"\#(code.secret.reveal())"}"#)
      #expect(flow.status == 201)
      let made = try await client.call(
        .post, "/api/auth/register", register(#","invitation":"\#(code.secret.reveal())""#))
      #expect(made.status == 201, "\(made.text)")
      #expect(try await client.gateway.store.invitation(code.hash)?.ended == .used)
    }
  }

  @Test func registerVerifyAndSignIn() async throws {
    try await gateway().run { client in
      let made = try await client.call(.post, "/api/auth/register/", Self.ada)
      #expect(made.status == 201, "\(made.text)")
      let user = try #require(made["user"] as? [String: Any])
      #expect(user["email"] as? String == "ada@example.com")
      #expect(user["first_name"] as? String == "Ada")
      #expect(user["is_email_verified"] as? Bool == false)
      #expect(user["account_type"] as? String == "free")
      var token = try #require(made["token"] as? String)
      await client.gateway.engine.deliveriesEnd()
      let code = try #require(client.gateway.code(for: "ada@example.com"))
      client.gateway.clock.advance(by: .seconds(1))
      let wrong = try await call(
        client, "verify-email", #"{"code":"\#(code == "000000" ? "000001" : "000000")"}"#, &token)
      #expect(wrong.problem() == "invalid_code")
      let verified = try await call(client, "verify-email/", #"{"code":"\#(code)"}"#, &token)
      #expect(verified.status == 200, "\(verified.text)")
      #expect(verified["message"] as? String == "Success")
      #expect((verified["user"] as? [String: Any])?["is_email_verified"] as? Bool == true)
      #expect(try await client.call(.get, "/api/auth/session", headers: bearer(token)).status == 200)

      let back = try await client.call(
        .post, "/api/auth/login", #"{"email":"ada@example.com","password":"correct horse battery"}"#)
      #expect(back.status == 200, "\(back.text)")
      #expect((back["user"] as? [String: Any])?["is_email_verified"] as? Bool == true)
      let refused = try await client.call(
        .post, "/api/auth/login", #"{"email":"ada@example.com","password":"wrong horse battery"}"#)
      #expect(refused.problem() == "invalid_password")
      let unknown = try await client.call(
        .post, "/api/auth/login", #"{"email":"bob@example.com","password":"wrong horse battery"}"#)
      #expect(unknown.problem() == "invalid_password")
    }
  }

  @Test func anotherVerificationMail() async throws {
    try await gateway().run { client in
      let made = try await client.call(.post, "/api/auth/register", Self.ada)
      let token = try #require(made["token"] as? String)
      await client.gateway.engine.deliveriesEnd()
      #expect(client.gateway.sent == 1)
      let ask = #"{"email":"ada@example.com"}"#
      #expect(
        try await client.call(.post, "/api/auth/resend-verification", ask, headers: bearer(token)).problem()
          == "resend_too_soon")
      // The answer does not reveal whether the address is registered.
      for address in ["bob@example.com", "ada@example.com"] {
        let answer = try await client.call(.post, "/api/auth/resend-verification", #"{"email":"\#(address)"}"#)
        #expect(answer.status == 200)
        #expect(answer["message"] as? String == "Verification email sent")
      }
      #expect(client.gateway.sent == 1)
      client.gateway.clock.advance(by: .seconds(60))
      #expect(try await client.call(.post, "/api/auth/resend-verification/", ask, headers: bearer(token)).status == 200)
      await client.gateway.engine.deliveriesEnd()
      #expect(client.gateway.sent == 2)
      client.gateway.clock.advance(by: .seconds(120))
      // Without a session the mail is sent to the address, and its code works in the app that registered it.
      #expect(try await client.call(.post, "/api/auth/resend-verification", ask).status == 200)
      await client.gateway.engine.deliveriesEnd()
      #expect(client.gateway.sent == 3)
      let code = try #require(client.gateway.code(for: "ada@example.com"))
      let verified = try await client.call(
        .post, "/api/auth/verify-email", #"{"code":"\#(code)"}"#, headers: bearer(token))
      #expect(verified.status == 200, "\(verified.text)")
      let fresh = try #require(verified["token"] as? String)
      client.gateway.clock.advance(by: .seconds(900))
      #expect(try await client.call(.post, "/api/auth/resend-verification", ask, headers: bearer(fresh)).status == 200)
      #expect(try await client.call(.post, "/api/auth/resend-verification", ask).status == 200)
      await client.gateway.engine.deliveriesEnd()
      #expect(client.gateway.sent == 3)
      #expect(
        try await client.call(.post, "/api/auth/resend-verification", #"{"email":"x"}"#).problem() == "invalid_email")
    }
  }

  @Test func passcodeFromSetToOff() async throws {
    try await gateway().run { client in
      var token = try await client.register().token
      #expect(try await call(client, "verify-passcode", #"{"passcode":"739164"}"#, &token).problem() == "no_pin")
      let weak = try await call(client, "set-passcode", #"{"passcode":"123456"}"#, &token)
      #expect(weak.problem() == "weak_pin")
      #expect(weak["field"] as? String == "passcode")
      let set = try await call(client, "set-passcode/", #"{"passcode":"739164"}"#, &token)
      #expect(set.status == 200, "\(set.text)")
      #expect(set["message"] as? String == "Passcode set")
      #expect(try await call(client, "set-passcode", #"{"passcode":"739165"}"#, &token).problem() == "already_set")
      let wrong = try await call(client, "verify-passcode", #"{"passcode":"739165"}"#, &token)
      #expect(wrong.problem() == "invalid_pin")
      #expect(wrong["attempts_left"] as? Int == 4)
      let right = try await call(client, "verify-passcode", #"{"passcode":"739164"}"#, &token)
      #expect(right["unlocked"] as? Bool == true)
      let malformed = try await call(
        client, "change-passcode", #"{"current_passcode":"x","new_passcode":"582037"}"#, &token)
      #expect(malformed["field"] as? String == "current_passcode", "\(malformed.text)")
      let weaker = try await call(
        client, "change-passcode", #"{"current_passcode":"739164","new_passcode":"111111"}"#, &token)
      #expect(weaker["field"] as? String == "new_passcode")
      #expect(
        try await call(client, "change-passcode", #"{"current_passcode":"739164"}"#, &token)["field"] as? String
          == "new_passcode")
      #expect(
        try await call(client, "change-passcode", #"{"current_passcode":"739164","new_passcode":"582037"}"#, &token)
          .status == 200)
      #expect(try await call(client, "verify-passcode", #"{"passcode":"739164"}"#, &token).problem() == "invalid_pin")
      #expect(try await call(client, "disable-passcode", #"{"passcode":"582037"}"#, &token).status == 200)
      #expect(try await call(client, "verify-passcode", #"{"passcode":"582037"}"#, &token).problem() == "no_pin")
    }
  }

  @Test func passcodeReset() async throws {
    try await gateway().run { client in
      var token = try await client.register().token
      _ = try await call(client, "set-passcode", #"{"passcode":"739164"}"#, &token)
      client.gateway.clock.advance(by: .seconds(900))
      #expect(
        try await call(client, "reset-passcode", #"{"code":"000000","new_passcode":"582037"}"#, &token).problem()
          == "flow_not_found")
      let asked = try await call(client, "request-passcode-reset/", "{}", &token)
      #expect(asked.status == 200, "\(asked.text)")
      let code = try #require(client.gateway.code(for: "+919999999999"))
      // A weak passcode is refused without counting or using up the code.
      let weak = try await call(client, "reset-passcode", #"{"code":"\#(code)","new_passcode":"111111"}"#, &token)
      #expect(weak.problem() == "weak_pin")
      #expect(weak["field"] as? String == "new_passcode")
      let reset = try await call(client, "reset-passcode", #"{"code":"\#(code)","new_passcode":"582037"}"#, &token)
      #expect(reset.status == 200, "\(reset.text)")
      #expect(try await call(client, "verify-passcode", #"{"passcode":"582037"}"#, &token)["unlocked"] as? Bool == true)
    }
  }

  /// Two gateways with one store: each continues what the other has begun.
  @Test func anotherGatewayContinuesTheFlow() async throws {
    let first = try gateway()
    let second = try gateway(store: first.gateway.store, seed: 2)
    try await first.run { here in
      try await second.run { there in
        let made = try await here.call(.post, "/api/auth/register", Self.ada)
        var token = try #require(made["token"] as? String)
        await here.gateway.engine.deliveriesEnd()
        for client in [here, there] { client.gateway.clock.advance(by: .seconds(60)) }
        // The second gateway sends another code in the flow that the first one has begun, by session and by address.
        let ask = #"{"email":"ada@example.com"}"#
        #expect(
          try await there.call(.post, "/api/auth/resend-verification", ask, headers: bearer(token)).status == 200)
        await there.gateway.engine.deliveriesEnd()
        for client in [here, there] { client.gateway.clock.advance(by: .seconds(120)) }
        #expect(try await there.call(.post, "/api/auth/resend-verification", ask).status == 200)
        await there.gateway.engine.deliveriesEnd()
        #expect(here.gateway.sent == 1 && there.gateway.sent == 2)
        let code = try #require(there.gateway.code(for: "ada@example.com"))
        let verified = try await call(here, "verify-email", #"{"code":"\#(code)"}"#, &token)
        #expect(verified.status == 200, "\(verified.text)")

        var owner = try await here.register().token
        there.gateway.clock.advance(by: .seconds(1))
        _ = try await call(here, "set-passcode", #"{"passcode":"739164"}"#, &owner)
        for client in [here, there] { client.gateway.clock.advance(by: .seconds(900)) }
        #expect(try await call(here, "request-passcode-reset", "{}", &owner).status == 200)
        let reset = try #require(here.gateway.code(for: "+919999999999"))
        let done = try await call(there, "reset-passcode", #"{"code":"\#(reset)","new_passcode":"582037"}"#, &owner)
        #expect(done.status == 200, "\(done.text)")
      }
    }
  }

  @Test(
    arguments: [
      "verify-email", "set-passcode", "change-passcode", "verify-passcode", "request-passcode-reset", "reset-passcode",
      "disable-passcode",
    ])
  func needASession(_ name: String) async throws {
    try await gateway().run { client in
      let body = #"{"code":"000000","passcode":"739164","current_passcode":"739164","new_passcode":"582037"}"#
      let without = try await client.call(.post, "/api/auth/\(name)", body)
      #expect(without.problem() == "unauthenticated")
      let broken = try await client.call(.post, "/api/auth/\(name)", "[]")
      #expect(broken.problem() == "bad_request")
    }
  }
}
