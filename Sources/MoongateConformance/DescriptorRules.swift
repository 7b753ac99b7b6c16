import MoongateSDK

/// The rule for the descriptor.
struct DescriptorRules: Sendable {
  let harness: ConformanceHarness
  let provider: any Provider

  func run() async {
    harness.markChecked(.descriptor)
    let descriptor = harness.descriptor
    for mistake in descriptor.mistakes {
      harness.addFinding(
        .descriptor, "The declaration is invalid: \(mistake).", "Correct it: a gateway does not start with it.")
    }
    for _ in 0..<3 { checkSame(provider.descriptor) }
    for setting in descriptor.settings where setting.help.isEmpty {
      harness.addFinding(
        .descriptor, "The setting `\(setting.name)` has no help.", "Describe its value for operators in one sentence.")
    }
    for fact in descriptor.facts where fact.help.isEmpty {
      harness.addFinding(.descriptor, "The fact `\(fact.name)` has no help.", "Describe it in a few words.")
    }
    if provider is any CodeProvider {
      if descriptor.submitFields.map(\.name) != ["code"] {
        harness.addFinding(
          .descriptor, "A code provider asks at submit for \(descriptor.submitFields.map(\.name)).",
          "Ask for `code` and nothing else: the core compares it.")
      }
      if descriptor.identifierKinds.isEmpty || !descriptor.beginFields.contains(where: \.isRequired) {
        harness.addFinding(
          .descriptor, "A code provider declares no identifier, or requires no field that names it.",
          "Declare the kind of identifier, and mark its field as required.")
      }
    }
    checkPresentation(descriptor)
    checkLanguages(descriptor)
    checkFlows(descriptor)
    checkPolicy(descriptor)
  }

  /// Reads the descriptor again after all other rules, and starts a program again.
  ///
  /// Attack: a provider passes all checks and then changes its descriptor: other fields, a wrong answer that does not
  /// count as a failure, or other settings.
  func checkAgain() async {
    guard harness.needs(.descriptor) else { return }
    checkSame(provider.descriptor)
    switch await harness.watched?.restartedDescriptor() {
    case .success(let again)?: checkSame(again, isRestarted: true)
    case .failure(let problem)?:
      harness.addFinding(
        .descriptor, "A second start of the program fails: \(problem.sentence).",
        "Answer `hello` at every start, independent of earlier runs.")
    case nil: break
    }
  }

  private func checkSame(_ other: ProviderDescriptor, isRestarted: Bool = false) {
    guard let part = other.difference(from: harness.descriptor) else { return }
    harness.addFinding(
      .descriptor,
      isRestarted
        ? "The answer to `hello` changes: \(part) differs at the second start."
        : "The descriptor changes: \(part) differs at the next call.",
      isRestarted
        ? "Answer with constants: no time, no randomness, no counter. A program whose answer changes is not used."
        : "Make it once, in `init`: the core reads it only once.")
  }

  /// Checks which presentations are allowed for the shape, which the descriptor alone cannot tell.
  private func checkPresentation(_ descriptor: ProviderDescriptor) {
    switch (descriptor.presentation, provider is any CodeProvider) {
    case (.codeEntry?, false):
      harness.addFinding(
        .descriptor, "Its presentation is a code entry, but it sends no codes.",
        "Choose a digit pad or a form: `codeEntry` is for code providers.")
    case (.digitPad?, true), (.externalSite?, true):
      harness.addFinding(
        .descriptor, "It sends codes, but its presentation is not a code entry.",
        "Choose `codeEntry`, or leave `presentation` out.")
    default: break
    }
  }

  /// Checks that translations have existing languages, because others are never shown.
  private func checkLanguages(_ descriptor: ProviderDescriptor) {
    for tag in (descriptor.words?.translations ?? [:]).keys.sorted() where !Languages.isKnown(tag) {
      harness.addFinding(
        .descriptor, "Its words are translated to `\(tag.prefix(40))`, which is not a language.",
        "Use a code of ISO 639, for example `hi` or `pt-BR`.")
    }
  }

  /// Whether the flow connects an account with the provider's external site.
  private func isConnection(_ purpose: String, _ text: PolicyText, of descriptor: ProviderDescriptor) -> Bool {
    purpose == "join" && text.value(of: "identifier") == "federated" && descriptor.identifierKinds.contains(.federated)
  }

  /// Attack: a provider includes a flow that sets or resets another provider's factor.
  private func checkFlows(_ descriptor: ProviderDescriptor) {
    for flow in descriptor.flows {
      let text = PolicyText(flow.text)
      guard let name = text.flow else {
        harness.addFinding(
          .descriptor, "Its flow `\(flow.name)` is not a flow.",
          "Write a text like `return flow \"\(flow.name)\" { … }`.")
        continue
      }
      if name != flow.name {
        harness.addFinding(
          .descriptor, "Its flow `\(flow.name)` has the name `\(name)`.", "Use the same name for the flow and its file."
        )
      }
      if let purpose = text.value(of: "purpose"),
        ["sign_in", "register", "step_up", "join", "unlock"].contains(purpose),
        text.value(of: "provider") == nil, !isConnection(purpose, text, of: descriptor)
      {
        harness.addFinding(
          .descriptor, "Its flow `\(flow.name)` has the purpose `\(purpose)`, which does not concern its own factor.",
          "Include only flows that set, change, disable or reset your own factor, or that verify and change your identifiers. The operator decides about sign-in."
        )
      }
      if let other = text.value(of: "provider"), other != descriptor.name.rawValue {
        harness.addFinding(
          .descriptor,
          "Its flow `\(flow.name)` concerns the factor of another provider, `\(other.prefix(48))`.",
          "Write `provider = \"\(descriptor.name)\"`: this provider must not be able to replace another provider's secret."
        )
      }
    }
  }

