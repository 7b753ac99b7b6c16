import MoongateCore
import MoongateSDK

extension StepModel {
  /// More than five parameters: the values of the page that differ between requests.
  /// - Parameters:
  /// - provider: the provider of the form; nil if a choice has to be made.
  /// - choices: the offered choices.
  init(
    _ form: StepForm, _ refusal: Refusal?, _ provider: ProviderPage?,
    choices offered: [(name: ProviderName, page: ProviderPage?)], _ words: Words,
    now: Timestamp, here: String
  ) {
    let words = words.withTranslations(of: provider?.descriptor.words)
    self.here = here
    let step = form.step
    let times = Times(of: step, refusal, now: now)
    isOff = times.locked != nil || times.isExpired || refusal?.code == .disabled
    let offered = form.provider == nil ? offered : []
    heading = provider?.title(words) ?? words["confirm_title"]
    reason = form.reason
    parts = (step?.shown ?? []).flatMap { Part.parts(of: $0, words) }
    isList = parts.contains { $0.list != nil }
    let purpose = form.purpose(of: provider)
    stage = purpose == .set ? Self.stage(of: parts, words) : nil
    // Before a setup, change or removal has begun, there is no instruction yet.
    let isTold = parts.contains { $0.text != nil } || (purpose != .prove && step == nil)
    // A provider that verifies by itself reads an address but sends nothing to it.
    sentTo = provider?.sendsCodes ?? false ? step?.sentTo : nil
    let length = step?.fields.first { $0.name == "code" }?.length
    sentLine =
      sentTo == nil
      ? nil : words.text(step?.fields.first?.kind == .text ? "sent_characters" : "sent_digits", length: length ?? 6)
    instruction = Self.instruction(
      form, provider, isChoosing: !offered.isEmpty, isTold: isTold || sentTo != nil, words)
    ceremony = provider.flatMap { Ceremony(of: $0, form, purpose, isRefused: refusal != nil, words) }
    isCeremony = ceremony != nil
    let all = Self.fields(form, refusal, provider, isOff: isOff, words)
    // A form that needs one of several fields shows the first; the others are collapsed behind their labels.
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
    problem = Self.problem(form, refusal, provider, times, words)
    isCalm = refusal == nil && form.refused == RefusalCode.oauthCancelled.name
    code = refusal?.code.name
    state = times.locked != nil ? "locked" : refusal == nil ? "open" : "wrong"
    wait = times.locked.map(Countdown.init)
    let again = ProviderPage.stepAddress(form.flow, with: form.provider, returnTo: form.returnTo)
    confirms = StepUpRedirect.address(after: refusal, backTo: form.skip == nil ? again : here)
    canResend = provider?.sendsCodes ?? false && step != nil && times.locked == nil && times.pause == nil
    countdown = times.locked == nil && provider?.sendsCodes ?? false ? times.pause.map(Countdown.init) : nil
    (offersRemember, isRemembered) = (form.isRemembered != nil, form.isRemembered ?? false)
    canSkip = step?.isSkippable ?? form.canSkip
    instead = form.pad.map { Choice(name: $0.address, label: $0.label) }
    lost = form.lost
    stressesSupport = isOff
  }

  /// The times of a page. They are those of its step, or of the refusal.
  private struct Times {
    /// How long the step stays locked; nil if it is not.
    let locked: Duration?
    let isExpired: Bool
    /// The wait until another code can be sent; nil if one can be sent now.
    let pause: Duration?

    init(of step: StepView?, _ refusal: Refusal?, now: Timestamp) {
      locked =
        step?.lockedUntil.flatMap { now < $0 ? $0 - now : nil }
        ?? (refusal?.code == .tooManyAttempts ? refusal?.retryAfter : nil)
      isExpired = step?.expiresAt.map { now >= $0 } ?? false
      pause = isExpired ? nil : step?.resendAt.flatMap { now < $0 ? $0 - now : nil }
    }
  }

  /// - Parameter isTold: whether the page needs no sentence of the provider, because it shows another one or asks for
  ///   a code.
  private static func instruction(
    _ form: StepForm, _ provider: ProviderPage?, isChoosing: Bool, isTold: Bool, _ words: Words
  ) -> String? {
    // Users see the provider's recommendation before they set up the factor, whether it was offered or selected.
    let recommends =
      form.purpose(of: provider) == .set && !form.flowPurpose.isReset
      && provider?.descriptor.words?.page["offer_help"] != nil
    if form.skip != nil || recommends, form.step == nil { return words["offer_help"] }
    if isChoosing { return words["step_choose"] }
    guard !isTold, let instruction = provider?.descriptor.words?.instruction, !instruction.isEmpty else { return nil }
    return words.translated(instruction)
  }

  private static func fields(
    _ form: StepForm, _ refusal: Refusal?, _ provider: ProviderPage?, isOff: Bool, _ words: Words
  ) -> [Field] {
    let asked = asked(form, provider)
    let invalid = refusal.flatMap { $0.field ?? ([401, 410].contains($0.code.status) ? asked.first?.name : nil) }
    return asked.filter { $0.kind != .json }.enumerated().map { index, field in
      Field(
        field, isUserName: form.step == nil && provider?.descriptor.identifierKind(of: field) == .name,
        label: provider?.label(field.name, words) ?? ProviderPage.spoken(field.name),
        isNew: form.purpose(of: provider) == .set, isInvalid: invalid == field.name,
        isFocused: index == 0, isOff: isOff, value: form.typed[StepForm.prefix + field.name], words)
    }
  }

