/// What `step.mustache` shows: a step of a flow, with what the user reads, types or chooses.
struct StepModel: PageModel {
  static let template = PageTemplate.step
  static let isForFrames = true

  struct Field: Decodable {
    let name: String
    let label: String
    let type: String
    let inputmode: String
    let autocomplete: String
    let maxlength: Int
    let isDigits: Bool
    let isRequired: Bool
    let isInvalid: Bool
    let isFocused: Bool
    let isOff: Bool
    /// Input that was typed before, except secrets.
    let value: String?
    /// The options of a choice.
    let options: [Option]
    let isChoice: Bool
    /// One element for each digit of a code with known length.
    let boxes: [Bool]
    let hasBoxes: Bool
  }

  /// An option of a field.
  struct Option: Decodable {
    /// The name of the field in the form.
    let group: String
    let value: String
    let text: String
    /// Whether it is preselected because it is the only one.
    let isOnly: Bool
  }

  /// The numbered stages of a setup: what is shown, then what the user types.
  struct Stage: Decodable {
    let shown: String
    let shownLabel: String
    /// Nil if nothing is typed.
    var typed: String?
    var typedLabel: String?
  }

  struct Choice: Decodable {
    let name: String
    let label: String
  }

  /// Exactly one of these is set.
  struct Part: Decodable {
    var text: String?
    var secret: String?
    var picture: String?
    /// The link of the picture, for users whose authenticator app is on the same device.
    var app: String?
    var list: List?
  }

  struct List: Decodable {
    let items: [String]
  }

  /// A call of the Web Authentication API, for scripts.
  struct Ceremony: Decodable {
    /// The form field for the answer, and the options as JSON; nil before the step is begun.
    let field: String?
    let call: String?
    let options: String?
    /// Whether the page starts it on arrival.
    let isAutomatic: Bool
    /// The messages if the user cancels or takes too long, if the device already has a credential of the account, if
    /// the call fails, and if the browser does not support it.
    let cancelled: String
    let known: String
    let failed: String
    let unavailable: String
  }

  let heading: String
  let reason: String?
  let instruction: String?
  let sentLine: String?
  let sentTo: String?
  let parts: [Part]
  let stage: Stage?
  /// Whether the page shows a list that the user has to save.
  let isList: Bool
  let fields: [Field]
  /// Optional fields, collapsed behind their labels.
  let more: [Field]
  let ceremony: Ceremony?
  let isCeremony: Bool
  let choices: [Choice]
  let id: String?
  let flow: String
  let with: String?
  let returnTo: String?
  let back: String?
  let button: String
  let notice: String?
  let problem: String?
  /// Whether the message is neutral, such as after cancelling.
  let isCalm: Bool
  let code: String?
  let state: String
  let wait: Countdown?
  /// The address of this page.
  let here: String
  let confirms: String?
  let isOff: Bool
  let canResend: Bool
  let countdown: Countdown?
  /// Whether the page offers to keep the user signed in.
  let offersRemember: Bool
  let isRemembered: Bool
  let canSkip: Bool
  /// The target of "Skip for now", if the page is an offer.
  let skip: String?
  /// The id and name of the item that the step concerns.
  let item: Choice?
  /// Another provider that passes the step.
  let instead: Choice?
  /// The page for users who have lost the factor.
  let lost: String?
  let stressesSupport: Bool
}
