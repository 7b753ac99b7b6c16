import Foundation
import MoongateProgram
import MoongateSDK

/// A subject file as JSON, read member by member, with line numbers for messages.
struct SubjectText: Sendable {
  /// A JSON value.
  enum Value: Decodable, Sendable {
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([Value])
    case object([String: Value])
    case null

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let list = try? container.decode([Value].self) {
        self = .list(list)
      } else {
        self = .object(try container.decode([String: Value].self))
      }
    }

    var input: InputValue {
      switch self {
      case .flag(let flag): .flag(flag)
      case .text(let text): .text(text)
      case .number, .list, .object, .null: .other
      }
    }

    var setting: SettingValue? {
      switch self {
      case .flag(let flag): .flag(flag)
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .list(let list): texts(list).map { .list($0) }
      case .object, .null: nil
      }
    }

    private func texts(_ list: [Value]) -> [String]? {
      let texts = list.compactMap { if case .text(let text) = $0 { text } else { nil } }
      return texts.count == list.count ? texts : nil
    }

    /// The value encoded as JSON.
    var json: [UInt8] {
      (try? JSONSerialization.data(withJSONObject: plain, options: [.fragmentsAllowed, .sortedKeys])).map(Array.init)
        ?? []
    }

    private var plain: Any {
      switch self {
      case .flag(let flag): flag
      case .number(let number): Int64(exactly: number) ?? number
      case .text(let text): text
      case .list(let list): list.map(\.plain)
      case .object(let object): object.mapValues(\.plain)
      case .null: NSNull()
      }
    }
  }

  /// The path as given on the command line.
  let path: String
  private let source: String
  let members: [String: Value]

  /// - Throws: an error if the file does not exist or is not JSON.
  init(path: String) throws(StartProblem) {
    self.path = path
    guard let data = FileManager.default.contents(atPath: path) else {
      throw StartProblem("There is no file \(path).", status: .couldNotRun)
    }
    source = String(decoding: data, as: UTF8.self)
    do {
      members = try JSONDecoder().decode([String: Value].self, from: data)
    } catch {
      let why = Self.mistake(data)
      let place = "\(path):\(1 + data.prefix(why?.character ?? 0).count { $0 == UInt8(ascii: "\n") })"
      let form = "expected a JSON object like {\"right\": {\"word\": \"pigeon\"}, \"wrong\": {\"word\": \"penguin\"}}"
      throw StartProblem("\(place): this is not a subject file: \(why?.sentence ?? form).", status: .couldNotRun)
    }
  }

  /// The JSON syntax error of a text and the position of its character.
  private static func mistake(_ data: Data) -> (sentence: String, character: Int)? {
    do {
      _ = try JSONSerialization.jsonObject(with: data)
      return nil
    } catch {
      let told = (error as NSError).userInfo["NSDebugDescription"] as? String ?? ""
      guard let match = told.firstMatch(of: /^(.*) around character ([0-9]+)/), let character = Int(match.2) else {
        return nil
      }
      return (match.1.lowercased(), character)
    }
  }

  /// The place of a member, for example `` subject.json:4: `right.code` ``.
  func place(_ member: String) -> String {
    "\(path):\(JSONPlaces(source).line(of: member.split(separator: ".").map(String.init))): `\(member)`"
  }

  /// - Parameter sentence: the predicate of a sentence whose subject is the member.
  func problem(_ member: String, _ sentence: String) -> StartProblem {
    StartProblem("\(place(member)) \(sentence)\(sentence.hasSuffix("?") ? "" : ".")", status: .couldNotRun)
  }

  // MARK: members

  func text(_ member: String) throws(StartProblem) -> String? {
    switch members[member] {
    case nil: return nil
    case .text(let text): return text
    default: throw problem(member, "must be a string")
    }
  }

  func flag(_ member: String) throws(StartProblem) -> Bool? {
    switch members[member] {
    case nil: return nil
    case .flag(let flag): return flag
    default: throw problem(member, "must be true or false")
    }
  }

  func object(_ member: String) throws(StartProblem) -> [String: Value]? {
    switch members[member] {
    case nil: return nil
    case .object(let object): return object
    default: throw problem(member, "must be an object: write {\"NAME\": …}")
    }
  }

  func texts(_ member: String) throws(StartProblem) -> [String: String]? {
    guard let object = try object(member) else { return nil }
    var texts: [String: String] = [:]
    for (name, value) in object.sorted(by: { $0.key < $1.key }) {
      guard case .text(let text) = value else { throw problem("\(member).\(name)", "must be a string") }
      texts[name] = text
    }
    return texts
  }

  func list(_ member: String) throws(StartProblem) -> [String]? {
    guard let value = members[member] else { return nil }
    guard case .list(let names)? = value.setting else {
      throw problem(member, "must be a list of strings: write [\"NAME\"]")
    }
    return names
  }

  /// A list of inputs, each by field.
  func inputs(_ member: String) throws(StartProblem) -> [[String: InputValue]]? {
    guard let value = members[member] else { return nil }
    guard case .list(let all) = value else { throw problem(member, "must be a list: write [{\"FIELD\": \"…\"}]") }
    var inputs: [[String: InputValue]] = []
    for (index, one) in all.enumerated() {
      guard case .object(let fields) = one else {
        throw problem("\(member).\(index)", "must be an object: write {\"FIELD\": \"…\"}")
      }
      inputs.append(fields.mapValues(\.input))
    }
    return inputs
  }
}

