/// What was found when a request was refused, where the code and the rule do not say it. For operators only: a client
/// never learns it. The name is in the event's `detail`, and `moongate policy explain` shows the sentence.
package enum RefusalCause: String, Sendable, CaseIterable {
  case operatorLock = "operator_lock"
  case accountUnavailable = "account_unavailable"
  case accountChanged = "account_changed"
  case accountDeleted = "account_deleted"
  case noAccount = "no_account"
  case foreignIdentifier = "foreign_identifier"
  case noSession = "no_session"
  case sessionEnded = "session_ended"
  case otherSession = "other_session"
  case unknownFlow = "unknown_flow"
  case otherBrowser = "other_browser"
  case lifetimeOver = "lifetime_over"
  case flowOver = "flow_over"
  case changedMeanwhile = "changed_meanwhile"
  case noStepApplies = "no_step_applies"
  case nothingProved = "nothing_proved"
  case appRemoved = "app_removed"
  case pagesOnly = "pages_only"
  case noConsent = "no_consent"

  /// The detail of the event of a request without the live session that it needs.
  /// - Parameter token: the session token of the request; nil if it has none.
  package static func detail(ofSessionToken token: TokenHash?) -> [String: String] {
    var detail = ["cause": (token == nil ? Self.noSession : Self.sessionEnded).rawValue]
    detail["session_hash"] = token?.trace
    return detail
  }

  /// A sentence for operators.
  package var sentence: String {
    switch self {
    case .operatorLock: "An operator has locked the account."
    case .accountUnavailable: "The account was locked or deleted while the request was handled."
    case .accountChanged:
      "The account has changed since the flow identified it: a reset, a changed or removed factor or identifier, a lock, or signing out everywhere."
    case .accountDeleted: "The account that the flow identified has been deleted."
    case .noAccount: "The flow is for existing accounts, and what was proved belongs to none."
    case .foreignIdentifier: "The identifier or identity does not belong to the account of the flow."
    case .noSession: "The request had no session token."
    case .sessionEnded: "The session token of the request belongs to no live session of this host."
    case .otherSession: "The flow was begun in another session of the browser."
    case .unknownFlow: "No flow has this id: it was completed or cancelled long ago, evicted, or never created."
    case .otherBrowser: "The flow belongs to another browser, or to an app, and not to the client of this request."
    case .lifetimeOver: "The lifetime of the flow has ended."
    case .flowOver: "The flow has ended already."
    case .changedMeanwhile: "Another request has changed the flow first, such as a second click on the same button."
    case .noStepApplies: "No step of the flow applies to this request."
    case .nothingProved: "Every step of the flow was skipped or did not apply, so nothing was proved."
    case .appRemoved: "The app of the flow, or its redirect URI, is no longer in apps.lua."
    case .pagesOnly: "The flow is for an app, so only the pages of its browser continue it, and not the API."
    case .noConsent: "The flow is for an app, and the user has not agreed yet that the app receives the result."
    }
  }
}
