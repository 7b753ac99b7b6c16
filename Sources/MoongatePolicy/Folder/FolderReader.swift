import MoongateCore
import MoongateSDK

/// Reads the files of one configuration folder and combines them into a generation. Each reader reads one folder once.
///
/// The files are read in the order of their dependencies. Problems are collected, so that one run reports all of them.
struct FolderReader {
  let loader: ConfigurationLoader
  /// The base of relative paths.
  let folder: String
  let problems = Problems()
  /// Names of files that exist but cannot be read. They are not reported as missing.
  let unreadable: Set<String>
  var files: ConfigurationFiles
  var lua: LuaFiles
  var catalog: ProviderCatalog
  var functions = FunctionTable()

  var gateway: GatewaySettings?
  /// Reads the secrets of gateway.lua, apps.lua and routes.lua, and records the files that they name.
  let secrets: SecretReader
  /// The programs that gateway.lua names, as paths; nil if it could not be read.
  private var programPaths: [String]?
  var candidates: CandidatePrograms?
  var policies: [ProviderName: ProviderPolicy] = [:]
  var tokenPolicy: ProviderPolicy?
  var flows: [String: FlowDefinition] = [:]
  var closedRegistrations: Set<String> = []
  /// The flows that other files may name, including those that could not be read.
  var flowNames: [String] = []
  var accounts = AccountRules.standard
  /// Nil if accounts.lua could not be read. Groups are then not reported as undefined.
  var groups: Set<GroupName>?
  var apps = AppTable.none
  var routes: [Route] = []
  var guarantees: [Guarantee] = []

  init(_ loader: ConfigurationLoader, files: ConfigurationFiles, folder: String) {
    self.loader = loader
    self.files = files
    self.folder = folder
    secrets = SecretReader(folder: folder, environment: loader.environment)
    lua = LuaFiles(problems: problems)
    catalog = ProviderCatalog(compiledIn: loader.providers.map(\.descriptor))
    unreadable = Set(files.problems.map(\.location.file))
    problems.add(files.problems)
  }

  /// Reads and checks all files.
  /// - Returns: nil if the configuration is invalid; `problems` then has at least one entry.
  mutating func read() -> LoadedConfiguration? {
    lua.share(files.shared(problems))
    readGateway()
    problems.add(loader.pageProblems(files.pages, gateway))
    readPolicies()
    readTokenPolicy()
    readFlows()
    readAccounts()
    readApps()
    readRoutes()
    addNamedFiles()
    readGuarantees()
    if problems.all.isEmpty { warnOfUnreachableApps() }
    let cases = readCases()
    checkErrorPages()
    reportUnread()
    checkAcrossFiles()
    guard problems.all.isEmpty, let gateway, let generation = generation(gateway) else { return nil }
    return LoadedConfiguration(generation: generation, cases: cases.own, providerCases: cases.shipped)
  }

  private mutating func readGateway() {
    guard let file = files.file("gateway.lua") else {
      if !unreadable.contains("gateway.lua") {
        problems.add(SourceLocation(file: "gateway.lua", line: 0), "", "is missing: every configuration folder has one")
      }
      return
    }
    guard let node = lua.read(file, constructor: "gateway", example: "gateway { … }", types: catalog.types)?.first
    else { return }
    // Programs are started first, because their declarations determine which settings the rest of the folder may have.
    let reader = ExecReader(
      folder: folder, secrets: secrets, searchPath: loader.environment["PATH"] ?? "", problems: problems)
    let started = CandidatePrograms(
      node, reader: reader, catalog: catalog, loading: loader.programs, problems: problems)
    let instances = CandidateInstances(node, types: catalog.descriptors, problems: problems)
    catalog.descriptors += started.descriptors + instances.descriptors
    catalog.broken = started.broken.union(instances.broken)
    files.programs = started.digests
    candidates = started
    catalog.configured = GatewayReader.configured(node, catalog)
    gateway = GatewayReader(folder: folder, catalog: catalog, secrets: secrets, problems: problems).read(node)
    catalog.descriptors = catalog.descriptors.map { gateway?.identified($0) ?? $0 }
    programPaths = reader.lookedFor
    problems.reportUnsafe()
    checkProviderSettings()
    if let gateway { problems.add(loader.gatewayProblems(gateway)) }
  }

