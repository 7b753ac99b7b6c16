import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate token`: manages access tokens of programs. Works directly on the store, whether or not a gateway is
/// running.
struct TokenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Create, list, rotate and revoke access tokens of programs.",
    discussion: """
      Only routes with `tokens` in routes.lua accept tokens. A program sends its token as `Authorization: Bearer mgt_…`, or as the password of \
      Basic authentication with any user name. Exit status: 0 on success, 1 if the name is in use or the token does not exist, 2 if the store is missing.
      """, subcommands: [CreateToken.self, ListTokens.self, RotateToken.self, RevokeToken.self])
}

/// A token in the format of `GET /tokens`.
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
  /// The secret; only for a new token.
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

  /// Missing values are encoded as null, like in the admin API.
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

/// Runs an operation and turns its failure into an error message.
private func acting<Answer>(
  on name: String, _ act: () async throws(ServiceTokens.Failure) -> Answer
) async throws -> Answer {
  do {
    return try await act()
  } catch {
    switch error {
    case .nameTaken:
      throw StartProblem(
        "The token \(name) already exists. Give it a new secret with `moongate token rotate \(name)`, or choose another name."
      )
    case .unknown: throw StartProblem("There is no token \(name): `moongate token list` lists the tokens.")
    case .expired:
      throw StartProblem(
        "The token \(name) has expired. Remove it with `moongate token revoke \(name)`, then create it again.")
    case .store(let fault): throw fault
    }
  }
}

/// Prints a new secret alone on standard output, so that scripts can read it.
private func printReport(_ made: CreatedAccessToken, _ found: ServiceToken, json: Bool) throws {
  if json { return print(try ToolJSON.text(TokenDocument(found, secret: made.secret))) }
  print(made.secret.reveal())
  let end = found.token.expiresAt.map { " It expires at \($0.text)." } ?? " It does not expire."
  LineLog.standardError("The secret is shown only once. Store it where the program can read it.\(end)\n")
}

/// `moongate token create NAME`.
struct CreateToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a token and print its secret once.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The name of the token: \(ServiceTokenName.rule).") var name: String
  @Option(name: .customLong("group"), help: "A group of the token. Can be repeated.") var groups: [String] = []
  @Option(help: "The lifetime, for example 90d. Default: the token does not expire.") var expires: String?
  @Option(
    name: .customLong("network"),
    help: "A network that the token may be used from, for example 10.0.0.0/8. Can be repeated. Default: every network.")
  var networks: [String] = []
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let wanted: ServiceTokens.NewToken
      do throws(OperatorInputProblem) {
        wanted = try ServiceTokens.NewToken(
          name: name, groups: groups, expires: expires, networks: networks, rules: opened.generation.accounts)
      } catch {
        throw StartProblem(error.sentence, status: .couldNotRun)
      }
      let tokens = opened.tokens.acting(as: try identity.identity("moongate token create"))
      let made = try await acting(on: name) { () async throws(ServiceTokens.Failure) in try await tokens.create(wanted)
      }
      try printReport(made, ServiceToken(token: made.token, previousUntil: nil, isExpired: false), json: json)
    }
  }
}

/// `moongate token list`.
struct ListTokens: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the tokens by name, without their secrets.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let tokens = try await opened.tokens.list()
      if json { return print(try ToolJSON.text(tokens.map { TokenDocument($0) })) }
      for found in tokens { print(Self.line(found)) }
      if tokens.isEmpty { return print("no tokens") }
      // Gateways write the first use within about a second, further uses of the same token every 30 seconds.
      LineLog.standardError("Times of last use can be up to 30 seconds old.\n")
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
    if let until = found.previousUntil { parts.append("the previous secret is valid until \(until.text)") }
    return parts.joined(separator: "  ")
  }
}

/// `moongate token rotate NAME`.
struct RotateToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Give a token a new secret and print it once. The old secret stays valid for a while.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The token's name.") var name: String
  @Option(help: "How long the old secret stays valid; 0s ends it at once. (default: 24h)") var overlap: String?
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let overlap: Duration
    do throws(OperatorInputProblem) { overlap = try ServiceTokens.overlap(self.overlap) } catch {
      throw StartProblem(error.sentence, status: .couldNotRun)
    }
    try await OperatorStore.with(configuration) { opened in
      let tokens = opened.tokens.acting(as: try identity.identity("moongate token rotate"))
      let made = try await acting(on: name) { () async throws(ServiceTokens.Failure) in
        try await tokens.rotate(name, overlap: overlap)
      }
      let found = try await opened.tokens.list().first { $0.token.id == made.token.id }
      try printReport(made, found ?? ServiceToken(token: made.token, previousUntil: nil, isExpired: false), json: json)
    }
  }
}

/// `moongate token revoke NAME`.
struct RevokeToken: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revoke a token and its previous secrets. Gateways refuse it within a second.")

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
