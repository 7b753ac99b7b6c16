import MoongateCore
import MoongateSDK

/// One case of tests/NAME.lua: what a person does, in order, and what is expected on the way.
package struct PolicyCase: Sendable {
  package let name: String
  package let location: SourceLocation
  /// In the order in which they are written.
  package let acts: [Act]
  /// The provider that it comes with; nil for an operator's.
  package let origin: ProviderName?

  /// The flows that it begins.
  package var flows: Set<String> { Set(acts.compactMap { if case .flow(let name) = $0.kind { name } else { nil } }) }

  /// Whether a code is asked for when nobody to whom one can go was named before. Where nobody is named at all it goes
  /// to what the account holds.
  /// - Parameter kinds: the kinds of identifier that codes go to.
  func asksCodeForNobody(among kinds: Set<IdentifierKind>) -> Bool {
    var named: Set<IdentifierKind> = []
    for act in acts {
      switch act.kind {
      case .identifier(let kind, _): named.insert(kind)
      case .send, .resend: if named.isEmpty ? kinds.isEmpty : named.isDisjoint(with: kinds) { return true }
      default: break
      }
    }
    return false
  }

  /// The providers that it names.
  var providers: Set<ProviderName> {
    Set(
      acts.flatMap { act -> [ProviderName] in
        switch act.kind {
        case .provider(let name), .undeliverable(let name): [name]
        case .account(let setup): Array(setup.factors.keys)
        case .expect(let expected): [expected.step].compactMap(\.self)
        default: []
        }
      })
  }

  /// What its accounts have that `account` has words of its own for.
  var holdings: (pad: Bool, password: Bool) {
    let setups = acts.compactMap { if case .account(let setup) = $0.kind { setup } else { nil } }
    return (setups.contains { $0.hasPIN || $0.pin != nil }, setups.contains { $0.password != nil })
  }

  /// One word of a case, where it stands.
  package struct Act: Sendable {
    package let kind: Kind
    package let location: SourceLocation
  }

  package enum Kind: Sendable, Equatable {
    /// `flow "login"`: begins a flow of this name; whoever was named so far stays named.
    case flow(String)
    /// `phone "+91…"` and `email "…"`: who it is, as they type it. The last one named is whom the next code goes to.
    case identifier(IdentifierKind, String)
    /// `account { … }`: whether there is an account that holds all identifiers named so far.
    case account(AccountSetup)
    /// `group "ops"`: the account is added to stored groups, or with false removed from them.
    case groups([GroupName: Bool])
    /// `clock "…"`: sets the clock to this moment.
    case clock(Timestamp, asWritten: String)
    /// `token "ci"`: requests come from a program with this service token, from here on.
    case token(TokenSetup)
    /// `guarantee "…"`: the session as it stands satisfies this statement of guarantees.lua.
    case guarantee(String)
    /// `client { … }`: where requests come from, from here on.
    case client(ClientSetup)
    /// `provider "pin"`: which of a step's choices to take.
    case provider(ProviderName)
    /// `undeliverable "phone_otp"`: no message of the provider arrives, from here on, for the first reason that it
    /// declares.
    case undeliverable(ProviderName)
    /// Begins the step: a code goes out. With `untilSent` it waits, as long as limits and timers say, until one does.
    case send(untilSent: Bool)
    /// Asks for another code in the same step; as above.
    case resend(untilSent: Bool)
    /// Enters a code that is not the one that was sent, or a secret that is not the account's.
    case wrong(WrongAttempts)
    /// Enters the code that was sent last, or the account's secret where the step asks for one; approves where the step
    /// waits.
    case right
    /// `enter { pin = "…" }`: gives these fields to the step that is open, or begins the one that is due with them.
    case enter([String: String])
    case skip
    /// Asks for a page behind the gateway, signed in as by the flow that was completed last.
    case request(RequestFacts)
    case expect(Expectation)
    case wait(Wait)
  }

  /// How many wrong codes.
  package enum WrongAttempts: Sendable, Equatable {
    case times(Int)
    /// Until the answer is a lock, or that the identifier is turned off, whatever the policy's numbers are.
    case untilLocked
  }

  /// How long to wait.
  package enum Wait: Sendable, Equatable {
    case duration(Duration)
    /// As long as the last refusal said.
    case untilUnlocked
    /// Until another code may be asked for.
    case untilResend
    /// Until the code that was sent last is dead.
    case untilExpired
  }

  /// An account as a case wants it.
  package struct AccountSetup: Sendable, Equatable {
    package var exists = true
    /// Since it was made, and since it was last here.
    package var age: Duration = .zero
    package var idle: Duration = .zero
    /// Held beside the identifiers that the case names.
    package var phone: String?
    package var email: String?
    package var isPhoneVerified = true
    package var isEmailVerified = true
    package var hasPIN = false
    /// What they are; `hasPIN` alone is some PIN.
    package var pin: String?
    package var password: String?
    /// What it has at other providers: the secret, by the provider.
    package var factors: [ProviderName: String] = [:]
    /// By an operator.
    package var isLocked = false
  }

  /// A client as a case wants it; nil: as it was.
  package struct ClientSetup: Sendable, Equatable {
    package var address: ClientAddress?
    package var userAgent: String?
    /// The case's name for the device.
    package var device: String?
    /// Whether the device has signed in to the account before.
    package var isKnown: Bool?
  }

  /// The service token that requests carry.
  package struct TokenSetup: Sendable, Equatable {
    package let name: String
    package let groups: [GroupName]
  }

  /// What the answer before it must be; nil: anything.
  package struct Expectation: Sendable, Equatable {
    package enum Status: Sendable, Equatable {
      /// An HTTP status; 200 is any answer that is no refusal.
      case http(Int)
      case flow(FlowRecord.Status)
      /// Any refusal.
      case refused
    }

    package var status: Status?
    package var code: String?
    package var retryAfter: Duration?
    package var attemptsLeft: Int?
    package var resendsLeft: Int?
    package var field: String?
    /// How many messages went out in this case so far.
    package var messages: Int?
    /// The step that is open, or one that may be begun.
    package var step: ProviderName?
    /// Whether a lock stands, or the identifier is turned off.
    package var isLocked: Bool?
    /// Whether the open step waits for a decision that is made elsewhere.
    package var isWaiting: Bool?
    package var next: String?
  }
}
