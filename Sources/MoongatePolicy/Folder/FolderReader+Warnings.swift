import MoongateCore
import MoongateSDK

extension FolderReader {
  /// Warns of translations in a language that the pages do not have, usually because of a misspelled file name such as
  /// words/hn.words.
  func warnOfUnseenLanguages(_ gateway: GatewaySettings) {
    let shippedLanguages = loader.shippedLanguages
    let added = files.pages.compactMap { $0.name.hasSuffix(".words") ? String($0.name.dropLast(".words".count)) : nil }
    let offered = Set((shippedLanguages + added).map { $0.prefix { $0 != "-" }.lowercased() })
    guard !shippedLanguages.isEmpty else { return }
    let known = Set(shippedLanguages + added).sorted().joined(separator: ", ")
    let pages =
      gateway.languages.isEmpty
      ? "the pages are in \(known)"
      : "`languages` has \(gateway.languages.joined(separator: ", ")) of the pages in \(known)"
    for descriptor in catalog.descriptors where catalog.isConfigured(descriptor.name) {
      let tags = (descriptor.words?.translations ?? [:]).keys.filter {
        !offered.contains($0.prefix { $0 != "-" }.lowercased())
      }
      let path = "providers.\(descriptor.name)"
      for tag in tags.sorted() {
        problems.warn(
          gateway.locations[path] ?? SourceLocation(file: "gateway.lua", line: 0), path,
          "its words have a translation to \"\(tag)\", which the pages do not have, so it is never shown: \(pages)"
            + "; pages/\(tag).words adds one\(gateway.languages.isEmpty ? "" : ", and `languages` has to name it")")
      }
    }
  }

  /// Checks the templates in the folders that `error_pages` names.
  func checkErrorPages() {
    let folders = Set(routes.compactMap(\.errorPages))
    problems.add(loader.pageProblems(files.errorPages.filter { folders.contains($0.folder) }, nil))
  }

  /// Reports Lua files next to gateway.lua that are not read.
  func reportUnread() {
    for file in files.files where !file.name.contains("/") && !ConfigurationFiles.rootFiles.contains(file.name) {
      let meant = Suggestion.nearest(to: file.name, among: ConfigurationFiles.rootFiles)
      let location = SourceLocation(file: file.name, line: 0)
      let message = "is not read\(meant.map { "; did you mean `\($0)`?" } ?? "")"
      // Attack: the file is called account.lua, so the requirements or guarantees in it silently do not apply.
      if meant == "accounts.lua" || meant == "guarantees.lua" {
        problems.add(location, "", message)
      } else {
        problems.warn(location, "", message)
      }
    }
  }

  /// Warns of a route that requires a provider which its flow does not have.
  func warnOfDeadEnds() {
    for route in routes {
      guard case .passed(let provider, _)? = route.requirement else { continue }
      let flow = flows[route.stepUpFlow]
      if flow?.steps.contains(where: { $0.choices.contains(provider) }) ?? false { continue }
      problems.warn(
        route.location, "require.passed",
        Self.deadEnd("passed `\(provider)`", flow: route.stepUpFlow, exists: flow != nil))
    }
  }

  private static func deadEnd(_ deed: String, flow: String, exists: Bool) -> String {
    let why = exists ? "which has no step of it" : "but flows/\(flow).lua does not exist"
    return "sends users who have not \(deed) to the flow `\(flow)`, \(why): they could never get access"
  }

  /// Warns of an app that requires a provider, or more factors, than a sign-in and its step-up flow have.
  func warnOfUnreachableApps() {
    let stepUp = flows.flow(for: .stepUp)
    let name = stepUp?.name ?? FlowPurpose.stepUp.usualName
    for app in apps.apps where app.signsUsersIn {
      let location = app.locations["require"] ?? SourceLocation(file: "apps.lua", line: 0)
      for case .passed(let provider, _) in app.requirement.steps
      where !(stepUp?.steps.contains { $0.choices.contains(provider) } ?? false) {
        problems.warn(
          location, "\(app.id).require.passed",
          Self.deadEnd("passed `\(provider)`", flow: name, exists: stepUp != nil))
      }
      guard let factors = app.requirement.factors, mostFactors(with: stepUp) < factors else { continue }
      problems.warn(
        location, "\(app.id).require.factors",
        "requires \(factors) factors, but no sign-in passes as many, also with the flow `\(name)`: users could never get access"
      )
    }
  }

  /// The most factors that a session can have passed.
  private func mostFactors(with stepUp: FlowDefinition?) -> Int {
    let added = Set((stepUp?.steps ?? []).flatMap(\.choices)).union(accounts.signIn.flatMap(\.choices))
    return flows.values.filter { !$0.purpose.needsSession }.map { flow -> Int in
      let own = Set(flow.steps.flatMap(\.choices))
      let all = own.union(added)
      let isMulti = all.contains { catalog.descriptor($0.rawValue)?.mayProveSeveralFactors ?? false }
      return max(min(all.count, min(own.count, flow.steps.count) + added.count), isMulti ? 2 : 0)
    }.max() ?? 0
  }
}
