import MoongateCore
import MoongateSDK

/// The state of a page of `/auth/step`.
struct StepForm {
  /// The prefix of provider fields in the form, so that they cannot collide with the page's own fields.
  static let prefix = "field."

  let flow: String
  let flowPurpose: FlowPurpose
  let returnTo: String?
  /// Nil: the user selects one of the choices.
  var provider: ProviderName?
  var choices: [ProviderName]
  /// The flow, if it is begun.
  var id: String?
  /// The step, if it is open.
  var step: StepView?
  /// Whether the step sets up a factor that accounts.lua requires.
  var isEnrolling = false
  /// Whether no other step was passed before it in this flow.
  var isFirst = true
  /// Whether the code provider must be told where to send its code.
  var asksRecipient = false
  /// Whether a step that has not begun can be skipped.
  var canSkip = false
  /// Whether the user has chosen to stay signed in; nil if the page does not offer that.
  var isRemembered: Bool?
  /// Whether the step authorizes a change. Only providers that can do so are offered.
  var isForChange = false
  /// The name of the text.
  var notice: String?
  /// The name of the refusal from the provider's site.
  var refused: String?
  /// The PIN page that passes the same step, for users who do not use the ceremony.
  var pad: (label: String, address: String)?
  /// The page for users who have lost the factor; nil if there is no alternative.
  var lost: String?
  /// Why the step is required; nil if no service requires it.
  var reason: String?
  /// The target for users who skip the offer; nil if it is not an offer.
  var skip: String?
  /// The item that the step concerns; nil if none was selected.
  var item: HeldItem?
  /// Input that was typed before.
  var typed: FormFields = .empty

  init(flow: String, purpose: FlowPurpose, returnTo: String?, provider: ProviderName?, choices: [ProviderName]) {
    self.flow = flow
    flowPurpose = purpose
    self.returnTo = returnTo
    self.provider = provider
    self.choices = choices
  }

  /// The purpose of the provider's step.
  func purpose(of provider: ProviderName) -> StepPurpose { isEnrolling ? .set : flowPurpose.step(of: provider) }

  /// The purpose of the step at the provider; a proof if no provider is selected.
  func purpose(of provider: ProviderPage?) -> StepPurpose { provider.map { purpose(of: $0.name) } ?? .prove }
}
