import MoongateSDK

/// A value that writes itself as JSON. If it is `Encodable`, it writes the same as an encoder.
protocol JSONWritable {
  func write(to text: inout JSONObjectText)
}

/// A value that writes itself as a JSON object, without the members whose value is nil.
protocol JSONObjectWritable: JSONWritable {
  func addMembers(to object: inout JSONObjectText)
}

extension JSONObjectWritable {
  func write(to text: inout JSONObjectText) { text.appendObject { addMembers(to: &$0) } }
}

extension JSONObjectText: JSONWritable {
  func write(to text: inout JSONObjectText) { text.append(json: closed) }
}

// MARK: - Standard types

extension String: JSONWritable {
  func write(to text: inout JSONObjectText) { text.append(self) }
}

extension Bool: JSONWritable {
  func write(to text: inout JSONObjectText) { text.append(json: (self ? "true" : "false").utf8) }
}

extension JSONWritable where Self: FixedWidthInteger {
  func write(to text: inout JSONObjectText) { text.append(json: String(self).utf8) }
}

extension Int: JSONWritable {}
extension Int64: JSONWritable {}
extension UInt64: JSONWritable {}
extension UInt8: JSONWritable {}

extension JSONWritable where Self: Sequence, Element: JSONWritable {
  func write(to text: inout JSONObjectText) { text.appendList { list in for item in self { list.add(item) } } }
}

extension Array: JSONWritable where Element: JSONWritable {}
extension Set: JSONWritable where Element: JSONWritable {}

extension Dictionary: JSONWritable, JSONObjectWritable where Key == String, Value: JSONWritable {
  func addMembers(to object: inout JSONObjectText) { for (key, value) in self { object.add(key, value) } }
}

/// A dictionary whose keys are not strings, written as a list of keys and values in turn, as `Encodable` does.
struct JSONPairs<Key: Hashable & JSONWritable, Value: JSONWritable>: JSONWritable {
  private let pairs: [Key: Value]

  init(_ pairs: [Key: Value]) { self.pairs = pairs }

  func write(to text: inout JSONObjectText) {
    text.appendList { list in
      for (key, value) in pairs {
        list.add(key)
        list.add(value)
      }
    }
  }
}

extension Duration: JSONWritable {
  /// The two halves of the number of attoseconds.
  func write(to text: inout JSONObjectText) {
    let attoseconds = self.attoseconds
    text.appendList {
      $0.add(Int64(truncatingIfNeeded: attoseconds >> 64))
      $0.add(UInt64(truncatingIfNeeded: attoseconds))
    }
  }
}

// MARK: - Types of providers

extension JSONClaim: JSONWritable {
  /// Members of objects are sorted by name.
  func write(to text: inout JSONObjectText) {
    switch self {
    case .null: text.append(json: "null".utf8)
    case .flag(let flag): flag.write(to: &text)
    // A number that is not finite has no JSON.
    case .number(let number):
      text.append(json: (wholeNumber ?? (number.isFinite ? "\(number)" : "null")).utf8)
    case .integer(let digits): text.append(json: digits.utf8)
    case .text(let string): text.append(string)
    case .list(let items): items.write(to: &text)
    case .object(let members):
      text.appendObject { object in
        for (name, value) in members.sorted(by: { $0.key < $1.key }) { object.add(name, value) }
      }
    }
  }
}

extension ProviderName: JSONWritable {
  func write(to text: inout JSONObjectText) { text.append(rawValue) }
}

extension Identifier: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("kind", kind.rawValue)
    object.add("value", value)
    object.add("display", display)
    object.add("attributes", attributes)
    object.add("groups", groups)
  }
}

extension InputField: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("name", name)
    object.add("kind", kind.rawValue)
    object.add("length", length)
    object.add("isRequired", isRequired)
    object.add("choices", choices)
  }
}

extension InputChoice: JSONObjectWritable {
  func addMembers(to object: inout JSONObjectText) {
    object.add("value", value)
    object.add("label", label)
  }
}
