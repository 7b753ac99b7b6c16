/// What `code.mustache` shows: the boxes of a code, where it was sent, and what else the user can do.
struct CodeModel: PageModel {
  static let template = PageTemplate.code
  static let isForFrames = true

  /// Another provider that can send a code to the same identifier.
  struct Fallback: Decodable {
    let provider: String
    let label: String
  }

  let heading: String
  let isEmail: Bool
  let length: Int
  /// One element for each character.
  let boxes: [Bool]
  let isDigits: Bool
  let label: String
  let sentLine: String
  let sentTo: String
  /// The address at which the identifier can be changed.
  let edit: String?
  let editLabel: String
  let editTitle: String
  let editAction: String?
  let editField: String
  let editWay: String
  /// The flow of the dialog that changes the identifier.
  let editFlow: String
  let back: String
  let other: String
  let action: String
  let id: String
  let flow: String
  let returnTo: String?
  /// Whether the user has chosen to stay signed in, which another flow for the same user keeps.
  let isRemembered: Bool
  let region: String
  let callingCode: String
  /// Whether a new flow can be begun for the same identifier.
  let canStartAnew: Bool
  var notice: String?
  var problem: String?
  /// The error code, for scripts.
  var code: String?
  var isInvalid = false
  /// `open`, `wrong`, `expired` or `locked`.
  var state: String
  /// Whether a code can be entered.
  let isOpen: Bool
  let isExpired: Bool
  let isLocked: Bool
  let canResend: Bool
  let countdown: Countdown?
  let lock: Countdown?
  /// In milliseconds.
  let expiresIn: Int64?
  /// The other providers of a `fallback` that can send a code.
  let fallbacks: [Fallback]
  let canSkip: Bool
  let help: String
  let stressesSupport: Bool
}
