import Hummingbird
import MoongateCore
import MoongateSDK

/// Creates an invitation and sends it.
package typealias InvitationSender =
  @Sendable (NewInvitation, _ language: String?, _ by: AccountAdministration, ClientContext) async throws(StoreFault) ->
  InvitationSending

/// `/invitations`: manages invitations. `moongate invite` does the same, with the same fields.
struct InvitationCalls: Sendable {
  /// The number of invitations per page.
  private static let most = 1_000

  let administration: AccountAdministration
  let clock: any GatewayClock
  let adminGuard: AdminGuard
  let suggestion: AdminQuery.Suggestion
  let send: InvitationSender

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .invitations) { exchange throws(Refusal) in
        let after = try AdminQuery(exchange, known: ["after"], suggestion: suggestion)["after"]
        let found = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.invitations(after: after, limit: Self.most)
        }
        return .json(.list(found.map { .object(document($0)) }))
      },
      Endpoint(.call, .createInvitation) { exchange throws(Refusal) in try await create(exchange) },
      Endpoint(.call, .revokeInvitation) { exchange throws(Refusal) in
        let id = exchange.parameters[0]
        let administration = administration.acting(as: adminGuard.identity(exchange))
        let outcome = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.revokeInvitation(id)
        }
        guard outcome == .done else { throw exchange.refusal(.notFound, detail: "There is no such invitation.") }
        return .nothing
      },
    ]
  }

  private func create(_ exchange: Exchange) async throws(Refusal) -> Response {
    let query = try AdminQuery(exchange, known: ["as"], suggestion: suggestion)
    let fields = try await CallFields(exchange)
    let (isSent, language) = (try fields.optionalFlag("send") ?? false, try fields.optionalText("language"))
    guard isSent || language == nil else {
      throw exchange.refusal(.invalidInput, detail: "`language` needs `send`.", field: "language")
    }
    let wanted = try wanted(fields, exchange)
    let identity = adminGuard.identity(exchange, claiming: query["as"])
    if isSent { return try await sent(wanted, in: language, by: identity, exchange) }
    let administration = administration.acting(as: identity)
    let made = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await administration.createInvitation(wanted)
    }
    return .json(.object(document(made.invitation) + secrets(of: made, exchange)), status: .created)
  }

  private func wanted(_ fields: CallFields, _ exchange: Exchange) throws(Refusal) -> NewInvitation {
    let (recipient, groups, expires) = (
      try fields.optionalText("recipient"), try fields.texts("groups"), try fields.optionalText("expires")
    )
    do throws(OperatorInputProblem) {
      return try administration.newInvitation(
        for: recipient, groups: groups, expires: expires, exchange.generation)
    } catch {
      throw exchange.refusal(.invalidInput, detail: error.sentence, field: error.field)
    }
  }

  /// Creates an invitation and sends it. Nobody but the user gets the code, unless the message could not be sent.
  private func sent(
    _ wanted: NewInvitation, in language: String?, by identity: OperatorIdentity, _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let client = ClientContext(
      decision: exchange.decision, address: exchange.client.address, userAgent: nil, browser: nil, session: nil)
    let outcome = try await exchange.mappingFaults { () async throws(StoreFault) in
      try await send(wanted, language, administration.acting(as: identity), client)
    }
    switch outcome {
    case .sent(let invitation):
      return .json(
        .object(document(invitation) + [JSONMember(name: "sent", value: .flag(true))]), status: .created)
    case .failed(let made, let fault):
      let failure = [
        JSONMember(name: "sent", value: .flag(false)), JSONMember(name: "fault", value: .text(fault)),
      ]
      return .json(.object(document(made.invitation) + secrets(of: made, exchange) + failure), status: .created)
    case .refused(let problem):
      throw exchange.refusal(.invalidInput, detail: problem.sentence, field: problem.field)
    case .limited(let until):
      // Attack: of several operators, one floods users. The audit trail names who it was.
      throw exchange.recorder.record(
        Refusal(
          .rateLimited, decision: exchange.decision,
          detail: "Too many invitations were sent. The next one can be sent at \(until.text). "
            + "Or create it without `--send` and give the link to the user.",
          retryAfter: until - clock.now()),
        from: exchange.client.address, fault: nil, detail: identity.detail)
    }
  }

  /// What only this answer contains.
  private func secrets(of made: CreatedInvitation, _ exchange: Exchange) -> [JSONMember] {
    [
      JSONMember(name: "code", value: .text(made.code.reveal())),
      JSONMember(name: "link", value: .text(exchange.gateway.publicURL.link(ofInvitation: made.code))),
    ]
  }

  private func document(_ invitation: Invitation) -> [JSONMember] {
    [
      JSONMember(name: "id", value: .text(invitation.id)),
      JSONMember(name: "recipient", value: .optional(invitation.identifier?.value)),
      JSONMember(name: "groups", value: .list(invitation.groups.map { .text($0.rawValue) })),
      JSONMember(name: "created_at", value: .text(invitation.createdAt.text)),
      JSONMember(name: "expires_at", value: .text(invitation.expiresAt.text)),
    ]
  }
}
