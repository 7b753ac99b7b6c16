import MoongateSDK

/// Asks the site about an identity again, by the refresh token of its sign-in (OpenID Connect Core 1.0 section 12).
extension OpenID: Rechecking {
  public func recheck(_ known: RecheckedIdentity, with tools: StepTools) async throws -> RecheckAnswer {
    let client = try Client(tools.settings, entry)
    let call = SiteCall(tools: tools, now: tools.clock.now, isRecheck: true)
    let metadata = try await metadata(of: client, call)
    // Attack on ourselves: after a change of `issuer`, the tokens of one site are sent to the other, which refuses
    // them.
    guard known.identity.value.hasPrefix(metadata.identityPrefix) else {
      throw OAuthFault.site("\(client.issuer.address) has not proved this identity: `issuer` was changed")
    }
    let issued: TokenExchange.Issued
    do {
      issued = try await TokenExchange(client: client, metadata: metadata, call: call)
        .refresh(String(decoding: known.state, as: UTF8.self))
    } catch let refusal as AnswerRefusal {
      return .ended(because: "the site refuses the refresh token: \(refusal.value ?? refusal.text)")
    }
    // Attack on ourselves: the site has replaced the token (RFC 9700 section 4.14.2), and the old one, used again, is
    // taken for a stolen one. The new one is stored before anything else can fail.
    guard issued.refreshToken?.utf8.count ?? 0 <= Proof.longestRecheck else {
      let site = client.issuer.address
      throw OAuthFault.site("\(site) issues a refresh token of more than \(Proof.longestRecheck) bytes")
    }
    if let state = issued.refreshState, state != known.state { try await known.keep(state) }
    let said = try await claims(issued, metadata, client, call)
    // Attack: the site answers about another of its users (section 12.2), whose claims the policy denies or maps.
    guard said.identity == known.identity.value else { throw AnswerRefusal(.sub, "another user") }
    return .confirmed(try await identity(of: said, client, tools).identifier(of: said))
  }

  /// What the site says about the user, from where a sign-in takes it. Otherwise groups that only one place names would
  /// come and go.
  private func claims(
    _ issued: TokenExchange.Issued, _ metadata: IssuerMetadata, _ client: Client, _ call: SiteCall
  ) async throws -> SiteClaims {
    guard client.isOpenID else { return try await siteClaims(issued, client, call) }
    if let token = issued.idToken {
      var said = try await claims(of: token, isOfApp: false, nil, client, call)
      try await complete(&said, with: issued.accessToken, metadata, client, call)
      return said
    }
    guard client.userInfo == .always, let address = metadata.userInfo, let token = issued.accessToken else {
      let site = client.issuer.address
      throw OAuthFault.site(
        "\(site) issues no ID token for a refresh token: write userinfo = \"always\", or remove `recheck`")
    }
    let members = try await UserInfo(web: call.tools.web, token: token).claims(at: ["1": address], onlyInFirst: []).all
    guard let subject = members["sub"]?.text else { throw AnswerRefusal(.sub) }
    return SiteClaims(
      members: members, subject: subject, issuer: metadata.issuer,
      isOfAnyTenant: metadata.issuer.contains(Issuer.anyTenant), hostedDomain: nil)
  }
}

extension TokenExchange.Issued {
  /// What a recheck needs; nil if there is no refresh token, or one that is too long to be kept.
  var refreshState: [UInt8]? {
    refreshToken.flatMap { (1...Proof.longestRecheck).contains($0.utf8.count) ? Array($0.utf8) : nil }
  }
}

extension IssuerMetadata {
  /// How the identities begin that the issuer proves.
  fileprivate var identityPrefix: String {
    let parts = issuer.split(separator: Issuer.anyTenant, maxSplits: 1, omittingEmptySubsequences: false)
    return parts.count == 2 ? String(parts[0]) : "\(issuer) "
  }
}
