/// What `pin.mustache` shows: the digits of a passcode, and of the code that replaces it.
struct PINModel: PageModel {
  static let template = PageTemplate.pin
  static let isForFrames = true

  struct Field: Decodable {
    let name: String
    let label: String
    let autocomplete: String
    /// The digits of a code may be visible; those of a passcode must not.
    let isSecret: Bool
    let length: Int
  }

  /// A ceremony that passes the same step.
  struct Alternative: Decodable {
    let provider: String
    let label: String
    /// Whether the page starts it on arrival.
    let isAutomatic: Bool
  }

  let heading: String
  /// Why the passcode is required; nil if no service requires it.
  let reason: String?
  /// The masked identifier of the account, for users who share the device.
  let whose: String?
  let isLock: Bool
  let isForgotten: Bool
  let forgotMessage: String
  let forgotButton: String
  let canForget: Bool
  let fields: [Field]
  let button: String
  let action: String
  let id: String?
  let flow: String
  let returnTo: String?
  let back: String
  let forgot: String
  /// The address of this page.
  let here: String
  let sentTo: String?
  let state: String
  let notice: String?
  let problem: String?
  let code: String?
  let wait: Countdown?
  let waitLabel: String
  /// The time until another code can be sent; nil if one can be sent now.
  let resend: Countdown?
  /// The action on completion, for scripts.
  let then: String
  let confirms: String?
  let checks: Bool
  /// The field names of the current and the new secret, for scripts.
  let current: String
  let new: String
  let resetFlow: String?
  /// An alternative to the digits.
  let instead: Alternative?
  /// The target of "Skip for now", if the page is an offer.
  let skip: String?
  let isOff: Bool
  let stressesSupport: Bool
}
