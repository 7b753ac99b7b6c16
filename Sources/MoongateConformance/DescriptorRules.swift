import MoongateSDK

/// The rule of the declaration.
struct DescriptorRules: Sendable {
  let harness: ConformanceHarness
  let provider: any Provider

  func run() async {
    harness.judges(.descriptor)
    let descriptor = harness.descriptor
    for mistake in descriptor.mistakes {
      harness.finds(.descriptor, "Of the declaration: \(mistake).", "A gateway does not start with it: change it.")
    }
    for _ in 0..<3 { judgeSame(provider.descriptor) }
    for setting in descriptor.settings where setting.help.isEmpty {
      harness.finds(
        .descriptor, "The setting `\(setting.name)` has no help.", "Say in a sentence what an operator writes there.")
    }
    for fact in descriptor.facts where fact.help.isEmpty {
      harness.finds(.descriptor, "The fact `\(fact.name)` has no help.", "Say in a few words what it is.")
    }
    if provider is any CodeProvider {
      if descriptor.submitFields.map(\.name) != ["code"] {
        harness.finds(
          .descriptor, "A code provider asks at submit for \(descriptor.submitFields.map(\.name)).",
          "Ask for `code` and nothing else: the core compares it.")
      }
      if descriptor.identifierKinds.isEmpty || !descriptor.beginFields.contains(where: \.isRequired) {
        harness.finds(
          .descriptor, "A code provider declares no identifier, or requires no field that names it.",
          "Declare what kind of identifier it reads, and mark the field that names it as required.")
      }
    }
    judgePresentation(descriptor)
    judgeLanguages(descriptor)
    judgeFlows(descriptor)
    judgePolicy(descriptor)
  }

  /// Reads the descriptor once more when all has been tried, and starts a program anew.
  ///
  /// Attack: a provider passes all checks, and then is another: it asks for other fields, declares a refusal as no
  /// failure, or takes other settings.
  func judgeAgain() async {
    guard harness.wants(.descriptor) else { return }
    judgeSame(provider.descriptor)
    switch await harness.watched?.declaredAgain() {
    case .success(let again)?: judgeSame(again, isRestarted: true)
    case .failure(let problem)?:
      harness.finds(
        .descriptor, "A second start of the program fails: \(problem.sentence).",
        "Answer `hello` at every start, whatever the one before has left.")
    case nil: break
    }
  }

  private func judgeSame(_ other: ProviderDescriptor, isRestarted: Bool = false) {
    guard let part = other.difference(from: harness.descriptor) else { return }
    harness.finds(
      .descriptor,
      isRestarted
        ? "The answer to `hello` changes: at the second start \(part) is another."
        : "The descriptor changes: \(part) is another at the next call.",
      isRestarted
        ? "Answer with constants: no time, no randomness, no counter. A program that comes back as another is not used."
        : "Make it once, in `init`: the core reads it once and keeps to it.")
  }

  /// What the descriptor alone cannot tell: which presentations are for which shape.
  private func judgePresentation(_ descriptor: ProviderDescriptor) {
    switch (descriptor.presentation, provider is any CodeProvider) {
    case (.codeEntry?, false):
      harness.finds(
        .descriptor, "It is shown by boxes for a code that was sent, and sends none.",
        "Choose a pad of digits or a form: `codeEntry` is for code providers.")
    case (.digitPad?, true), (.externalSite?, true):
      harness.finds(
        .descriptor, "It sends codes, and is shown by something else than boxes for a code.",
        "Choose `codeEntry`, or leave `presentation` out.")
    default: break
    }
  }

  /// Words in a language that there is not are shown to nobody.
  private func judgeLanguages(_ descriptor: ProviderDescriptor) {
    for tag in (descriptor.words?.translations ?? [:]).keys.sorted() where !Languages.isKnown(tag) {
      harness.finds(
        .descriptor, "Its words are translated to `\(tag.prefix(40))`, which is no language.",
        "Write the code of ISO 639, as in `hi` or `pt-BR`.")
    }
  }

  /// Whether the flow connects an account with the provider's own site.
  private func isConnection(_ purpose: String, _ text: PolicyText, of descriptor: ProviderDescriptor) -> Bool {
    purpose == "join" && text.value(of: "identifier") == "federated" && descriptor.identifierKinds.contains(.federated)
  }

  /// Attack: a provider for one factor brings a flow that sets or resets another one.
  private func judgeFlows(_ descriptor: ProviderDescriptor) {
    for flow in descriptor.flows {
      let text = PolicyText(flow.text)
      guard let name = text.flow else {
        harness.finds(
          .descriptor, "Its flow `\(flow.name)` is no flow.",
          "It is a text such as `return flow \"\(flow.name)\" { … }`.")
        continue
      }
      if name != flow.name {
        harness.finds(
          .descriptor, "Its flow `\(flow.name)` calls itself `\(name)`.", "Give the flow and its file one name.")
      }
      if let purpose = text.value(of: "purpose"),
        ["sign_in", "register", "step_up", "join", "unlock"].contains(purpose),
        text.value(of: "provider") == nil, !isConnection(purpose, text, of: descriptor)
      {
        harness.finds(
          .descriptor, "Its flow `\(flow.name)` has the purpose `\(purpose)`, and is not about its own factor.",
          "Bring flows that set, change, disable or reset your own factor, or verify and change identifiers of yours. Who gets in, the operator decides."
        )
      }
      if let other = text.value(of: "provider"), other != descriptor.name.rawValue {
        harness.finds(
          .descriptor,
          "Its flow `\(flow.name)` is about the factor of `\(other.prefix(48))`, which is another provider's.",
          "Write `provider = \"\(descriptor.name)\"`: a person who passes this provider must not replace another provider's secret."
        )
      }
    }
  }

