import CVersions

/// Which program this is: for `moongate --version`, the metrics and the traces.
enum BuildVersion {
  /// The version of this program, the one place where it is written. Packages take it from here.
  static let number = "0.1.0"

  /// The commit that a package was built from; `development` in a build that is no package.
  static let commit = told(cversions_commit) ?? "development"

  /// The Swift compiler's version, to the patch release in a package.
  static let swift: String = {
    if let exact = told(cversions_swift) { return exact }
    #if compiler(>=6.5)
      return "6.5 or later"
    #elseif compiler(>=6.4)
      return "6.4"
    #else
      return "6.3"
    #endif
  }()

  /// The libraries that speak TLS, read databases and so on, in a fixed order.
  static var libraries: [(name: String, version: String)] {
    let system = (0...).lazy.map(library).prefix { $0 != nil }.compactMap(\.self)
    return [("BoringSSL", told(cversions_nio_ssl).map { "of swift-nio-ssl \($0)" } ?? "of swift-nio-ssl")] + system
  }

  /// All of it, a line each; the first line is `moongate VERSION`.
  static var text: String {
    let lines = [("commit", commit), ("Swift", swift)] + libraries
    let width = (lines.map(\.0.count).max() ?? 0) + 2
    return
      (["moongate \(number)"]
      + lines.map { name, value in name + String(repeating: " ", count: width - name.count) + value })
      .joined(separator: "\n")
  }

  private static func told(_ text: UnsafePointer<CChar>?) -> String? {
    guard let text, text.pointee != 0 else { return nil }
    return String(cString: text)
  }

  private static func library(_ index: Int) -> (name: String, version: String)? {
    var found = cversions_library_at(index)
    guard let name = found.name else { return nil }
    let version = withUnsafeBytes(of: &found.version) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return (String(cString: name), version)
  }
}
