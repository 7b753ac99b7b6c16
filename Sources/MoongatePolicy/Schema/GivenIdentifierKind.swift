/// The kinds of identifier that a flow can manage: the words of the field `identifier` in flows/NAME.lua.
enum GivenIdentifierKind: String, CaseIterable {
  case phone, email, federated
}
