import MoongateCore
import HTTPTypes
import MoongateTesting
import Testing

/// `/api/auth/flows…` as an app uses it.
@Suite struct FlowCallTests {
  @Test func registerThenSignIn() async throws {
    try await HTTPGateway().run { client in
      let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"register"}"#)
      #expect(created.status == 201)
      #expect(created.header("Content-Type") == "application/json")
      #expect(created.header("Cache-Control") == "no-store")
      #expect(created.setCookies == [])
      let id = try #require(created["id"] as? String)
      #expect(
        created.text == """
          {"id":"\(id)","flow":"register","status":"pending","expires_at":"2026-11-20T12:15:00Z","choices":["phone_otp"],"step":null,"passed":[],\
          "account":null,"session":null,"next":null}

          """)

      let begun = try await client.call(
        .post, "/api/auth/flows/\(id)/begin",
        #"{"provider":"phone_otp","phone":"99999 99999","region":"IN","unknown":[1]}"#)
      #expect(begun.status == 200)
      #expect(
        begun.text == """
          {"id":"\(id)","flow":"register","status":"pending","expires_at":"2026-11-20T12:15:00Z","choices":[],"step":{"provider":"phone_otp",\
          "fields":[{"name":"code","kind":"digits","length":6}],"sent_to":"+91 99999 99999","expires_at":"2026-11-20T12:10:00Z",\
          "resend_at":"2026-11-20T12:01:00Z","attempts_left":5,"resends_left":3,"skippable":false,"redirect_to":null},"passed":[],\
          "account":null,"session":null,"next":null}

          """)
      #expect(try await client.call(.get, "/api/auth/flows/\(id)").text == begun.text)

      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)
      #expect(done.status == 200)
      #expect(done["status"] as? String == "complete")
      #expect(done["next"] as? String == "/profile-setup")
      #expect(done.setCookies == [])
      let account = try #require(done["account"] as? [String: Any])
      #expect(
        account.keys.sorted() == [
          "email", "first_name", "has_pin", "id", "is_email_verified", "is_new_user", "is_phone_verified", "last_name",
          "phone",
        ])
      #expect(account["phone"] as? String == "+919999999999")
      #expect(account["is_new_user"] as? Bool == true)
      let session = try #require(done["session"] as? [String: Any])
      #expect(session.keys.sorted() == ["aal", "expires_at", "passed", "token"])
      let token = try #require(session["token"] as? String)

      // Reading the flow again does not return the token a second time.
      let again = try await client.call(.get, "/api/auth/flows/\(id)")
      #expect(again["status"] as? String == "complete")
      #expect(!again.text.contains(token))
      #expect(
        try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#).problem()
          == "step_not_open")

      let who = try await client.call(.get, "/api/auth/session", headers: [("Authorization", "bearer \(token)")])
      #expect(who.status == 200)
      #expect((who["account"] as? [String: Any])?["id"] as? String == account["id"] as? String)
      #expect((who["session"] as? [String: Any])?.keys.sorted() == ["aal", "expires_at", "passed"])

      client.gateway.clock.advance(by: .seconds(1))
      let back = try await client.begin("login")
      let fresh = try #require(client.gateway.code(for: "+919999999999"))
      let signedIn = try await client.call(.post, "/api/auth/flows/\(back)/submit", #"{"code":"\#(fresh)"}"#)
      #expect(signedIn["next"] as? String == "/home")
      #expect((signedIn["account"] as? [String: Any])?["is_new_user"] as? Bool == false)
    }
  }

  @Test func nextIsReturnToOnlyIfItIsAccepted() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      for (asked, next) in [("/here?x=1", "/here?x=1"), ("https://evil/", "/home"), ("//evil", "/home")] {
        client.gateway.clock.advance(by: .seconds(900))
        let created = try await client.call(.post, "/api/auth/flows", #"{"flow":"login","return_to":"\#(asked)"}"#)
        let id = try #require(created["id"] as? String)
        _ = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"+919999999999"}"#)
        let code = try #require(client.gateway.code(for: "+919999999999"))
        #expect(
          try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)["next"] as? String
            == next)
      }
    }
  }

  @Test func resendSkipAndDelete() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      let soon = try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}")
      #expect(soon.status == 429)
      #expect(soon.problem() == "resend_too_soon")
      #expect(soon.header("Retry-After") == "60")
      #expect(soon["retry_after"] as? Int == 60)
      #expect(
        soon["resend_at"] as? String
          == (try await client.call(.get, "/api/auth/flows/\(id)")["step"] as? [String: Any])?["resend_at"] as? String)
      client.gateway.clock.advance(by: .seconds(60))
      let resent = try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}")
      #expect(resent.status == 200)
      #expect((resent["step"] as? [String: Any])?["resends_left"] as? Int == 2)
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/skip", "{}").problem() == "step_not_open")
      let gone = try await client.call(.delete, "/api/auth/flows/\(id)")
      #expect(gone.status == 204)
      #expect(gone.text == "")
      #expect(try await client.call(.get, "/api/auth/flows/\(id)").problem() == "flow_not_found")
      #expect(try await client.call(.delete, "/api/auth/flows/\(id)").problem() == "flow_not_found")
    }
  }

  @Test func flowIsBoundToItsBrowser() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let created = try await client.call(
        .post, "/api/auth/flows", #"{"flow":"login"}"#, headers: [("Origin", "http://localhost:8080")])
      #expect(created.status == 201)
      let line = try #require(created.setCookies.first)
      #expect(created.setCookies.count == 1)
      #expect(line.hasPrefix("moongate-flow="))
      #expect(line.hasSuffix("; Path=/; HttpOnly; SameSite=Lax"))
      let cookie = String(line.prefix { $0 != ";" })
      let id = try #require(created["id"] as? String)
      let path = "/api/auth/flows/\(id)"
      // Without the cookie, or with another, a second or a changed one, the flow does not exist.
      let other = "moongate-flow=\(String(repeating: "A", count: 43))"
      for headers in [[], [("Cookie", other)], [("Cookie", "\(cookie); \(other)")], [("Cookie", cookie + "A")]] {
        #expect(try await client.call(.get, path, headers: headers).problem() == "flow_not_found")
      }
      let own = [("Cookie", cookie), ("Origin", "http://localhost:8080")]
      #expect(try await client.call(.post, path + "/begin", #"{"phone":"+919999999999"}"#, headers: own).status == 200)
      let code = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await client.call(.post, path + "/submit", #"{"code":"\#(code)"}"#, headers: own)
      #expect(done["status"] as? String == "complete")
      let token = try #require((done["session"] as? [String: Any])?["token"] as? String)
      #expect(done.setCookies.first == "moongate=\(token); Path=/; HttpOnly; SameSite=Lax")
      let device = try #require(done["device_token"] as? String)
      #expect(
        done.setCookies.dropFirst() == ["moongate-device=\(device); Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"])
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Cookie", "moongate=\(token)")]).status == 200)
      // A browser has one flow cookie: a second flow keeps its value.
      let second = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#, headers: own)
      #expect(second.setCookies.first?.hasPrefix(cookie + ";") == true)
    }
  }

  @Test func numbersAreFormattedWhileTheyAreTyped() async throws {
    try await HTTPGateway().run { client in
      let typed = try await client.call(.get, "/api/auth/phone/format?region=IN&input=9999999999")
      #expect(typed.status == 200)
      #expect(typed["formatted"] as? String == "99999 99999")
      #expect(typed["e164"] as? String == "+919999999999")
      #expect(typed["valid"] as? Bool == true)
      let short = try await client.call(.get, "/api/auth/phone/format?input=9999")
      #expect(short.text.contains(#""e164":null,"valid":false"#))
      #expect(
        try await client.call(.get, "/api/auth/phone/format?region=US&input=+919999999999")["e164"] as? String
          == "+919999999999")
      for (query, field) in [
        ("region=IN", "input"), ("region=QQ&input=1", "region"), ("region=India&input=1", "region"),
      ] {
        let refused = try await client.call(.get, "/api/auth/phone/format?\(query)")
        #expect(refused.status == 422)
        #expect(refused.problem() == "invalid_input")
        #expect(refused["field"] as? String == field)
      }
      for query in ["input=%", "input=%4", "input=%zz", "input=1&input=2", "input=%00", "input=%ff"] {
        #expect(try await client.call(.get, "/api/auth/phone/format?\(query)").problem() == "bad_request")
      }
    }
  }

  @Test func keysArePublished() async throws {
    try await HTTPGateway().run { client in
      let set = try await client.call(.get, "/.well-known/moongate/jwks.json")
      #expect(set.status == 200)
      #expect(set.text == HTTPGateway.keySet)
      #expect(set.header("Cache-Control") == "public, max-age=300")
    }
  }
}
