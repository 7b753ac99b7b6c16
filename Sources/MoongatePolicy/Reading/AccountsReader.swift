import MoongateCore
import MoongateSDK

/// Reads accounts.lua.
struct AccountsReader {
  let providers: ProviderCatalog
  let problems: Problems

  /// - Returns: nil, with problems, if something is wrong.
  func read(_ node: LuaNode, functions: inout FunctionTable) -> AccountRules? {
    let before = problems.all.count
    guard let reader = TableReader(node, .accounts, path: "", problems: problems) else { return nil }
    var locations: [String: SourceLocation] = [:]
    for name in reader.names { locations[name] = reader.explicitValue(name)?.location }
    let registration = reader.take("registration").flatMap { RegistrationReader(problems: problems).read($0) }
    let admit = reader.function("admit", example: "function(f) return allow end").map { function in
      let name = FunctionName("accounts.admit")
      functions.add(name, function, for: .flow)
      return name
    }
    let sentences = reader.take("reasons")
    let reasons = sentences.map { DenyReason.read($0, problems) } ?? [:]
    if case .table(let table)? = sentences?.value {
      for (reason, text) in table.fields { locations["reasons.\(reason)"] = text.location }
    }
    let signIn = reader.take("sign_in").map { readRequirements($0, &locations, &functions) } ?? []
    let offers = reader.take("offer").map { readOffers($0, &locations, &functions) } ?? []
    let changeWithin = duration("change_within", reader, from: .seconds(1), to: .seconds(86_400), "24h")
    let recoveryDelay = duration("recovery_delay", reader, from: .zero, to: .seconds(365 * 86_400), "365d")
    let unverifiedLifetime = duration(
      "unverified_lifetime", reader, from: .seconds(1), to: .seconds(3650 * 86_400), "3650d")
    let entitlements = EntitlementReader(problems: problems)
    let groups = reader.take("groups").map { entitlements.readGroups($0, &locations, &functions) } ?? [:]
    let claims = reader.take("claims").map { entitlements.readClaims($0, &locations, &functions) } ?? [:]
    guard problems.all.count == before, let registration, let changeWithin, let recoveryDelay,
      let unverifiedLifetime
    else { return nil }
    return AccountRules(
      registration: registration, admit: admit, reasons: reasons, signIn: signIn, offers: offers,
      changeWithin: changeWithin,
      recoveryDelay: recoveryDelay, unverifiedLifetime: unverifiedLifetime,
      groups: groups, claims: claims, locations: locations)
  }

  private func duration(
    _ name: String, _ reader: TableReader, from least: Duration, to most: Duration, _ mostText: String
  ) -> Duration? {
    guard let duration = reader.duration(name, atLeast: least) else { return nil }
    guard duration <= most else {
      problems.add(
        reader.explicitValue(name)?.location ?? reader.location, reader.path(name), "must be at most \"\(mostText)\"")
      return nil
    }
    return duration
  }

  // MARK: sign_in

