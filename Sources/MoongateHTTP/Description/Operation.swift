import HTTPTypes
import MoongateCore

/// The description of an API endpoint. `openapi.json` is generated from these. Each is attached to its endpoint, so the
/// document cannot omit one.
package struct Operation: Sendable {
  /// The content of an answer.
  package enum Content: Sendable {
    case nothing
    case json(JSONValue)
    /// Text of a media type.
    case text(String)
  }

  /// A parameter of the query.
  package struct Query: Sendable {
    let name: String
    let help: String
    let isRequired: Bool
    let schema: JSONValue
  }

  /// `operationId`.
  let id: String
  let method: HTTPRequest.Method
  /// The path, with a name in braces for each variable segment: `/api/auth/flows/{flow}`.
  package let path: String
  let summary: String
  /// The section of the document that it belongs to.
  let tag: Tag
  let query: [Query]
  let body: JSONValue?
  /// The status of the successful answer.
  let status: Int
  let content: Content
  /// Whether it requires a session.
  let needsSession: Bool
  /// Whether a call of the admin listener requires no token.
  let isOpen: Bool
  /// Refusals in addition to those of every call.
  let refusals: [RefusalCode]
  /// Successful answers with other statuses.
  let otherAnswers: [Int: JSONValue]
  /// Other media types in which it can answer if the request asks for them.
  let otherTypes: [String]

  /// More than five parameters: one for each field.
  package init(
    id: String, method: HTTPRequest.Method, path: String, summary: String, tag: Tag, query: [Query] = [],
    body: JSONValue? = nil, status: Int, content: Content, needsSession: Bool = false, isOpen: Bool = false,
    refusals: [RefusalCode] = [], otherAnswers: [Int: JSONValue] = [:], otherTypes: [String] = []
  ) {
    self.id = id
    self.method = method
    self.path = path
    self.summary = summary
    self.tag = tag
    self.query = query
    self.body = body
    self.status = status
    self.content = content
    self.needsSession = needsSession
    self.isOpen = isOpen
    self.refusals = refusals
    self.otherAnswers = otherAnswers
    self.otherTypes = otherTypes
  }

  /// A section of the document.
  package struct Tag: Sendable, Hashable {
    let name: String

    package init(_ name: String) { self.name = name }

    static let flows = Tag("Flows")
    static let sessions = Tag("Sessions")
    static let account = Tag("Account")
    package static let more = Tag("More")
    // Tags of the admin listener.
    static let people = Tag("People and locks")
    static let programs = Tag("Tokens of programs")
    static let trail = Tag("Audit trail")
    static let operation = Tag("Operation")

    static let ofAPI: [Tag] = [.flows, .sessions, .account, .more]
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
  package static let steps: [RefusalCode] = [
    .flowNotFound, .flowExpired, .stepNotOpen, .denied, .disabled, .unauthenticated, .tooManyAttempts, .rateLimited,
    .policyError, .busy,
  ]
  /// Refusals where an account would be created.
  package static let registering: [RefusalCode] = [.registrationClosed, .invitationRequired, .invitationInvalid]
  /// Refusals of a step that sends a message.
  package static let sending: [RefusalCode] =
    steps + [
      .sendLimit, .resendTooSoon, .deliveryFailed, .accountNotFound, .registrationClosed, .invitationRequired,
      .alreadyRegistered, .invalidPhone, .invalidEmail, .stepUpRequired, .identifierTooNew,
    ]
  /// Refusals of a step that checks an answer.
  package static let judging: [RefusalCode] =
    steps + [
      .invalidCode, .invalidPIN, .invalidPassword, .oauthFailed, .oauthCancelled, .codeExpired, .alreadyRegistered,
      .alreadySet, .noPIN, .weakPIN,
      .pinMismatch, .weakPassword, .stepUpRequired, .identifierTooNew, .emailNotVerified, .accountNotFound,
    ] + registering
}
