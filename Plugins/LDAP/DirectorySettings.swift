import Foundation
import MoongateSDK

/// A server of a directory.
struct DirectoryServer: Sendable, Equatable {
  /// ldap://host:port or ldaps://host:port.
  let url: String
  let startsTLS: Bool
  var isEncrypted: Bool { startsTLS || url.hasPrefix("ldaps://") }

  /// Attack: passwords are read on the way to the directory. Only a server on this machine may do without TLS.
  /// - Parameter hasAuthority: whether the operator names an authority, so that TLS is wanted on this machine too.
  /// - Returns: nil if the text is not the address of a server.
  init?(_ text: String, hasAuthority: Bool) {
    guard let parts = URLComponents(string: text), let scheme = parts.scheme, ["ldap", "ldaps"].contains(scheme),
      let host = parts.host?.lowercased(), !host.isEmpty, ["", "/"].contains(parts.path), parts.user == nil,
      parts.query == nil, parts.fragment == nil, (1...65_535).contains(parts.port ?? 1)
    else { return nil }
    url = "\(scheme)://\(host)" + (parts.port.map { ":\($0)" } ?? "")
    startsTLS = scheme == "ldap" && (hasAuthority || !Loopback.contains(host))
  }
}

/// The provider's entry in gateway.lua.
struct DirectorySettings: Sendable {
  static let fields: [SettingField] = [
    SettingField(
      "url", .text, "The server: ldaps://HOST, or ldap://HOST, which negotiates TLS unless it is on this machine.",
      isRequired: true, check: checkURL),
    SettingField(
      "also", .list, "Further servers of the directory, which are asked when another one does not answer.",
      check: checkURL),
    SettingField(
      "ca", .file,
      "A PEM file of certificate authorities in place of the system's. With it, ldap:// always negotiates TLS."),
    SettingField("base", .text, "The name below which users are searched: dc=example,dc=com.", isRequired: true),
    SettingField(
      "bind.dn", .text, "The name of the account that searches. Without `bind`, the search is anonymous.",
      isRequired: true),
    SettingField("bind.password", .secret, "Its password: env \"NAME\" or file \"path\".", isRequired: true),
    SettingField(
      "user", .text, "The filter that finds a user by {name}, which was typed.",
      "(&(objectClass=person)(uid={name}))", check: checkUser),
    SettingField(
      "groups", .text,
      "The filter that finds a user's groups by {dn} or an {attribute} of the entry. Default: no groups.",
      check: checkGroups),
    SettingField("group_base", .text, "The name below which groups are searched. Default: `base`."),
    SettingField(
      "nested_groups", .flag,
      "Whether the groups of a group are searched too. Active Directory has a matching rule for that instead.", false),
    SettingField(
      "attributes", .list, "The attributes that policies read as f.account.identities.NAME.data.",
      check: checkAttribute),
    SettingField(
      "email_verified", .choice(["claim", "always"]),
      "\"always\" if only administrators set addresses. Otherwise they are stored as claimed.", "claim"),
    SettingField(
      "trusted_domains", .list,
      "The domains whose verified addresses join the accounts that have them. Default: none."),
    SettingField("timeout", .number(1...8), "How long one server is waited for, in seconds.", 5),
  ]

  let servers: [DirectoryServer]
  let authority: String
  let base: String
  /// The account that searches; nil: anonymous.
  let account: (name: String, password: String)?
  let user: DirectoryFilter
  let groups: DirectoryFilter?
  let groupBase: String
  let isNested: Bool
  let attributes: [String]
  let trustedDomains: Set<String>
  let timeout: Duration
  /// Whether the operator wants identities to be rechecked.
  let rechecks: Bool
  /// Directories with the same servers have the same one.
  var site: String { servers.map(\.url).joined(separator: " ") }

  /// - Throws: an error with the setting that is missing or invalid.
  init(_ settings: StepSettings) throws {
    let urls = [settings.text("url") ?? ""] + settings.list("also")
    servers = urls.compactMap { DirectoryServer($0, hasAuthority: settings.file("ca") != nil) }
    guard servers.count == urls.count, let base = settings.text("base") else {
      throw DirectoryFault("`url` or `base` is missing in gateway.lua")
    }
    authority = settings.file("ca") ?? Self.systemAuthorities
    self.base = base
    account = settings.text("bind.dn").map { ($0, settings.secret("bind.password") ?? "") }
    user = try DirectoryFilter(settings.text("user") ?? "")
    groups = try settings.text("groups").map { try DirectoryFilter($0) }
    groupBase = settings.text("group_base") ?? base
    isNested = settings.flag("nested_groups") ?? false
    attributes = settings.list("attributes")
    trustedDomains = Set(settings.list("trusted_domains").map { $0.lowercased() })
    timeout = .seconds(settings.number("timeout") ?? 5)
    rechecks = settings.isSet("recheck")
  }

  /// Of Debian, Fedora and OpenSUSE.
  private static let systemAuthorities =
    [
      "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    ].first(where: FileManager.default.isReadableFile) ?? ""

  // MARK: what is wrong

  private static let checkURL: SettingField.Check = { text, _ in
    DirectoryServer(text, hasAuthority: false) == nil
      ? "is not the address of a server: write ldaps://dc1.example.com or ldap://dc1.example.com" : nil
  }

  private static let checkAttribute: SettingField.Check = { text, _ in
    text.wholeMatch(of: /[A-Za-z][A-Za-z0-9-]{0,63}/) == nil
      ? "is not the name of an attribute: write one such as displayName" : nil
  }

  private static let checkUser: SettingField.Check = { text, _ in
    mistake(in: text) { $0 == ["name"] ? nil : "must compare {name}, and no other placeholder" }
  }

  private static let checkGroups: SettingField.Check = { text, _ in
    mistake(in: text) { names in
      names.isEmpty
        ? "finds the same groups for everyone: compare {dn}, as in (member={dn})"
        : names.contains("name")
          ? "must not compare {name}, which was typed: write {dn} or an attribute such as {uid}"
          : nil
    }
  }

  private static func mistake(in text: String, _ judge: (Set<String>) -> String?) -> String? {
    do throws(DirectoryFilter.Problem) { return judge(try DirectoryFilter(text).placeholders) } catch {
      return error.sentence
    }
  }

  /// What is wrong with settings that are right by themselves.
  static func findings(in settings: StepSettings) -> [SettingFinding] {
    var found: [SettingFinding] = []
    if settings.list("also").count > 7 { found.append(.init("also", "names more than 7 further servers")) }
    if settings.text("bind.dn") != nil, settings.secret("bind.password")?.isEmpty ?? true {
      found.append(.init("bind.password", "is empty, and the directory would be searched anonymously"))
    }
    if let file = settings.file("ca"),
      !((try? String(contentsOfFile: file, encoding: .utf8))?.contains("-----BEGIN CERTIFICATE-----") ?? false)
    {
      found.append(.init("ca", "has no certificate in PEM form"))
    }
    let url = settings.text("url") ?? ""
    return found + settings.addressFindings(at: url, isLocal: Loopback.containsHost(of: url))
  }
}

extension SettingField {
  /// More than five parameters: one for each field.
  fileprivate init(
    _ name: String, _ kind: Kind, _ help: String, _ standard: SettingValue? = nil, isRequired: Bool = false,
    check: Check? = nil
  ) {
    self.init(name: name, kind: kind, isRequired: isRequired, help: help, standard: standard, check: check)
  }
}
