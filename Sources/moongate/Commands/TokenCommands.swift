import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate token`: the tokens of programs. Works on the store itself, whether a gateway runs on it or not.
struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Create, list, rotate and revoke the tokens of programs.",
    discussion: """
      Routes take tokens only where they say so (`tokens` in routes.lua). A program sends its token as `Authorization: Bearer mgt_…`, or as the password of \
      Basic with any user name. Exits with 0, with 1 where a name is taken or there is no such token, with 2 where there is no store.
      """, subcommands: [CreateToken.self, ListTokens.self, RotateToken.self, RevokeToken.self])
}

/// A token as `GET /tokens` tells it.
private struct TokenDocument: Encodable {
  let id: String
  let name: String
  let groups: [String]
  let networks: [String]
  let createdAt: String
  let expiresAt: String?
  let expired: Bool
  let lastUsedAt: String?
  let lastUsedFrom: String?
  let previousUntil: String?
  /// Of a new token alone.
  let token: String?

  private enum CodingKeys: String, CodingKey {
    case id, name, groups, networks, expired, token
    case createdAt = "created_at"
    case expiresAt = "expires_at"
    case lastUsedAt = "last_used_at"
    case lastUsedFrom = "last_used_from"
    case previousUntil = "previous_until"
  }

  init(_ found: ServiceToken, secret: SecretText? = nil) {
    id = found.token.id
    name = found.token.name
    groups = found.token.groups.map(\.rawValue)
    networks = found.token.networks.map(\.description)
    createdAt = found.token.createdAt.text
    expiresAt = found.token.expiresAt?.text
    expired = found.isExpired
    lastUsedAt = found.token.lastUsedAt?.text
    lastUsedFrom = found.token.lastUsedFrom
    previousUntil = found.previousUntil?.text
    token = secret?.reveal()
  }

  /// What is not there is null, as in the admin API.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(id, forKey: .id)
    try members.encode(name, forKey: .name)
    try members.encode(groups, forKey: .groups)
    try members.encode(networks, forKey: .networks)
    try members.encode(createdAt, forKey: .createdAt)
    try members.encode(expiresAt, forKey: .expiresAt)
    try members.encode(expired, forKey: .expired)
    try members.encode(lastUsedAt, forKey: .lastUsedAt)
    try members.encode(lastUsedFrom, forKey: .lastUsedFrom)
    try members.encode(previousUntil, forKey: .previousUntil)
    try members.encodeIfPresent(token, forKey: .token)
  }
}

extension OperatorStore {
  fileprivate var tokens: ServiceTokens {
    ServiceTokens(store: store, keys: keys, clock: clock, random: SystemRandom())
  }
}

/// Runs an act, and says in a sentence why it came to nothing.
private func acting<Answer>(
  on name: String, _ act: () async throws(ServiceTokens.Failure) -> Answer
) async throws -> Answer {
  do {
    return try await act()
  } catch {
    switch error {
    case .nameTaken:
      throw StartProblem(
        "There is a token \(name) already: give it a new secret by `moongate token rotate \(name)`, or choose another name."
      )
    case .unknown: throw StartProblem("There is no token \(name): `moongate token list` lists those that there are.")
    case .expired:
      throw StartProblem(
        "The token \(name) has expired: remove it by `moongate token revoke \(name)`, then create it anew.")
    case .store(let fault): throw fault
    }
  }
}

/// Prints a new secret: by itself on standard output, so that a script can take it from there.
private func tell(_ made: MadeAccessToken, _ found: ServiceToken, json: Bool) throws {
  if json { return print(try ToolJSON.text(TokenDocument(found, secret: made.secret))) }
  print(made.secret.reveal())
  let end = found.token.expiresAt.map { " It expires at \($0.text)." } ?? " It does not expire."
  FileHandle.standardError.write(Data("This is shown once: keep it where the program finds it.\(end)\n".utf8))
}

/// `moongate token create NAME`.
struct CreateToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "create", abstract: "Make a token, and print it once.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "Its name: \(ServiceTokenName.rule).") var name: String
  @Option(name: .customLong("group"), help: "A group that it is in. May be given more than once.") var groups:
    [String] = []
  @Option(help: "How long it is good for, such as 90d. Without it, it does not expire.") var expires: String?
  @Option(
    name: .customLong("network"),
    help: "Where it may be used from, such as 10.0.0.0/8. May be given more than once. Without it: everywhere.")
  var networks: [String] = []
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let wanted: ServiceTokens.Wanted
      do throws(TokenInputProblem) {
        wanted = try ServiceTokens.Wanted(
          name: name, groups: groups, expires: expires, networks: networks, rules: opened.generation.accounts)
      } catch {
        throw StartProblem(error.sentence, status: .couldNotRun)
      }
      let tokens = opened.tokens.acting(as: try identity.identity("moongate token create"))
      let made = try await acting(on: name) { () async throws(ServiceTokens.Failure) in try await tokens.create(wanted)
      }
      try tell(made, ServiceToken(token: made.token, previousUntil: nil, isExpired: false), json: json)
    }
  }
}

/// `moongate token list`.
struct ListTokens: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the tokens of programs, by name. Nothing tells a secret.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let tokens = try await opened.tokens.list()
      if json { return print(try ToolJSON.text(tokens.map { TokenDocument($0) })) }
      for found in tokens { print(Self.line(found)) }
      if tokens.isEmpty { return print("no tokens") }
      // Gateways write the first use within about a second, further uses of the same token every 30 seconds.
      FileHandle.standardError.write(Data("Times of last use can be up to 30 seconds old.\n".utf8))
    }
  }

  private static func line(_ found: ServiceToken) -> String {
    let token = found.token
    var parts = [token.name]
    if !token.groups.isEmpty { parts.append("groups \(token.groups.map(\.rawValue).joined(separator: ", "))") }
    if !token.networks.isEmpty { parts.append("from \(token.networks.map(\.description).joined(separator: " "))") }
    parts.append(token.expiresAt.map { "\(found.isExpired ? "expired" : "expires") \($0.text)" } ?? "does not expire")
    parts.append(
      token.lastUsedAt.map { "last used \($0.text)\(token.lastUsedFrom.map { " from \($0)" } ?? "")" } ?? "never used")
    if let until = found.previousUntil { parts.append("the secret before it is good until \(until.text)") }
    return parts.joined(separator: "  ")
  }
}

/// `moongate token rotate NAME`.
struct RotateToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Give a token a new secret, and print it once. The old one goes on for a while.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The token's name.") var name: String
  @Option(help: "How long the old secret goes on, such as 24h; 0s ends it at once. (default: 24h)") var overlap: String?
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let overlap: Duration
    do throws(TokenInputProblem) { overlap = try ServiceTokens.overlap(self.overlap) } catch {
      throw StartProblem(error.sentence, status: .couldNotRun)
    }
    try await OperatorStore.with(configuration) { opened in
      let tokens = opened.tokens.acting(as: try identity.identity("moongate token rotate"))
      let made = try await acting(on: name) { () async throws(ServiceTokens.Failure) in
        try await tokens.rotate(name, overlap: overlap)
      }
      let found = try await opened.tokens.list().first { $0.token.id == made.token.id }
      try tell(made, found ?? ServiceToken(token: made.token, previousUntil: nil, isExpired: false), json: json)
    }
  }
}

/// `moongate token revoke NAME`.
struct RevokeToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "End a token, and every secret that it took the place of. Gateways refuse it within a second.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The token's name.") var name: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Revoked: Encodable {
    let revoked: String
  }

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let tokens = opened.tokens.acting(as: try identity.identity("moongate token revoke"))
      try await acting(on: name) { () async throws(ServiceTokens.Failure) in try await tokens.revoke(name) }
      print(json ? try ToolJSON.text(Revoked(revoked: name)) : "\(name) is revoked")
    }
  }
}
