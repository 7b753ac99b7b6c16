import MoongateCore
import MoongateSDK

/// What a page of `/auth/step` is about.
struct StepForm {
  /// Before the names of a provider's fields, so that none of them is one of ours.
  static let prefix = "field."

  let flow: String
  let flowPurpose: FlowPurpose
  let returnTo: String?
  /// nil: one of the choices is to be taken.
  var provider: ProviderName?
  var choices: [ProviderName]
  /// The flow, where it is begun.
  var id: String?
  /// The step, where it is open.
  var step: StepView?
  /// Whether the step sets up what accounts.lua requires of the account.
  var isEnrolling = false
  /// Whether nothing was proved before it in this flow.
  var isFirst = true
  /// Whether the step authorises a change: only what does so is offered.
  var isForChange = false
  /// The name of words.
  var notice: String?
  /// What a person comes back with from the provider's site, by its name.
  var refused: String?
  /// The page of digits that pass the same step: where the person goes on who does not use the ceremony.
  var pad: (label: String, address: String)?
  /// Where the person goes on who has lost what the step asks for; nil where nothing else is taken in its place.
  var lost: String?
  /// Why the step is asked for; nil if nobody but the person wants it.
  var reason: String?
  /// Where the person goes who skips what is offered; nil where it is no offer.
  var skip: String?
  /// The one of several things that the step is about; nil where none was chosen.
  var item: HeldItem?
  /// What was typed already.
  var typed: FormFields = .empty

  init(flow: String, purpose: FlowPurpose, returnTo: String?, provider: ProviderName?, choices: [ProviderName]) {
    self.flow = flow
    flowPurpose = purpose
    self.returnTo = returnTo
    self.provider = provider
    self.choices = choices
  }

  /// What a step of the provider is to do.
  func purpose(of provider: ProviderName) -> StepPurpose { isEnrolling ? .set : flowPurpose.step(of: provider) }
}

/// What `step.mustache` shows.
struct StepModel: PageModel {
  static let template = PageTemplate.step
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
    /// What was typed already, of what anybody may read over a shoulder.
    let value: String?
    /// What may be chosen, where that is what is asked for.
    let options: [Option]
    let isChoice: Bool
    /// One for each digit of a code whose length is known.
    let boxes: [Bool]
    let hasBoxes: Bool
  }

  /// What a field may be.
  struct Option: Decodable {
    /// The field's name in the form.
    let group: String
    let value: String
    let text: String
    /// Whether it is chosen already, because there is no other.
    let isOnly: Bool
  }

  /// Where a person is who sets up something that is shown to them: what is shown, then what they type.
  struct Stage: Decodable {
    let shown: String
    let shownLabel: String
    /// nil where nothing is typed.
    var typed: String?
    var typedLabel: String?
  }

  struct Choice: Decodable {
    let name: String
    let label: String
  }

  /// One of them is set.
  struct Part: Decodable {
    var text: String?
    var secret: String?
    var picture: String?
    /// Where the picture leads, for who reads it on the very device that has the app.
    var app: String?
    var list: List?
  }

  struct List: Decodable {
    let items: [String]
  }

  /// A call of the browser's credential API, for scripts.
  struct Ceremony: Decodable {
    /// The form's field that takes the answer, and the options as JSON; nil before the step is begun.
    let field: String?
    let call: String?
    let options: String?
    /// Whether the page starts it on arrival.
    let isAutomatic: Bool
    /// What is said when the person cancels or takes too long, when the device has a credential of the account already,
    /// when the call fails, and where the browser cannot do it.
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
  /// Whether a list is shown that the person has to keep.
  let isList: Bool
  let fields: [Field]
  /// What may be left out; behind its label.
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
  /// Whether it went as the person wanted.
  let isCalm: Bool
  let code: String?
  let state: String
  let wait: Countdown?
  /// Where the page is found again.
  let here: String
  let confirms: String?
  let isOff: Bool
  let canResend: Bool
  let countdown: Countdown?
  let canSkip: Bool
  /// Where "Skip for now" leads, of what is offered.
  let skip: String?
  /// What the step is about: its id and what its owner calls it.
  let item: Choice?
  /// Another way to pass the step.
  let instead: Choice?
  /// Where the person goes on who has lost what the step asks for.
  let lost: String?
  let stressesSupport: Bool
}

