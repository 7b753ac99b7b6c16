import MoongateCore
import MoongateSDK

/// Warnings about accounts.lua, and about factors in flows that belong there.
struct SignInRequirementChecks {
  let generation: Generation
  let catalog: ProviderCatalog
  let problems: Problems

  /// Adds warnings only. Nothing here refuses a configuration.
  func check() {
    warnOfUnprotectedSteps()
    warnOfOffersOfNothing()
    for (index, requirement) in generation.accounts.signIn.enumerated() {
      let path = "sign_in[\(index + 1)]"
      warnOfRefusedAccounts(requirement, path)
      warnOfDeadFlows(requirement, path)
    }
  }

  /// Flows that open a session of an existing account, by name.
  private var signInFlows: [FlowDefinition] {
    generation.flows.values.sorted { $0.name < $1.name }.filter { flow in
      let isOwn = flow.purpose.needsSession || !identifies(flow)
      let isFederated = flow.steps.contains { $0.choices.contains { kinds(of: $0).contains(.federated) } }
      return !isOwn && (flow.account != .new || isFederated)
    }
  }

  /// Whether the first step identifies the user, so that the flow begins without a session.
  private func identifies(_ flow: FlowDefinition) -> Bool {
    flow.steps.first?.choices.contains { !kinds(of: $0).isEmpty } ?? false
  }

  private func kinds(of name: ProviderName) -> [IdentifierKind] {
    catalog.descriptor(name.rawValue)?.identifierKinds ?? []
  }

  private func proves(_ name: ProviderName, in flow: FlowDefinition) -> Bool { flow.purpose.step(of: name) == .prove }

  // MARK: factors in one flow

  /// Attack: flows/login.lua requires a second factor, and a client begins the flow `enter` instead.
  private func warnOfUnprotectedSteps() {
    let signInFlows = signInFlows
    for flow in signInFlows where flow.account != .new {
      for (index, step) in flow.steps.enumerated().dropFirst()
      where !step.isSkippable && step.choices.allSatisfy({ proves($0, in: flow) }) {
        if generation.accounts.signIn.contains(where: { Set($0.choices).isSubset(of: step.choices) }) { continue }
        guard let other = signInFlows.first(where: { $0.name != flow.name && !asks($0, for: step.choices) }) else {
          continue
        }
        problems.warn(
          index < flow.stepLocations.count ? flow.stepLocations[index] : flow.location, "",
          "step \(step.choices.map(\.rawValue).joined(separator: " or ")) does not protect accounts: flow \"\(other.name)\" opens the same accounts "
            + "without it; move it to accounts.lua")
      }
    }
  }

  /// Whether the flow cannot be completed without one of these providers.
  private func asks(_ flow: FlowDefinition, for choices: [ProviderName]) -> Bool {
    flow.steps.contains { step in
      !step.isSkippable && step.choices.allSatisfy { choices.contains($0) && proves($0, in: flow) }
    }
  }

  // MARK: offers

  private func warnOfOffersOfNothing() {
    for (index, offer) in generation.accounts.offers.enumerated()
    where generation.flow(for: .factor(offer.provider, .set)) == nil {
      problems.warn(
        offer.location, "offer[\(index + 1)]",
        "`\(offer.provider)` is never offered: no flow sets it up. Add one with purpose = \"set\" and provider = \"\(offer.provider)\", or remove the offer"
      )
    }
  }

  // MARK: refused accounts

  /// Warns of accounts that lack the factor although `when` does not exempt them.
  private func warnOfRefusedAccounts(_ requirement: SignInRequirement, _ path: String) {
    guard !requirement.enroll, isAskedOfWhoLacksIt(requirement) else { return }
    let tests = requirement.choices.compactMap(test)
    let when =
      tests.isEmpty ? "" : "test for it, as in when = function(f) return \(tests.joined(separator: " or ")) end, or "
    problems.warn(
      requirement.location, path,
      "refuses an account that has no \(requirement.choices.map { "`\($0)`" }.joined(separator: " or ")) (403 denied): \(when)"
        + "add enroll = true if users should set it up during the sign-in")
  }

  /// The fact that tells whether an account has the factor.
  private func test(_ name: ProviderName) -> String? {
    let descriptor = catalog.descriptor(name.rawValue)
    let kinds = descriptor?.identifierKinds ?? []
    if kinds.contains(.federated) { return nil }
    if descriptor?.isSecondFactor ?? true || descriptor?.hashesSecrets ?? false { return "f.account.factors.\(name)" }
    return kinds.contains(.phone) ? "f.account.phone_verified" : "f.account.email_verified"
  }

  /// Runs `when` for accounts that lack every choice, with all combinations of other facts that such functions commonly
  /// read.
  private func isAskedOfWhoLacksIt(_ requirement: SignInRequirement) -> Bool {
    guard let when = requirement.when else { return true }
    guard let evaluator = try? generation.makeEvaluator() else { return false }
    let lacks = { (fact: String) in requirement.choices.contains { test($0) == fact } }
    let others = Set(generation.policies.keys).subtracting(requirement.choices)
    for flow in signInFlows {
      for bits in 0..<64 {
        let bit = { (number: Int) in bits >> number & 1 == 1 }
        var account = AccountFacts(exists: true, id: "ac_", age: .seconds(86_400 * 365), idle: .seconds(86_400))
        account.factors = bit(0) ? others : []
        account.hasPIN = !account.factors.isDisjoint(with: generation.pads)
        account.isPhoneVerified = bit(1) && !lacks("f.account.phone_verified")
        account.hasEmail = bit(2)
        account.isEmailVerified = bit(2) && !lacks("f.account.email_verified")
        account.groups.listed = bit(5) ? Set(generation.accounts.groups.keys) : []
        let passed = Set(flow.steps.first?.choices.prefix(1) ?? [])
        let facts = Facts(
          now: Timestamp(milliseconds: 0), flow: FlowFacts(name: flow.name, passed: passed), account: account,
          client: ClientFacts(address: .unspecified, isNewDevice: bit(3), networkChanged: bit(4)))
        if (try? evaluator.condition(of: when, given: facts)) ?? false { return true }
      }
    }
    return false
  }

  // MARK: flows that cannot be completed

  /// Warns of flows that replace the required factor. The old factor is not required there, and setting a new one
  /// verifies nothing.
  private func warnOfDeadFlows(_ requirement: SignInRequirement, _ path: String) {
    guard requirement.when == nil else { return }
    for flow in signInFlows where flow.account != .new && requirement.choices.allSatisfy({ !proves($0, in: flow) }) {
      problems.warn(
        requirement.location, path,
        "flow \"\(flow.name)\" can never be completed: it replaces \(requirement.choices.map { "`\($0)`" }.joined(separator: " and ")), "
          + "which verifies nothing; add another factor, as in any_of { … }")
    }
  }
}
