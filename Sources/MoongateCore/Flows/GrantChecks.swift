import MoongateSDK

/// The app that receives the result of a flow, as the pages of the flow show it.
package struct ReceivingApp: Sendable, Equatable {
  /// The name that users read.
  package let name: String
  /// The redirect URI.
  package let redirect: String
  /// Whether the user must agree before the flow continues.
  package let needsConsent: Bool

  package init(name: String, redirect: String, needsConsent: Bool) {
    self.name = name
    self.redirect = redirect
    self.needsConsent = needsConsent
  }
}

extension AuthorizationRequest {
  /// The app as pages name it; nil if it is no longer registered with this redirect URI. Whether the user must agree is
  /// decided at the end of the sign-in.
  package func receivingApp(in apps: AppTable) -> ReceivingApp? {
    guard let app = apps[grant.client], apps.receives(app, at: grant.redirect) else { return nil }
    return ReceivingApp(name: app.name, redirect: grant.redirect, needsConsent: false)
  }
}

/// Decides whether an app may receive the result of a flow, and who may continue the flow.
struct GrantChecks: FlowPart {
  let services: FlowServices

  /// The app that receives the result of the flow; nil if none does, or if it is no longer registered.
  func receiver(of record: FlowRecord, _ request: RequestContext) -> ReceivingApp? {
    guard let grant = record.grant, let app = app(of: grant, request) else { return nil }
    return ReceivingApp(name: app.name, redirect: grant.redirect, needsConsent: !isAllowed(grant, app, request))
  }

  /// Refuses to continue a flow with a grant, except by the pages of its browser and after the user has agreed.
  ///
  /// Attack: the creator of the flow begins a step by the API, so that the victim continues it without having seen a
  /// page that names the app.
  func demandAllowed(_ record: FlowRecord, _ request: RequestContext) throws(FlowError) {
    guard let grant = record.grant else { return }
    // The operator has removed the app or its redirect URI since the flow began.
    guard let app = app(of: grant, request) else { throw request.refusal(.flowExpired, because: .appRemoved) }
    guard request.client.entryPoint == .page else {
      throw request.refusal(
        .stepNotOpen, detail: "The user continues this flow in a browser: open /auth/login?id=… with its id there.",
        because: .pagesOnly)
    }
    guard record.browser == request.client.browser, isAllowed(grant, app, request) else {
      throw request.refusal(.stepNotOpen, because: .noConsent)
    }
  }

  private func app(of grant: Grant, _ request: RequestContext) -> App? {
    let apps = request.generation.apps
    return apps.takesFlow(with: grant) ? apps[grant.client] : nil
  }

  private func isAllowed(_ grant: Grant, _ app: App, _ request: RequestContext) -> Bool {
    switch app.consent {
    case .never: true
    case .once: grant.isAllowed || remembered(request).ids.contains(app.id)
    case .always: grant.isAllowed
    }
  }

  /// The cookie of a browser whose user has allowed the app; nil if the app is asked about each time.
  func cookie(allowing grant: Grant, _ request: RequestContext) -> SecretText? {
    guard app(of: grant, request)?.consent == .once else { return nil }
    // Without the cookie, the user is asked again.
    return try? remembered(request).adding(grant.client).cookie(keys)
  }

  private func remembered(_ request: RequestContext) -> RememberedApps {
    RememberedApps(request.client.allowedApps, of: request.client.browser, keys: keys)
  }
}

extension FlowEngine {
  /// Records that the user lets the app have the result of the flow. Only a page of the flow's browser can.
  /// - Returns: the flow, and the cookie by which the browser remembers it; nil if it need not.
  package func allowApp(_ id: FlowID, client: ClientContext) async -> Result<
    (view: FlowView, cookie: SecretText?), Refusal
  > {
    await answer(client, flow: id) { request throws(FlowError) in
      var flow = try await storage.load(id, request, as: .look)
      guard client.entryPoint == .page, let grant = flow.record.grant, flow.record.browser == client.browser,
        parts.grants.receiver(of: flow.record, request) != nil
      else { throw request.refusal(.flowNotFound, because: .otherBrowser) }
      flow.machine.allowsApp()
      try await storage.keep(flow)
      return (try await views.view(of: flow), parts.grants.cookie(allowing: grant, request))
    }
  }
}