extension StepModel {
  /// - Parameters:
  ///   - provider: the form's; nil where a choice is to be made.
  ///   - choices: what is offered then.
  init(
    _ form: StepForm, _ refusal: Refusal?, _ provider: ProviderPage?,
    choices offered: [(name: ProviderName, page: ProviderPage?)], _ words: Words,
    now: Timestamp, here: String
  ) {
    let words = words.speaking(provider?.descriptor.words)
    self.here = here
    let step = form.step
    let locked =
      step?.lockedUntil.flatMap { now < $0 ? $0 - now : nil }
      ?? (refusal?.code == .tooManyAttempts ? refusal?.retryAfter : nil)
    let isExpired = step?.expiresAt.map { now >= $0 } ?? false
    isOff = locked != nil || isExpired || refusal?.code == .disabled
    let offered = form.provider == nil ? offered : []
    heading = provider?.title(words) ?? words["confirm_title"]
    reason = form.reason
    parts = (step?.shown ?? []).flatMap { Part.parts(of: $0, words) }
    isList = parts.contains { $0.list != nil }
    let purpose = provider.map { form.purpose(of: $0.name) } ?? .prove
    stage = purpose == .set ? Self.stage(of: parts, words) : nil
    // Before something is set up, changed or turned off there is nothing yet to be told of what to type.
    let isTold = parts.contains { $0.text != nil } || (purpose != .prove && step == nil)
    // A provider that verifies by itself reads an address and sends nothing to it.
    sentTo = provider?.sendsCodes ?? false ? step?.sentTo : nil
    let length = step?.fields.first { $0.name == "code" }?.length
    sentLine =
      sentTo == nil
      ? nil : words.text(step?.fields.first?.kind == .text ? "sent_characters" : "sent_digits", length: length ?? 6)
    // Of what a provider says in favour of its factor people read before they set it up, whether they were offered it
    // or chose it.
    let recommends =
      purpose == .set && !form.flowPurpose.isReset && provider?.descriptor.words?.page["offer_help"] != nil
    instruction =
      (form.skip != nil || recommends) && step == nil
      ? words["offer_help"]
      : offered.isEmpty
        ? (isTold || sentTo != nil
          ? nil
          : provider?.descriptor.words.flatMap { $0.instruction.isEmpty ? nil : words.translated($0.instruction) })
        : words["step_choose"]
    let asked = Self.asked(form, provider)
    let invalid = refusal.flatMap { $0.field ?? ([401, 410].contains($0.code.status) ? asked.first?.name : nil) }
    let isOff = isOff
    ceremony = provider.flatMap { Ceremony(of: $0, form, purpose, isRefused: refusal != nil, words) }
    isCeremony = ceremony != nil
    let all = asked.filter { $0.kind != .json }.enumerated().map { index, field in
      Field(
        field, label: provider?.label(field.name, words) ?? ProviderPage.spoken(field.name), isNew: purpose == .set,
        isInvalid: invalid == field.name,
        isFocused: index == 0, isOff: isOff, value: form.typed[StepForm.prefix + field.name], words)
    }
    // A form that asks for one of several shows the first of them; the others are behind their labels.
    fields = all.enumerated().filter { $0.offset == 0 || $0.element.isRequired }.map(\.element)
    more = all.enumerated().filter { $0.offset > 0 && !$0.element.isRequired }.map(\.element)
    choices = offered.map {
      Choice(name: $0.name.rawValue, label: $0.page?.shortName(words) ?? ProviderPage.spoken($0.name.rawValue))
    }
    (id, flow, with, returnTo) = (form.id, form.flow, form.step == nil ? form.provider?.rawValue : nil, form.returnTo)
    back = form.isFirst && form.skip == nil ? Self.back(form) : nil
    skip = form.skip
    item = form.item.map { Choice(name: $0.id, label: $0.name) }
    button =
      (step == nil && purpose != .prove) || ceremony?.call == CeremonyCall.create.rawValue
      ? provider?.link(to: purpose, words) ?? words[purpose.label]
      : ceremony.flatMap { _ in provider?.ceremonyButton.map(words.translated) } ?? words["continue"]
    notice = form.notice.map { words[$0] }
    problem =
      locked.map { words.text("locked", ["wait": words.wait($0)]) } ?? refusal.map { words.sentenceWithTries(of: $0) }
      ?? (isExpired ? words["code_expired"] : nil) ?? form.refused.flatMap { provider?.sentence(ofRefused: $0, words) }
    isCalm = refusal == nil && form.refused == RefusalCode.oauthCancelled.name
    code = refusal?.code.name
    state = locked != nil ? "locked" : refusal == nil ? "open" : "wrong"
    wait = locked.map(Countdown.init)
    let again = ProviderPage.stepAddress(form.flow, with: form.provider, returnTo: form.returnTo)
    confirms = ChangeProof.address(after: refusal, backTo: form.skip == nil ? again : here)
    let pause = isExpired ? nil : step?.resendAt.flatMap { now < $0 ? $0 - now : nil }
    canResend = provider?.sendsCodes ?? false && step != nil && locked == nil && pause == nil
    countdown = locked == nil && provider?.sendsCodes ?? false ? pause.map(Countdown.init) : nil
    canSkip = step?.isSkippable ?? false
    instead = form.pad.map { Choice(name: $0.address, label: $0.label) }
    lost = form.lost
    stressesSupport = isOff
  }

  /// Where a page leads back to on which nothing was done. Not to what wants this done first.
  static func back(_ form: StepForm) -> String {
    switch form.flowPurpose {
    case .factor: "/auth/account"
    case let purpose where purpose.needsSession: NextPage.back(form.returnTo)
    default: NextPage.page(of: form.flowPurpose, form.flow)
    }
  }

