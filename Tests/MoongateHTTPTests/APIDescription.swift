import Foundation
import Testing

/// A parsed `openapi.json`, against which tests check real answers.
struct APIDescription: @unchecked Sendable {
  // `@unchecked`: the JSON objects are never changed after parsing.
  let document: [String: Any]

  init(_ text: String) throws {
    document = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
  }

  var paths: [String: [String: [String: Any]]] { document["paths"] as? [String: [String: [String: Any]]] ?? [:] }

  /// The operation that matches a request, or nil if the document describes none.
  func operation(_ method: String, _ target: String) -> [String: Any]? {
    let segments = target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
    for (template, methods) in paths.sorted(by: { $0.key < $1.key }) {
      let pattern = template.split(separator: "/", omittingEmptySubsequences: false)
      // The calls of the App API accept a trailing slash.
      let isOfAppAPI = (methods["post"]?["tags"] as? [String]) == ["Calls for apps"]
      let given = isOfAppAPI && segments.last == "" ? segments.dropLast() : segments
      guard pattern.count == given.count, zip(pattern, given).allSatisfy({ $0.hasPrefix("{") && $1 != "" || $0 == $1 })
      else { continue }
      return methods[method.lowercased()]
    }
    return nil
  }

  /// The differences between an answer and its description; empty if there are none.
  func faults(_ method: String, _ target: String, status: Int, type: String?, body: Data) -> [String] {
    guard let operation = operation(method, target) else { return [] }
    guard let answer = (operation["responses"] as? [String: [String: Any]])?[String(status)] else {
      return ["\(method) \(target) answers \(status), which is not described"]
    }
    guard let content = answer["content"] as? [String: [String: Any]] else {
      return body.isEmpty ? [] : ["a body where none is described"]
    }
    guard let type, let schema = content[type]?["schema"] else {
      return ["\(method) \(target) \(status) answers \(type ?? "no type")"]
    }
    guard type.contains("json") else { return [] }
    guard let value = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed) else {
      return ["no JSON"]
    }
    return check(value, schema as? [String: Any] ?? [:], at: "\(method) \(target) \(status)")
  }

  func check(_ value: Any, _ schema: [String: Any], at place: String) -> [String] {
    if let reference = schema["$ref"] as? String {
      let components = (document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]]
      guard let name = reference.split(separator: "/").last, let named = components?[String(name)] else {
        return ["\(place): no \(reference)"]
      }
      return check(value, named, at: place)
    }
    if let choices = schema["anyOf"] as? [[String: Any]] {
      let all = choices.map { check(value, $0, at: place) }
      return all.contains { $0.isEmpty } ? [] : all.first ?? []
    }
    var faults: [String] = []
    let types = (schema["type"] as? [String]) ?? (schema["type"] as? String).map { [$0] } ?? []
    if !types.isEmpty, !types.contains(where: { Self.isType($0, value) }) {
      return ["\(place): \(value) is not \(types)"]
    }
    if let words = schema["enum"] as? [String], !((value as? String).map(words.contains) ?? false) {
      faults.append("\(place): \(value) is not of \(words)")
    }
    if schema["format"] as? String == "date-time",
      (value as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/) == nil
    {
      faults.append("\(place): \(value) is no time")
    }
    if let minimum = schema["minimum"] as? Int, let number = value as? Int, number < minimum {
      faults.append("\(place): \(number) is too small")
    }
    if let members = value as? [String: Any] {
      let known = schema["properties"] as? [String: [String: Any]] ?? [:]
      for name in schema["required"] as? [String] ?? [] where members[name] == nil {
        faults.append("\(place).\(name) is missing")
      }
      for (name, member) in members {
        if let described = known[name] {
          faults += check(member, described, at: "\(place).\(name)")
        } else if schema["additionalProperties"] as? Bool == false {
          faults.append("\(place).\(name) is not described")
        }
      }
    }
    if let items = value as? [Any], let described = schema["items"] as? [String: Any] {
      for (index, item) in items.enumerated() { faults += check(item, described, at: "\(place)[\(index)]") }
    }
    return faults
  }

  private static func isType(_ type: String, _ value: Any) -> Bool {
    let number = value as? NSNumber
    // Foundation represents JSON booleans as `NSNumber` too; their Objective-C type is `c`.
    let isFlag = number.map { $0.objCType.pointee == 99 } ?? false
    return switch type {
    case "null": value is NSNull
    case "string": value is String
    case "boolean": isFlag
    case "integer": number != nil && !isFlag
    case "array": value is [Any]
    case "object": value is [String: Any]
    default: false
    }
  }
}