  private func judgePolicy(_ descriptor: ProviderDescriptor) {
    let policy = PolicyText(descriptor.policy.text)
    if policy.name != descriptor.name.rawValue {
      harness.finds(
        .descriptor, "Its default policy is \(policy.name.map { "of `\($0)`" } ?? "no policy").",
        "\(descriptor.policy.file) returns policy \"\(descriptor.name)\" { limits = { … } }.")
      return
    }
    let personal: Set<String> = ["identifier", "account", "phone", "email"]
    // An identity that is proved elsewhere has nothing here to be guessed.
    let isGuessable = !descriptor.identifierKinds.contains(.federated) || descriptor.hashesSecrets
    if isGuessable, policy.limits(on: "verify").isDisjoint(with: personal) {
      harness.finds(
        .descriptor, "Its default policy has no limit on verify per identifier or account.",
        "Without one, codes can be guessed: verify = { on = \"verify\", per = \"identifier\", max = 5, window = \"24h\", lock = \"15m\" }."
      )
    }
    if provider is any CodeProvider, policy.limits(on: "send").isDisjoint(with: personal) {
      harness.finds(
        .descriptor, "Its default policy has no limit on send per identifier.",
        "Without one, anybody floods anybody with messages: send = { on = \"send\", per = \"identifier\", max = 4, window = \"15m\" }."
      )
    }
  }
}

extension ProviderDescriptor {
  /// The first part that is not the same, as its author calls it.
  func difference(from other: ProviderDescriptor) -> String? {
    let texts = { (sources: [PolicySource]) in sources.map { [$0.file, $0.text] } }
    let parts: [(String, Bool)] = [
      ("`name`", name == other.name), ("`beginFields`", beginFields == other.beginFields),
      ("`submitFields`", submitFields == other.submitFields),
      ("`settings`", settings == other.settings), ("`policy`", texts([policy]) == texts([other.policy])),
      ("`flows`", texts(flows) == texts(other.flows)),
      ("`cases`", texts([cases].compactMap(\.self)) == texts([other.cases].compactMap(\.self))),
      ("`identifierKinds`", identifierKinds == other.identifierKinds),
      ("`hashesSecrets`", hashesSecrets == other.hashesSecrets),
      ("`secretSpace`", secretSpace == other.secretSpace), ("`outcomes`", outcomes == other.outcomes),
      ("`deliveryReasons`", deliveryReasons == other.deliveryReasons), ("`facts`", facts == other.facts),
      ("`words`", words == other.words), ("`presentation`", presentation == other.presentation),
      ("`entrance`", entrance == other.entrance),
      ("`page`", page == other.page), ("`role`", role == other.role),
      ("`callbackFields`", callbackFields == other.callbackFields),
      ("`receivesWebhooks`", receivesWebhooks == other.receivesWebhooks),
      ("`wellKnown`", wellKnown == other.wellKnown), ("`recordVersion`", recordVersion == other.recordVersion),
      ("`maintenanceInterval`", maintenanceInterval == other.maintenanceInterval),
      ("`sdk`", sdk == other.sdk),
    ]
    return parts.first { !$0.1 }?.0
  }
}

/// As much of a policy's text as can be told without Lua.
struct PolicyText {
  private let text: String

  init(_ source: String) {
    // Comments to the end of their lines; long ones are not used in policies.
    text = source.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.firstRange(of: "--").map { line[..<$0.lowerBound] } ?? line[...]
    }
    .joined(separator: "\n")
  }

  /// Whose policy it is.
  var name: String? { text.firstMatch(of: /policy\s*\(?\s*["']([a-z0-9_]+)["']/).map { String($0.1) } }

  /// Which flow it is.
  var flow: String? { text.firstMatch(of: /flow\s*\(?\s*["']([a-z0-9_]+)["']/).map { String($0.1) } }

  /// The text that a field has.
  func value(of field: String) -> String? {
    guard let pattern = try? Regex("(?:^|[^a-z_])\(field)\\s*=\\s*[\"']([a-z0-9_]+)[\"']"),
      let match = text.firstMatch(of: pattern)
    else {
      return nil
    }
    return match.output[1].substring.map(String.init)
  }

  /// By what the limits on an action count.
  func limits(on action: String) -> Set<String> {
    var keys: Set<String> = []
    for match in text.matches(of: /on\s*=\s*["']([a-z]+)["']/) where match.1 == action {
      guard let table = table(around: match.range.lowerBound),
        let per = table.firstMatch(of: /per\s*=\s*["']([a-z]+)["']/)
      else { continue }
      keys.insert(String(per.1))
    }
    return keys
  }

  /// The innermost `{ … }` around a place.
  private func table(around place: String.Index) -> Substring? {
    var depth = 0
    var start = place
    while start > text.startIndex {
      start = text.index(before: start)
      if text[start] == "}" { depth += 1 }
      if text[start] == "{" {
        if depth == 0 { break }
        depth -= 1
      }
    }
    guard text[start] == "{" else { return nil }
    depth = 0
    for end in text[start...].indices {
      if text[end] == "{" { depth += 1 }
      if text[end] == "}" {
        depth -= 1
        if depth == 0 { return text[start...end] }
      }
    }
    return nil
  }
}