  /// What is to be typed. Before a step is begun: what beginning it takes; where that is nothing, what a person will
  /// have to prove, as far as the provider has words for it.
  private static func asked(_ form: StepForm, _ provider: ProviderPage?) -> [InputField] {
    if let step = form.step { return step.fields }
    guard let provider else { return [] }
    // Whose step it is, is known: a code goes to what they hold.
    if provider.sendsCodes, !form.isFirst || form.flowPurpose.needsSession { return [] }
    let begin = provider.descriptor.beginFields.filter { $0.kind != .region && $0 != HeldItem.field }
    if !begin.isEmpty || provider.sendsCodes { return begin }
    // What follows a ceremony is asked for after it.
    guard form.purpose(of: provider.name) == .prove, provider.ceremonyButton == nil else { return [] }
    return provider.descriptor.submitFields.filter { provider.descriptor.words?.labels[$0.name] != nil }
  }

  /// A picture to scan comes first, then the code that proves it; a list to keep is the end.
  private static func stage(of parts: [Part], _ words: Words) -> Stage? {
    if parts.contains(where: { $0.list != nil }) { return Stage(shown: "3", shownLabel: words["stage_keep"]) }
    guard parts.contains(where: { $0.picture != nil }) else { return nil }
    return Stage(shown: "1", shownLabel: words["stage_add"], typed: "2", typedLabel: words["stage_enter"])
  }
}

extension StepModel.Ceremony {
  /// - Returns: nil where nothing of the kind is due: the provider's pages show none, or this round asks for something
  ///   else.
  fileprivate init?(
    of provider: ProviderPage, _ form: StepForm, _ purpose: StepPurpose, isRefused: Bool, _ words: Words
  ) {
    guard provider.ceremonyButton != nil else { return nil }
    var due: (call: CeremonyCall, options: String)?
    for case .ceremony(let call, let options) in form.step?.shown ?? [] { due = (call, options) }
    if form.step != nil, due == nil { return nil }
    // Before something is made, changed or removed, the person says that they want it.
    let isAutomatic = !isRefused && form.refused == nil && (form.step != nil || purpose == .prove)
    self.init(
      field: form.step?.fields.first { $0.kind == .json }.map { StepForm.prefix + $0.name }, call: due?.call.rawValue,
      options: due?.options,
      isAutomatic: isAutomatic, cancelled: words["ceremony_cancelled"], known: words["ceremony_known"],
      failed: words["ceremony_failed"],
      unavailable: words["ceremony_unavailable"])
  }
}

extension StepModel.Field {
  /// - Parameter isNew: whether a secret is made rather than proved.
  fileprivate init(
    _ field: InputField, label: String, isNew: Bool, isInvalid: Bool, isFocused: Bool, isOff: Bool, value: String?,
    _ words: Words
  ) {
    let (type, inputmode, autocomplete, maxlength) =
      switch field.kind {
      case .digits: ("text", "numeric", "one-time-code", 32)
      case .text: ("text", "text", "off", 512)
      case .phone: ("tel", "tel", "tel", 64)
      case .email: ("email", "email", "email", 254)
      case .password: ("password", "text", isNew ? "new-password" : "current-password", 256)
      case .region: ("text", "text", "country", 2)
      // The page's script fills it in.
      case .json: ("hidden", "none", "off", 0)
      case .choice: ("radio", "none", "off", 0)
      }
    let count = field.kind == .digits ? field.length ?? 0 : 0
    let hasBoxes = (4...8).contains(count)
    self.init(
      name: field.name, label: label, type: type, inputmode: inputmode, autocomplete: autocomplete,
      maxlength: maxlength,
      isDigits: field.kind == .digits, isRequired: field.isRequired, isInvalid: isInvalid, isFocused: isFocused,
      isOff: isOff,
      value: [.phone, .email, .region].contains(field.kind) ? value.map { String($0.prefix(maxlength)) } : nil,
      options: (field.choices ?? []).map {
        StepModel.Option(
          group: StepForm.prefix + field.name, value: $0.value, text: words.translated($0.label),
          isOnly: field.choices?.count == 1)
      },
      isChoice: field.kind == .choice, boxes: Array(repeating: true, count: hasBoxes ? count : 0), hasBoxes: hasBoxes)
  }
}

extension StepModel.Part {
  /// A picture comes with its text, for who has no second device to scan it with.
  static func parts(of shown: Shown, _ words: Words) -> [Self] {
    switch shown {
    case .text(let text): [Self(text: words.translated(text))]
    case .secret(let text): [Self(secret: text)]
    case .qr(let text):
      QRPicture(of: text, label: words["qr_picture"]).map {
        [Self(picture: $0.svg, app: text.hasPrefix("otpauth://") ? text : nil)]
      } ?? [
        Self(secret: text)
      ]
    case .list(let items): [Self(list: StepModel.List(items: items))]
    // For the page's script.
    case .ceremony: []
    }
  }
}

extension StepPurpose {
  /// The name of the words by which people are led to it.
  var label: String {
    switch self {
    case .prove: "continue"
    case .set: "set_up"
    case .change: "change"
    case .disable: "turn_off"
    }
  }
}
