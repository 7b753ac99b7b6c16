import Foundation

/// The installed unit of the service, as systemd reads it.
enum ServiceUnit {
  /// Where systemd looks for units, the most important place first.
  private static let folders = [
    "/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
  ]

  private static let name = "\(ServiceUser.name).service"

  /// The text of the unit without its drop-ins.
  /// - Parameter root: precedes all paths, for tests.
  /// - Returns: nil if no unit is installed.
  static func text(root: String = "") -> String? {
    folders.lazy.compactMap { read("\(root)\($0)/\(name)") }.first
  }

  /// The limit on open files that the unit and its drop-ins set.
  /// - Parameter root: precedes all paths, for tests.
  /// - Returns: nil if no unit is installed, or if it sets no limit.
  static func openFiles(root: String = "") -> UInt64? {
    guard let unit = text(root: root) else { return nil }
    // Drop-ins apply in the order of their names, whatever their folder, and one hides others of its name.
    var dropIns: [String: String] = [:]
    for folder in folders.reversed().map({ "\(root)\($0)/\(name).d" }) {
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      for name in names where name.hasSuffix(".conf") { dropIns[name] = "\(folder)/\(name)" }
    }
    let texts = dropIns.sorted { $0.key < $1.key }.compactMap { read($0.value) }
    return ([unit] + texts).compactMap { openFiles(inUnit: $0) }.last
  }

  /// The last LimitNOFILE in the text of a unit: `262144`, `1024:524288` or `infinity`. Of two limits, the second one
  /// counts, because a gateway raises its soft limit to the hard one.
  static func openFiles(inUnit text: String) -> UInt64? {
    text.split(whereSeparator: \.isNewline).compactMap { line -> UInt64? in
      let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2, parts[0] == "LimitNOFILE", let hard = parts[1].split(separator: ":").last else {
        return nil
      }
      return hard == "infinity" ? .max : UInt64(hard)
    }.last
  }

  private static func read(_ path: String) -> String? {
    FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
  }
}
