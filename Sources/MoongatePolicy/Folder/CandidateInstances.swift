import MoongateCore
import MoongateSDK

/// The entries under `providers` of gateway.lua that make an instance of a compiled-in provider, such as `sms_us =
/// phone_otp { … }`.
struct CandidateInstances {
  /// In the order of their names.
  private(set) var descriptors: [ProviderDescriptor] = []
  /// Names of entries that cannot be used and are already reported.
  private(set) var broken: Set<String> = []

  /// - Parameter types: the compiled-in providers.
  init(_ gateway: LuaNode, types: [ProviderDescriptor], problems: Problems) {
    guard case .table(let table) = gateway.value, case .table(let providers)? = table.fields["providers"]?.value else {
      return
    }
    for (name, node) in providers.fields.sorted(by: { $0.key < $1.key }) {
      guard case .tagged(let word, _) = node.value, word != name,
        let type = types.first(where: { $0.name.rawValue == word })
      else { continue }
      if let instance = Self.instance(of: type, name, types: types, at: node.location, problems) {
        descriptors.append(instance)
      } else {
        broken.insert(name)
      }
    }
  }

  private static func instance(
    of type: ProviderDescriptor, _ text: String, types: [ProviderDescriptor], at location: SourceLocation,
    _ problems: Problems
  ) -> ProviderDescriptor? {
    let path = "providers.\(text)"
    guard let name = Field.provider(text, at: location, path, problems) else { return nil }
    // Attack: both providers would share the stored secrets of accounts, and a lock of one would lock the other.
    guard !types.contains(where: { $0.name == name }) else {
      problems.add(
        location, path,
        "`\(name)` is a built-in provider, but the entry is an instance of `\(type.name)`: choose another name for the entry"
      )
      return nil
    }
    let instance = type.instance(named: name)
    if let flow = instance.flows.first(where: { $0.name.utf8.count > 48 }) {
      problems.add(
        location, path,
        "the name is too long: the provider ships the flow `\(flow.name)`, and a flow's name has at most 48 characters")
      return nil
    }
    return instance
  }
}
