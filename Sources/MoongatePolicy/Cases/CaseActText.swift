import MoongateCore
import MoongateSDK

extension PolicyCase.Kind: CustomStringConvertible {
  /// The act in Lua syntax.
  package var description: String {
    switch self {
    case .flow(let name): "flow \"\(name)\""
    case .identifier(let kind, let text): "\(kind.rawValue) \"\(text)\""
    case .account(let account): "account { \(account.said.joined(separator: ", ")) }"
    case .groups(let groups): groups.asWritten
    case .invited(let setup): setup.asWritten
    case .clock(_, let text): "clock \"\(text)\""
    case .token(let token): token.asWritten
    case .guarantee(let statement): "guarantee \"\(statement)\""
    case .client(let client): "client { \(client.said.joined(separator: ", ")) }"
    case .provider(let name): "provider \"\(name)\""
    case .undeliverable(let name): "undeliverable \"\(name)\""
    case .send(let untilSent): untilSent ? "send { until_sent = true }" : "send()"
    case .resend(let untilSent): untilSent ? "resend { until_sent = true }" : "resend()"
    case .wrong(.untilLocked): "wrong { until_locked = true }"
    case .wrong(.times(let times)): times == 1 ? "wrong()" : "wrong { times = \(times) }"
    case .right: "right()"
    case .enter(let fields):
      "enter { \(fields.keys.sorted().map { "\($0) = \"\(fields[$0] ?? "")\"" }.joined(separator: ", ")) }"
    case .skip: "skip()"
    case .request(let request): request.asWritten
    case .app(let setup): setup.asWritten
    case .expect(let expected):
      "expect { \(expected.fields.map { "\($0.name) = \($0.value)" }.joined(separator: ", ")) }"
    case .wait(.duration(let duration)): "wait \"\(duration.asWritten)\""
    case .wait(.untilUnlocked): "wait { until_unlocked = true }"
    case .wait(.untilResend): "wait { until_resend = true }"
    case .wait(.untilExpired): "wait { until_expired = true }"
    }
  }
}

extension PolicyCase.ClientSetup {
  /// The fields that are set.
  fileprivate var said: [String] {
    let texts = [
      ("ip", address?.description), ("country", country), ("user_agent", userAgent), ("device", device),
    ]
    return texts.compactMap { name, value in value.map { "\(name) = \"\($0)\"" } }
      + (asn.map { ["asn = \($0)"] } ?? [])
      + (isKnown.map { ["known = \($0)"] } ?? []) + (remember.map { ["remember = \($0)"] } ?? [])
  }
}

extension PolicyCase.AccountSetup {
  /// The fields that differ from the defaults.
  fileprivate var said: [String] {
    if !exists { return ["exists = false"] }
    let all: [(String, String?)] = [
      ("age", age > .zero ? "\"\(age.asWritten)\"" : nil), ("idle", idle > .zero ? "\"\(idle.asWritten)\"" : nil),
      ("phone", phone.map { "\"\($0)\"" }), ("email", email.map { "\"\($0)\"" }),
      ("phone_verified", isPhoneVerified ? nil : "false"),
      ("email_verified", isEmailVerified ? nil : "false"), ("has_pin", hasPIN ? "true" : nil),
      ("pin", pin.map { "\"\($0)\"" }),
      ("password", password.map { "\"\($0)\"" }),
      (
        "factors",
        factors.isEmpty
          ? nil
          : "{ \(factors.sorted { $0.key < $1.key }.map { "\($0.key) = \"\($0.value)\"" }.joined(separator: ", ")) }"
      ),
      ("locked", isLocked ? "true" : nil),
    ]
    let said = all.compactMap { name, value in value.map { "\(name) = \($0)" } }
    return said.isEmpty ? ["exists = true"] : said
  }
}

extension PolicyCase.Expectation {
  /// The expected fields in Lua syntax.
  var fields: [(name: String, value: String)] {
    let all: [(String, String?)] = [
      ("status", status.map(\.description)), ("code", code.map { "\"\($0)\"" }),
      ("retry_after", retryAfter.map { "\"\($0.asWritten)\"" }),
      ("attempts_left", attemptsLeft.map(String.init)), ("resends_left", resendsLeft.map(String.init)),
      ("field", field.map { "\"\($0)\"" }),
      ("messages", messages.map(String.init)), ("step", step.map { "\"\($0)\"" }),
      ("locked", isLocked.map(String.init)),
      ("waiting", isWaiting.map(String.init)), ("next", next.map { "\"\($0)\"" }),
      ("claims", claims.isEmpty ? nil : claims.mapValues(\.asWritten).asLuaTable),
    ]
    return all.compactMap { name, value in value.map { (name, $0) } }
  }
}

extension PolicyCase.Expectation.Status: CustomStringConvertible {
  package var description: String {
    switch self {
    case .http(let status): "\(status)"
    case .flow(let status): "\"\(status.rawValue)\""
    case .refused: "\"refused\""
    }
  }
}
