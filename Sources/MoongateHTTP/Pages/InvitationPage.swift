import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/invite?code=…`: the link of an invitation. It opens the registration, with the address or number of the
/// invitation filled in.
///
/// Attack: the code ends up in a log or in the `Referer` of another site. The page only stores it in a cookie and
/// redirects, so that no page has it in its address; logs of the gateway contain no query.
///
/// Attack: a scanner of mail opens the link before the user does. Nothing is used up until an account is created.
struct InvitationPage: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.invitation) { exchange throws(Refusal) in
        let query = try exchange.query()
        guard exchange.generation.accounts.registration != .closed else {
          throw exchange.refusal(.registrationClosed)
        }
        let code = SecretText(query["code"] ?? "")
        let found = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await driver.engine.storedInvitation(code)
        }
        guard let found, found.problem == nil else {
          var refusal = exchange.refusal(.invitationInvalid)
          refusal.invitationProblem = found?.problem
          throw refusal
        }
        let address = FormFields.address(
          PagePath.register,
          ["with": found.invitation.method?.rawValue, "return_to": exchange.targets.accept(query["return_to"])])
        return exchange.redirect(to: address, [exchange.cookies.invite(code)])
      }
    ]
  }
}

extension Invitation {
  /// The method of the registration page that takes what the invitation is for; nil: any.
  fileprivate var method: SignInPage.SignInMethod? {
    switch identifier?.kind {
    case .phone: .phone
    case .email: .email
    default: nil
    }
  }
}
