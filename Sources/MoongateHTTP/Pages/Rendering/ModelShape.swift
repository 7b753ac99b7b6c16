/// The member names of a model's type, with those of nested types. A list stands for its elements.
///
/// They are derived from the type by decoding, so they always match the model.
struct ModelShape: Equatable {
  private(set) var members: [String: ModelShape]

  init(members: [String: ModelShape]) { self.members = members }

  init(of model: any Decodable.Type) {
    let node = Node()
    // A type that cannot be decoded from placeholders has already revealed its names.
    _ = try? model.init(from: Recorder(node: node))
    self = node.shape
  }

  func merging(_ other: Self) -> Self { Self(members: members.merging(other.members) { $0.merging($1) }) }

  /// With the names of its members and theirs: an included template may be used within any section.
  var flattened: Self { members.values.reduce(self) { $0.merging($1.flattened) } }

  fileprivate final class Node {
    var members: [String: Node] = [:]

    var shape: ModelShape { ModelShape(members: members.mapValues(\.shape)) }
  }
}

extension PageTemplate {
  /// The layout, which every page can use.
  static let frame = ModelShape(members: ["frame": ModelShape(of: PageFrame.self)])

  /// The names that a built-in template can use besides the words: for a page, its model and the layout; for an
  /// included template, those of all pages and of their sections.
  static func names(in template: String) -> ModelShape {
    if let page = Self(rawValue: template) { return frame.merging(ModelShape(of: page.model)) }
    return allCases.reduce(frame) { $0.merging(ModelShape(of: $1.model).flattened) }
  }
}

/// A decoder that provides a placeholder for everything and records what was requested.
private struct Recorder: Decoder {
  let node: ModelShape.Node
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Members(node: node))
  }
  func unkeyedContainer() -> any UnkeyedDecodingContainer { Items(node: node) }
  func singleValueContainer() -> any SingleValueDecodingContainer { Leaf() }

  func make<Part: Decodable>(_ type: Part.Type) throws -> Part { try Leaf.blank(type) ?? Part(from: self) }
}

private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let node: ModelShape.Node
  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { [] }

  private func member(_ key: Key) -> Recorder {
    let member = ModelShape.Node()
    node.members[key.stringValue] = member
    return Recorder(node: member)
  }

  func contains(_ key: Key) -> Bool { true }
  func decodeNil(forKey key: Key) -> Bool { false }
  func decode<Part: Decodable>(_ type: Part.Type, forKey key: Key) throws -> Part { try member(key).make(type) }
  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedDecodingContainer<Nested>
  {
    member(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer { member(key).unkeyedContainer() }
  func superDecoder() -> any Decoder { Recorder(node: node) }
  func superDecoder(forKey key: Key) -> any Decoder { member(key) }
}

/// A list with one element.
private struct Items: UnkeyedDecodingContainer {
  let node: ModelShape.Node
  var codingPath: [any CodingKey] { [] }
  var count: Int? { 1 }
  var isAtEnd: Bool { currentIndex > 0 }
  private(set) var currentIndex = 0

  init(node: ModelShape.Node) { self.node = node }

  private mutating func item() -> Recorder {
    currentIndex += 1
    return Recorder(node: node)
  }

  func decodeNil() -> Bool { false }
  mutating func decode<Part: Decodable>(_ type: Part.Type) throws -> Part { try item().make(type) }
  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedDecodingContainer<Nested> {
    item().container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer { item().unkeyedContainer() }
  mutating func superDecoder() -> any Decoder { item() }
}

private struct Leaf: SingleValueDecodingContainer {
  var codingPath: [any CodingKey] { [] }

  /// A placeholder for a primitive type; nil for a type with members.
  static func blank<Part>(_ type: Part.Type) -> Part? {
    let blanks: [Any] = ["", false, 0, Int64(0)]
    return blanks.lazy.compactMap { $0 as? Part }.first
  }

  private struct Unknown: Error {}

  func decodeNil() -> Bool { false }
  func decode<Part: Decodable>(_ type: Part.Type) throws -> Part {
    guard let part = Self.blank(type) else { throw Unknown() }
    return part
  }
}
