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
    guard let channel = identifier.kind.channel else { return nil }
    self.channel = channel
    to = identifier.value
  }
}

extension Account {
  /// The account's verified email addresses and phone numbers, as recipients of notices.
  var reachableAddresses: [NoticeAddress] {
    [IdentifierKind.email, .phone].flatMap { kind in
      identifiers.filter { $0.identifier.kind == kind && $0.verifiedAt != nil }
    }.compactMap { NoticeAddress($0.identifier) }
  }

  /// Where notices to this account are sent: the verified email address, otherwise the verified phone number.
  ///
  /// Attack: someone within a stolen session adds an address of their own, and notices of what they change next go only
  /// there. While an identifier is too new (`recovery_delay`), notices go to all verified ones.
  func noticeAddresses(_ rules: AccountRules, at now: Timestamp) -> [NoticeAddress] {
    let isSettled = identifiers.allSatisfy { isTooNewUntil($0, rules, at: now) == nil }
    return isSettled ? Array(reachableAddresses.prefix(1)) : reachableAddresses
  }
}

/// Sends notices to the owners of accounts.
struct FlowNotices: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let messengers: Messengers
  let deliveries: BackgroundDeliveries
  let ledger: AttemptLedger

  /// The maximum number of notices by SMS to one number in 24 hours: of sign-ins and locks, and again of changes.
  static let maxBySMS = 5

  /// Sends the notices about a completed flow.
  /// - Parameter before: the account before the flow, or the account that another one was merged into; nil if the flow
  ///   created it.
  func notify(of flow: FlowTransaction, before: Account?, _ outcome: AccountOutcome) {
    let (record, request, after) = (flow.record, flow.request, outcome.account)
    guard let before else { return }
    if outcome.isNewDevice, record.startedIn == nil || outcome.survivor != nil {
      notify(
        .newDevice(userAgent: request.client.userAgent, at: request.now),
        to: outcome.survivor?.reachableAddresses ?? recipients(of: after, request), of: before, request)
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
        notify(notice, to: recipients(of: after, request), of: before, request)
      }
    }
  }

  /// Sends the notices about the identifiers that the flow has added or changed, to every verified identifier that the
  /// account had before.
  ///
  /// Attack: someone who took over the account, or merged one of their own into it, is the only one who is told. And
  /// accounts that claim another user's address and change it away, again and again, each time with a mail to that user
  /// that no limit counts: unverified identifiers are not told.
  private func notifyOfIdentifiers(_ flow: FlowTransaction, before: Account, after: Account) {
    let request = flow.request
    let verified = { (account: Account) in account.identifiers.filter { $0.verifiedAt != nil }.map(\.identifier) }
    let (old, new) = (verified(before), verified(after))
    // An address that the account has claimed itself is no news to its owner.
    let claimed = before.identifiers.filter { $0.verifiedAt == nil && flow.record.purpose.newIdentifier == nil }
    for gone in old where gone.kind == .federated && !new.contains(gone) {
      if let site = registry(request).prover(of: gone) { notifyOfDisconnection(site, before, request) }
    }
    for added in new where !old.contains(added) && !claimed.contains(where: { $0.identifier == added }) {
      let isReplaced = old.contains { $0.kind == added.kind && !new.contains($0) }
      let notice: Notice =
        switch added.kind {
        case .email: isReplaced ? .emailChanged : .emailAdded
        case .phone: isReplaced ? .phoneChanged : .phoneAdded
        // A name is never verified.
        case .federated, .name:
          .siteConnected(registry(request).prover(of: added).map { siteName($0, request) } ?? added.display)
        }
      notify(notice, to: before.reachableAddresses, of: before, request)
    }
  }

  /// Where notices to the account are sent.
  private func recipients(of account: Account, _ request: RequestContext) -> [NoticeAddress] {
    account.noticeAddresses(request.generation.accounts, at: request.now)
  }

  /// Notifies the owner that a factor, or one of several, was removed outside of a flow.
  func notifyOfRemoval(_ provider: ProviderName, _ account: Account, _ request: RequestContext) {
    if let notice = notice(of: .disable, provider, request) {
      notify(notice, to: recipients(of: account, request), of: account, request)
    }
  }

  /// Notifies the owner, at most once a week, that somebody has signed in with a secret that attackers know.
  func notifyOfExposure(of provider: ProviderName, _ account: Account, _ request: RequestContext)
    async throws(FlowError)
  {
    let counted = ["exposed notice", provider.rawValue, account.id].map { Array($0.utf8) }
    let limit = ResolvedLimit(
      provider: provider, name: "exposed", key: .account, counter: keys.counterKey(counted), max: 1,
      window: .seconds(7 * 86_400))
    guard case .reserved = try await ledger.count(limit, request) else { return }
    notify(.exposed, to: recipients(of: account, request), of: account, request)
  }

  /// Notifies the owner that a device, or several, are no longer trusted.
  func notifyOfRemovedDevice(_ account: Account, _ request: RequestContext) {
    notify(.deviceRemoved, to: recipients(of: account, request), of: account, request)
  }

  /// Notifies the owner that the provider's site no longer signs in to the account.
  func notifyOfDisconnection(_ provider: ProviderName, _ account: Account, _ request: RequestContext) {
    notify(
      .siteDisconnected(siteName(provider, request)), to: recipients(of: account, request), of: account, request)
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
      .locked(for: until.map { $0 - flow.request.now }), to: recipients(of: account, flow.request), of: account,
      flow.request)
  }

  /// - Parameter account: the account before the change. Its language is the owner's, whoever made the change.
  private func notify(
    _ notice: Notice, to addresses: [NoticeAddress], of account: Account, _ request: RequestContext
  ) {
    for address in addresses { send(notice, to: address, of: account, request) }
  }

  private func send(_ notice: Notice, to address: NoticeAddress, of account: Account, _ request: RequestContext) {
    guard let messenger = messengers.messenger(by: address.channel, request) else { return }
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
      guard await isWithinLimit(notice, to: address) else {
        var dropped = failed
        dropped.detail["fault"] = "not sent: the number got \(Self.maxBySMS) in 24h"
        audit.record(dropped)
        logger.info("a notice by SMS was not sent: the number got too many", metadata: ["decision": "\(dropped.id)"])
        return
      }
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

  /// Counts a notice by SMS to a number, in the store: all gateways share the limit. If the store fails, the notice is
  /// sent, because nothing that causes notices succeeds without the store.
  ///
  /// Attack: SMS pumping. One account signs in without a device token, again and again, and each sign-in sends an SMS
  /// to a number of the attacker's choice. Changes are counted separately, so that nobody can silence them by signing
  /// in or by causing locks.
  private func isWithinLimit(_ notice: Notice, to address: NoticeAddress) async -> Bool {
    guard address.channel == .sms else { return true }
    let counted = ["notice", notice.isChange ? "change" : "sign_in", address.to]
    let limit = ResolvedLimit(
      provider: "account", name: "notice", key: .identifier, counter: keys.counterKey(counted.map { Array($0.utf8) }),
      max: Self.maxBySMS, window: .seconds(86_400))
    guard let result = try? await ledger.count(limit) else { return true }
    if case .reserved = result { return true }
    return false
  }
}
