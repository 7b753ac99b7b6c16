import MoongateCore
import MoongateSDK

/// Compares the settings of two routes.lua: those of routes that match the same requests, field by field.
struct RouteDiff {
  private typealias Entry = RouteListing.Entry

  private let old: [Entry]
  private let new: [Entry]
  /// Labels for two functions with different texts; nil if they are equal.
  private let labels: (FunctionName, FunctionName) -> (old: String, new: String)?

  init(
    old: any PolicyGeneration, new: any PolicyGeneration,
    labels: @escaping (FunctionName, FunctionName) -> (old: String, new: String)?
  ) {
    self.old = RouteListing(old.routes, old.gateway).entries
    self.new = RouteListing(new.routes, new.gateway).entries
    self.labels = labels
  }

  /// The routes of the newer configuration in their order, then the removed ones, then a different order.
  var changes: [SettingChange] {
    let before = Dictionary(old.map { ($0.name, $0) }) { first, _ in first }
    let names = Set(new.map(\.name))
    let compared = new.flatMap { entry in
      before[entry.name].map { changes(from: $0, to: entry) } ?? [whole(entry, old: nil, new: Self.text(of: entry))]
    }
    let removed = old.filter { !names.contains($0.name) }.map { whole($0, old: Self.text(of: $0), new: nil) }
    return compared + removed + [order].compactMap(\.self)
  }

  private func changes(from old: Entry, to new: Entry) -> [SettingChange] {
    let fields = new.settings.map(\.field) + old.settings.map(\.field).filter { new[$0] == nil }
    return fields.compactMap { field in
      let (was, now) = (old[field], new[field])
      var (before, after) = (was?.value, now?.value)
      if let was, let now, before == after {
        if let functions = was.function.flatMap({ was in now.function.flatMap { labels(was, $0) } }) {
          (before, after) = functions
        } else if was.hidden != now.hidden {
          after = "\(now.value), with other contents"
        } else {
          return nil
        }
      }
      return SettingChange(
        of: "routes", path: "\(new.name) \(field)", old: before, new: after, file: new.location.file,
        line: new.location.line, effect: .init())
    }
  }

  /// An added or removed route is one change, not one for each of its fields.
  private func whole(_ entry: Entry, old: String?, new: String?) -> SettingChange {
    SettingChange(
      of: "routes", path: entry.name, old: old, new: new, file: entry.location.file, line: entry.location.line,
      effect: .init())
  }

  private static func text(of entry: Entry) -> String {
    "{ \(entry.settings.filter { !$0.isUsual }.map { "\($0.field) = \($0.value)" }.joined(separator: ", ")) }"
  }

  /// The first route that matches wins, so another order can be another answer. Only the part that differs is listed.
  private var order: SettingChange? {
    let common = Set(old.map(\.name)).intersection(new.map(\.name))
    var before = old.map(\.name).filter(common.contains)
    var after = new.map(\.name).filter(common.contains)
    while let one = before.last, one == after.last { (_, _) = (before.removeLast(), after.removeLast()) }
    let same = zip(before, after).prefix { $0 == $1 }.count
    guard let first = after.dropFirst(same).first, let entry = new.first(where: { $0.name == first }) else {
      return nil
    }
    return SettingChange(
      of: "routes", path: "order", old: before.dropFirst(same).joined(separator: ", "),
      new: after.dropFirst(same).joined(separator: ", "), file: entry.location.file, line: entry.location.line,
      effect: .init())
  }
}
