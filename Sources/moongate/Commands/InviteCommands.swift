import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate invite`: manages invitations. Works directly on the store, whether or not a gateway is running. Only
/// `create --send` asks the running gateway.
struct InviteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite", abstract: "Create, list and revoke invitations.",
    discussion: """
      An invitation lets one account be created while accounts.lua says registration = "invited". \
      Exit status: 0 on success, 1 if the invitation does not exist or was created but not sent, 2 if the input is \
      invalid or the store is missing, and with --send if no gateway runs, the token is refused or too many \
      invitations were sent.
      """, subcommands: [CreateInvitation.self, ListInvitations.self, RevokeInvitation.self])
}

/// An invitation in the format of `GET /invitations`.
private struct InvitationDocument: Encodable {
  let id: String
  let recipient: String?
  let groups: [String]
  let createdAt: String
  let expiresAt: String
  /// The code and the link; only for a new invitation.
  let code: String?
  let link: String?

  private enum CodingKeys: String, CodingKey {
    case id, recipient, groups, code, link
    case createdAt = "created_at"
    case expiresAt = "expires_at"
  }

  init(_ invitation: Invitation, code: SecretText? = nil, link: String? = nil) {
    id = invitation.id
    recipient = invitation.identifier?.value
    groups = invitation.groups.map(\.rawValue)
    createdAt = invitation.createdAt.text
    expiresAt = invitation.expiresAt.text
    self.code = code?.reveal()
    self.link = link
  }

  /// A missing recipient is encoded as null, like in the admin API.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(id, forKey: .id)
    try members.encode(recipient, forKey: .recipient)
    try members.encode(groups, forKey: .groups)
    try members.encode(createdAt, forKey: .createdAt)
    try members.encode(expiresAt, forKey: .expiresAt)
    try members.encodeIfPresent(code, forKey: .code)
    try members.encodeIfPresent(link, forKey: .link)
  }
}

/// `moongate invite create [RECIPIENT]`.
struct CreateInvitation: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create an invitation, and print its link once or send it.",
    discussion: """
      With a recipient, only a user who verifies that address or number can use it. It is good for one account, and \
      does nothing for an account that exists. With --send, the running gateway sends the link, and the command does \
      not print it. If the message is not accepted, the command prints the link.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The email address or phone number that it is for. Default: everybody who has the code.")
  var recipient: String?
  @Option(name: .customLong("group"), help: "A group of the new account. Can be repeated.") var groups: [String] = []
  @Option(help: "How long it can be used, from 1m to 90d. (default: 7d)") var expires: String?
  @Flag(help: "Send the link to the recipient by mail or SMS.") var send = false
  @Option(help: "The language of the message, such as hi. Default: the first language of the gateway.")
  var language: String?
  @OptionGroup var admin: AdminOption
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    if send { return try await sendByGateway() }
    guard language == nil, admin.address == nil else {
      throw StartProblem("--language and --admin need --send.", status: .couldNotRun)
    }
    try await OperatorStore.with(configuration) { opened in
      let wanted: NewInvitation
      do throws(OperatorInputProblem) {
        wanted = try opened.administration.newInvitation(
          for: recipient, groups: groups, expires: expires, opened.generation)
      } catch {
        throw StartProblem(error.sentence, status: .couldNotRun)
      }
      let administration = opened.administration.acting(as: try identity.identity("moongate invite create"))
      let made = try await administration.createInvitation(wanted)
      if opened.generation.accounts.registration == .closed {
        LineLog.standardError("accounts.lua closes registration, so no invitation can be used now.\n")
      }
      let link = opened.gateway.publicURL.link(ofInvitation: made.code)
      if json { return print(try ToolJSON.text(InvitationDocument(made.invitation, code: made.code, link: link))) }
      print(link)
      LineLog.standardError(
        "The link of \(made.invitation.id) is shown only once. It can be used until \(made.invitation.expiresAt.text).\n"
      )
    }
  }
}

extension CreateInvitation {
  /// The time limit of the gateway's answer: it waits for the mail server or carrier.
  private static let timeLimit: Duration = .seconds(30)

  /// The body of `POST /invitations`.
  private struct Wanted: Encodable {
    let recipient: String?
    let groups: [String]
    let expires: String?
    let send = true
    let language: String?
  }

  /// What the gateway answers.
  private struct Made: Decodable {
    let id: String
    let expiresAt: String
    let link: String?
    let sent: Bool?
    let fault: String?

    enum CodingKeys: String, CodingKey {
      case id, link, sent, fault
      case expiresAt = "expires_at"
    }
  }

  /// Has the running gateway create and send it. The gateway has the outbox, the queues and the texts, and the secrets
  /// of carriers need not be readable here.
  private func sendByGateway() async throws {
    guard let recipient else {
      throw StartProblem("--send needs a recipient: an email address or a phone number.", status: .couldNotRun)
    }
    let gateway = try RunningGateway(configuration, admin)
    let wanted = Wanted(recipient: recipient, groups: groups, expires: expires, language: language)
    var client = gateway.client
    client.withoutAnswer = "The invitation may have been created: see `moongate invite list`."
    let answer = try await client.act(
      "POST", "/invitations", query: try gateway.asked(by: identity, "moongate invite create"), fields: wanted,
      within: Self.timeLimit)
    try gateway.demand(answer, json: json)
    let made = try JSONDecoder().decode(Made.self, from: answer.body)
    if json { print(try ToolJSON.text(Array(answer.body))) }
    if made.sent == true {
      if !json { print("\(made.id) is sent to \(recipient). It can be used until \(made.expiresAt).") }
      return
    }
    if !json { print(made.link ?? made.id) }
    LineLog.standardError(
      "\(made.id) was created, but not sent: \(made.fault ?? "the gateway does not send invitations"). Give the link to "
        + "the user yourself, or revoke it with `moongate invite revoke \(made.id)`.\n")
    throw ExitCode(ExitStatus.found.rawValue)
  }
}

/// `moongate invite list`.
struct ListInvitations: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the invitations that can be used, without their codes.")

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "Start after this id.") var after: String?
  @Option(help: "Maximum number of invitations to list.") var limit = 1_000
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard limit > 0 else { throw StartProblem("--limit must be 1 or more.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let found = try await opened.administration.invitations(after: after, limit: limit)
      if json { return print(try ToolJSON.text(found.map { InvitationDocument($0) })) }
      for invitation in found { print(Self.line(invitation)) }
      if found.isEmpty { print("no invitations") }
    }
  }

  private static func line(_ invitation: Invitation) -> String {
    var parts = [invitation.id, invitation.identifier.map { "for \($0.value)" } ?? "for anybody"]
    if !invitation.groups.isEmpty {
      parts.append("groups \(invitation.groups.map(\.rawValue).joined(separator: ", "))")
    }
    parts.append("expires \(invitation.expiresAt.text)")
    return parts.joined(separator: "  ")
  }
}

/// `moongate invite revoke ID`.
struct RevokeInvitation: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revoke an invitation. A registration that began with it creates no account either.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The id that `moongate invite list` shows.") var id: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Revoked: Encodable {
    let revoked: String
  }

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let administration = opened.administration.acting(as: try identity.identity("moongate invite revoke"))
      guard try await administration.revokeInvitation(id) == .done else {
        throw StartProblem("There is no invitation \(id): `moongate invite list` lists those that can be used.")
      }
      print(json ? try ToolJSON.text(Revoked(revoked: id)) : "\(id) is revoked")
    }
  }
}