/// Finds the place of members in a valid JSON text.
struct JSONPlaces {
  private let bytes: [UInt8]

  init(_ source: String) { bytes = Array(source.utf8) }

  /// The line on which a member begins, counted from 1, or the line of the enclosing member if it is missing.
  /// - Parameter path: names of members and indexes of lists.
  func line(of path: [String]) -> Int {
    var place = 0
    for name in path {
      guard let next = member(name, of: place) else { break }
      place = next
    }
    return 1 + bytes[..<min(place, bytes.count)].count { $0 == UInt8(ascii: "\n") }
  }

  /// The start of a member's value, in the object or list at or after the position.
  private func member(_ name: String, of place: Int) -> Int? {
    var at = place
    while at < bytes.count, Self.isSpace(bytes[at]) { at += 1 }
    guard at < bytes.count, bytes[at] == UInt8(ascii: "{") || bytes[at] == UInt8(ascii: "[") else { return nil }
    let isList = bytes[at] == UInt8(ascii: "[")
    var (depth, index, key, isKey) = (0, 0, "", true)
    while at < bytes.count {
      switch bytes[at] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        if depth == 0 { return nil }
      case UInt8(ascii: ",") where depth == 1: (index, isKey) = (index + 1, true)
      case UInt8(ascii: ":") where depth == 1: isKey = false
      case UInt8(ascii: "\""):
        let end = string(at)
        if depth == 1, !isList, isKey { key = String(decoding: bytes[(at + 1)..<max(at + 1, end)], as: UTF8.self) }
        if depth == 1, isList, "\(index)" == name { return at }
        if depth == 1, !isList, !isKey, key == name { return at }
        at = end
      default: break
      }
      at += 1
      guard at < bytes.count, depth == 1, !Self.isSpace(bytes[at]),
        ![UInt8(ascii: ":"), UInt8(ascii: ","), UInt8(ascii: "\"")].contains(bytes[at])
      else { continue }
      if isList ? "\(index)" == name : !isKey && key == name { return at }
    }
    return nil
  }

  /// The end of the string that starts here.
  private func string(_ start: Int) -> Int {
    var at = start + 1
    while at < bytes.count, bytes[at] != UInt8(ascii: "\"") { at += bytes[at] == UInt8(ascii: "\\") ? 2 : 1 }
    return min(at, bytes.count - 1)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }
}
