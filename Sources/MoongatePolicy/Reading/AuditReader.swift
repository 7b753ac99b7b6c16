import Foundation
import MoongateCore
import MoongateSDK

/// Reads `audit = { file { … }, syslog { … }, webhook { … } }`.
struct AuditReader {
  /// The configuration folder, the base of relative paths.
  let folder: String
  let secrets: SecretReader
  let problems: Problems

  /// Anyone with a signed event can guess a shorter secret offline.
  private static let leastSecret = 16

  func read(_ node: LuaNode, _ path: String) -> [AuditSinkSettings] {
    guard case .table(let list) = node.value, list.isList else {
      problems.add(node.location, path, "must be a list of sinks, as in { file { path = \"data/audit.log\" } }")
      return []
    }
    var sinks: [AuditSinkSettings] = []
    for (index, item) in list.items.enumerated() {
      let path = "\(path)[\(index + 1)]"
      guard let sink = sink(item, path) else { continue }
      // The trail stores the position of each sink under its name, so names must be unique.
      if sinks.contains(where: { $0.name == sink.name }) {
        problems.add(item.location, path, "is the same sink as another one: \(sink.name)")
      } else {
        sinks.append(sink)
      }
    }
    return sinks
  }

  private func sink(_ node: LuaNode, _ path: String) -> AuditSinkSettings? {
    guard case .tagged(let name, let arguments) = node.value, ["file", "syslog", "webhook"].contains(name) else {
      problems.add(
        node.location, path, "must be a sink: file { … }, syslog { … } or webhook { … }, not \(node.value.described)")
      return nil
    }
    let body = arguments.first ?? LuaNode(value: .table(LuaTable()), location: node.location)
    switch name {
    case "file": return file(body, path).map { .file($0) }
    case "syslog": return syslog(body, path).map { .syslog($0) }
    default: return webhook(body, path).map { .webhook($0) }
    }
  }

  private func file(_ node: LuaNode, _ path: String) -> AuditFileSettings? {
    guard let reader = TableReader(node, .auditFile, path: path, problems: problems) else { return nil }
    let rotate = reader.size("rotate", in: 4096...(1 << 40))
    let keep = reader.whole("keep", in: 1...1000)
    guard let node = reader.take("path"), let name = Field.text(node, reader.path("path"), problems), let rotate,
      let keep
    else { return nil }
    let resolved = name.hasPrefix("/") ? name : "\(folder)/\(name)"
    let parent = resolved.parentFolder
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: parent, isDirectory: &isFolder), isFolder.boolValue else {
      problems.add(
        node.location, reader.path("path"),
        "\(name): missing folder \(parent). Create it, owned by the gateway's user")
      return nil
    }
    guard !FileManager.default.fileExists(atPath: resolved, isDirectory: &isFolder) || !isFolder.boolValue else {
      problems.add(node.location, reader.path("path"), "\(name) is a folder: use the path of a file")
      return nil
    }
    return AuditFileSettings(path: resolved, rotate: rotate, keep: keep)
  }

  private func syslog(_ node: LuaNode, _ path: String) -> SyslogSettings? {
    guard let reader = TableReader(node, .auditSyslog, path: path, problems: problems) else { return nil }
    let facility = reader.choice("facility", SyslogSettings.Facility.self)
    guard let node = reader.take("address"), let text = Field.text(node, reader.path("address"), problems), let facility
    else { return nil }
    if text.hasPrefix("/") { return SyslogSettings(address: .local(path: text), facility: facility) }
    guard text.hasPrefix("tcp://"), let host = HostName(String(text.dropFirst(6))) else {
      problems.add(
        node.location, reader.path("address"),
        "\"\(text)\" is not a syslog server; write \"/dev/log\" or \"tcp://logs.example.com:514\"")
      return nil
    }
    if !Loopback.contains(host.name) {
      problems.warn(
        node.location, reader.path("address"),
        "events would be sent unencrypted: use a trusted network, or webhook { … } with https")
    }
    let name = IPAddressBytes.withoutBrackets(host.name)
    return SyslogSettings(address: .tcp(host: name, port: host.port ?? 514), facility: facility)
  }

  private func webhook(_ node: LuaNode, _ path: String) -> AuditWebhookSettings? {
    guard let reader = TableReader(node, .auditWebhook, path: path, problems: problems) else { return nil }
    let delivery = DeliveryReader(folder: folder, secrets: secrets, publicURL: nil, problems: problems)
    let url = reader.take("url").flatMap { delivery.site($0, reader.path("url"), carrying: "events") }
    guard let node = reader.take("secret"), let secret = secrets.read(node, reader.path("secret"), problems), let url
    else { return nil }
    guard secret.reveal().utf8.count >= Self.leastSecret else {
      problems.add(
        node.location, reader.path("secret"),
        "is too short: at least \(Self.leastSecret) characters, for example the output of `openssl rand -hex 32`")
      return nil
    }
    return AuditWebhookSettings(url: url, secret: secret)
  }
}
