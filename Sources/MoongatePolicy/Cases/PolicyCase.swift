import MoongateCore
import MoongateSDK

/// A case of tests/NAME.lua: the acts of a user in order, and the expected answers.
package struct PolicyCase: Sendable {
  package let name: String
  package let location: SourceLocation
  /// In the order of the file.
  package let acts: [Act]
  /// The provider that ships the case; nil for an operator's case.
  package let origin: ProviderName?

  /// The flows that the case begins.
  package var flows: Set<String> { Set(acts.compactMap { if case .flow(let name) = $0.kind { name } else { nil } }) }

  /// Whether the case requests a code after naming only identifiers that cannot receive codes. Without any identifier,
  /// the code goes to one of the account.
  /// - Parameter kinds: the kinds of identifier that can receive codes.
  func sendsCodeWithoutIdentifier(among kinds: Set<IdentifierKind>) -> Bool {
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

  /// The providers that the case names.
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

  /// Whether its accounts have a PIN or a password, which `account` sets by separate fields.
  var holdings: (pad: Bool, password: Bool) {
    let setups = acts.compactMap { if case .account(let setup) = $0.kind { setup } else { nil } }
    return (setups.contains { $0.hasPIN || $0.pin != nil }, setups.contains { $0.password != nil })
  }

  /// An act of a case with its location.
  package struct Act: Sendable {
    package let kind: Kind
    package let location: SourceLocation
  }

  /// An act with its arguments.
  package enum Kind: Sendable, Equatable {
    /// `flow "login"`: begins a flow. The identifiers stay the same.
    case flow(String)
    /// `invited()`: an operator's invitation, with which the next flow begins.
    case invited(InvitationSetup)
    /// `phone "+91…"` and `email "…"`: an identifier as the user types it. The next code goes to the last one.
    case identifier(IdentifierKind, String)
    /// `account { … }`: describes the account with all identifiers named so far.
    case account(AccountSetup)
    /// `group "ops"`: adds the account to stored groups, or removes it with false.
    case groups([GroupName: Bool])
    /// `clock "…"`: sets the clock.
    case clock(Timestamp, asWritten: String)
    /// `token "ci"`: the following requests carry this service token.
    case token(TokenSetup)
    /// `guarantee "…"`: the current session must satisfy this statement of guarantees.lua.
    case guarantee(String)
    /// `client { … }`: sets the client of the following requests.
    case client(ClientSetup)
    /// `provider "pin"`: selects one of the providers that a step offers.
    case provider(ProviderName)
    /// `undeliverable "phone_otp"`: messages of the provider cannot be delivered from here on, for the first reason
    /// that it declares.
    case undeliverable(ProviderName)
    /// Begins the step, which sends a code. `untilSent`: waits until limits and timers allow the message.
    case send(untilSent: Bool)
    /// Requests another code in the same step. `untilSent`: as above.
    case resend(untilSent: Bool)
    /// Enters a wrong code or secret.
    case wrong(WrongAttempts)
    /// Enters the last code or the account's secret; approves a waiting step.
    case right
    /// `enter { pin = "…" }`: submits these fields to the open step, or begins the next step with them.
    case enter([String: String])
    case skip
    /// Requests a page behind the gateway, with the session of the last completed flow.
    case request(RequestFacts)
    /// `app "grafana"`: signs in to an app, with the session of the last completed flow.
    case app(AppSignInSetup)
    case expect(Expectation)
    case wait(Wait)
  }

  /// The number of wrong codes to enter.
  package enum WrongAttempts: Sendable, Equatable {
    case times(Int)
    /// Until the answer is a lock, or the credential is disabled.
    case untilLocked
  }

  /// How long to wait.
  package enum Wait: Sendable, Equatable {
    case duration(Duration)
    /// As long as the last refusal requires.
    case untilUnlocked
    /// Until another code can be requested.
    case untilResend
    /// Until the last code expires.
    case untilExpired
  }

  /// The account of a case.
  package struct AccountSetup: Sendable, Equatable {
    package var exists = true
    /// The time since it was created, and since it was last used.
    package var age: Duration = .zero
    package var idle: Duration = .zero
    /// Additional identifiers.
    package var phone: String?
    package var email: String?
    package var isPhoneVerified = true
    package var isEmailVerified = true
    package var hasPIN = false
    /// The value of the PIN. `hasPIN` alone means any PIN.
    package var pin: String?
    package var password: String?
    /// Secrets at other providers, by provider.
    package var factors: [ProviderName: String] = [:]
    /// Whether an operator locked it.
    package var isLocked = false
  }

  /// The client of requests; nil fields stay the same.
  package struct ClientSetup: Sendable, Equatable {
    package var address: ClientAddress?
    /// Two capital letters.
    package var country: String?
    package var asn: Int?
    package var userAgent: String?
    /// The name of the device in the case.
    package var device: String?
    /// Whether the device has signed in to the account before.
    package var isKnown: Bool?
    /// Whether the user chooses to stay signed in.
    package var remember: Bool?
  }

  /// An invitation of an operator.
  package struct InvitationSetup: Sendable, Equatable {
    /// The address or number that it is for, as it is typed; nil: anybody.
    package var to: String?
    package var groups: [GroupName] = []
  }

  /// The service token of requests.
  package struct TokenSetup: Sendable, Equatable {
    package let name: String
    package let groups: [GroupName]
  }

  /// A sign-in to an app.
  package struct AppSignInSetup: Sendable, Equatable {
    package let app: String
    /// The scopes that the app asks for; nil: all that it may.
    package var scopes: [String]?
  }

  /// The expected answer to the previous act; nil fields may have any value.
  package struct Expectation: Sendable, Equatable {
    /// The kind of answer.
    package enum Status: Sendable, Equatable {
      /// An HTTP status; 200 stands for any answer that is not a refusal.
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
    /// The number of messages sent in this case so far.
    package var messages: Int?
    /// The open step, or one that can be begun.
    package var step: ProviderName?
    /// Whether a lock applies or the credential is disabled.
    package var isLocked: Bool?
    /// Whether the open step waits for an approval on another device.
    package var isWaiting: Bool?
    package var next: String?
    /// Claims that the app gets, among others.
    package var claims: [String: JSONClaim] = [:]
  }
}
