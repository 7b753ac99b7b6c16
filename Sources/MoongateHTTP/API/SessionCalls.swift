import Hummingbird
import MoongateCore

/// `/api/auth/session` and `/api/auth/sessions`: the current session, and all sessions of the account.
package struct SessionCalls: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .session, servesAllDomains: true) { exchange throws(Refusal) in
        let found = try await signedIn(exchange)
        return .json(
          .members([
            "account": .account(AccountView(found.account, isNew: false, pads: exchange.generation.pads)),
            "session": .session(SessionView(found.session, token: nil)),
          ]))
      }.inFrames,
      Endpoint(.call, .signOut, servesAllDomains: true) { exchange throws(Refusal) in
        try await signOut(exchange)
      }.inFrames,
      Endpoint(.call, .sessions) { exchange throws(Refusal) in
        let own = try await signedIn(exchange).session
        let all = try await sessions(of: own.account, exchange)
        return .json(.list(all.map { .listed($0, isCurrent: $0.id == own.id) }))
      },
      Endpoint(.call, .endSessions) { exchange throws(Refusal) in
        try await endOthers(exchange)
      },
      Endpoint(.call, .endSession) { exchange throws(Refusal) in
        let own = try await signedIn(exchange).session
        // Looks only among the user's own sessions, so that it does not reveal whether another user has such a session.
        guard
          let session = try await sessions(of: own.account, exchange).first(where: { $0.id == exchange.parameters[0] })
        else {
          throw exchange.refusal(.notFound)
        }
        try await end(session, exchange)
        var response = Response.nothing
        if session.id == own.id { response.setCookies(exchange.cookies.signOut()) }
        return response
      },
    ]
  }

  /// Ends the session of the request, or the session that has replaced the token of the request.
  package func signOut(_ exchange: Exchange) async throws(Refusal) -> Response {
    if let found = try await driver.session(exchange) {
      try await end(found.session, exchange)
    } else {
      let isEnded = try await exchange.mappingFaults { () async throws(StoreFault) in
        guard let token = exchange.credentials.session else { return false }
        return try await ending.end(replaced: token, by: exchange.client.address)
      }
      guard isEnded else { throw exchange.refusal(.unauthenticated) }
    }
    var response = Response.nothing
    response.setCookies(exchange.cookies.signOut())
    return response
  }

  /// Ends all other sessions of the account; `?all=true` also ends the session of the request. With a token that was
  /// replaced, ends the session that has replaced it.
  private func endOthers(_ exchange: Exchange) async throws(Refusal) -> Response {
    let all = try exchange.query()["all"] ?? "false"
    guard ["true", "false"].contains(all) else {
      throw exchange.refusal(.invalidInput, detail: "all must be true or false.", field: "all")
    }
    if try await driver.session(exchange) == nil { return try await signOut(exchange) }
    let keepsOwn = all == "false"
    try await driver.engine.signOutEverywhere(keepsOwn: keepsOwn, client: try await driver.caller(exchange)).get()
    var response = Response.nothing
    if !keepsOwn { response.setCookies(exchange.cookies.signOut()) }
    return response
  }

  /// - Throws: 401 without a live session.
  package func signedIn(_ exchange: Exchange) async throws(Refusal) -> SessionSnapshot {
    guard let found = try await driver.session(exchange) else { throw exchange.unauthenticated() }
    return found
  }

  func end(_ session: Session, _ exchange: Exchange) async throws(Refusal) {
    try await exchange.mappingFaults { () async throws(StoreFault) in
      try await ending.end(session, by: exchange.client.address)
    }
  }

  private func sessions(of account: String, _ exchange: Exchange) async throws(Refusal) -> [Session] {
    try await exchange.mappingFaults { () async throws(StoreFault) in try await driver.sessions.sessions(of: account) }
  }
}
