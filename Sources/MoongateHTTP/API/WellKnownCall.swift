import Hummingbird
import MoongateCore
import MoongateSDK

/// `/.well-known/{name}`: documents that the configured providers publish (RFC 8615).
struct WellKnownCall: Sendable {
  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .get, "/.well-known/{}", servesAllDomains: true) { exchange throws(Refusal) in
        let name = exchange.parameters[0]
        let generation = exchange.generation
        guard let publisher = exchange.providers.publisher(of: name, in: generation) else {
          throw exchange.refusal(.notFound)
        }
        let provider = publisher.descriptor.name
        let origin = generation.gateway.publicURL.description
        let making = generation.flow(for: .factor(provider, .set))
        let site = PublicSite(
          origin: origin, accountPage: "\(origin)/auth/account",
          setUpPage: making.map {
            "\(origin)\(ProviderPage.stepAddress($0.name, with: nil, returnTo: PagePath.account))"
          },
          settings: generation.gateway.providers[provider]?.forSteps ?? StepSettings())
        let document: String?
        do { document = try publisher.document(name, of: site) } catch { throw exchange.refusal(.busy) }
        guard let document, JSONText.isObject(document) else { throw exchange.refusal(.notFound) }
        var response = Response.plain(.ok, type: "application/json", Array(document.utf8))
        response.headers[.cacheControl] = "public, max-age=300"
        return response
      }
    ]
  }
}
