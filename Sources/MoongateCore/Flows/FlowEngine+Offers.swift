import MoongateSDK

// Offers a factor to set up after a sign-in (`offer` in accounts.lua). The user may skip it.

/// A factor that a user is offered.
package struct OfferedFactor: Sendable, Equatable {
  package let provider: ProviderName
  /// The flow that sets it up.
  package let flow: String
}

extension FlowEngine {
  /// Chooses the factor to offer after a completed sign-in, and records the offer.
  ///
  /// An offer requires and proves nothing. The session is complete, and the flow that sets the factor up makes its
  /// usual checks.
  ///
  /// Attack: a request that marks an offer as made, so that the account's owner never sees it. An offer is marked only
  /// where the sign-in completes.
  /// - Parameters:
  ///   - view: the completed flow, from the response that created its session.
  ///   - canShow: whether the user's browser can set up a factor of the provider.
  /// - Returns: nil for a new account, for a flow that is not a sign-in, and if no offer is due. An error also returns
  ///   nil and never fails the sign-in.
  package func offer(
    after view: FlowView, client: ClientContext, canShow: @escaping @Sendable (ProviderDescriptor) -> Bool
  ) async -> OfferedFactor? {
    guard !generations.current.accounts.offers.isEmpty, view.status == .complete, view.purpose == .signIn,
      view.app == nil,
      view.session?.token != nil, let person = view.account, !person.isNewUser
    else { return nil }
    let chosen = await answer(client, flow: view.id) { request throws(FlowError) -> OfferedFactor? in
      let flow = try await storage.load(view.id, request, completeToo: true)
      guard let account = try await lookup.loadAccount(person.id, flow) else { return nil }
      let authority = checks.authority(over: account, request)
      // Do not offer what the set-up flow would refuse at once, because everything that the account could prove is too
      // new.
      guard view.passed.contains(where: authority.accepts) || !checks.changeProofs(authority, request).isEmpty else {
        return nil
      }
      for offer in request.generation.accounts.offers {
        guard let setUp = setUpFlow(of: offer, to: account, request),
          let descriptor = registry(request).descriptor(offer.provider), canShow(descriptor)
        else { continue }
        if let when = offer.when, !(try parts.policies.condition(when, of: account, flow)) { continue }
        if try await isDue(offer, for: account.id, request) {
          return OfferedFactor(provider: offer.provider, flow: setUp)
        }
      }
      return nil
    }
    guard case .success(let offered) = chosen else { return nil }
    return offered
  }

  /// The flow that sets up the offered factor; nil if the account has it or it cannot be set up.
  private func setUpFlow(of offer: FactorOffer, to account: Account, _ request: RequestContext) -> String? {
    guard request.generation.policies[offer.provider] != nil, !account.credentials.contains(offer.provider) else {
      return nil
    }
    return request.generation.flow(for: .factor(offer.provider, .set))?.name
  }

  /// Whether the factor was not offered to the account within `every`. If so, records an offer now. Counted in the
  /// store, so that all gateways share it and only one of two concurrent sign-ins shows the offer.
  private func isDue(_ offer: FactorOffer, for account: String, _ request: RequestContext) async throws(FlowError)
    -> Bool
  {
    let counter = keys.counterKey(["offer", offer.provider.rawValue, account].map { Array($0.utf8) })
    let limit = ResolvedLimit(
      provider: offer.provider, name: "offer", key: .account, counter: counter, max: 1, window: offer.every)
    guard case .reserved = try await parts.ledger.count(limit, request) else { return false }
    return true
  }
}
