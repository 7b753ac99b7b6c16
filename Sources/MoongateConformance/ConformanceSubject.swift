import MoongateSDK

/// What the suite needs to know about a provider: identifiers, right and wrong answers, and the responses of its sites.
///
/// Everything has a default derived from the descriptor (``init(of:)``). Rules that need missing information do not
/// apply.
public struct ConformanceSubject: Sendable {
  /// An open step for which the subject gives an answer.
  public struct Step: Sendable {
    /// The purpose of the step.
    public let purpose: StepPurpose
    /// The requested fields; empty for a redirect.
    public let fields: [InputField]
    /// The content shown with the fields.
    public let shown: [Shown]
    /// The URL of a redirect; nil if the step asks for fields.
    public let redirect: String?
    /// The time until the step is polled, if it waits for a decision that is made elsewhere; otherwise nil. The right
    /// answer is no fields, once the subject has made the decision.
    public let poll: Duration?
    /// Milliseconds since the Unix epoch, by the suite's clock.
    public let now: Int64

    /// For tests of a subject's own answers. More than five parameters: one for each field.
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

  /// One user in several spellings, as fields of `begin`. Empty for a provider that reads no identifier; its `begin`
  /// gets no fields.
  public var spellings: [[String: InputValue]]
  /// Other users.
  public var others: [[String: InputValue]]
  /// Additional inputs of `begin` that must be malformed.
  public var malformedBegins: [[String: InputValue]]
  /// Inputs of `submit` that must be malformed.
  public var malformedSubmits: [[String: InputValue]]
  /// The right answer; nil if this subject does not know it. Only for full providers.
  public var right: @Sendable (Step) async throws -> [String: InputValue]?
  /// A wrong answer.
  public var wrong: @Sendable (Step) async throws -> [String: InputValue]?
  /// Fields of `submit` that are not part of the answer, for example the name of a device. Changing them changes
  /// nothing.
  public var uncompared: Set<String>
  /// The identifiers of the account. If it is empty, the identifier of the first spelling is used.
  public var identifiers: [Identifier]
  /// The account's record before a secret is set; nil for none.
  public var record: [UInt8]?
  /// Records of older provider versions for the right answer, by version, for the rule `upgrade`.
  public var oldRecords: [Int: [UInt8]]
  /// Whether a step with the purpose `set` creates the record that `prove` checks.
  public var setsUp: Bool
  /// The name of the flow for each purpose.
  public var flows: [StepPurpose: String]
  /// Whether a right answer can be used only once, for example a code of an authenticator app.
  public var isOneTime: Bool
  /// The lifetime of a right answer; nil if it does not expire or the core limits it.
  public var lifetime: Duration?
  /// Override the descriptor's defaults and the suite's examples. The suite chooses the secrets and searches for them
  /// afterwards.
  public var settings: [String: SettingValue]
  /// The secret settings, if the provider or its site needs certain values.
  public var secrets: [String: String]
  /// The responses of other sites; nil if they cannot be reached.
  public var web: @Sendable (WebRequest) async -> WebAnswer?
  /// The initial time of the suite's clock, in milliseconds since the Unix epoch.
  public var start: Int64
  /// Resets the state of the subject. Called before each rule.
  public var reset: @Sendable () async -> Void

  /// Derives a subject from the descriptor, with examples for each kind of field. It knows the right answer of a
  /// provider whose secret is set by a step with the purpose `set` and the same fields, possibly with `new_` before
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
      // An empty optional field does not make the input malformed.
      if !field.isRequired { malformedBegins.removeAll { $0[field.name] == .text("") } }
    }
    let isSecret = descriptor.hashesSecrets
    setsUp = isSecret
    right = { step in isSecret ? Examples.answers(step.fields, isRight: true) : nil }
    wrong = { step in isSecret ? Examples.answers(step.fields, isRight: false) : nil }
  }
}

/// Example inputs by the kind of field.
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
