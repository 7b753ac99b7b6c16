import MoongateSDK

/// An identifier in messages.
struct WireIdentifier: Codable, Equatable {
  let kind: IdentifierKind
  let value: String
  let display: String?
  let attributes: [String: String]?
  /// From a program: the groups of an identity.
  let groups: [String]?

  init(_ identifier: Identifier) {
    kind = identifier.kind
    value = identifier.value
    display = identifier.display
    attributes = identifier.attributes.isEmpty ? nil : identifier.attributes
    // Programs do not see what other sites say.
    groups = nil
  }

  var identifier: Identifier {
    Identifier(kind: kind, value: value, display: display ?? value, attributes: attributes ?? [:], groups: groups ?? [])
  }
}

/// `deliver`: sends a code to a user.
struct Delivery: Encodable {
  let code: String
  let text: String
  let domainBoundLine: String
  let service: String
  let to: WireIdentifier
  let now: Int64

  enum CodingKeys: String, CodingKey {
    case code, text, service, to, now
    case domainBoundLine = "domain_bound_line"
  }
}

/// `upgrade`: converts a record of an older version.
struct Upgrade: Encodable {
  let record: String
  let version: Int
}

/// The parameters of `maintain`.
struct MaintenanceCall: Encodable {
  let now: Int64
}

/// The answer to `upgrade`.
struct Upgraded: Decodable {
  let record: String
}

/// The answer to `deliver`.
struct DeliveryReply: Decodable {
  /// The declared reason for a failed delivery.
  let failed: String?
}

/// The answer to `configure`: any object.
struct Done: Decodable {
  private enum Keys: CodingKey {}

  init(from decoder: any Decoder) throws { _ = try decoder.container(keyedBy: Keys.self) }
}

/// The parameters of `begin` and `submit`.
struct StepCall: Encodable {
  struct Account: Encodable {
    let id: String
    let record: String?
    let identifiers: [WireIdentifier]
    let names: [String]
  }

  struct Return: Encodable {
    let address: String
    let state: String
  }

  enum Value: Encodable {
    case text(String)
    case flag(Bool)

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .flag(let flag): try container.encode(flag)
      }
    }
  }

  let flow: String
  let flowPurpose: FlowPurposeKind
  let purpose: StepPurpose
  let account: Account?
  let identifier: WireIdentifier?
  let state: String?
  let callback: Return?
  let fields: [String: Value]
  let now: Int64

  enum CodingKeys: String, CodingKey {
    case flow, purpose, account, identifier, state, callback, fields, now
    case flowPurpose = "flow_purpose"
  }
}

/// The answer to `begin` and `submit`, with exactly one of these members.
struct StepReply: Decodable {
  struct Ask: Decodable {
    struct Shown: Decodable {
      enum Kind: String, Decodable { case text, secret, qr, list, ceremony }

      let kind: Kind
      let text: String?
      let items: [String]?
      /// For a ceremony: the call, and the JSON text of its options.
      let call: CeremonyCall?
      let options: String?
    }

    let fields: [Introduction.Field]
    let state: String?
    let show: [Shown]?
  }

  struct Redirect: Decodable {
    let to: String
    let state: String?
  }

  struct Wait: Decodable {
    /// The time until the next `submit`, in milliseconds.
    let poll: Int64
    let state: String?
    let show: [Ask.Shown]?
  }

  struct Malformed: Decodable {
    let field: String
    let reason: String?
    let detail: String
  }

  struct Proved: Decodable {
    struct Record: Decodable {
      /// The new value of the record; null removes it.
      let replace: String?
      /// Whether only one of all flows that read the same record can complete.
      let once: Bool?
    }

    let identifiers: [WireIdentifier]?
    let claimed: [WireIdentifier]?
    let firstName: String?
    let lastName: String?
    /// If omitted, the record does not change.
    let record: Record?
    /// Facts about the proof for policies, by the names of the declared facts.
    let facts: [String: Scalar]?
    /// Whether two factors were proved at once.
    let multiFactor: Bool?
    /// What the program needs to recheck the identity.
    let recheck: String?

    enum CodingKeys: String, CodingKey {
      case identifiers, claimed, record, facts, recheck
      case firstName = "first_name"
      case lastName = "last_name"
      case multiFactor = "multi_factor"
    }
  }

  enum Kind {
    case ask(Ask)
    case redirect(Redirect)
    case wait(Wait)
    case refused(String, then: Ask?)
    case malformed(Malformed)
    case proved(Proved)
  }

  let kind: Kind

  private enum Keys: String, CodingKey, CaseIterable { case ask, redirect, wait, refused, malformed, proved, then }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Keys.self)
    let answers = container.allKeys.filter { $0 != .then }
    guard answers.count == 1, let key = answers.first, key == .refused || container.allKeys.count == 1 else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath,
          debugDescription: "exactly one of ask, redirect, wait, refused (perhaps with then), malformed and proved"))
    }
    switch key {
    case .ask: kind = .ask(try container.decode(Ask.self, forKey: key))
    case .redirect: kind = .redirect(try container.decode(Redirect.self, forKey: key))
    case .wait: kind = .wait(try container.decode(Wait.self, forKey: key))
    case .refused, .then:
      kind = .refused(
        try container.decode(String.self, forKey: .refused),
        then: try container.decodeIfPresent(Ask.self, forKey: .then))
    case .malformed: kind = .malformed(try container.decode(Malformed.self, forKey: key))
    case .proved: kind = .proved(try container.decode(Proved.self, forKey: key))
    }
  }
}
