import Logging
import MoongateSDK

// Telling people. Never holds up or fails what it tells of: it goes out behind the answer, and a failure is the operator's to read.

/// Where a notice goes.
struct NoticeAddress: Sendable, Equatable {
  let channel: MessageChannel
  let to: String

  /// nil for what no message reaches.
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
  /// Where its person is told things: the verified address, else the verified number.
  var noticeAddress: NoticeAddress? {
    [.email, .phone].lazy.compactMap { self.identifier($0) }.first { $0.verifiedAt != nil }.flatMap { NoticeAddress($0.identifier) }
  }
}

extension FlowEngine {
  /// Tells of what a completed flow has done.
  /// - Parameters:
  ///   - before: the account as it was; nil where it was made.
  ///   - after: the account as it is.
  func tell(of record: FlowRecord, before: Account?, after: Account, isNewDevice: Bool, _ visit: Visit) {
    guard let before else { return }
    if record.startedIn == nil, isNewDevice { tell(.newDevice, to: after.noticeAddress, visit) }
    if let given = record.purpose.given, record.proved.contains(where: { $0.kind == given }) {
      // The old one is told: who took the account over by a new one must not be the only one who knows.
      // Attack: accounts that claim a stranger's address and change it away, again and again, each time with a mail to the stranger that no
      // limit counts. What nobody has proved is nobody's in particular.
      let gone = before.identifiers.filter { held in
        held.identifier.kind == given && held.verifiedAt != nil && !after.identifiers.contains { $0.identifier == held.identifier }
      }
      let notice: Notice = given == .email ? .emailChanged : gone.isEmpty ? .phoneAdded : .phoneChanged
      var addresses = gone.compactMap { NoticeAddress($0.identifier) }
      if given == .phone, let email = after.identifier(.email), email.verifiedAt != nil, let address = NoticeAddress(email.identifier) {
        addresses.append(address)
      }
      for address in addresses { tell(notice, to: address, visit) }
    }
    for provider in record.gathered.records.keys.sorted() {
      let notice: Notice? =
        switch (provider.rawValue, record.stepPurpose(of: provider)) {
        case ("pin", .set): before.credentials.contains(provider) ? .pinChanged : .pinSet
        case ("pin", .change): .pinChanged
        case ("pin", .disable): .pinRemoved
        case ("password", .set), ("password", .change): .passwordChanged
        case (_, .set): before.credentials.contains(provider) ? .factorChanged(title(of: provider, visit)) : .factorSet(title(of: provider, visit))
        case (_, .change): .factorChanged(title(of: provider, visit))
        case (_, .disable): .factorRemoved(title(of: provider, visit))
        case (_, .prove): nil
        }
      if let notice { tell(notice, to: after.noticeAddress, visit) }
    }
  }

  /// What people know a provider by.
  private func title(of name: ProviderName, _ visit: Visit) -> String { registry(visit)[name]?.descriptor.words?.title ?? name.rawValue }

  /// Tells the owner of an account of its lock. Locks of addresses and networks are nobody's in particular.
  func tell(of locks: [LockBegun], account id: String?, _ visit: Visit) async throws(Halt) {
    let personal = locks.filter(\.limit.key.isPersonal)
    guard !personal.isEmpty, let account = try await loadAccount(id) else { return }
    let until = personal.contains { $0.until == nil } ? nil : personal.compactMap(\.until).max()
    tell(.locked(for: until.map { $0 - visit.now }), to: account.noticeAddress, visit)
  }

  private func tell(_ notice: Notice, to address: NoticeAddress?, _ visit: Visit) {
    guard let address, let messenger = messenger(by: address.channel, visit) else { return }
    let service = visit.generation.gateway.service
    let message = Message(
      channel: address.channel, to: address.to, subject: address.channel == .mail ? notice.subject(service: service) : nil,
      text: notice.text(service: service))
    let failed = AuditEvent(
      id: DecisionID(from: random), at: visit.now, kind: .deliveryFailed, identifier: keys.logHash(address.to), detail: ["notice": "\(notice)"])
    let started = deliveries.start { [audit, logger] in
      do throws(DeliveryFault) {
        try await messenger.send(message)
      } catch {
        var failed = failed
        failed.detail["fault"] = error.reason
        audit.record(failed)
        logger.error("a notice could not be delivered", metadata: ["fault": "\(error.reason)"])
      }
    }
    if !started { audit.record(failed) }
  }

  /// The way of the first provider that sends by the channel here.
  private func messenger(by channel: MessageChannel, _ visit: Visit) -> (any Messenger)? {
    for provider in registry(visit).all {
      let settings = visit.generation.gateway.providers[provider.descriptor.name]
      for field in provider.descriptor.settings {
        if case .messages(channel) = field.kind, let way = settings?.deliveries[field.name] { return delivery.messenger(for: way) }
      }
    }
    return nil
  }
}
