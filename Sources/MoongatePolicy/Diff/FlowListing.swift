import MoongateCore
import MoongateSDK

/// The settings of flows, of apps.lua and of gateway.lua that affect sign-ins, one per line.
enum FlowListing {
  static func lines(_ flow: FlowDefinition) -> [PolicyListing.Line] {
    var lines: [PolicyListing.Line] = []
    func add(_ path: String, _ value: String, _ location: SourceLocation? = nil) {
      let location = location ?? flow.location
      lines.append(
        PolicyListing.Line(path: path, value: value, file: location.file, line: location.line > 0 ? location.line : nil)
      )
    }
    add("account", "\"\(flow.account.rawValue)\"")
    let registers = flow.registers.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
    if !registers.isEmpty { add("registers", "{ \(registers) }") }
    for (index, step) in flow.steps.enumerated() {
      let path = "steps[\(index + 1)]"
      let location = index < flow.stepLocations.count ? flow.stepLocations[index] : flow.location
      let choices = step.choices.map { "\"\($0)\"" }.joined(separator: ", ")
      let words = step.choices.count == 1 ? choices : "\(step.isFallback ? "fallback" : "any_of") { \(choices) }"
      add(path, words + (step.isSkippable ? ", skippable" : ""), location)
      if step.when != nil { add("\(path).when", "function", location) }
    }
    add("lifetime", "\"\(flow.lifetime.asWritten)\"")
    add("session.lifetime", "\"\(flow.session.lifetime.asWritten)\"")
    add("session.idle", "\"\(flow.session.idle.asWritten)\"")
    if let remember = flow.session.remember {
      add("session.remember.lifetime", "\"\(remember.lifetime.asWritten)\"")
      add("session.remember.idle", "\"\(remember.idle.asWritten)\"")
    }
    return lines
  }

  /// The apps, with what decides who receives codes.
  static func lines(_ apps: AppTable) -> [PolicyListing.Line] {
    apps.apps.flatMap { app in
      let uris = app.redirectURIs.map { PolicyListing.quoted($0.text) }.joined(separator: ", ")
      let values = [
        ("name", PolicyListing.quoted(app.name)), ("redirect_uris", "{ \(uris) }"),
        ("consent", PolicyListing.quoted(app.consent.rawValue)),
      ]
      return values.map { field, value in
        let location = app.locations[field] ?? app.locations[""]
        return PolicyListing.Line(path: "\(app.id).\(field)", value: value, file: location?.file, line: location?.line)
      }
    }
  }

  static func lines(_ gateway: GatewaySettings) -> [PolicyListing.Line] {
    let providers = gateway.providers.keys.sorted().map(\.rawValue).joined(separator: ", ")
    let values: [(String, String)] = [
      ("public_url", "\"\(gateway.publicURL)\""), ("region", gateway.region.isEmpty ? "none" : "\"\(gateway.region)\""),
      ("risk_budget", gateway.riskBudget.map { "\(GuessBudget.percent($0)) in 30 days" } ?? "none"),
      ("providers", "{ \(providers) }"),
    ]
    let chosen = gateway.providers.sorted { $0.key < $1.key }.compactMap { name, settings in
      settings.identifyBy.map { kinds in
        ("providers.\(name).identify_by", "{ \(kinds.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")) }")
      }
    }
    let rechecked = gateway.providers.sorted { $0.key < $1.key }.flatMap { name, settings in
      (settings.recheck.map { [("recheck", $0.interval), ("recheck_grace", $0.grace)] } ?? []).map {
        ("providers.\(name).\($0)", "\"\($1.asWritten)\"")
      }
    }
    return (values + chosen + rechecked).map { path, value in
      let location = gateway.locations[path]
      return PolicyListing.Line(path: path, value: value, file: location?.file, line: location?.line)
    }
  }
}
