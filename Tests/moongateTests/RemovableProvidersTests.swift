import Foundation
import MoongateProgram
import Testing

/// To remove an included provider, remove its folder, its line in Package.swift, and its import and entry in
/// Providers.swift. No other code names it. `make check-removal` tests it.
@Suite struct RemovableProvidersTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The folders of providers in Swift, one module each.
  static let plugins: [String] = {
    let folders = (try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: "Plugins").path)) ?? []
    return folders.filter { folder in
      FileManager.default.fileExists(atPath: root.appending(path: "Plugins/\(folder)/\(folder).swift").path)
    }.sorted()
  }()

  private static func sources(in folder: String) -> [(path: String, text: String)] {
    let start = root.appending(path: folder)
    guard let names = FileManager.default.enumerator(atPath: start.path) else { return [] }
    return names.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") }.compactMap { name in
      (try? String(contentsOf: start.appending(path: name), encoding: .utf8)).map { ("\(folder)/\(name)", $0) }
    }
  }

  @Test func thereAreSome() { #expect(Self.plugins.count >= 5) }

  @Test(arguments: plugins) func oneFileOfTheProgramNamesIt(_ plugin: String) throws {
    let pattern = try Regex("(?m)^(?:@testable )?import \(plugin)$")
    let importing = Self.sources(in: "Sources").filter { $0.text.contains(pattern) }.map(\.path)
    #expect(importing == ["Sources/MoongateProgram/Providers.swift"])
    let lines = try String(
      contentsOf: Self.root.appending(path: "Sources/MoongateProgram/Providers.swift"), encoding: .utf8
    )
    .components(separatedBy: "\n")
    let naming = lines.filter { $0.contains(plugin) }.map { $0.trimmingCharacters(in: .whitespaces) }
    #expect(naming.prefix(2) == ["import \(plugin)", "\(plugin)(),"])
    // Further entries of the same plugin.
    #expect(naming.dropFirst(2).allSatisfy { $0.hasPrefix("\(plugin)(.") && $0.hasSuffix("),") })
  }

  @Test(arguments: plugins) func oneLineOfThePackageNamesIt(_ plugin: String) throws {
    let package = try String(contentsOf: Self.root.appending(path: "Package.swift"), encoding: .utf8).components(
      separatedBy: "\n")
    let naming = package.filter { $0.contains("\"\(plugin)\"") || $0.contains("Plugins/\(plugin)") }
    #expect(naming.count == 1 && naming.allSatisfy { $0.hasPrefix("  CompiledIn(\"\(plugin)\"") }, "\(naming)")
  }

  @Test(arguments: plugins) func noOtherPluginNamesIt(_ plugin: String) throws {
    let pattern = try Regex("(?m)^(?:@testable )?import \(plugin)$")
    let others = Self.sources(in: "Plugins").filter {
      !$0.path.hasPrefix("Plugins/\(plugin)/") && $0.text.contains(pattern)
    }.map(\.path)
    #expect(others == [])
  }
}
