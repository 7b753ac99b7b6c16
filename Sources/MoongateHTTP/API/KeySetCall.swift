import Hummingbird
import MoongateCore

/// `/.well-known/moongate/jwks.json`: the keys that verify `X-Moongate-Assertion` (RFC 7517).
struct KeySetCall: Sendable {
  let document: @Sendable () -> String

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/.well-known/moongate/jwks.json", servesAllDomains: true) { _ throws(Refusal) in
        var response = Response.plain(.ok, type: "application/jwk-set+json", Array(document().utf8))
        // A new key is published ten minutes before it signs, so caches must not keep the set longer.
        response.headers[.cacheControl] = "public, max-age=300"
        return response
      }
    ]
  }
}
