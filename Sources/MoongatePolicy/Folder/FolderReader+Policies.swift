import MoongateCore
import MoongateSDK

extension FolderReader {
  /// Reads the policies of all providers: the provider's defaults, overridden by the file in `policies/`.
  mutating func readPolicies() {
    var bodies: [String: LuaNode] = [:]
    var broken: Set<String> = []
    for file in files.files(in: "policies") {
      let title = file.title
      if catalog.broken.contains(title) || title == ProviderName.token.rawValue { continue }
      guard catalog.descriptor(title) != nil else {
        problems.add(
          SourceLocation(file: file.name, line: 0), "",
          "unknown provider `\(title)`\(Suggestion.phrase(for: title, among: catalog.descriptors.map(\.name.rawValue)))"
        )
        continue
      }
      if let body = body(file, "policy", title: title) {
        bodies[title] = body
      } else {
        broken.insert(title)
      }
    }
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
  }

  /// Reads the policy of access tokens.
  mutating func readTokenPolicy() {
    let title = ProviderName.token.rawValue
    let own = files.files(in: "policies").first { $0.title == title }
    let node = own.flatMap { body($0, "policy", title: title) }
    if own != nil, node == nil { return }
    let file = ConfigurationFiles.File(TokenPolicyReader.defaults)
    guard let defaults = lua.read(file, constructor: "policy", example: "policy \"\(title)\" { … }", count: 2) else {
      return
    }
    tokenPolicy = TokenPolicyReader(problems: problems).read(defaults: defaults[1], operator: node)
  }
}
