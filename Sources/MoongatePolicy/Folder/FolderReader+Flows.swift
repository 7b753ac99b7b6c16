import MoongateCore
import MoongateSDK

extension FolderReader {
  /// Reads the flows in `flows/`, and those that providers ship.
  mutating func readFlows() {
    for file in files.files(in: "flows") {
      let title = file.title
      guard title.wholeMatch(of: /[a-z][a-z0-9_]{0,47}/) != nil else {
        problems.add(
          SourceLocation(file: file.name, line: 0), "", "a flow's name consists of lower-case letters, digits and _")
        continue
      }
      guard let body = body(file, "flow", title: title) else { continue }
      switch FlowReader(name: title, providers: catalog, problems: problems).read(body, functions: &functions) {
      case .flow(let flow): flows[title] = flow
      case .leftOut(let createsAccounts): if createsAccounts { closedRegistrations.insert(title) }
      case .invalid: break
      }
    }
    addFlowsOfProviders()
    // Include flows that could not be read, so that one mistake is not reported twice.
    let broken = Set(problems.all.map(\.location.file))
    let unread = files.files(in: "flows").filter { broken.contains($0.name) }.map(\.title)
    flowNames = Set(unread).union(flows.keys).sorted()
  }

  /// Adds the flows that configured providers ship, unless the folder has a file of the same name.
  private mutating func addFlowsOfProviders() {
    let own = Set(files.files(in: "flows").map(\.title))
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
        if let flow = shippedFlow(source, of: descriptor) { flows[source.name] = flow }
      }
    }
  }

  /// A flow that a provider ships; nil if it is invalid or not allowed.
  private mutating func shippedFlow(_ source: PolicySource, of descriptor: ProviderDescriptor) -> FlowDefinition? {
    guard let body = body(ConfigurationFiles.File(source), "flow", title: source.name) else { return nil }
    let reader = FlowReader(name: source.name, providers: catalog, origin: descriptor.name, problems: problems)
    guard case .flow(let flow) = reader.read(body, functions: &functions) else { return nil }
    // Attack: a plugin that is installed for a second factor ships a flow that signs users in.
    guard flow.purpose.needsSession else {
      problems.add(
        flow.location, "purpose",
        "is shipped by `\(descriptor.name)` and does not need a session: sign-in flows must be in the folder's flows/"
      )
      return nil
    }
    guard flow.purpose.isOwn(of: descriptor) else {
      problems.add(
        flow.location, "purpose",
        "is shipped by `\(descriptor.name)` and manages a factor or identifier of another provider: such flows must be in the folder's flows/"
      )
      return nil
    }
    return flow
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