  private func readRequirements(
    _ node: LuaNode, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> [SignInRequirement] {
    let example = "a list of steps, as in { { \"totp\", when = function(f) return f.account.factors.totp end } }"
    guard case .table(let table) = node.value else {
      problems.add(node.location, "sign_in", "must be \(example), not \(node.value.described)")
      return []
    }
    guard table.isList else {
      problems.add(node.location, "sign_in", "must be \(example): each step with a condition is a separate table")
      return []
    }
    var requirements: [SignInRequirement] = []
    for (index, item) in table.items.enumerated() {
      let path = "sign_in[\(index + 1)]"
      locations[path] = item.location
      if let requirement = readRequirement(item, path, &locations, &functions) { requirements.append(requirement) }
    }
    return requirements
  }

  private func readRequirement(
    _ node: LuaNode, _ path: String, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> SignInRequirement? {
    let choices = StepChoicesReader(providers: providers, problems: problems)
    guard case .table = node.value else {
      return choices.read([node], path, at: node.location).map {
        SignInRequirement(choices: $0, location: node.location)
      }
    }
    guard let reader = TableReader(node, .signInRequirement, path: path, problems: problems, allowsItems: true) else {
      return nil
    }
    for name in reader.names { locations[reader.path(name)] = reader.explicitValue(name)?.location }
    let when = reader.function("when", example: "function(f) return f.account.factors.totp end").map { function in
      let name = FunctionName("accounts.\(path).when")
      functions.add(name, function, for: .flow)
      return name
    }
    let enroll = reader.flag("enroll") ?? false
    guard !reader.items.isEmpty else {
      problems.add(node.location, path, "a step must begin with its provider, as in { \"totp\" }")
      return nil
    }
    guard let names = choices.read(reader.items, path, at: node.location) else { return nil }
    if enroll, !names.contains(where: canBeSetUp) {
      problems.add(
        reader.explicitValue("enroll")?.location ?? node.location, reader.path("enroll"),
        "\(Suggestion.list(names.map(\.rawValue))) cannot be set up during a sign-in: only factors that are not identifiers can, such as `pin` and `totp`"
      )
      return nil
    }
    return SignInRequirement(choices: names, when: when, enroll: enroll, location: node.location)
  }

  // MARK: offers

  private func readOffers(
    _ node: LuaNode, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> [FactorOffer] {
    guard case .table(let table) = node.value, table.isList else {
      problems.add(node.location, "offer", "must be a list of providers, as in { { \"passkey\", every = \"30d\" } }")
      return []
    }
    var offers: [FactorOffer] = []
    for (index, item) in table.items.enumerated() {
      let path = "offer[\(index + 1)]"
      locations[path] = item.location
      guard let offer = readOffer(item, path, &locations, &functions) else { continue }
      if offers.contains(where: { $0.provider == offer.provider }) {
        problems.add(item.location, path, "offers `\(offer.provider)` a second time")
      } else {
        offers.append(offer)
      }
    }
    return offers
  }

  /// - Returns: nil with a problem if something is wrong; nil with a warning if gateway.lua does not configure the
  ///   provider.
  private func readOffer(
    _ node: LuaNode, _ path: String, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> FactorOffer? {
    var (named, every, when) = (node, Duration.seconds(30 * 86_400), nil as FunctionName?)
    if case .table = node.value {
      guard let reader = TableReader(node, .offer, path: path, problems: problems, allowsItems: true) else {
        return nil
      }
      for name in reader.names { locations[reader.path(name)] = reader.explicitValue(name)?.location }
      guard let first = reader.items.first, reader.items.count == 1 else {
        problems.add(
          node.location, path, "an offer must begin with one provider, as in { \"passkey\", every = \"30d\" }")
        return nil
      }
      guard let said = duration("every", reader, from: .seconds(3600), to: .seconds(365 * 86_400), "365d") else {
        return nil
      }
      (named, every) = (first, said)
      when = reader.function("when", example: "function(f) return f.flow.passed.phone_otp end").map { function in
        let name = FunctionName("accounts.\(path).when")
        functions.add(name, function, for: .flow)
        return name
      }
    }
    guard case .text(let text) = named.value else {
      problems.add(named.location, path, "must name a provider in quotes, not \(named.value.described)")
      return nil
    }
    guard let provider = providers.known(text) else {
      problems.add(
        named.location, path, "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))"
      )
      return nil
    }
    guard providers.isConfigured(provider) else {
      if !providers.broken.contains(text) {
        problems.warn(node.location, path, "is left out: gateway.lua does not configure `\(provider)`")
      }
      return nil
    }
    if let descriptor = providers.descriptor(text), !descriptor.isSecondFactor {
      problems.add(
        named.location, path,
        "`\(provider)` cannot be offered: only factors that are not identifiers can, such as `passkey` and `totp`")
      return nil
    }
    return FactorOffer(provider: provider, every: every, when: when, location: node.location)
  }

  /// Phone numbers, email addresses and federated identities cannot be offered: a sign-in must not add an identifier to
  /// an account.
  private func canBeSetUp(_ name: ProviderName) -> Bool { providers.descriptor(name.rawValue)?.isSecondFactor ?? true }
}