  /// Lets the providers check their settings.
  private mutating func checkProviderSettings() {
    guard let gateway else { return }
    for (name, settings) in gateway.providers.sorted(by: { $0.key < $1.key }) {
      guard let descriptor = catalog.descriptor(name.rawValue),
        let provider = loader.providers.first(where: { $0.descriptor.name == descriptor.instanceOf ?? name })
          as? any SettingsChecking
      else { continue }
      for finding in provider.findings(in: settings.forSteps) {
        let path = "providers.\(name).\(finding.setting)"
        let location =
          gateway.locations[path] ?? gateway.locations["providers.\(name)"]
          ?? SourceLocation(file: "gateway.lua", line: 0)
        switch finding.effect {
        case .refused: problems.add(location, path, finding.message)
        case .warning: problems.warn(location, path, finding.message)
        case .localOnly: self.gateway?.providers[name]?.localOnly[finding.setting] = finding.message
        }
      }
    }
  }

  private mutating func readAccounts() {
    guard let file = files.file("accounts.lua") else {
      groups = unreadable.contains("accounts.lua") ? nil : []
      return
    }
    guard let node = lua.read(file, constructor: "accounts", example: "accounts { … }")?.first,
      let read = AccountsReader(providers: catalog, problems: problems).read(node, functions: &functions)
    else { return }
    accounts = read
    groups = Set(read.groups.keys)
  }

  private mutating func readApps() {
    guard let file = files.file("apps.lua"),
      let node = lua.read(file, constructor: "apps", example: "apps { … }")?.first
    else { return }
    apps = AppReader(
      catalog: catalog, groups: groups, own: gateway?.publicURL, secrets: secrets, problems: problems
    ).read(node, functions: &functions)
    ReservedClaims(functions: functions, problems: problems).check(apps.apps.compactMap(\.claims), lua.sources)
  }

  /// The apps that other files may name; nil if apps.lua has problems.
  var readableApps: AppTable? {
    unreadable.contains("apps.lua") || problems.all.contains { $0.location.file == "apps.lua" } ? nil : apps
  }

  /// Adds the files that gateway.lua, apps.lua and routes.lua name to what the generation depends on.
  private mutating func addNamedFiles() {
    files.named = secrets.files.contents
    if let programPaths { loader.programs?.watch(programPaths + secrets.files.paths) }
  }

  private mutating func readRoutes() {
    guard let file = files.file("routes.lua") else {
      if !unreadable.contains("routes.lua") {
        problems.warn(
          SourceLocation(file: "routes.lua", line: 0), "",
          "is missing: the gateway answers all other requests with 404")
      }
      return
    }
    guard let node = lua.read(file, constructor: "routes", example: "routes { … }")?.first else { return }
    let reader = RouteReader(
      catalog: catalog, flows: Set(flowNames), gateway: gateway, groups: groups,
      claims: groups == nil ? nil : Set(accounts.claims.keys), apps: readableApps, secrets: secrets,
      errorPages: files.errorPages, problems: problems)
    routes = reader.read(node, functions: &functions)
    let needsLogin = routes.first { !$0.isOpen && $0.flow == FlowPurpose.signIn.usualName }
    if let needsLogin, !flowNames.contains(needsLogin.flow) {
      problems.add(
        needsLogin.location, "",
        "sends users without a session to the flow `login`, but flows/login.lua does not exist")
    }
    if problems.all.isEmpty { warnOfDeadEnds() }
  }

  private mutating func readGuarantees() {
    guard let file = files.file("guarantees.lua"),
      let node = lua.read(file, constructor: "guarantees", example: "guarantees { … }")?.first
    else { return }
    guarantees = GuaranteeReader(catalog: catalog, groups: groups, apps: readableApps, problems: problems).read(node)
  }

  /// Checks that need several files.
  private func checkAcrossFiles() {
    for clash in DeclaredFact.clashes(of: catalog.descriptors) {
      problems.add(SourceLocation(file: "gateway.lua", line: 0), "providers.\(clash.provider)", clash.message)
    }
    FallbackChecks(flows: flows, policies: policies, catalog: catalog, problems: problems).check()
    UnknownFacts(
      functions: functions, catalog: catalog, groups: groups, claims: Set(accounts.claims.keys), gateway: gateway,
      problems: problems
    ).check(lua.names)
    if let gateway { GeoChecks(geo: gateway.geo, problems: problems).check(policies.values) }
    GroupCycles(groups: accounts.groups, functions: functions, problems: problems).check(lua.names)
    RouteChecks(routes: routes, problems: problems).check()
    ReasonWords(
      files: functions.files.union(lua.shared.map(\.file)),
      reasons: Set(policies.values.flatMap(\.reasons.keys)).union(accounts.reasons.keys), pages: files.pages,
      problems: problems
    ).check(lua.names)
  }