  private func checkPolicy(_ descriptor: ProviderDescriptor) {
    let policy = PolicyText(descriptor.policy.text)
    if policy.name != descriptor.name.rawValue {
      harness.addFinding(
        .descriptor, "Its default policy is \(policy.name.map { "of `\($0)`" } ?? "no policy").",
        "\(descriptor.policy.file) returns policy \"\(descriptor.name)\" { limits = { … } }.")
      return
    }
    let personal: Set<String> = ["identifier", "account", "phone", "email"]
    if descriptor.takesGuesses, policy.limits(on: "verify").isDisjoint(with: personal) {
      harness.addFinding(
        .descriptor, "Its default policy has no limit on verify per identifier or account.",
        "Without one, codes can be guessed: verify = { on = \"verify\", per = \"identifier\", max = 5, window = \"24h\", lock = \"15m\" }."
      )
    }
    if provider is any CodeProvider, policy.limits(on: "send").isDisjoint(with: personal) {
      harness.addFinding(
        .descriptor, "Its default policy has no limit on send per identifier.",
        "Without one, an attacker can flood a user with messages: send = { on = \"send\", per = \"identifier\", max = 4, window = \"15m\" }."
      )
    }
  }
}

extension ProviderDescriptor {
  /// The first part that differs, in terms of the Swift API.
  func difference(from other: ProviderDescriptor) -> String? {
    let texts = { (sources: [PolicySource]) in sources.map { [$0.file, $0.text] } }
    let parts: [(String, Bool)] = [
      ("`name`", name == other.name), ("`beginFields`", beginFields == other.beginFields),
      ("`submitFields`", submitFields == other.submitFields),
      ("`settings`", settings == other.settings), ("`policy`", texts([policy]) == texts([other.policy])),
      ("`flows`", texts(flows) == texts(other.flows)),
      ("`cases`", texts([cases].compactMap(\.self)) == texts([other.cases].compactMap(\.self))),
      ("`identifierKinds`", identifierKinds == other.identifierKinds),
      ("`choosableKinds`", choosableKinds == other.choosableKinds),
      ("`hashesSecrets`", hashesSecrets == other.hashesSecrets),
      ("`secretSpace`", secretSpace == other.secretSpace), ("`outcomes`", outcomes == other.outcomes),
      ("`deliveryReasons`", deliveryReasons == other.deliveryReasons), ("`facts`", facts == other.facts),
      ("`words`", words == other.words), ("`presentation`", presentation == other.presentation),
      ("`entrance`", entrance == other.entrance),
      ("`page`", page == other.page), ("`role`", role == other.role),
      ("`callbackFields`", callbackFields == other.callbackFields),
      ("`mapsClaims`", mapsClaims == other.mapsClaims), ("`rechecks`", rechecks == other.rechecks),
      ("`isKind`", isKind == other.isKind),
      ("`receivesWebhooks`", receivesWebhooks == other.receivesWebhooks),
      ("`wellKnown`", wellKnown == other.wellKnown), ("`recordVersion`", recordVersion == other.recordVersion),
      ("`maintenanceInterval`", maintenanceInterval == other.maintenanceInterval),
      ("`sdk`", sdk == other.sdk),
    ]
    return parts.first { !$0.1 }?.0
  }
}

/// Extracts parts of a policy's text without Lua.
struct PolicyText {
  private let text: String

  init(_ source: String) {
    // Remove line comments. Policies contain no long comments.
    text = source.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.firstRange(of: "--").map { line[..<$0.lowerBound] } ?? line[...]
    }
    .joined(separator: "\n")
  }

  /// The name of the policy.
  var name: String? { text.firstMatch(of: /policy\s*\(?\s*["']([a-z0-9_]+)["']/).map { String($0.1) } }

  /// The name of the flow.
  var flow: String? { text.firstMatch(of: /flow\s*\(?\s*["']([a-z0-9_]+)["']/).map { String($0.1) } }

  /// The string value of a field.
  func value(of field: String) -> String? {
    guard let pattern = try? Regex("(?:^|[^a-z_])\(field)\\s*=\\s*[\"']([a-z0-9_]+)[\"']"),
      let match = text.firstMatch(of: pattern)
    else {
      return nil
    }
    return match.output[1].substring.map(String.init)
  }

  /// The keys of the limits on an action.
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

  /// The innermost `{ … }` around a position.
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
