import HTTPTypes
import MoongateCore

/// What one endpoint of the API takes and answers. `openapi.json` is written from these, and each hangs on its
/// endpoint: there is no list that could be forgotten.
struct Operation: Sendable {
  /// What an answer holds.
  enum Content: Sendable {
    case nothing
    case json(JSONValue)
    /// Of a media type.
    case text(String)
  }

  /// One field of the query.
  struct Query: Sendable {
    let name: String
    let help: String
    let isRequired: Bool
    let schema: JSONValue
  }

  /// `operationId`.
  let id: String
  let summary: String
  /// The part of the manual that it belongs to.
  let tag: Tag
  /// What stands in the place of each `{}` of the path.
  var path: [String] = []
  var query: [Query] = []
  var body: JSONValue?
  /// The answer where all is well.
  let status: Int
  let content: Content
  /// Whether it is nothing without a session.
  var needsSession = false
  /// Whether a call of the admin listener asks for no token.
  var isOpen = false
  /// What it may be refused with, besides what everything may.
  var refusals: [RefusalCode] = []
  /// Answers of other statuses that are no refusals.
  var otherAnswers: [Int: JSONValue] = [:]
  /// Media types in which it answers as well, where the request asks for them.
  var otherTypes: [String] = []

  enum Tag: String, Sendable, CaseIterable {
    case flows = "Flows"
    case sessions = "Sessions"
    case account = "Account"
    case apps = "Calls for apps"
    case more = "More"
    // Of the admin listener.
    case people = "People and locks"
    case programs = "Tokens of programs"
    case trail = "Audit trail"
    case operation = "Operation"

    static let ofAPI: [Tag] = [.flows, .sessions, .account, .apps, .more]
    static let ofAdmin: [Tag] = [.people, .programs, .trail, .operation]
  }

  /// Everything that it may be refused with. It may not be found, since hosts of further root domains (`domains`)
  /// answer few calls.
  var allRefusals: [RefusalCode] {
    var all: [RefusalCode] = [.badRequest, .notFound, .storeUnavailable] + refusals
    if body != nil { all += [.notJSON, .timeout, .tooLarge, .originRefused] }
    if !query.isEmpty || body != nil { all.append(.invalidInput) }
    if needsSession { all.append(.unauthenticated) }
    return all
  }
}

extension [RefusalCode] {
  /// Of every step.
  static let steps: [RefusalCode] = [
    .flowNotFound, .flowExpired, .stepNotOpen, .denied, .disabled, .unauthenticated, .tooManyAttempts, .rateLimited,
    .policyError, .busy,
  ]
  /// Of a step that sends something.
  static let sending: [RefusalCode] =
    steps + [
      .sendLimit, .resendTooSoon, .deliveryFailed, .accountNotFound, .alreadyRegistered, .invalidPhone, .invalidEmail,
      .stepUpRequired,
      .identifierTooNew,
    ]
  /// Of a step that judges something.
  static let judging: [RefusalCode] =
    steps + [
      .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .codeExpired, .alreadyRegistered,
      .alreadySet, .noPIN, .weakPIN,
      .pinMismatch, .weakPassword, .stepUpRequired, .identifierTooNew, .emailNotVerified, .accountNotFound,
    ]
}