  /// The generation of a folder without problems, after the checks that need a whole generation.
  /// - Returns: nil if one of these checks found a problem.
  private func generation(_ gateway: GatewaySettings) -> Generation? {
    let configured = Set(gateway.providers.keys)
    let errorPages = Set(routes.compactMap(\.errorPages))
    var generation = Generation(
      id: files.digest, changeMark: files.changeMark, gateway: gateway, routes: RouteTable(routes: routes),
      flows: flows, closedRegistrations: closedRegistrations,
      policies: policies.filter { configured.contains($0.key) },
      tokenPolicy: tokenPolicy ?? .tokens,
      accounts: accounts, apps: apps, guarantees: guarantees,
      pages: files.pages + files.errorPages.filter { errorPages.contains($0.folder) }, warnings: [],
      functions: functions, sources: lua.sources, shared: lua.shared,
      providers: configured,
      declaredFacts: catalog.facts, secretFiles: secrets.files.secrets, pads: catalog.pads.intersection(configured),
      identityProvers: IdentityProvers(catalog.descriptors))
    do {
      let evaluator = try LuaEvaluator(generation)
      GroupCycles(groups: accounts.groups, functions: functions, problems: problems).check(by: evaluator)
      guard problems.all.isEmpty else { return nil }
    } catch {
      problems.add(error.location ?? SourceLocation(file: "gateway.lua", line: 0), "", error.message)
      return nil
    }
    SignInRequirementChecks(generation: generation, catalog: catalog, problems: problems).check()
    warnOfUnseenLanguages(gateway)
    generation.warnings = Problems.sorted(problems.warnings)
    if let candidates,
      !candidates.isEmpty || catalog.hasInstances
        || gateway.providers.values.contains(where: { $0.title != nil || $0.icon != nil || $0.identifyBy != nil })
    {
      guard let registry = registry(of: candidates, gateway) else { return nil }
      generation.registry = registry
    }
    return generation
  }

  /// The compiled-in providers, their instances, and the candidate's programs, with their settings.
  private func registry(of candidates: CandidatePrograms, _ gateway: GatewaySettings) -> ProviderRegistry? {
    let providers = loader.providers
    guard let programs = candidates.accept(gateway, problems: problems) else { return nil }
    let instances = catalog.descriptors.compactMap { descriptor in
      providers.first { $0.descriptor.name == descriptor.instanceOf }?.instance(descriptor)
    }
    do {
      return try ProviderRegistry((providers + instances + programs).map { named($0, gateway) })
    } catch {
      problems.add(
        gateway.locations["providers.\(error.provider)"] ?? SourceLocation(file: "gateway.lua", line: 0),
        "providers.\(error.provider)", error.mistake
      )
      return nil
    }
  }

  /// The provider with the title and the icon that its entry has, or that follow from its settings, and with the kinds
  /// of identifier that `identify_by` chooses.
  private func named(_ provider: any Provider, _ gateway: GatewaySettings) -> any Provider {
    guard let settings = gateway.providers[provider.descriptor.name] else { return provider }
    var descriptor = gateway.identified(provider.descriptor)
    let naming = (provider as? any SettingsNaming)?.naming(for: settings.forSteps)
    if let title = settings.title {
      descriptor = descriptor.titled(title)
    } else if let naming {
      descriptor = descriptor.titled(naming.name, button: naming.button)
    }
    if let icon = settings.icon { descriptor = descriptor.showing(icon: icon) }
    let isAsDeclared = settings.title == nil && naming == nil && settings.icon == nil && settings.identifyBy == nil
    return isAsDeclared ? provider : provider.instance(descriptor)
  }

  /// The table of a file made by `policy "name" { … }` or `flow "name" { … }`. The name must match the file.
  mutating func body(_ file: ConfigurationFiles.File, _ constructor: String, title: String) -> LuaNode? {
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
}
