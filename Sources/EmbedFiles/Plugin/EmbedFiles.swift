import Foundation
import PackagePlugin

/// Embeds a target's files as `PackageResources`: those that are neither sources nor excluded, and its `Templates`
/// folders.
///
/// SwiftPM's `.embedInCode` writes an array of numbers, and the compiler checks each of them. That took a tenth of the
/// whole build.
@main struct EmbedFiles: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    guard let target = target as? any SourceModuleTarget else { return [] }
    let files = target.sourceFiles.filter { $0.type == .unknown }.map(\.url) + templates(in: target.directoryURL)
    let output = context.pluginWorkDirectoryURL.appending(path: "PackageResources.swift")
    return [
      .buildCommand(
        displayName: "Embedding the files of \(target.name)", executable: try context.tool(named: "embed-files").url,
        arguments: [output.path] + files.map(\.path).sorted(), inputFiles: files, outputFiles: [output])
    ]
  }

  /// Templates may be Swift themselves, so the target leaves the folder out.
  private func templates(in folder: URL) -> [URL] {
    let every =
      FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.isRegularFileKey])?.compactMap {
        $0 as? URL
      } ?? []
    return every.filter { file in
      file.deletingLastPathComponent().pathComponents.contains("Templates")
        && (try? file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true
    }
  }
}
