import Foundation
import HTTPTypes
import MoongateAppAPI
import MoongateCore
import MoongateHTTP
import MoongateTesting
import Testing

/// `GET /api/auth/openapi.json`. `Client.send` checks every answer in these tests against the document.
@Suite struct APIDescriptionTests {
  /// Every call of the public API.
  static let calls: Set<String> = [
    "post /api/auth/flows", "get /api/auth/flows/{flow}", "delete /api/auth/flows/{flow}",
    "post /api/auth/flows/{flow}/begin",
    "post /api/auth/flows/{flow}/submit", "post /api/auth/flows/{flow}/resend", "post /api/auth/flows/{flow}/skip",
    "get /api/auth/session",
    "delete /api/auth/session", "get /api/auth/sessions", "delete /api/auth/sessions/{session}",
    "get /api/auth/devices", "delete /api/auth/devices/{device}",
    "delete /api/auth/sessions",
    "get /api/auth/account/export", "delete /api/auth/account",
    "get /api/auth/phone/format",
    "post /api/auth/client-events", "get /api/auth/openapi.json", "post /api/auth/send-otp",
    "post /api/auth/verify-otp", "post /api/auth/register",
    "post /api/auth/login", "post /api/auth/verify-email", "post /api/auth/resend-verification",
    "post /api/auth/set-passcode",
    "post /api/auth/change-passcode", "post /api/auth/verify-passcode", "post /api/auth/request-passcode-reset",
    "post /api/auth/reset-passcode",
    "post /api/auth/disable-passcode", "post /api/auth/logout", "get /api/auth/tokens", "post /api/auth/tokens",
    "delete /api/auth/tokens/{token}", "get /api/auth/apps", "delete /api/auth/apps/{app}",
  ]

  @Test func descriptionMatchesTheCalls() async throws {
    try await HTTPGateway().run { client in
      let answer = try await client.call(.get, "/api/auth/openapi.json")
      #expect(answer.status == 200)
      #expect(answer["openapi"] as? String == "3.1.0")
      let description = try APIDescription(answer.text)
      #expect(Set(description.paths.flatMap { path, methods in methods.keys.map { "\($0) \(path)" } }) == Self.calls)
      var names: Set<String> = []
      for (path, methods) in description.paths {
        let there = try await client.send(.patch, path.replacing(/\{[a-z]+\}/, with: "x"))
        #expect(there.status == 405)
        #expect(
          Set((there.header("Allow") ?? "").lowercased().components(separatedBy: ", ")).subtracting(["head"])
            == Set(methods.keys), "\(path)")
        for operation in methods.values {
          #expect(names.insert(try #require(operation["operationId"] as? String)).inserted)
          #expect((operation["summary"] as? String)?.isEmpty == false)
        }
      }
    }
  }

  /// The reference and `moongate help` describe the same calls.
  @Test func theReferenceHasEveryCall() {
    let calls = { (all: [APICall]) in all.map { $0.address.replacing(/^[A-Z]+/) { "\($0.output.lowercased())" } } }
    let api = APICall.api + AppAPI.calls
    #expect(Set(calls(api)) == Self.calls && api.count == Self.calls.count)
    #expect(Set(calls(APICall.admin)) == AdminDescriptionTests.calls)
    #expect(APICall.admin.count == AdminDescriptionTests.calls.count)
  }

  @Test func aCallOfTheReferenceNamesItsFieldsAndCodes() throws {
    let create = try #require(APICall.api.first { $0.id == "createFlow" })
    #expect(create.address == "POST /api/auth/flows" && create.status == 201)
    #expect(create.fields == ["flow", "return_to?", "code_challenge?", "redirect_to?", "remember?", "invitation?"])
    #expect(create.codes.contains("step_up_required"))
  }

  /// An endpoint added to the API must be described.
  @Test func everyEndpointUnderTheAPIIsDescribed() throws {
    let endpoints = try HTTPGateway().responder.undescribed
    #expect(endpoints == [], "describe their requests and answers in Description")
  }

  @Test func checkerFindsInvalidResponses() throws {
    let text = """
      {"components":{"schemas":{"A":{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":0}},"additionalProperties":false}}},
      "paths":{"/x/{y}":{"get":{"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}},"204":{}}}}}}
      """
    let description = try APIDescription(text)
    let faults = { (status: Int, body: String) in
      description.faults("GET", "/x/1", status: status, type: "application/json", body: Data(body.utf8)).count
    }
    #expect(faults(200, #"{"n":1}"#) == 0)
    for bad in [#"{"n":-1}"#, #"{"n":true}"#, #"{"n":"1"}"#, "{}", #"{"n":1,"m":1}"#, "[]", "x"] {
      #expect(faults(200, bad) == 1, "\(bad)")
    }
    #expect(faults(201, "{}") == 1)
    #expect(faults(204, "") == 0)
    #expect(faults(204, "{}") == 1)
  }
}
