import Foundation
import MoongateCore
import MoongateSDK

/// Reads a provider's entry under `providers` by the settings that its descriptor declares.
struct ProviderSettingsReader {
  /// The configuration folder, the base of relative paths.
  let folder: String
  let secrets: SecretReader
  /// Nil if it cannot be read.
  let publicURL: PublicURL?
  let problems: Problems

  /// In bytes. The title is shown on a button.
  private static let longestTitle = 60

  /// - Returns: nil if the node is not a table; otherwise all valid settings.
  func read(_ node: LuaNode, _ descriptor: ProviderDescriptor) -> ProviderSettings? {
    let path = "providers.\(descriptor.name)"
    guard let reader = TableReader(node, .settings(of: descriptor), path: path, problems: problems) else { return nil }
    var settings = ProviderSettings()
    if !descriptor.hasOwnTitleSetting { settings.title = title("title", reader) }
    if descriptor.hasButton {
      if settings.title != nil, let node = reader.explicitValue("label") {
        problems.add(node.location, reader.path("label"), "says the same as `title`: write one of the two")
      }
      settings.title = title("label", reader) ?? settings.title
      settings.icon = reader.take("icon").flatMap { icon($0, reader.path("icon")) }
    }
    if descriptor.rechecks { settings.recheck = recheck(reader) }
    if !descriptor.choosableKinds.isEmpty, let node = reader.take(ProviderDescriptor.identifyBy) {
      settings.identifyBy = identifyBy(node, reader.path(ProviderDescriptor.identifyBy), descriptor)
    }
    let tables = tables(reader, descriptor)
    for field in descriptor.settings {
      let place = field.placeInTable
      let reader = place.map { tables[$0.table] } ?? reader
      guard let reader, let node = reader.take(place?.name ?? field.name) else {
        // A default that has no Lua syntax here, such as a list.
        settings.values[field.name] = field.standard
        continue
      }
      let path = reader.path(place?.name ?? field.name)
      switch field.kind {
      case .text:
        settings.texts[field.name] = Field.text(node, path, problems).flatMap { checked($0, field, node, path) }
      case .secret:
        if let file = secrets.missingFile(node) {
          settings.missingFiles[field.name] = file
        } else {
          settings.secrets[field.name] = secrets.read(node, path, problems)
        }
      case .messages(let channel):
        let reader = DeliveryReader(folder: folder, secrets: secrets, publicURL: publicURL, problems: problems)
        settings.deliveries[field.name] = reader.read(node, path, for: channel)
      case .number(let bounds):
        settings.values[field.name] = Field.number(node, path, problems, in: bounds).map { .number($0) }
      case .flag: settings.values[field.name] = Field.flag(node, path, problems).map { .flag($0) }
      case .choice(let words):
        settings.values[field.name] = Field.choice(node, path, problems, among: words).map { .text($0) }
      case .list:
        settings.values[field.name] = Field.texts(node, path, problems).map { items in
          .list(
            items.enumerated().compactMap { index, item in checked(item.text, field, item.node, "\(path)[\(index + 1)]")
            })
        }
      case .table: settings.values[field.name] = table(node, field, path).map { .table($0) }
      case .file: settings.values[field.name] = file(node, path).map { .text($0) }
      case .source(let flags):
        for (name, value) in source(node, field.name, flags, path) { settings.values[name] = value }
      }
    }
    return settings
  }

  /// The readers of the tables that hold fields of their own, by name. Those that the operator has not written are
  /// missing.
  private func tables(_ reader: TableReader, _ descriptor: ProviderDescriptor) -> [String: TableReader] {
    var tables: [String: TableReader] = [:]
    for name in Set(descriptor.settings.compactMap(\.placeInTable?.table)) {
      tables[name] = reader.take(name).flatMap {
        TableReader($0, .settings(in: name, of: descriptor), path: reader.path(name), problems: problems)
      }
    }
    return tables
  }

  /// How often the site is asked again about its identities.
  private func recheck(_ reader: TableReader) -> RecheckSettings? {
    let (name, graceName) = (ProviderDescriptor.recheck, ProviderDescriptor.recheckGrace)
    let interval = reader.duration(name, atLeast: RecheckSettings.shortest)
    let grace = reader.duration(graceName, atLeast: RecheckSettings.shortest)
    guard let interval else {
      if let node = reader.explicitValue(graceName), reader.explicitValue(name) == nil {
        let advice = "has no effect without `\(name)`, such as \(name) = \"1h\""
        problems.add(node.location, reader.path(graceName), advice)
      }
      return nil
    }
    let settings = RecheckSettings(interval: interval, grace: grace ?? max(interval, RecheckSettings.standardGrace))
    // The first call that fails would end the sessions.
    if settings.grace < interval, let node = reader.explicitValue(graceName) {
      let advice = "must not be shorter than `\(name)`: write \"\(interval.asWritten)\" or more"
      problems.add(node.location, reader.path(graceName), advice)
    }
    return settings
  }

