import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// The token of a device that has signed in before, over HTTP: it is let in although strangers have used up the
/// number's tries.
@Suite struct DeviceTokenTests {
  /// Strangers lock the number. The owner's device is still let in, with its token in a cookie or a header field; an
  /// unknown token is not accepted.
  @Test func theOwnerIsNotLockedOut() async throws {
    try await HTTPGateway().run { client in
      func begin(_ headers: [(String, String)]) async throws -> (id: String, answer: Answer) {
        let flow = try await client.call(.post, "/api/auth/flows", #"{"flow":"enter"}"#)
        let id = try #require(flow["id"] as? String)
        return (
          id,
          try await client.call(.post, "/api/auth/flows/\(id)/begin", #"{"phone":"+919999999999"}"#, headers: headers)
        )
      }
      func submit(_ id: String, _ code: String, _ headers: [(String, String)] = []) async throws -> Answer {
        try await client.call(.post, "/api/auth/flows/\(id)/submit", #"{"code":"\#(code)"}"#, headers: headers)
      }
      let (id, _) = try await begin([])
      let first = try #require(client.gateway.code(for: "+919999999999"))
      let done = try await submit(id, first)
      let token = try #require(done["device_token"] as? String)
      client.gateway.clock.advance(by: .seconds(1000))
      let (locked, _) = try await begin([])
      let code = try #require(client.gateway.code(for: "+919999999999"))
      for _ in 0..<5 { _ = try await submit(locked, code == "000000" ? "000001" : "000000") }
      let stranger = try await begin([]).answer
      #expect(stranger.problem() == "too_many_attempts")
      for headers in [
        [("Moongate-Device", "nonsense")], [("Moongate-Device", token), ("Moongate-Device", token)],
        [("Cookie", "moongate-device=\(token)x"), ("Origin", "http://localhost:8080")],
      ] {
        let refused = try await begin(headers).answer
        #expect(refused.problem() == "too_many_attempts")
      }
      for headers in [
        [("Moongate-Device", token)], [("Cookie", "moongate-device=\(token)"), ("Origin", "http://localhost:8080")],
      ] {
        client.gateway.clock.advance(by: .seconds(100))
        let (own, answer) = try await begin(headers)
        #expect(answer.status == 200)
        let code = try #require(client.gateway.code(for: "+919999999999"))
        let done = try await submit(own, code, headers)
        #expect(done["status"] as? String == "complete")
      }
    }
  }
}
