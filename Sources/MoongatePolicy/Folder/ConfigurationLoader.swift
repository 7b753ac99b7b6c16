import Foundation
import MoongateCore
import MoongateSDK

/// Why a folder did not become a generation.
package struct RefusedConfiguration: Error, Sendable {
  /// SHA-256 over the files that could be read; nil if the folder does not exist.
  package let id: String?
  /// All problems, by file and line.
  package let problems: [ConfigurationProblem]
  /// Whether the folder does not exist.
  package let isFolderMissing: Bool
  /// Warnings; empty if the files could not be read.
  package let warnings: [ConfigurationProblem]

  package init(
    id: String?, problems: [ConfigurationProblem], isFolderMissing: Bool, warnings: [ConfigurationProblem] = []
  ) {
    self.id = id
    self.problems = problems
    self.isFolderMissing = isFolderMissing
    self.warnings = warnings
  }
}

/// A valid configuration, with the test cases that must pass before it becomes active.
package struct LoadedConfiguration: Sendable {
  package let generation: any PolicyGeneration
  /// The cases of all files in `tests/`.
  package let cases: [PolicyCase]
  /// The cases that the configured providers ship, for the flows that they ship.
  package let providerCases: [PolicyCase]
}

/// Loads a configuration folder: reads and checks all of it, and returns a generation or all problems.
///
/// `serve`, `check` and every reload use the same loader. It has no state. Loading blocks while it reads files, so call
/// it on a thread that may block.
package struct ConfigurationLoader: Sendable {
  private let providers: [any Provider]
  private let environment: [String: String]
  private let pageProblems: @Sendable ([PageFile], GatewaySettings?) -> [ConfigurationProblem]
  private let shippedLanguages: [String]
  private let gatewayProblems: @Sendable (GatewaySettings) -> [ConfigurationProblem]
  private let programs: ProgramLoading?

  /// - Parameters:
  /// - providers: the compiled-in providers.
  /// - environment: the environment for `env "NAME"`.
  /// - pages: checks the files of `pages/` and the page settings of gateway.lua.
  /// - languages: the languages that the pages are shipped in; empty without pages.
  /// - gateway: further checks of gateway.lua.
  /// - programs: starts the programs that gateway.lua names; nil if programs cannot be started.
  package init(
    providers: [any Provider], environment: [String: String] = ProcessInfo.processInfo.environment,
    pages: @escaping @Sendable ([PageFile], GatewaySettings?) -> [ConfigurationProblem] = { _, _ in [] },
    languages: [String] = [],
    gateway: @escaping @Sendable (GatewaySettings) -> [ConfigurationProblem] = { _ in [] },
    programs: ProgramLoading? = nil
  ) {
    shippedLanguages = languages
    gatewayProblems = gateway
    self.programs = programs
    self.providers = providers
    self.environment = environment
    pageProblems = pages
  }

  /// Loads the generation of a folder without running its cases.
  package func load(folder: String) -> Result<any PolicyGeneration, RefusedConfiguration> {
    read(folder: folder).map(\.generation)
  }

  /// The settings of gateway.lua, without reading the other files and without starting programs; nil if it cannot be
  /// read.
  package func settings(folder: String) -> GatewaySettings? {
    let problems = Problems()
    guard let file = ConfigurationFiles(folder: folder).file("gateway.lua") else { return nil }
    var lua = LuaFiles(problems: problems)
    var catalog = ProviderCatalog(compiledIn: providers.map(\.descriptor))
    guard let node = lua.read(file, constructor: "gateway", example: "gateway { … }", types: catalog.types)?.first
    else { return nil }
    catalog.descriptors += CandidateInstances(node, types: catalog.descriptors, problems: problems).descriptors
    catalog.configured = GatewayReader.configured(node, catalog)
    let secrets = SecretReader(folder: folder, environment: environment)
    return GatewayReader(folder: folder, catalog: catalog, secrets: secrets, problems: problems).read(node)
  }

  /// Loads the folder. Never crashes and never hangs, even for malicious folders.
  /// - Parameter base: the base of relative paths; nil: the folder itself.
  package func read(folder: String, base: String? = nil) -> Result<LoadedConfiguration, RefusedConfiguration> {
    var files = ConfigurationFiles(folder: folder)
    guard files.isFolderThere else {
      return .failure(RefusedConfiguration(id: nil, problems: files.problems, isFolderMissing: true))
    }
    let problems = Problems()
    problems.add(files.problems)
    let loaded = generation(of: &files, folder: base ?? folder, problems)
    if let loaded, problems.all.isEmpty { return .success(loaded) }
    return .failure(
      RefusedConfiguration(id: files.digest, problems: Problems.sorted(problems.all), isFolderMissing: false))
  }

  /// Warns of translations in a language that the pages do not have, usually because of a misspelled file name such as
  /// words/hn.words.
  private func warnOfUnseenLanguages(
    _ catalog: ProviderCatalog, _ gateway: GatewaySettings, _ pages: [PageFile], _ problems: Problems
  ) {
    let added = pages.compactMap { $0.name.hasSuffix(".words") ? String($0.name.dropLast(".words".count)) : nil }
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

  private func generation(of files: inout ConfigurationFiles, folder: String, _ problems: Problems)
    -> LoadedConfiguration?
  {
    var lua = LuaFiles(problems: problems)
    var catalog = ProviderCatalog(compiledIn: providers.map(\.descriptor))
    var functions = FunctionTable()
    let unreadable = Set(files.problems.map(\.location.file))

    var gateway: GatewaySettings?
    var candidates: CandidatePrograms?
    if let file = files.file("gateway.lua") {
      if let node = lua.read(file, constructor: "gateway", example: "gateway { … }", types: catalog.types)?.first {
        let secrets = SecretReader(folder: folder, environment: environment)
        // Programs are started first, because their declarations determine which settings the rest of the folder may
        // have.
        let reader = ExecReader(
          folder: folder, secrets: secrets, searchPath: environment["PATH"] ?? "", problems: problems)
        let started = CandidatePrograms(node, reader: reader, catalog: catalog, loading: programs, problems: problems)
        let instances = CandidateInstances(node, types: catalog.descriptors, problems: problems)
        catalog.descriptors += started.descriptors + instances.descriptors
        catalog.broken = started.broken.union(instances.broken)
        files.programs = started.digests
        candidates = started
        catalog.configured = GatewayReader.configured(node, catalog)
        gateway = GatewayReader(folder: folder, catalog: catalog, secrets: secrets, problems: problems).read(node)
        problems.tellUnsafe()
        if let gateway { problems.add(gatewayProblems(gateway)) }
      }
    } else if !unreadable.contains("gateway.lua") {
      problems.add(SourceLocation(file: "gateway.lua", line: 0), "", "is missing: every configuration folder has one")
    }

    problems.add(pageProblems(files.pages, gateway))

    let policies = readPolicies(files, &lua, catalog, &functions, unreadable, problems)
    let tokenPolicy = readTokenPolicy(files, &lua, problems)
    let flows = readFlows(files, &lua, catalog, &functions, problems)
    let flowNames = Self.flowNames(files, flows, problems)
    var accounts = AccountRules.standard
    // Nil if accounts.lua could not be read. Groups are then not reported as undefined.
    var groups: Set<GroupName>? = unreadable.contains("accounts.lua") ? nil : []
    if let file = files.file("accounts.lua"),
      let node = lua.read(file, constructor: "accounts", example: "accounts { … }")?.first
    {
      let read = AccountsReader(providers: catalog, problems: problems).read(node, functions: &functions)
      accounts = read ?? .standard
      groups = read.map { Set($0.groups.keys) }
    } else if files.file("accounts.lua") != nil {
      groups = nil
    }

    var routes: [Route] = []
    if let file = files.file("routes.lua") {
      if let node = lua.read(file, constructor: "routes", example: "routes { … }")?.first {
        routes = RouteReader(
          catalog: catalog, flows: Set(flowNames), gateway: gateway, groups: groups, problems: problems
        ).read(
          node, functions: &functions)
        for route in routes where !route.isOpen && route.flow == "login" && !flowNames.contains("login") {
          problems.add(
            route.location, "", "sends users without a session to the flow `login`, but flows/login.lua does not exist")
          break
        }
        if problems.all.isEmpty { warnOfDeadEnds(routes, flows, problems) }
      }
    } else if !unreadable.contains("routes.lua") {
      problems.warn(
        SourceLocation(file: "routes.lua", line: 0), "",
        "is missing: the gateway answers all other requests with 404")
    }
    var guarantees: [Guarantee] = []
    if let file = files.file("guarantees.lua"),
      let node = lua.read(file, constructor: "guarantees", example: "guarantees { … }")?.first
    {
      guarantees = GuaranteeReader(catalog: catalog, groups: groups, problems: problems).read(node)
    }
    let statements = guarantees.isEmpty && files.file("guarantees.lua") != nil ? nil : guarantees.map(\.statement)
    let choice = CaseSelection(files: files, catalog: catalog, flows: flows, policies: policies)
    var cases: [PolicyCase] = []
    for file in files.files(in: "tests") {
      if let node = lua.read(file, constructor: "tests", example: "tests { … }")?.first {
        let reader = CaseReader(
          flows: flowNames, absent: choice.absentFlows, host: gateway?.publicURL.host,
          groups: groups == nil ? nil : accounts.groups, statements: statements, providers: catalog, problems: problems)
        cases += choice.playable(reader.read(node), problems)
      }
    }
    let providerCases = readProviderCases(files, &lua, choice, host: gateway?.publicURL.host, problems)
    reportUnread(files, problems)

    for clash in DeclaredFact.clashes(of: catalog.descriptors) {
      problems.add(SourceLocation(file: "gateway.lua", line: 0), "providers.\(clash.provider)", clash.message)
    }
    FallbackChecks(flows: flows, policies: policies, catalog: catalog, problems: problems).check()
    UnknownFacts(
      functions: functions, catalog: catalog, groups: groups, claims: Set(accounts.claims.keys), problems: problems
    ).check(lua.names)

    ReasonWords(
      files: functions.files, reasons: Set(policies.values.flatMap(\.reasons.keys)), pages: files.pages,
      problems: problems
    ).check(lua.names)

    guard problems.all.isEmpty, let gateway else { return nil }
    let configured = Set(gateway.providers.keys)
    var generation = Generation(
      id: files.digest, changeMark: files.changeMark, gateway: gateway, routes: RouteTable(routes: routes),
      flows: flows,
      policies: policies.filter { configured.contains($0.key) },
      tokenPolicy: tokenPolicy ?? .tokens,
      accounts: accounts, guarantees: guarantees, pages: files.pages, warnings: [], functions: functions,
      sources: lua.sources,
      providers: configured,
      declaredFacts: catalog.facts, pads: catalog.pads.intersection(configured))
    do {
      _ = try generation.makeEvaluator()
    } catch {
      problems.add(error.location ?? SourceLocation(file: "gateway.lua", line: 0), "", error.message)
      return nil
    }
    SignInRequirementChecks(generation: generation, catalog: catalog, problems: problems).check()
    warnOfUnseenLanguages(catalog, gateway, files.pages, problems)
    generation.warnings = Problems.sorted(problems.warnings)
    if let candidates,
      !candidates.isEmpty || gateway.providers.values.contains(where: { $0.title != nil }) || catalog.hasInstances
    {
      guard let registry = registry(of: candidates, catalog, gateway, problems) else { return nil }
      generation.registry = registry
    }
    return LoadedConfiguration(generation: generation, cases: cases, providerCases: providerCases)
  }

  /// The compiled-in providers, their instances, and the candidate's programs, with their settings.
  private func registry(
    of candidates: CandidatePrograms, _ catalog: ProviderCatalog, _ gateway: GatewaySettings, _ problems: Problems
  ) -> ProviderRegistry? {
    guard let programs = candidates.accept(gateway, problems: problems) else { return nil }
    let instances = catalog.descriptors.compactMap { descriptor in
      providers.first { $0.descriptor.name == descriptor.instanceOf }?.instance(descriptor)
    }
    let titled = (providers + instances + programs).map { provider in
      let descriptor = provider.descriptor
      return gateway.providers[descriptor.name]?.title.map { provider.instance(descriptor.titled($0)) } ?? provider
    }
    do {
      return try ProviderRegistry(titled)
    } catch {
      problems.add(
        gateway.locations["providers.\(error.provider)"] ?? SourceLocation(file: "gateway.lua", line: 0),
        "providers.\(error.provider)", error.mistake
      )
      return nil
    }
  }

  /// Reports Lua files next to gateway.lua that are not read.
  private func reportUnread(_ files: ConfigurationFiles, _ problems: Problems) {
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
  private func warnOfDeadEnds(_ routes: [Route], _ flows: [String: FlowDefinition], _ problems: Problems) {
    for route in routes {
      guard case .passed(let provider, _)? = route.requirement else { continue }
      let flow = flows[route.stepUpFlow]
      if flow?.steps.contains(where: { $0.choices.contains(provider) }) ?? false { continue }
      let why = flow == nil ? "but flows/\(route.stepUpFlow).lua does not exist" : "which has no step of it"
      problems.warn(
        route.location, "require.passed",
        "sends users who have not passed `\(provider)` to the flow `\(route.stepUpFlow)`, \(why): they could never get access"
      )
    }
  }

  /// The title of a file, such as `phone_otp` for `policies/phone_otp.lua`.
  static func title(of file: String) -> String {
    String(file.split(separator: "/").last ?? "").replacing(/\.lua$/, with: "")
  }

  /// The table of a file made by `policy "name" { … }` or `flow "name" { … }`. The name must match the file.
  private func body(
    _ file: ConfigurationFiles.File, _ constructor: String, title: String, _ lua: inout LuaFiles, _ problems: Problems
  ) -> LuaNode? {
    guard
      let arguments = lua.read(file, constructor: constructor, example: "\(constructor) \"\(title)\" { … }", count: 2)
    else {
      return nil
    }
    if case .text(let text) = arguments[0].value, text != title {
      problems.add(
        arguments[0].location, "",
        "declares \(constructor) \"\(text)\", but the file is \(title).lua: give both the same name")
      return nil
    }
    return arguments[1]
  }

  private func readPolicies(
    _ files: ConfigurationFiles, _ lua: inout LuaFiles, _ catalog: ProviderCatalog, _ functions: inout FunctionTable,
    _ unreadable: Set<String>,
    _ problems: Problems
  ) -> [ProviderName: ProviderPolicy] {
    var bodies: [String: LuaNode] = [:]
    var broken: Set<String> = []
    for file in files.files(in: "policies") {
      let title = Self.title(of: file.name)
      if catalog.broken.contains(title) || title == ProviderName.token.rawValue { continue }
      guard catalog.descriptor(title) != nil else {
        problems.add(
          SourceLocation(file: file.name, line: 0), "",
          "unknown provider `\(title)`\(Suggestion.phrase(for: title, among: catalog.descriptors.map(\.name.rawValue)))"
        )
        continue
      }
      if let body = body(file, "policy", title: title, &lua, problems) {
        bodies[title] = body
      } else {
        broken.insert(title)
      }
    }
    var policies: [ProviderName: ProviderPolicy] = [:]
    for descriptor in catalog.descriptors where !broken.contains(descriptor.name.rawValue) {
      let own = "policies/\(descriptor.name).lua"
      if bodies[descriptor.name.rawValue] == nil, catalog.configured?.contains(descriptor.name) ?? false,
        !unreadable.contains(own)
      {
        problems.warn(
          SourceLocation(file: own, line: 0), "",
          "does not exist, so the provider's defaults apply; to confirm this, create it with return policy \"\(descriptor.name)\" {}"
        )
      }
      let file = ConfigurationFiles.File(descriptor.policy)
      guard
        let defaults = lua.read(file, constructor: "policy", example: "policy \"\(descriptor.name)\" { … }", count: 2)
      else {
        continue
      }
      let reader = PolicyReader(descriptor: descriptor, problems: problems)
      policies[descriptor.name] = reader.read(
        defaults: defaults[1], operator: bodies[descriptor.name.rawValue], functions: &functions)
    }
    return policies
  }

  private func readTokenPolicy(_ files: ConfigurationFiles, _ lua: inout LuaFiles, _ problems: Problems)
    -> ProviderPolicy?
  {
    let title = ProviderName.token.rawValue
    let own = files.files(in: "policies").first { Self.title(of: $0.name) == title }
    let node = own.flatMap { body($0, "policy", title: title, &lua, problems) }
    if own != nil, node == nil { return nil }
    let file = ConfigurationFiles.File(TokenPolicyReader.defaults)
    guard let defaults = lua.read(file, constructor: "policy", example: "policy \"\(title)\" { … }", count: 2) else {
      return nil
    }
    return TokenPolicyReader(problems: problems).read(defaults: defaults[1], operator: node)
  }

  /// The flows that other files may name, including those that could not be read, so that one mistake is not reported
  /// twice.
  private static func flowNames(_ files: ConfigurationFiles, _ flows: [String: FlowDefinition], _ problems: Problems)
    -> [String]
  {
    let broken = Set(problems.all.map(\.location.file))
    let unread = files.files(in: "flows").filter { broken.contains($0.name) }.map { title(of: $0.name) }
    return Set(unread).union(flows.keys).sorted()
  }

  private func readFlows(
    _ files: ConfigurationFiles, _ lua: inout LuaFiles, _ catalog: ProviderCatalog, _ functions: inout FunctionTable,
    _ problems: Problems
  ) -> [String: FlowDefinition] {
    var flows: [String: FlowDefinition] = [:]
    for file in files.files(in: "flows") {
      let title = Self.title(of: file.name)
      guard title.wholeMatch(of: /[a-z][a-z0-9_]{0,47}/) != nil else {
        problems.add(
          SourceLocation(file: file.name, line: 0), "", "a flow's name consists of lower-case letters, digits and _")
        continue
      }
      guard let body = body(file, "flow", title: title, &lua, problems) else { continue }
      flows[title] = FlowReader(name: title, providers: catalog, problems: problems).read(body, functions: &functions)
    }
    addFlowsOfProviders(to: &flows, files, &lua, catalog, &functions, problems)
    return flows
  }

  /// The cases that configured providers ship, except for providers that have a file of cases in the folder.
  private func readProviderCases(
    _ files: ConfigurationFiles, _ lua: inout LuaFiles, _ choice: CaseSelection, host: String?, _ problems: Problems
  ) -> [PolicyCase] {
    let catalog = choice.catalog
    let own = Set(files.files(in: "tests").map { Self.title(of: $0.name) })
    var cases: [PolicyCase] = []
    for descriptor in catalog.descriptors
    where catalog.isConfigured(descriptor.name) && !own.contains(descriptor.name.rawValue) {
      guard let source = descriptor.cases else { continue }
      let file = ConfigurationFiles.File(source)
      guard let node = lua.read(file, constructor: "tests", example: "tests { … }")?.first else { continue }
      let reader = CaseReader(flows: [], origin: descriptor.name, host: host, providers: catalog, problems: problems)
      cases += reader.read(node).filter { choice.plays($0, comingWith: descriptor) }
    }
    return cases
  }

  /// Adds the flows that configured providers ship, unless the folder has a file of the same name.
  private func addFlowsOfProviders(
    to flows: inout [String: FlowDefinition], _ files: ConfigurationFiles, _ lua: inout LuaFiles,
    _ catalog: ProviderCatalog,
    _ functions: inout FunctionTable, _ problems: Problems
  ) {
    let own = Set(files.files(in: "flows").map { Self.title(of: $0.name) })
    // Attack: an operator has deleted flows/change_email.lua to prevent changes of email addresses, and an update of
    // the gateway brings the flow back. A folder with flows whose purpose is derived from their names was written
    // before providers shipped flows, so it gets none of them.
    if let older = flows.values.filter(\.isPurposeImplied).min(by: { $0.name < $1.name }) {
      let left = catalog.descriptors.filter { catalog.isConfigured($0.name) }.flatMap(\.flows).map(\.name).filter {
        !own.contains($0)
      }
      if !left.isEmpty {
        problems.warn(
          older.location, "purpose",
          "is missing, as in files of older versions, so the flows that providers ship are left out (\(Suggestion.list(left))). "
            + "Add `purpose` to each flow that `check` names, and a file with enabled = false for each flow that you do not want"
        )
      }
      return
    }
    var origins: [String: ProviderName] = [:]
    for descriptor in catalog.descriptors where catalog.isConfigured(descriptor.name) {
      for source in descriptor.flows where !own.contains(source.name) {
        let location = SourceLocation(file: source.file, line: 0)
        if let other = origins.updateValue(descriptor.name, forKey: source.name) {
          problems.add(
            location, "",
            "is shipped by `\(descriptor.name)` and by `\(other)`: write flows/\(source.name).lua to choose one"
          )
          continue
        }
        let file = ConfigurationFiles.File(source)
        guard let body = body(file, "flow", title: source.name, &lua, problems) else { continue }
        let reader = FlowReader(name: source.name, providers: catalog, origin: descriptor.name, problems: problems)
        guard let flow = reader.read(body, functions: &functions) else { continue }
        // Attack: a plugin that is installed for a second factor ships a flow that signs users in.
        guard flow.purpose.needsSession else {
          problems.add(
            flow.location, "purpose",
            "is shipped by `\(descriptor.name)` and does not need a session: sign-in flows must be in the folder's flows/"
          )
          continue
        }
        guard flow.purpose.isOwn(of: descriptor) else {
          problems.add(
            flow.location, "purpose",
            "is shipped by `\(descriptor.name)` and manages a factor or identifier of another provider: such flows must be in the folder's flows/"
          )
          continue
        }
        flows[source.name] = flow
      }
    }
  }
}

extension FlowPurpose {
  /// Whether a provider may ship a flow of this purpose: it must manage the provider's own factor, or identifiers that
  /// the provider verifies.
  ///
  /// Attack: a plugin for one factor ships a flow that resets another one, so anyone who passes the plugin can replace
  /// the PIN.
  fileprivate func isOwn(of descriptor: ProviderDescriptor) -> Bool {
    switch self {
    case .factor(let provider, _): provider == descriptor.name
    case .verify(let kind), .change(let kind): descriptor.identifierKinds.contains(kind)
    // Joining a phone number merges two accounts, which is the operator's decision.
    case .join(.federated): descriptor.identifierKinds.contains(.federated)
    default: false
    }
  }
}
