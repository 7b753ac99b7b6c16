import HTTPTypes
import HummingbirdTesting
import MoongateCore
import MoongateSDK
import MoongateTesting
import NIOCore
import Testing

/// Every refusal in the phone flow, with its exact text.
@Suite struct RefusalTests {
  static let unknownFlow = "/api/auth/flows/fl_" + String(repeating: "A", count: 43)

  // MARK: Bodies

  @Test(arguments: [
    ("", "The request is not JSON."), ("{", "The request is not JSON."),
    ("{}x", "The request holds more than one JSON value."),
    ("[]", "The request is not a JSON object."), ("null", "The request is not a JSON object."),
    ("\"login\"", "The request is not a JSON object."),
    (#"{"flow":"login","flow":"register"}"#, "The request names a field twice."),
    (#"{"flow":"login","fl\u006fw":"register"}"#, "The request names a field twice."),
    (#"{"flow":"a\u0000b"}"#, "The request holds a NUL character."),
    ("{\"flow\":\"a\u{0}b\"}", "The request is not JSON."),
    (#"{"flow":"\ud800"}"#, "The request holds half a character."),
    (#"{"flow":"\udc00"}"#, "The request holds half a character."),
    (#"{"flow":'login'}"#, "The request is not JSON."), (#"{"flow":"login",}"#, "The request is not JSON."),
    (#"{"a":01}"#, "The request is not JSON."),
    (#"{"a":1.}"#, "The request is not JSON."), (#"{"a":+1}"#, "The request is not JSON."),
    (#"{"a":NaN}"#, "The request is not JSON."),
    ("{\"a\":" + String(repeating: "[", count: 60_000), "The request is nested too deeply."),
    ("\u{feff}{}", "The request is not JSON."),
  ])
  func bodiesThatAreNotAnObject(_ body: String, _ detail: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.post, "/api/auth/flows", body)
      #expect(answer.status == 400)
      #expect(answer.problem() == "bad_request")
      #expect(answer.detail == detail)
    }
  }

  @Test func bodiesThatAreNotUTF8() async throws {
    try await HTTPGateway().run { client in
      let response = try await client.client.execute(
        uri: "/api/auth/flows", method: .post, headers: [.contentType: "application/json"],
        body: .init(bytes: [0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))
      #expect(Answer(response: response).problem() == "bad_request")
      #expect(Answer(response: response).detail == "The request is not UTF-8.")
    }
  }

  @Test(arguments: [
    nil, "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonx",
    "application/problem+json", "",
    "multipart/form-data",
  ])
  func otherContentTypes(_ type: String?) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.send(
        .post, "/api/auth/flows", headers: type.map { [("Content-Type", $0)] } ?? [], body: #"{"flow":"login"}"#)
      #expect(answer.status == 415)
      #expect(answer.problem() == "not_json")
      #expect(answer.detail == "The request's Content-Type must be application/json.")
    }
  }

  @Test(arguments: [
    "application/json", "Application/JSON", "application/json;charset=utf-8", "application/json ; charset=\"UTF-8\"",
  ])
  func spellingsOfJSON(_ type: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.send(
        .post, "/api/auth/flows", headers: [("Content-Type", type)], body: #" {"flow":"login"} "#)
      #expect(answer.status == 201)
    }
  }

  @Test func compressedAndDoubledTypes() async throws {
    try await HTTPGateway().run { client in
      for extra in [("Content-Encoding", "gzip"), ("Content-Type", "application/json")] {
        let answer = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#, headers: [extra])
        #expect(answer.problem() == "not_json")
      }
    }
  }

  @Test func bodiesThatAreTooLarge() async throws {
    try await HTTPGateway().run { client in
      let room = String(repeating: " ", count: 64 * 1024 - 16)
      #expect(try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"# + room).status == 201)
      let answer = try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"# + room + " ")
      #expect(answer.status == 413)
      #expect(answer.problem() == "too_large")
      #expect(answer.detail == "The request is too large.")
      #expect(answer.header("Connection") == "close")
    }
  }

  @Test(arguments: [
    (#"{}"#, "flow", "flow is missing."), (#"{"flow":null}"#, "flow", "flow is missing."),
    (#"{"flow":1}"#, "flow", "flow must be a string."),
    (#"{"flow":["login"]}"#, "flow", "flow must be a string."),
    (#"{"flow":"nothing"}"#, "flow", "There is no flow of this name."),
    (#"{"flow":"login","return_to":7}"#, "return_to", "return_to must be a string."),
  ])
  func fieldsOfCreation(_ body: String, _ field: String, _ detail: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.post, "/api/auth/flows", body)
      #expect(answer.status == 422)
      #expect(answer.problem() == "invalid_input")
      #expect(answer["field"] as? String == field)
      #expect(answer.detail == detail)
    }
  }

  // MARK: Addresses and methods

  @Test(arguments: [
    "/api/auth/flow", "/api/auth/flows/", "/api/auth//flows", "/API/auth/flows", "/api/auth/flows/a/b/c", "/api/auth",
    "/api/",
    "/.well-known/moongate/keys",
    "/api/auth/session/", "/api/auth/%66lows", "/api/auth/flows;x", "/", "*",
  ])
  func unknownAddresses(_ path: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.post, path, "{}")
      #expect(answer.status == 404)
      #expect(answer.problem() == "not_found")
      #expect(answer.detail == "There is nothing at this address.")
    }
  }

  @Test(arguments: [
    (HTTPRequest.Method.get, "/api/auth/flows", "POST"), (.put, "/api/auth/flows/x", "DELETE, GET, HEAD"),
    (.post, "/api/auth/session", "DELETE, GET, HEAD"),
    (.get, "/api/auth/flows/x/begin", "POST"), (.delete, "/api/auth/phone/format", "GET, HEAD"),
    (.options, "/api/auth/sessions", "DELETE, GET, HEAD"),
    (.get, "/api/auth/send-otp", "POST"), (.get, "/api/auth/send-otp/", "POST"),
    (.delete, "/auth/login", "GET, HEAD, POST"),
    (.trace, "/api/auth/session", "DELETE, GET, HEAD"),
  ])
  func wrongMethods(_ method: HTTPRequest.Method, _ path: String, _ allowed: String) async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(method, path)
      #expect(answer.status == 405)
      #expect(answer.problem() == "method_not_allowed")
      #expect(answer.header("Allow") == allowed)
    }
  }

  @Test func headIsGetWithoutBody() async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.head, "/.well-known/moongate/jwks.json")
      #expect(answer.status == 200)
      #expect(answer.text == "")
      #expect(answer.header("Content-Length") == String(HTTPGateway.keySet.utf8.count))
    }
  }

  // MARK: Flows

  @Test(arguments: [
    (HTTPRequest.Method.get, ""), (.delete, ""), (.post, "/begin"), (.post, "/submit"), (.post, "/resend"),
    (.post, "/skip"),
  ])
  func flowsThatDoNotExist(_ method: HTTPRequest.Method, _ verb: String) async throws {
    try await HTTPGateway().run { client in
      for id in [Self.unknownFlow, "/api/auth/flows/x", "/api/auth/flows/" + String(repeating: "x", count: 9000)] {
        let answer = try await client.call(
          method, id + verb, method == .post ? #"{"phone":"+919999999999","code":"123456"}"# : nil)
        #expect(answer.status == 404)
        #expect(answer.problem() == "flow_not_found")
        #expect(answer.detail == "This sign-in does not exist. Please start again.")
      }
    }
  }

  @Test func expiredFlowsAreGoneAndThenForgotten() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      client.gateway.clock.advance(by: .seconds(900))
      for (method, verb) in [(HTTPRequest.Method.get, ""), (.post, "/begin"), (.post, "/submit"), (.post, "/resend")] {
        let answer = try await client.call(
          method, "/api/auth/flows/\(id)\(verb)", method == .post ? #"{"phone":"+919999999999","code":"123456"}"# : nil)
        #expect(answer.status == 410)
        #expect(answer.problem() == "flow_expired")
        #expect(answer.detail == "This sign-in has expired. Please start again.")
      }
      client.gateway.clock.advance(by: .seconds(900))
      #expect(try await client.call(.get, "/api/auth/flows/\(id)").problem() == "flow_not_found")
    }
  }

  @Test(
    arguments: [
      (#"{"phone":"123"}"#, 422, "invalid_phone", "phone", "Please enter a valid 10-digit mobile number"),
      (#"{"phone":""}"#, 422, "invalid_phone", "phone", "Please enter a valid 10-digit mobile number"),
      (
        #"{"phone":"99999 99999 99999 99999"}"#, 422, "invalid_phone", "phone",
        "Please enter a valid 10-digit mobile number"
      ),
      (#"{"phone":"hello"}"#, 422, "invalid_phone", "phone", "Please enter a valid 10-digit mobile number"),
      (#"{"phone":"+1 23"}"#, 422, "invalid_phone", "phone", "This phone number is too short."),
      (#"{"phone":9999999999}"#, 422, "invalid_input", "phone", "phone must be a string."),
      (#"{}"#, 422, "invalid_input", "phone", "phone is missing."),
      (#"{"phone":null}"#, 422, "invalid_input", "phone", "phone is missing."),
      (#"{"phone":"9999999999","region":5}"#, 422, "invalid_input", "region", "region must be a string."),
      (#"{"phone":"9999999999","provider":5}"#, 422, "invalid_input", "provider", "provider must be a string."),
      (#"{"phone":"9999999999","provider":"pin"}"#, 409, "step_not_open", nil, "This step is not available now."),
      (#"{"phone":"9999999999","provider":"no such"}"#, 409, "step_not_open", nil, "This step is not available now."),
      (#"{"phone":"9999999999"}"#, 404, "account_not_found", nil, "No account found. Create one?"),
    ] as [(String, Int, String, String?, String)])
  func beginnings(_ body: String, _ status: Int, _ code: String, _ field: String?, _ detail: String) async throws {
    try await HTTPGateway().run { client in
      let id = try #require(try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)["id"] as? String)
      let answer = try await client.call(
        .post, "/api/auth/flows/\(id)/begin",
        body.replacing("{", with: #"{"x":1,"#, maxReplacements: 1).replacing(",}", with: "}"))
      #expect(answer.status == status)
      #expect(answer.problem() == code)
      #expect(answer["field"] as? String == field)
      #expect(answer.detail == detail)
      #expect(client.gateway.sent == 0)
    }
  }

  @Test func registeredUserGetsAlreadyRegistered() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      let id = try #require(try await client.call(.post, "/api/auth/flows", #"{"flow":"register"}"#)["id"] as? String)
      let answer = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"099999-99999"}"#)
      #expect(answer.status == 409)
      #expect(answer.problem() == "already_registered")
      #expect(answer.detail == "An account with these details already exists. Sign in instead.")
    }
  }

  @Test func fiveWrongCodesLock() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      let path = "/api/auth/flows/\(id)/submit"
      let right = try #require(client.gateway.code(for: "+919999999999"))
      let wrong = right == "000000" ? "000001" : "000000"
      for body in [
        #"{}"#, #"{"code":7}"#, #"{"code":"12345"}"#, #"{"code":"1234567"}"#, #"{"code":"abcdef"}"#, #"{"code":""}"#,
      ] {
        let malformed = try await client.call(.post, path, body)
        #expect(malformed.status == 422)
        #expect(malformed.problem() == "invalid_input")
        #expect(malformed["field"] as? String == "code")
      }
      for left in [4, 3, 2, 1] {
        let answer = try await client.call(.post, path, #"{"code":"\#(wrong)"}"#)
        #expect(answer.status == 401)
        #expect(answer.problem() == "invalid_code")
        #expect(answer.detail == "Invalid code. Please try again.")
        #expect(answer["attempts_left"] as? Int == left)
        #expect(answer.header("Retry-After") == nil)
      }
      for code in [wrong, right] {
        let locked = try await client.call(.post, path, #"{"code":"\#(code)"}"#)
        #expect(locked.status == 429)
        #expect(locked.problem() == "too_many_attempts")
        #expect(locked.detail == "Too many attempts. Please try again in 15 minutes.")
        #expect(locked.header("Retry-After") == "900")
        #expect(locked["retry_after"] as? Int == 900)
      }
      let step = try #require(try await client.call(.get, "/api/auth/flows/\(id)")["step"] as? [String: Any])
      #expect(step["locked_until"] as? String == "2026-11-20T12:30:01Z")
      // Begin and resend give the same answer, and nothing is sent.
      let sent = client.gateway.sent
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}").problem() == "too_many_attempts")
      let other = try #require(try await client.call(.post, "/api/auth/flows", #"{"flow":"login"}"#)["id"] as? String)
      #expect(
        try await client.call(.post, "/api/auth/flows/\(other)/begin", #"{"phone":"+919999999999"}"#).problem()
          == "too_many_attempts")
      #expect(client.gateway.sent == sent)
    }
  }

  @Test func anExpiredCodeMayBeReplacedAtOnce() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      let code = try #require(client.gateway.code(for: "+919999999999"))
      client.gateway.clock.advance(by: .seconds(600))
      let answer = try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#)
      #expect(answer.status == 410)
      #expect(answer.problem() == "code_expired")
      #expect(answer.detail == "This code has expired. Please request a new one.")
      #expect(try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}").status == 200)
    }
  }

  @Test func sendsAreLimited() async throws {
    try await HTTPGateway().run { client in
      _ = try await client.register()
      client.gateway.clock.advance(by: .seconds(900))
      let id = try await client.begin()
      for wait in [60, 120, 120] {
        client.gateway.clock.advance(by: .seconds(wait))
        #expect(try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}").status == 200)
      }
      client.gateway.clock.advance(by: .seconds(120))
      let answer = try await client.call(.post, "/api/auth/flows/\(id)/resend", "{}")
      #expect(answer.status == 429)
      #expect(answer.problem() == "send_limit")
      #expect(answer.detail == "Too many attempts. Try again in 8 minutes.")
      #expect(answer.header("Retry-After") == "480")
    }
  }

  @Test func policiesThatRefuseAndPoliciesThatFail() async throws {
    let function = FunctionName("policies/phone_otp.send")
    for (verdict, status, code) in [
      (Verdict.deny("country_not_served"), 403, "country_not_served"),
      (.fault(PolicyFault(kind: .error, location: nil, message: "boom in secret.lua")), 503, "policy_error"),
    ] {
      let gateway = try HTTPGateway { generation in
        generation.policies = generation.policies.mapValues { .test($0.provider, send: function) }
        generation.verdicts[function] = { _ in verdict }
      }
      try await gateway.run { client in
        let id = try #require(try await client.call(.post, "/api/auth/flows", #"{"flow":"enter"}"#)["id"] as? String)
        let answer = try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"+919999999999"}"#)
        #expect(answer.status == status)
        #expect(answer.problem() == code)
        #expect(!answer.text.contains("boom"))
      }
    }
  }

  // MARK: Sessions

  @Test func anonymousRequestIsUnauthenticated() async throws {
    try await HTTPGateway().run { client in
      for (method, path) in [
        (HTTPRequest.Method.get, "/api/auth/session"), (.delete, "/api/auth/session"), (.get, "/api/auth/sessions"),
        (.delete, "/api/auth/sessions/x"),
      ] {
        let answer = try await client.call(method, path)
        #expect(answer.status == 401)
        #expect(answer.problem() == "unauthenticated")
        #expect(answer.detail == "Please sign in.")
        #expect(answer.header("WWW-Authenticate") == "Bearer")
      }
    }
  }

  @Test func everyRefusalIsFoundByItsDecision() async throws {
    try await HTTPGateway().run { client in
      for answer in [
        try await client.call(.get, "/api/auth/nothing"), try await client.call(.get, Self.unknownFlow),
        try await client.call(.get, "/api/auth/session"),
      ] {
        let id = try #require(answer["decision_id"] as? String)
        let event = try #require(try await client.gateway.audit.event(DecisionID(text: id)))
        #expect(event.code == answer["code"] as? String)
        #expect(event.kind == .refused)
      }
    }
  }
}
