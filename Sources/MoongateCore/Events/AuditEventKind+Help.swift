extension AuditEvent.Kind {
  /// More than 60 lines: one case for each kind.
  /// A sentence for the reference and for `moongate help event.NAME`.
  package var help: String {
    switch self {
    case .flowBegun: "A flow began, such as a sign-in or a registration."
    case .codeSent: "A code was handed to a carrier or mail server."
    case .deliveryFailed: "A message could not be delivered; `detail` says why."
    case .codeVerified: "A step was passed: a code, PIN, password or other proof was right."
    case .stepSkipped: "A person skipped a step that may be skipped."
    case .refused: "A request was refused; `code` says why. A flood of refusals is stored as one event with a `count`."
    case .locked: "A limit locked an account, an identifier or an address after too many attempts."
    case .lockLifted: "An operator lifted a lock that a limit had set."
    case .accountCreated: "An account was created."
    case .accountLocked: "An operator locked an account."
    case .accountUnlocked: "An operator unlocked an account."
    case .accountDisabled: "An account or one of its credentials was disabled until an operator re-enables it."
    case .accountDeleted: "An account was deleted; its remaining events name no user."
    case .accountExported:
      "An operator exported everything that is stored about a person, or all accounts; `detail` says which."
    case .deviceRemoved: "A user or an operator removed a trusted device."
    case .accountRenamed: "A person changed the name of the account. The event holds neither name."
    case .accountsImported: "An operator imported accounts."
    case .groupAdded: "An operator added an account to a group; the group is in `detail`."
    case .groupRemoved: "An operator removed an account from a group; the group is in `detail`."
    case .identifierAdded: "A phone number or email address was added to an account."
    case .identifierChanged: "A phone number or email address of an account was replaced by another."
    case .identifierRemoved: "A phone number or email address was removed from an account."
    case .identityChanged:
      "A recheck found that another site says something else about an identity; the groups that were added and removed are in `detail`."
    case .factorSet: "An account set up a factor, such as a PIN or an authenticator app."
    case .factorChanged: "A factor of an account was changed."
    case .factorRemoved: "A factor of an account was removed."
    case .secretExposed:
      "A sign-in used a secret that is known from a data breach; `detail` says whether another one was offered or demanded."
    case .secretUnchecked:
      "A new secret was taken unchecked, because the list of leaked ones did not answer; `detail` says why."
    case .sessionStarted: "A completed flow opened a session or changed one."
    case .sessionExtended: "A browser took its sign-in over to another root domain (`domains`)."
    case .sessionEnded:
      "A session ended: by sign-out, by an operator, by the other site that opened it, by a recheck there, or by a change of the account."
    case .tokenCreated: "A service token or personal token was created."
    case .tokenUsed: "A token was used from a network for the first time."
    case .tokenRotated: "A token got a new secret."
    case .tokenRevoked: "A token was revoked."
    case .tokenExpired: "A token reached the end of its lifetime."
    case .invitationCreated: "An operator made an invitation; its id, its groups and its expiry are in `detail`."
    case .invitationRevoked: "An operator revoked an invitation; its id is in `detail`."
    case .invitationSent:
      "The message with an invitation was handed to a carrier or mail server; its id and the channel are in `detail`."
    case .invitationUsed: "A new account used an invitation up; its id and its groups are in `detail`."
    case .appAuthorized: "A user signed in to an app of apps.lua; the app and its scopes are in `detail`."
    case .appConsented: "A user agreed that an app gets the scopes in `detail`."
    case .appRefreshed: "An app got new tokens for an authorization, which is in `detail`."
    case .appRevoked: "The tokens of an app ended before their time; `detail` says why."
    case .appRefused:
      "`require` or `decide` of an app refused a user; `detail` has the reason, the rule and its place. A flood is stored as one event with a `count`."
    case .generationActive: "A generation of the configuration became active."
    case .generationRefused: "A changed configuration was refused; `detail` says why."
    case .reloadRequested: "An operator asked for a reload."
    case .upgradeRequested:
      "An operator asked for an upgrade: the program starts again and replaces the running process."
    case .upgradeEnded: "An upgrade ended; `detail` says whether the new program took over."
    case .shadowBegun: "An operator started a shadow candidate (`moongate policy shadow`)."
    case .shadowPromoted: "An operator made the shadow candidate active."
    case .shadowEnded: "An operator ended the shadow candidate."
    case .client: "A hosted page reported something that only the browser knows; its name is in `detail`."
    }
  }
}
