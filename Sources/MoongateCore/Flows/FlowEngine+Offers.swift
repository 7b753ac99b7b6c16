import MoongateSDK

// What accounts.lua offers to people who have just signed in (`offer`): a factor to set up, which they may skip.

/// A factor that a person is offered now.
package struct OfferedFactor: Sendable, Equatable {
  package let provider: ProviderName
  /// The flow that sets it up.
  package let flow: String
}

extension FlowEngine {
  /// Chooses what the person of a sign-in that has just completed is offered to set up, and remembers that it was
  /// offered.
  ///
  /// An offer asks for nothing and proves nothing: the session is complete, and the flow that sets the factor up
  /// demands what it always demands.
  ///
  /// Attack: a request that marks an offer as made, so that its owner never sees it. It is marked where the sign-in
  /// completes, and nowhere else.
  /// - Parameters:
  ///   - view: the completed flow, in the answer that made its session.
  ///   - canShow: whether the person's browser can set up a factor of the provider.
  /// - Returns: nil for a new account, for a flow that is no sign-in, and where nothing is due. What fails costs the
  ///   offer and never the sign-in.
  package func offer(
    after view: FlowView, client: ClientContext, canShow: @escaping @Sendable (ProviderDescriptor) -> Bool
  ) async -> OfferedFactor? {
    guard !generations.current.accounts.offers.isEmpty, view.status == .complete, view.purpose == .signIn,
      !view.isForApp,
      view.session?.token != nil, let person = view.account, !person.isNewUser
    else { return nil }
    let chosen = await answer(client, flow: view.id) { request throws(FlowError) -> OfferedFactor? in
      guard let account = try await loadAccount(person.id) else { return nil }
      let record = try await load(view.id, request, completeToo: true).record
      let authority = self.authority(over: account, request)
      // What the set flow would refuse at once is not offered: all that the account could prove is too new.
      guard view.passed.contains(where: authority.accepts) || !changeProofs(authority, request).isEmpty else {
        return nil
      }
      for offer in request.generation.accounts.offers {
        guard let flow = flow(of: offer, to: account, request),
          let descriptor = registry(request).descriptor(offer.provider), canShow(descriptor)
        else { continue }
        if let when = offer.when, !(try condition(when, record, of: account, request)) { continue }
        if try await isDue(offer, for: account.id, request) {
          return OfferedFactor(provider: offer.provider, flow: flow)
        }
      }
      return nil
    }
    guard case .success(let offered) = chosen else { return nil }
    return offered
  }

  /// The flow that sets up what is offered; nil where the account has it, or it cannot be set up.
  private func flow(of offer: FactorOffer, to account: Account, _ request: RequestContext) -> String? {
    guard request.generation.policies[offer.provider] != nil, !account.credentials.contains(offer.provider) else {
      return nil
    }
    return request.generation.flow(for: .factor(offer.provider, .set))?.name
  }

  /// Whether it was not offered to the account within `every`; if so it is offered now. Counted in the store, so that
  /// all gateways know, and of two sign-ins at once one is offered it.
  private func isDue(_ offer: FactorOffer, for account: String, _ request: RequestContext) async throws(FlowError)
    -> Bool
  {
    let counter = keys.counterKey(["offer", offer.provider.rawValue, account].map { Array($0.utf8) })
    let limit = ResolvedLimit(
      provider: offer.provider, name: "offer", key: .account, counter: counter, max: 1, window: offer.every,
      counts: .all, lock: [], disables: false)
    guard case .reserved = try await count(limit, request) else { return false }
    return true
  }
}