  /// The message of the page, if any.
  private static func problem(
    _ form: StepForm, _ refusal: Refusal?, _ provider: ProviderPage?, _ times: Times, _ words: Words
  ) -> String? {
    if let locked = times.locked { return words.text("locked", ["wait": words.wait(locked)]) }
    if let refusal { return words.sentenceWithAttempts(of: refusal) }
    if times.isExpired { return words["code_expired"] }
    return form.refused.flatMap { provider?.sentence(ofRefused: $0, words) }
  }

  /// The target for users who leave the page without doing anything, except pages that require the step.
  static func back(_ form: StepForm) -> String {
    switch form.flowPurpose {
    case .factor: PagePath.account
    case let purpose where purpose.needsSession: NextPage.back(form.returnTo)
    default: NextPage.page(of: form.flowPurpose, form.flow)
    }
  }

  /// The fields to show. Before a step is begun, these are its begin fields, with a password beside a required one; if
  /// none exist, the submit fields for which the provider has labels.
  private static func asked(_ form: StepForm, _ provider: ProviderPage?) -> [InputField] {
    if let step = form.step { return step.fields }
    guard let provider else { return [] }
    // The account is known, so the code goes to its own identifier.
    if provider.sendsCodes, !form.asksRecipient, !form.isFirst || form.flowPurpose.needsSession { return [] }
    let begin = provider.descriptor.beginFields.filter { $0.kind != .region && $0 != HeldItem.field }
    if !begin.isEmpty || provider.sendsCodes {
      let isNamed = !provider.sendsCodes && begin.contains(where: \.isRequired)
      return begin + (isNamed ? provider.descriptor.submitFields.filter { $0.kind == .password } : [])
    }
    // Fields after a ceremony are shown after it.
    guard form.purpose(of: provider.name) == .prove, provider.ceremonyButton == nil else { return [] }
    return provider.descriptor.submitFields.filter { provider.descriptor.words?.labels[$0.name] != nil }
  }

  /// A picture to scan comes first, then the code; a list to save comes last.
  private static func stage(of parts: [Part], _ words: Words) -> Stage? {
    if parts.contains(where: { $0.list != nil }) { return Stage(shown: "3", shownLabel: words["stage_keep"]) }
    guard parts.contains(where: { $0.picture != nil }) else { return nil }
    return Stage(shown: "1", shownLabel: words["stage_add"], typed: "2", typedLabel: words["stage_enter"])
  }
}

extension StepModel.Ceremony {
  /// - Returns: nil if no ceremony is due: the provider has none, or this round asks for something else.
  fileprivate init?(
    of provider: ProviderPage, _ form: StepForm, _ purpose: StepPurpose, isRefused: Bool, _ words: Words
  ) {
    guard provider.ceremonyButton != nil else { return nil }
    var due: (call: CeremonyCall, options: String)?
    for case .ceremony(let call, let options) in form.step?.shown ?? [] { due = (call, options) }
    if form.step != nil, due == nil { return nil }
    // Creating, changing or removing a credential starts only when the user confirms it.
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
  /// More than five parameters: the members of the field that differ between forms.
  /// - Parameters:
  ///   - isUserName: whether it takes the name by which the user signs in.
  ///   - isNew: whether a new secret is set.
  fileprivate init(
    _ field: InputField, isUserName: Bool, label: String, isNew: Bool, isInvalid: Bool, isFocused: Bool, isOff: Bool,
    value: String?,
    _ words: Words
  ) {
    let (type, inputmode, autocomplete, maxlength) =
      switch field.kind {
      case .digits: ("text", "numeric", "one-time-code", 32)
      case .text where isUserName: ("text", "text", "username", 128)
      case .text: ("text", "text", field.name == "username" ? "username" : "off", 512)
      case .phone: ("tel", "tel", "tel", 64)
      case .email: ("email", "email", "email", 254)
      case .password: ("password", "text", isNew ? "new-password" : "current-password", 1024)
      case .region: ("text", "text", "country", 2)
      // Filled in by the page's script.
      case .json: ("hidden", "none", "off", 0)
      case .choice: ("radio", "none", "off", 0)
      }
    let count = field.kind == .digits ? field.length ?? 0 : 0
    let hasBoxes = (4...8).contains(count)
    // A text of another name may be a secret, such as a recovery code.
    let isKept = autocomplete == "username" || field.kind == .phone || field.kind == .email || field.kind == .region
    self.init(
      name: field.name, label: label, type: type, inputmode: inputmode, autocomplete: autocomplete,
      maxlength: maxlength,
      isDigits: field.kind == .digits, isRequired: field.isRequired, isInvalid: isInvalid, isFocused: isFocused,
      isOff: isOff,
      value: isKept ? value.map { String($0.prefix(maxlength)) } : nil,
      options: (field.choices ?? []).map {
        StepModel.Option(
          group: StepForm.prefix + field.name, value: $0.value, text: words.translated($0.label),
          isOnly: field.choices?.count == 1)
      },
      isChoice: field.kind == .choice, boxes: Array(repeating: true, count: hasBoxes ? count : 0), hasBoxes: hasBoxes)
  }
}

extension StepModel.Part {
  /// A picture also has its text, for users without a second device to scan it.
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
    // Handled by the page's script.
    case .ceremony: []
    }
  }
}

extension StepPurpose {
  /// The name of the text for links to it.
  var label: String {
    switch self {
    case .prove: "continue"
    case .set: "set_up"
    case .change: "change"
    case .disable: "turn_off"
    }
  }
}
