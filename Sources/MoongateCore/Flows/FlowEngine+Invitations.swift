import Logging
import MoongateSDK

/// What became of an invitation that an operator wanted to be sent.
package enum InvitationSending: Sendable {
  /// The delivery accepted the message. Only the message contains the code.
  case sent(Invitation)
  /// The invitation can be used, but the delivery did not accept its message. The fault names neither code nor user.
  case failed(CreatedInvitation, fault: String)
  /// Nothing was created or sent.
  case refused(OperatorInputProblem)
  /// Nothing was created or sent, because operators have sent too many invitations.
  case limited(until: Timestamp)
}

extension FlowEngine {
  /// The maximum number of invitations that operators send to one address or number in 24 hours.
  package static let maxInvitationsToOne = 5

  /// The maximum number of invitations that operators send by a channel in 24 hours.
  package static func maxInvitations(by channel: MessageChannel) -> Int {
    switch channel {
    case .mail: 1_000
    case .sms: 100
    }
  }

  /// Creates an invitation, and sends its link as notices are sent: by the first provider with this channel. Waits
  /// until the delivery has accepted the message.
  /// - Parameters:
  ///   - tag: the language of the message; nil for the gateway's first one.
  ///   - administration: of the operator.
  package func sendInvitation(
    _ wanted: NewInvitation, in tag: String?, by administration: AccountAdministration, client: ClientContext
  ) async throws(StoreFault) -> InvitationSending {
    let request = RequestContext(client: client, now: clock.now(), generation: generations.current)
    let outgoing: OutgoingInvitation
    do throws(OperatorInputProblem) { outgoing = try self.outgoing(wanted, in: tag, request) } catch {
      return .refused(error)
    }
    if let until = try await limitOfInvitations(to: outgoing) { return .limited(until: until) }
    let made = try await administration.createInvitation(wanted)
    let gateway = request.generation.gateway
    let message = InvitationMessage(
      service: gateway.service, recipient: outgoing.identifier.display,
      link: gateway.publicURL.link(ofInvitation: made.code), expiresAt: made.invitation.expiresAt)
    var event = administration.event(.invitationSent, nil, at: request.now)
    event.identifier = keys.logHash(outgoing.identifier.value)
    event.detail["invitation"] = made.invitation.id
    event.detail["channel"] = outgoing.channel.rawValue
    do throws(DeliveryFault) {
      try await outgoing.messenger.send(
        message.message(to: outgoing.identifier, by: outgoing.channel, in: outgoing.language))
    } catch {
      return failed(made, event, error, to: outgoing.identifier)
    }
    audit.record(event)
    return .sent(made.invitation)
  }

  /// How an invitation leaves.
  private struct OutgoingInvitation {
    let identifier: Identifier
    let channel: MessageChannel
    let messenger: any Messenger
    let language: any MessageLanguage
  }

  /// - Throws: why it cannot be sent.
  private func outgoing(_ wanted: NewInvitation, in tag: String?, _ request: RequestContext)
    throws(OperatorInputProblem) -> OutgoingInvitation
  {
    guard let identifier = wanted.identifier, let channel = identifier.kind.channel else {
      throw OperatorInputProblem(
        field: "recipient",
        sentence: "An invitation that is sent needs a recipient: an email address or a phone number.")
    }
    guard request.generation.accounts.registration != .closed else {
      throw OperatorInputProblem(
        field: "send",
        sentence: "accounts.lua closes registration, so no invitation can be used now. Nothing was sent.")
    }
    guard let messenger = parts.messengers.messenger(by: channel, request) else {
      throw OperatorInputProblem(
        field: "send",
        sentence: "No provider in gateway.lua sends \(channel == .mail ? "mail" : "SMS"). Configure one, "
          + "or create the invitation without sending it, and give the link to the user yourself.")
    }
    let language = parts.messengers.language(tag.map { [$0] } ?? [], request)
    let primary = { (tag: String) in tag.prefix { $0 != "-" }.lowercased() }
    if let tag, primary(tag) != primary(language.tag) {
      throw OperatorInputProblem(
        field: "language",
        sentence: "There are no texts in \"\(tag.prefix(60))\". Choose one of `languages` in gateway.lua.")
    }
    return OutgoingInvitation(
      identifier: identifier, channel: channel, messenger: parts.messengers.localized(messenger, language, request),
      language: language)
  }

  /// Counts an invitation that is about to be sent, in the store: all gateways share the limits.
  ///
  /// Attack: a stolen admin token floods one user with messages, or sends SMS to thousands of numbers at the operator's
  /// cost. Messages that fail count too.
  /// - Returns: when the next one can be sent; nil if this one can.
  private func limitOfInvitations(to outgoing: OutgoingInvitation) async throws(StoreFault) -> Timestamp? {
    let limit = { (key: LimitKey, max: Int, counted: [String]) in
      ResolvedLimit(
        provider: "account", name: "invitation", key: key,
        counter: keys.counterKey((["invitation"] + counted).map { Array($0.utf8) }), max: max, window: .seconds(86_400))
    }
    let channel = outgoing.channel
    let result = try await parts.ledger.count([
      limit(.identifier, Self.maxInvitationsToOne, ["recipient", outgoing.identifier.value]),
      limit(.global, Self.maxInvitations(by: channel), ["channel", channel.rawValue]),
    ])
    switch result {
    case .reserved: return nil
    case .refused(let refusal): return refusal.reason.end ?? clock.now() + .seconds(86_400)
    case .barred, .flowChanged, .filledByPending: return clock.now() + .seconds(1)
    }
  }

  /// Reports an invitation that was not delivered.
  ///
  /// Attack: a mail server repeats the link in its refusal, as filters do, and the log has the code of an invitation
  /// that can be used.
  private func failed(
    _ made: CreatedInvitation, _ sent: AuditEvent, _ error: DeliveryFault, to identifier: Identifier
  ) -> InvitationSending {
    let fault = InvitationCode.redacted(Redaction([identifier.value, identifier.display])(error.reason))
    var detail = sent.detail
    detail["fault"] = fault
    let failed = AuditEvent(
      id: sent.id, at: sent.at, kind: .deliveryFailed, identifier: sent.identifier, address: sent.address,
      detail: detail)
    audit.record(failed)
    logger.error(
      "an invitation could not be delivered", metadata: ["fault": "\(fault)", "decision": "\(failed.id)"])
    return .failed(made, fault: fault)
  }
}