  /// The chosen kinds of identifier, in the provider's order: the first one names the field of a page.
  private func identifyBy(_ node: LuaNode, _ path: String, _ descriptor: ProviderDescriptor) -> [IdentifierKind]? {
    guard let items = Field.texts(node, path, problems) else { return nil }
    let names = descriptor.choosableKinds.map(\.rawValue)
    for item in items where !names.contains(item.text) {
      problems.add(
        item.node.location, path,
        "`\(descriptor.name)` cannot identify users by \"\(item.text)\": write one or several of \(Suggestion.list(names))"
      )
    }
    let kinds = descriptor.choosableKinds.filter { kind in items.contains { $0.text == kind.rawValue } }
    if items.isEmpty {
      problems.add(node.location, path, "is empty: write one or several of \(Suggestion.list(names))")
    }
    return kinds.isEmpty ? nil : kinds
  }

  private func title(_ name: String, _ reader: TableReader) -> String? {
    guard let title = reader.text(name) else { return nil }
    if title.utf8.count <= Self.longestTitle, DescriptorText.isSentence(title) { return title }
    problems.add(
      reader.explicitValue(name)?.location ?? reader.location, reader.path(name),
      "must be one line of plain text of 1 to \(Self.longestTitle) bytes, such as \"SMS (USA)\"")
    return nil
  }

  /// In bytes. Every sign-in page contains the icon.
  private static let largestIcon = 16_384
  private static let active = #"<(script|style|foreignobject)|[\s"'](on[a-z]+|style|[a-z:]*href)\s*="#

  /// The text of the SVG file of an icon.
  ///
  /// The page contains it as it is. Its scripts would not run under the page's Content-Security-Policy, and its styles
  /// would not apply, so it must not have any.
  private func icon(_ node: LuaNode, _ path: String) -> String? {
    guard let name = Field.text(node, path, problems) else { return nil }
    let file = URL(filePath: name, relativeTo: URL(filePath: folder, directoryHint: .isDirectory)).standardizedFileURL
      .path(percentEncoded: false)
    switch secrets.files.read(file, named: name) {
    case .failure(let failure):
      problems.add(node.location, path, "\(name): \(failure.sentence)")
      return nil
    case .success(let bytes):
      let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
      let plain = text.lowercased()
      guard text.utf8.count <= Self.largestIcon, plain.hasPrefix("<svg"), plain.hasSuffix("</svg>"),
        plain.range(of: Self.active, options: .regularExpression) == nil
      else {
        problems.add(
          node.location, path,
          "\(name) must be one <svg> element of at most \(Self.largestIcon) bytes, without scripts, styles and links")
        return nil
      }
      return text
    }
  }

  /// Texts by name. Those without a name have their place.
  private func table(_ node: LuaNode, _ field: SettingField, _ path: String) -> [String: String]? {
    guard let reader = TableReader(node, nil, path: path, problems: problems, allowsItems: true) else { return nil }
    var nodes = reader.items.enumerated().map { ("\($0.offset + 1)", $0.element) }
    nodes += reader.names.compactMap { name in reader.take(name).map { (name, $0) } }
    var table: [String: String] = [:]
    for (name, node) in nodes {
      let path = reader.path(name)
      table[name] = Field.text(node, path, problems).flatMap { checked($0, field, node, path) }
    }
    return table
  }

  /// The text, if the provider accepts its form.
  private func checked(_ text: String, _ field: SettingField, _ node: LuaNode, _ path: String) -> String? {
    guard let mistake = field.check?(text, publicURL?.description) else { return text }
    problems.add(node.location, path, "\"\(text)\" \(mistake)")
    return nil
  }

  /// A site or a file, and the flags beside it, by the names by which the provider reads them.
  private func source(_ node: LuaNode, _ name: String, _ flags: [String], _ path: String) -> [String: SettingValue] {
    var values: [String: SettingValue] = [:]
    var first = node
    if case .table = node.value {
      let shape = TableShape(
        name: name, summary: "", entries: flags.map { .optional($0, "boolean", "true or false") })
      guard let reader = TableReader(node, shape, path: path, problems: problems, allowsItems: true) else { return [:] }
      guard reader.items.count == 1 else {
        problems.add(node.location, path, "must begin with one address or file, as in `{ \"https://example.com\" }`")
        return [:]
      }
      first = reader.items[0]
      for flag in flags { values["\(name).\(flag)"] = reader.flag(flag).map { .flag($0) } }
    }
    guard let text = Field.text(first, path, problems) else { return [:] }
    guard text.contains("://") else {
      values[name] = file(first, path).map { .text($0) }
      return values
    }
    guard SiteAddress.isSite(text), !text.contains("?"), !text.contains("#") else {
      problems.add(
        first.location, path,
        "\"\(text)\" is not the address of a site: write https://, a host and perhaps a path, without ? and #")
      return [:]
    }
    values[name] = .text(text)
    return values
  }

  /// The absolute path of a readable file.
  private func file(_ node: LuaNode, _ path: String) -> String? {
    guard let text = Field.text(node, path, problems) else { return nil }
    let file = URL(filePath: text, relativeTo: URL(filePath: folder, directoryHint: .isDirectory)).standardizedFileURL
      .path(percentEncoded: false)
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: file, isDirectory: &isFolder), !isFolder.boolValue else {
      problems.add(node.location, path, "there is no file \(text) (paths are relative to the configuration folder)")
      return nil
    }
    guard FileManager.default.isReadableFile(atPath: file) else {
      problems.add(node.location, path, "\(text) cannot be read: give the gateway's user the right to")
      return nil
    }
    return file
  }
}
