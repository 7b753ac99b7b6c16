import MoongateSDK

/// What the suite cannot know of a provider: how a person who knows the answer answers, who is who, what its sites say.
///
/// Everything has a default that is made of the descriptor (``init(of:)``); what the subject cannot say makes the rules
/// that need it not apply.
public struct ConformanceSubject: Sendable {
  /// What a subject is asked about: a step that is open.
  public struct Step: Sendable {
    /// What the step is for.
    public let purpose: StepPurpose
    /// What the provider asks for; empty where it sends the person away.
    public let fields: [InputField]
    /// What it shows beside them.
    public let shown: [Shown]
    /// Where it sends the person; nil where it asks.
    public let redirect: String?
    /// How long it waits for a decision that is made elsewhere, until it is polled; nil where it does not wait. The
    /// right answer is no fields, once the subject has made the decision.
    public let poll: Duration?
    /// Milliseconds since the Unix epoch, by the suite's clock.
    public let now: Int64

    /// For tests of a subject's own answers.
    public init(
      purpose: StepPurpose, fields: [InputField], shown: [Shown] = [], redirect: String? = nil, poll: Duration? = nil,
      now: Int64
    ) {
      self.purpose = purpose
      self.fields = fields
      self.shown = shown
      self.redirect = redirect
      self.poll = poll
      self.now = now
    }
  }

  /// One person, in several spellings, as `begin` takes them. Empty for a provider that reads no identifier: its
  /// `begin` gets nothing.
  public var spellings: [[String: InputValue]]
  /// Other people.
  public var others: [[String: InputValue]]
  /// Inputs of `begin` that must be malformed, besides those that the suite makes up.
  public var malformedBegins: [[String: InputValue]]
  /// Inputs of `submit` that must be malformed.
  public var malformedSubmits: [[String: InputValue]]
  /// What somebody sends who knows the answer; nil: this subject does not know it. A full provider's only.
  public var right: @Sendable (Step) async throws -> [String: InputValue]?
  /// What somebody sends who does not.
  public var wrong: @Sendable (Step) async throws -> [String: InputValue]?
  /// Fields of `submit` that are no part of the answer, such as what a device is to be called: changing them changes
  /// nothing.
  public var uncompared: Set<String>
  /// What the account's people are called by; the identifier of the first spelling where there is one and this is
  /// empty.
  public var identifiers: [Identifier]
  /// The account's record before anything is set; nil: there is none.
  public var record: [UInt8]?
  /// Records that older versions of the provider made of the right answer, by their version: for the rule `upgrade`.
  public var oldRecords: [Int: [UInt8]]
  /// Whether a step of the purpose `set` makes the record that `prove` is judged by.
  public var setsUp: Bool
  /// The name of the flow of each purpose.
  public var flows: [StepPurpose: String]
  /// Whether a right answer is good once: a code of an authenticator app, the grant of another site.
  public var isOneTime: Bool
  /// How long a right answer lives after it was made; nil: for ever, or the core's to say.
  public var lifetime: Duration?
  /// Over what the descriptor's defaults and the suite's own examples say. Secrets are the suite's, and it looks for
  /// them afterwards.
  public var settings: [String: SettingValue]
  /// The secrets of gateway.lua, where the provider or its site needs certain ones.
  public var secrets: [String: String]
  /// What other sites answer; nil: they cannot be reached.
  public var web: @Sendable (WebRequest) async -> WebAnswer?
  /// Where the suite's clock stands at first, in milliseconds since the Unix epoch.
  public var start: Int64
  /// Forgets what the subject remembers of the steps before. Called before each rule.
  public var reset: @Sendable () async -> Void

  /// A subject by what the descriptor tells: examples for each kind of field. It knows the right answer where a
  /// provider keeps a secret that is made by a step of the purpose `set` with the same fields, or with `new_` before
  /// their names.
  public init(of descriptor: ProviderDescriptor) {
    spellings = []
    others = []
    malformedBegins = []
    malformedSubmits = []
    uncompared = []
    identifiers = []
    record = nil
    oldRecords = [:]
    flows = [
      .prove: "login", .set: "\(descriptor.name)_set", .change: "\(descriptor.name)_change",
      .disable: "\(descriptor.name)_disable",
    ]
    isOneTime = false
    lifetime = nil
    settings = [:]
    secrets = [:]
    web = { _ in nil }
    start = 1_767_225_600_000
    reset = {}

    let naming = descriptor.beginFields.filter { Examples.people[$0.kind] != nil }
    if let field = naming.first(where: \.isRequired) ?? naming.first, let people = Examples.people[field.kind] {
      spellings = people.spellings.map { [field.name: .text($0)] }
      others = people.others.map { [field.name: .text($0)] }
      malformedBegins = people.malformed.map { [field.name: .text($0)] }
      // A field that may be left out says nothing of who is meant.
      if !field.isRequired { malformedBegins.removeAll { $0[field.name] == .text("") } }
    }
    let isSecret = descriptor.hashesSecrets
    setsUp = isSecret
    right = { step in isSecret ? Examples.answers(step.fields, isRight: true) : nil }
    wrong = { step in isSecret ? Examples.answers(step.fields, isRight: false) : nil }
  }
}

/// What people type, by the kind of field.
enum Examples {
  struct People: Sendable {
    let spellings: [String]
    let others: [String]
    let malformed: [String]
  }

  static let people: [InputField.Kind: People] = [
    .phone: People(
      spellings: [
        "+919999999999", "+91 99999-99999", "  +91 (99999) 99999 ", "\u{FF0B}91 99999 99999",
        "+91 \u{0669}\u{0669}\u{0669}\u{0669}\u{0669}99999",
      ],
      others: ["+919999999998", "+31612345678"], malformed: ["", "12", "+91", "call me", "+9199999999999999999999"]),
    .email: People(
      spellings: ["asha@example.com", "Asha@Example.COM", "  asha@example.com "],
      others: ["asha@example.org", "bina@example.com"],
      malformed: ["", "asha", "@example.com", "asha@", "asha@example.com\r\nBcc: b@example.com", "a@b@example.com"]),
  ]

  private static func text(_ field: InputField, isRight: Bool) -> String {
    switch field.kind {
    case .digits:
      let digits = isRight ? "739154" : "482957"
      return String(String(repeating: digits, count: 3).prefix(field.length ?? 6))
    case .password: return isRight ? "ninety-nine quiet pigeons" : "ninety-nine quiet penguins"
    case .phone: return "+919999999999"
    case .email: return "asha@example.com"
    case .region: return "IN"
    case .choice: return (isRight ? field.choices?.first : field.choices?.last)?.value ?? ""
    case .json: return "{\"type\":\"public-key\",\"right\":\(isRight)}"
    case .text: return isRight ? "quiet-pigeons-99" : "quiet-penguins-99"
    }
  }

  static func answers(_ fields: [InputField], isRight: Bool) -> [String: InputValue] {
    Dictionary(fields.map { ($0.name, InputValue.text(text($0, isRight: isRight))) }) { first, _ in first }
  }
}
