import CVersions

/// The version and build information of this program, for `moongate --version`, metrics and traces.
enum BuildVersion {
  /// The version, defined only here. The packaging scripts read it from this line.
  static let number = "0.1.0"

  /// The commit of the build; `development` if the build is not a package.
  static let commit = string(cversions_commit) ?? "development"

  /// The version of the Swift compiler; in a package with the patch release.
  static let swift: String = {
    if let exact = string(cversions_swift) { return exact }
    #if compiler(>=6.5)
      return "6.5 or later"
    #elseif compiler(>=6.4)
      return "6.4"
    #else
      return "6.3"
    #endif
  }()

  /// The versions of the linked libraries, in a fixed order.
  static var libraries: [(name: String, version: String)] {
    let system = (0...).lazy.map(library).prefix { $0 != nil }.compactMap(\.self)
    return [("BoringSSL", string(cversions_nio_ssl).map { "of swift-nio-ssl \($0)" } ?? "of swift-nio-ssl")] + system
  }

  /// The whole output of `--version`, one item per line; the first line is `moongate VERSION`.
  static var text: String {
    let lines = [("commit", commit), ("Swift", swift)] + libraries
    let width = (lines.map(\.0.count).max() ?? 0) + 2
    return
      (["moongate \(number)"]
      + lines.map { name, value in name + String(repeating: " ", count: width - name.count) + value })
      .joined(separator: "\n")
  }

  private static func string(_ text: UnsafePointer<CChar>?) -> String? {
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
