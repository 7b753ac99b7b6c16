import MoongateSDK

/// The rule of the declaration.
struct DescriptorRules: Sendable {
  let stage: Stage
  let provider: any Provider

  func run() async {
    stage.judges(.descriptor)
    let descriptor = stage.descriptor
    for mistake in descriptor.mistakes { stage.finds(.descriptor, "Of the declaration: \(mistake).", "A gateway does not start with it: change it.") }
    for _ in 0..<3 where !provider.descriptor.isSame(as: descriptor) {
      stage.finds(.descriptor, "The descriptor is another one at each call.", "Make it once, in `init`: the core reads it once and keeps to it.")
    }
    for setting in descriptor.settings where setting.help.isEmpty {
      stage.finds(.descriptor, "The setting `\(setting.name)` has no help.", "Say in a sentence what an operator writes there.")
    }
    for fact in descriptor.facts where fact.help.isEmpty {
      stage.finds(.descriptor, "The fact `\(fact.name)` has no help.", "Say in a few words what it is.")
    }
    if provider is any CodeProvider {
      if descriptor.submitFields.map(\.name) != ["code"] {
        stage.finds(
          .descriptor, "A code provider asks at submit for \(descriptor.submitFields.map(\.name)).",
          "Ask for `code` and nothing else: the core compares it.")
      }
      if descriptor.identifierKinds.isEmpty || !descriptor.beginFields.contains(where: \.isRequired) {
        stage.finds(
          .descriptor, "A code provider declares no identifier, or requires no field that names it.",
          "Declare what kind of identifier it reads, and mark the field that names it as required.")
      }
    }
    judgePolicy(descriptor)
  }

  private func judgePolicy(_ descriptor: ProviderDescriptor) {
    let policy = PolicyText(descriptor.policy.text)
    if policy.name != descriptor.name.rawValue {
      stage.finds(
        .descriptor, "Its default policy is \(policy.name.map { "of `\($0)`" } ?? "no policy").",
        "\(descriptor.policy.file) returns policy \"\(descriptor.name)\" { limits = { … } }.")
      return
    }
    let personal: Set<String> = ["identifier", "account", "phone", "email"]
    // An identity that is proved elsewhere has nothing here to be guessed.
    let isGuessable = !descriptor.identifierKinds.contains(.federated) || descriptor.hashesSecrets
    if isGuessable, policy.limits(on: "verify").isDisjoint(with: personal) {
      stage.finds(
        .descriptor, "Its default policy has no limit on verify per identifier or account.",
        "Without one, codes can be guessed: verify = { on = \"verify\", per = \"identifier\", max = 5, window = \"24h\", lock = \"15m\" }.")
    }
    if provider is any CodeProvider, policy.limits(on: "send").isDisjoint(with: personal) {
      stage.finds(
        .descriptor, "Its default policy has no limit on send per identifier.",
        "Without one, anybody floods anybody with messages: send = { on = \"send\", per = \"identifier\", max = 4, window = \"15m\" }.")
    }
  }
}

extension ProviderDescriptor {
  func isSame(as other: ProviderDescriptor) -> Bool {
    name == other.name && beginFields == other.beginFields && submitFields == other.submitFields && settings == other.settings
      && policy.text == other.policy.text && policy.file == other.policy.file && identifierKinds == other.identifierKinds
      && hashesSecrets == other.hashesSecrets && secretSpace == other.secretSpace && outcomes == other.outcomes && facts == other.facts
      && words == other.words && sdk == other.sdk
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

  /// By what the limits on an action count.
  func limits(on action: String) -> Set<String> {
    var keys: Set<String> = []
    for match in text.matches(of: /on\s*=\s*["']([a-z]+)["']/) where match.1 == action {
      guard let table = table(around: match.range.lowerBound), let per = table.firstMatch(of: /per\s*=\s*["']([a-z]+)["']/) else { continue }
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
