import Logging
import MoongateSDK

// Notifies users. A notice never delays or fails the operation it reports: it is sent after the response, and failures
// are logged for the operator.

/// Where a notice is sent.
struct NoticeAddress: Sendable, Equatable {
  let channel: MessageChannel
  let to: String

  /// Fails for identifiers that cannot receive messages.
  init?(_ identifier: Identifier) {
    switch identifier.kind {
    case .email: channel = .mail
    case .phone: channel = .sms
    case .federated: return nil
    }
    to = identifier.value
  }
}

extension Account {
  /// Where notices to this account are sent: the verified email address, otherwise the verified phone number.
  var noticeAddress: NoticeAddress? {
    [.email, .phone].lazy.compactMap { self.identifier($0) }.first { $0.verifiedAt != nil }.flatMap {
      NoticeAddress($0.identifier)
    }
  }
}

/// Sends notices to the owners of accounts.
struct FlowNotices: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let messengers: Messengers
  let deliveries: BackgroundDeliveries

  /// Sends the notices about a completed flow.
  /// - Parameters:
  ///   - before: the account before the flow; nil if the flow created it.
  ///   - after: the account after the flow.
  func notify(of flow: FlowTransaction, before: Account?, after: Account, isNewDevice: Bool) {
    let (record, request) = (flow.record, flow.request)
    guard let before else { return }
    if record.startedIn == nil, isNewDevice {
      notify(
        .newDevice(userAgent: request.client.userAgent, at: request.now), to: after.noticeAddress, of: before, request)
    }
    notifyOfIdentifiers(flow, before: before, after: after)
    for provider in record.pendingProofs.records.keys.sorted() {
      let purpose = record.stepPurpose(of: provider)
      let keepsSeveral = checks.keepsSeveral(provider, request)
      let change: StepPurpose
      switch purpose {
      // If an account has several items, a reset removes the lost one.
      case .set where record.purpose.isReset && keepsSeveral: change = .disable
      // Setting a factor in place of an existing one is a change.
      case .set where before.credentials.contains(provider) && !keepsSeveral: change = .change
      default: change = purpose
      }
      if let notice = notice(of: change, provider, request) {
        notify(notice, to: after.noticeAddress, of: before, request)
      }
    }
  }

  /// Sends the notice about an identifier that the flow has added or changed.
  private func notifyOfIdentifiers(_ flow: FlowTransaction, before: Account, after: Account) {
    let (record, request) = (flow.record, flow.request)
    if record.purpose.connectsSite {
      if let provider = record.basis?.introduced.last?.provider {
        notify(.siteConnected(siteName(provider, request)), to: before.noticeAddress, of: before, request)
      }
    } else if let given = record.purpose.newIdentifier, record.proved.contains(where: { $0.kind == given }) {
      // Notify the old identifier: someone who took over the account with a new one must not be the only one who knows.
      // Attack: accounts that claim another user's address and change it away, again and again, each time with a mail
      // to that user that no limit counts. Unverified identifiers are therefore not notified.
      let gone = before.identifiers.filter { held in
        held.identifier.kind == given && held.verifiedAt != nil
          && !after.identifiers.contains { $0.identifier == held.identifier }
      }
      let notice: Notice = given == .email ? .emailChanged : gone.isEmpty ? .phoneAdded : .phoneChanged
      var addresses = gone.compactMap { NoticeAddress($0.identifier) }
      if given == .phone, let email = after.identifier(.email), email.verifiedAt != nil,
        let address = NoticeAddress(email.identifier)
      {
        addresses.append(address)
      }
      for address in addresses { notify(notice, to: address, of: before, request) }
    }
  }

  /// Notifies the owner that a factor, or one of several, was removed outside of a flow.
  func notifyOfRemoval(_ provider: ProviderName, _ account: Account, _ request: RequestContext) {
    if let notice = notice(of: .disable, provider, request) {
      notify(notice, to: account.noticeAddress, of: account, request)
    }
  }

  /// Notifies the owner that the provider's site no longer signs in to the account.
  func notifyOfDisconnection(_ provider: ProviderName, _ account: Account, _ request: RequestContext) {
    notify(.siteDisconnected(siteName(provider, request)), to: account.noticeAddress, of: account, request)
  }

  /// The display name of the provider's site.
  private func siteName(_ provider: ProviderName, _ request: RequestContext) -> String {
    let words = registry(request).descriptor(provider)?.words
    return words?.name ?? words?.title ?? provider.rawValue
  }

  /// The notice for a change of a provider's factor; nil if nothing changed.
  private func notice(of change: StepPurpose, _ name: ProviderName, _ request: RequestContext) -> Notice? {
    let words = registry(request).descriptor(name)?.words
    if let own = words?.notices[change] { return .factor(own) }
    let title = words?.title ?? name.rawValue
    return switch change {
    case .set: .factorSet(title)
    case .change: .factorChanged(title)
    case .disable: .factorRemoved(title)
    case .prove: nil
    }
  }

  /// Notifies the owner of a lock on the account. Locks of addresses and networks concern no particular account.
  func notify(of locks: [LockBegun], account id: String?, _ flow: FlowTransaction) async throws(FlowError) {
    let personal = locks.filter(\.limit.key.isPersonal)
    guard !personal.isEmpty, let account = try await lookup.loadAccount(id, flow) else { return }
    let until = personal.contains { $0.until == nil } ? nil : personal.compactMap(\.until).max()
    notify(
      .locked(for: until.map { $0 - flow.request.now }), to: account.noticeAddress, of: account, flow.request)
  }

  /// - Parameter account: the account before the change. Its language is the owner's, whoever made the change.
  private func notify(_ notice: Notice, to address: NoticeAddress?, of account: Account, _ request: RequestContext) {
    guard let address, let messenger = messengers.messenger(by: address.channel, request) else { return }
    let service = request.generation.gateway.service
    let language = messengers.noticeLanguage(of: account, request)
    let message = Message(
      channel: address.channel, to: address.to,
      subject: address.channel == .mail ? notice.subject(service: service, in: language) : nil,
      text: notice.text(service: service, by: address.channel, in: language))
    let failed = AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: .deliveryFailed, identifier: keys.logHash(address.to),
      detail: ["notice": notice.name, "request": request.client.decision.text])
    let localized = messengers.localized(messenger, language, request)
    let started = deliveries.start { [audit, logger] in
      do throws(DeliveryFault) {
        try await localized.send(message)
      } catch {
        var failed = failed
        failed.detail["fault"] = error.reason
        audit.record(failed)
        logger.error(
          "a notice could not be delivered", metadata: ["fault": "\(error.reason)", "decision": "\(failed.id)"])
      }
    }
    if !started { audit.record(failed) }
  }
}
