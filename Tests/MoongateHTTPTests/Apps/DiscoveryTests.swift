import Foundation
import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

/// The discovery documents, and what scripts of apps may read.
@Suite struct DiscoveryTests {
  private static let documents = ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"]

  /// Everything that the document names is there.
  @Test func documentSaysWhatIsThere() async throws {
    try await TestApp.gateway([TestApp.confidential(), TestApp.confidential("public", authentication: .none)]).run {
      client in
      var both: [String] = []
      for path in Self.documents {
        let answer = try await client.send(.get, path)
        #expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
        both.append(answer.text)
      }
      #expect(both[0] == both[1])
      let document = try await client.send(.get, Self.documents[0])
      #expect(document["issuer"] as? String == TestApp.issuer)
      let endpoints = document.json.compactMap { name, value in
        name.hasSuffix("_endpoint") || name == "jwks_uri" ? value as? String : nil
      }
      #expect(endpoints.count == 9)
      for address in endpoints {
        let path = String(address.dropFirst(TestApp.issuer.count))
        for method in [HTTPRequest.Method.get, .post] {
          #expect(try await client.send(method, path).status != 404, "\(path)")
        }
      }
      #expect(document["grant_types_supported"] as? [String] == ["authorization_code", "refresh_token"])
      #expect(document["response_types_supported"] as? [String] == ["code"])
      #expect(document["subject_types_supported"] as? [String] == ["public"])
    }
  }

  @Test func keysVerifyTokens() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let tokens = try await Browser.owner(client).tokens()
      let header = try #require((tokens["id_token"] as? String)?.split(separator: ".").first)
      let members = try JSONClaim.members(try #require(Base64URL.decode(String(header))))
      let keys = try await client.send(.get, "/auth/openid/keys")
      #expect(keys.header("Content-Type") == "application/jwk-set+json")
      let ids = (keys["keys"] as? [[String: Any]] ?? []).compactMap { $0["kid"] as? String }
      #expect(ids.contains(try #require(members["kid"]?.text)))
      #expect(!keys.text.contains("\"d\""))
    }
  }

  /// Without apps, nothing is there.
  @Test func nothingWithoutApps() async throws {
    try await HTTPGateway().run { client async throws in
      for path in Self.documents + ["/auth/openid/authorize", "/auth/openid/keys", "/auth/openid/userinfo"] {
        #expect(try await client.send(.get, path).status == 404)
      }
      #expect(try await client.form("/auth/openid/token", [:]).status == 404)
    }
  }

  /// Attack: a page of any site reads tokens or claims. Only origins of redirect URIs may, and never with the user's
  /// session.
  @Test func scriptsOfAppsMayRead() async throws {
    try await TestApp.gateway([TestApp.confidential()]).run { client async throws in
      let app = [("Origin", "https://grafana.example.com")]
      let others = [
        "https://evil.example", "https://grafana.example.com.evil.example", "https://grafana.example.co",
        "http://grafana.example.com", "https://grafana.example.com:444", "null", "https:", "https://",
      ]
      for path in ["/auth/openid/keys", "/auth/openid/userinfo", Self.documents[0]] {
        let read = try await client.send(.get, path, headers: app)
        #expect(read.header("Access-Control-Allow-Origin") == "https://grafana.example.com", "\(path)")
        #expect(read.header("Access-Control-Allow-Credentials") == nil)
        for origin in others {
          let refused = try await client.send(.get, path, headers: [("Origin", origin)])
          #expect(refused.header("Access-Control-Allow-Origin") == nil, "\(origin)")
          #expect(refused.header("Vary") == "Origin")
        }
      }
      let asked = try await client.send(
        .options, "/auth/openid/token", headers: app + [("Access-Control-Request-Method", "POST")])
      #expect(asked.status == 204 && asked.header("Access-Control-Allow-Methods") == "POST")
      for path in ["/auth/openid/introspect", "/auth/openid/authorize", "/auth/openid/logout"] {
        let none = try await client.send(.get, path, headers: app)
        #expect(none.header("Access-Control-Allow-Origin") == nil, "\(path)")
      }
    }
  }
}
