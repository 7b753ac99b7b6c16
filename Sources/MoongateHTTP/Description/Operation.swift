import HTTPTypes
import MoongateCore

/// The description of an API endpoint. `openapi.json` is generated from these. Each is attached to its endpoint, so the
/// document cannot omit one.
struct Operation: Sendable {
  /// The content of an answer.
  enum Content: Sendable {
    case nothing
    case json(JSONValue)
    /// Text of a media type.
    case text(String)
  }

  /// A parameter of the query.
  struct Query: Sendable {
    let name: String
    let help: String
    let isRequired: Bool
    let schema: JSONValue
  }

  /// `operationId`.
  let id: String
  let method: HTTPRequest.Method
  /// The path, with a name in braces for each variable segment: `/api/auth/flows/{flow}`.
  let path: String
  let summary: String
  /// The section of the document that it belongs to.
  let tag: Tag
  var query: [Query] = []
  var body: JSONValue?
  /// The status of the successful answer.
  let status: Int
  let content: Content
  /// Whether it requires a session.
  var needsSession = false
  /// Whether a call of the admin listener requires no token.
  var isOpen = false
  /// Refusals in addition to those of every call.
  var refusals: [RefusalCode] = []
  /// Successful answers with other statuses.
  var otherAnswers: [Int: JSONValue] = [:]
  /// Other media types in which it can answer if the request asks for them.
  var otherTypes: [String] = []

  enum Tag: String, Sendable, CaseIterable {
    case flows = "Flows"
    case sessions = "Sessions"
    case account = "Account"
    case apps = "Calls for apps"
    case more = "More"
    // Tags of the admin listener.
    case people = "People and locks"
    case programs = "Tokens of programs"
    case trail = "Audit trail"
    case operation = "Operation"

    static let ofAPI: [Tag] = [.flows, .sessions, .account, .apps, .more]
    static let ofAdmin: [Tag] = [.people, .programs, .trail, .operation]
  }

  /// The names of the variable segments of the path, in order.
  var parameters: [String] {
    path.split(separator: "/").filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
  }

  /// All possible refusals. They include `not_found`, because hosts of further root domains (`domains`) serve only some
  /// calls.
  var allRefusals: [RefusalCode] {
    var all: [RefusalCode] = [.badRequest, .notFound, .storeUnavailable] + refusals
    if body != nil { all += [.notJSON, .timeout, .tooLarge, .originRefused] }
    if !query.isEmpty || body != nil { all.append(.invalidInput) }
    if needsSession { all.append(.unauthenticated) }
    return all
  }
}

extension [RefusalCode] {
  /// Refusals of every step.
  static let steps: [RefusalCode] = [
    .flowNotFound, .flowExpired, .stepNotOpen, .denied, .disabled, .unauthenticated, .tooManyAttempts, .rateLimited,
    .policyError, .busy,
  ]
  /// Refusals of a step that sends a message.
  static let sending: [RefusalCode] =
    steps + [
      .sendLimit, .resendTooSoon, .deliveryFailed, .accountNotFound, .alreadyRegistered, .invalidPhone, .invalidEmail,
      .stepUpRequired,
      .identifierTooNew,
    ]
  /// Refusals of a step that checks an answer.
  static let judging: [RefusalCode] =
    steps + [
      .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .codeExpired, .alreadyRegistered,
      .alreadySet, .noPIN, .weakPIN,
      .pinMismatch, .weakPassword, .stepUpRequired, .identifierTooNew, .emailNotVerified, .accountNotFound,
    ]
}
