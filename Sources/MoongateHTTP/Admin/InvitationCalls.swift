import Hummingbird
import MoongateCore
import MoongateSDK

/// `/invitations`: manages invitations. `moongate invite` does the same, with the same fields.
struct InvitationCalls: Sendable {
  /// The number of invitations per page.
  private static let most = 1_000

  let administration: AccountAdministration
  let adminGuard: AdminGuard
  let suggestion: AdminQuery.Suggestion

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .invitations) { exchange throws(Refusal) in
        let after = try AdminQuery(exchange, known: ["after"], suggestion: suggestion)["after"]
        let found = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.invitations(after: after, limit: Self.most)
        }
        return .json(.list(found.map { .object(document($0)) }))
      },
      Endpoint(.call, .createInvitation) { exchange throws(Refusal) in
        let fields = try await CallFields(exchange)
        let (recipient, groups, expires) = (
          try fields.optionalText("recipient"), try fields.texts("groups"), try fields.optionalText("expires")
        )
        let wanted: NewInvitation
        do throws(OperatorInputProblem) {
          wanted = try administration.newInvitation(
            for: recipient, groups: groups, expires: expires, exchange.generation)
        } catch {
          throw exchange.refusal(.invalidInput, detail: error.sentence, field: error.field)
        }
        let administration = administration.acting(as: adminGuard.identity(exchange))
        let made = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.createInvitation(wanted)
        }
        let secrets = [
          JSONMember(name: "code", value: .text(made.code.reveal())),
          JSONMember(name: "link", value: .text(exchange.gateway.publicURL.link(ofInvitation: made.code))),
        ]
        return .json(.object(document(made.invitation) + secrets), status: .created)
      },
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
