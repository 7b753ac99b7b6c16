import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `register`, `login`, `verify-email` and `resend-verification`.
extension AppAPICalls {
  var emailEndpoints: [Endpoint] {
    [
      endpoint(.register) { exchange, fields throws(Refusal) in try await register(exchange, fields) },
      endpoint(.login) { exchange, fields throws(Refusal) in
        let inputs: [String: InputValue] = [
          "email": .text(try fields.text("email")), "password": .text(try fields.text("password")),
        ]
        return complete(try await run("login_password", "password", inputs, exchange), exchange, signedIn)
      },
      endpoint(.verifyEmail) { exchange, fields throws(Refusal) in
        try await verifyEmail(exchange, fields)
      },
      endpoint(.resendVerification) { exchange, fields throws(Refusal) in
        try await resendVerification(exchange, fields)
      },
    ]
  }

  private func register(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    var inputs: [String: InputValue] = [
      "email": .text(try fields.text("email")), "password": .text(try fields.text("password")),
    ]
    for name in ["first_name", "last_name"] {
      if let text = try fields.optionalText(name) { inputs[name] = .text(text) }
    }
    guard let flow = exchange.generation.flow(for: .register(setting: "password")) else {
      throw exchange.refusal(.registrationClosed)
    }
    let invitation = try fields.invitation()
    // Without an invitation, the address would have to be verified first, which this call does not do.
    if invitation == nil, exchange.generation.accounts.registration.requiresVerification {
      throw exchange.refusal(.invitationRequired)
    }
    var driven = try await run(flow.name, "password", inputs, invitation: invitation, exchange)
    // `verify-email` verifies the address later, so a skippable step for it is skipped here.
    while driven.view.status == .pending {
      let before = driven
      do throws(Refusal) {
        driven = try await driver.drive(exchange, as: before) { engine, client in
          await engine.skip(before.view.id, client: client)
        }
      } catch {
        return another(before, exchange)
      }
      driven.cookies = before.cookies + driven.cookies
      driven.browser = before.browser
    }
    if let token = driven.view.session?.token, let session = try await driver.session(of: token, exchange) {
      // The account exists, whether or not the mail was sent. A failure is recorded in the audit trail, and
      // resend-verification tries again.
      _ = try? await sendVerification(in: session, exchange)
    }
    return complete(driven, exchange, signedIn, status: .created)
  }

  private func verifyEmail(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    let own = try await sessions.signedIn(exchange)
    let code = try fields.text("code")
    guard let flow = try await verification(in: own, exchange) else { throw exchange.refusal(.flowNotFound) }
    let driven = try await driver.drive(exchange) { engine, client in
      await engine.submit(flow.id, fields: ["code": .text(code)], client: client)
    }
    return complete(driven, exchange) { account, token in
      .members(["message": .text("Success"), "user": user(account), "token": .text(token.reveal())])
    }
  }

  /// The flow whose code the session may enter: its own flow, or the flow in which another session had a code mailed to
  /// the account's address.
  private func verification(in own: SessionSnapshot, _ exchange: Exchange) async throws(Refusal) -> RememberedFlows
    .Entry?
  {
    var mailed: RememberedFlows.Entry?
    if let address = own.unverifiedEmail { mailed = try await remembered.find(.address(address), exchange) }
    guard let newer = mailed, newer.account == own.account.id, newer.session != own.session.id else {
      return try await remembered.find(.verification(session: own.session.id), exchange)
    }
    try await driver.engine.adopt(newer.id, client: try await driver.caller(exchange)).get()
    let keys =
      [RememberedFlows.Key.verification(session: own.session.id)] + (own.unverifiedEmail.map { [.address($0)] } ?? [])
    let adopted = newer.with(session: own.session.id)
    try await remembered.put(adopted, under: keys, exchange)
    return adopted
  }

  /// Gives the same answer for unknown and verified addresses, to which nothing is mailed. Without a session, the mail
  /// goes to the account that registered the address last without verifying it. The code works only in the app of that
  /// session.
  private func resendVerification(_ exchange: Exchange, _ fields: CallFields) async throws(Refusal) -> Response {
    let typed = try fields.text("email")
    let address: String
    do throws(InputProblem) {
      address = try ProviderInput(fields: ["email": .text(typed)], defaultRegion: exchange.gateway.region).email().value
    } catch {
      throw exchange.refusal(.invalidEmail, field: "email")
    }
    let sent = JSONValue.members(["message": .text("Verification email sent")])
    if let own = try await driver.session(exchange), own.isHolder(of: address) {
      if own.unverifiedEmail != nil { try await sendVerification(in: own, exchange) }
    } else if let flow = try await remembered.find(.address(address), exchange) {
      let found = try await exchange.mappingFaults { () async throws(StoreFault) -> SessionSnapshot? in
        let live = try await driver.sessions.sessions(of: flow.account)
        guard let session = live.first(where: { $0.id == flow.session }) ?? live.first else { return nil }
        return try await driver.sessions.find(session.token)
      }
      if let own = found, own.unverifiedEmail != nil { _ = try? await sendVerification(in: own, exchange) }
    }
    return .json(sent)
  }

  /// Mails a code to the unverified address of the account, in the session's flow if there is one.
  private func sendVerification(in session: SessionSnapshot, _ exchange: Exchange) async throws(Refusal) {
    let key = RememberedFlows.Key.verification(session: session.session.id)
    if let flow = try await remembered.find(key, exchange) {
      do throws(Refusal) {
        _ = try await driver.drive(exchange, in: session) { engine, client in
          await engine.resend(flow.id, client: client)
        }
        return
      } catch {
        // That flow has ended, so a new one is begun.
        guard [.flowNotFound, .flowExpired, .stepNotOpen].contains(error.code) else { throw error }
      }
    }
    let begun = try await run(name(of: .verify(.email), exchange), "email_code", [:], in: session, exchange)
    guard let address = session.unverifiedEmail else { return }
    try await remembered.put(begun.view, under: [key, .address(address)], for: session, exchange)
  }
}

extension SessionSnapshot {
  /// The account's unverified email address.
  fileprivate var unverifiedEmail: String? {
    account.identifiers.first { $0.identifier.kind == .email && $0.verifiedAt == nil }?.identifier.value
  }

  fileprivate func isHolder(of address: String) -> Bool {
    account.identifiers.contains { $0.identifier.kind == .email && $0.identifier.value == address }
  }
}
