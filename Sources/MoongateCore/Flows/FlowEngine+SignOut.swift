import Logging
import MoongateSDK

// Leads users who sign out to the other site that has signed them in, and signs out whom that site signs out.

/// Where the user of an ended session signs out as well.
package struct SiteSignOut: Sendable {
  package let provider: ProviderName
  package let address: String
}

extension FlowEngine {
  /// The other site at which the user of an ended session also signs out: of the sites that were passed, the last one
  /// that has such an address; nil if none has. A site that does not answer keeps nobody from signing out here.
  package func siteSignOut(of session: Session, client: ClientContext) async -> SiteSignOut? {
    let request = RequestContext(client: client, now: clock.now(), generation: generations.current)
    let registry = request.generation.registry ?? providers
    for step in session.passed.reversed() {
      if let site = registry[step.provider] as? any SignOutLeading, request.generation.policies[step.provider] != nil,
        let found = await signOut(at: site, request)
      {
        return found
      }
    }
    return nil
  }

  /// What the page of another site asks to end in the user's browser; nil if the provider has no such site.
  package func embeddedSignOut(
    issuer: String, session: String, of name: ProviderName, in generation: any PolicyGeneration
  ) -> EmbeddedSignOut? {
    guard generation.policies[name] != nil,
      let site = (generation.registry ?? providers)[name] as? any SignOutEmbedding
    else { return nil }
    let settings = generation.gateway.providers[name]?.forSteps ?? StepSettings()
    return site.embeddedSignOut(issuer: issuer, session: session, settings: settings)
  }

  /// Whether the session was opened by that session at the provider's site.
  ///
  /// Attack: any page embeds the address by which a site signs users out. Who does not know the browser's own session
  /// at that site, by that provider, ends nothing.
  package func isOpened(_ session: Session, by ended: EmbeddedSignOut, of name: ProviderName) -> Bool {
    let hash = keys.siteSessionHash(ended.siteSession, at: name)
    return session.passed.contains { step in
      step.provider == name && step.siteSession.map { constantTimeEquals($0, hash) } ?? false
    }
  }

  private func signOut(at site: any SignOutLeading, _ request: RequestContext) async -> SiteSignOut? {
    let name = site.descriptor.name
    let redaction = calls.redaction(of: name, nil, [], request)
    do {
      let page = "\(request.generation.gateway.publicURL)\(PagePath.signIn)"
      let address = try await site.signOutAddress(
        returningTo: page, with: calls.tools(for: site, redaction, request))
      // Attack: a site whose discovery names another scheme or host form leads the browser elsewhere.
      guard let address, SiteAddress.isSite(address) else { return nil }
      return SiteSignOut(provider: name, address: address)
    } catch {
      logger.warning(
        "a provider could not sign a user out at its site",
        metadata: ["provider": "\(name)", "fault": "\(redaction("\(error)"))"])
      return nil
    }
  }
}
