import Crypto
import Foundation

/// An account of the provider.
struct MockAccount: Sendable, Equatable {
  /// Never changes and is never reused.
  let subject: String
  let firstName: String
  let lastName: String
  let email: String?
  /// Whether the provider has verified the address.
  let isEmailVerified: Bool
  /// The domain of an organization account (Google's claim `hd`).
  var hostedDomain: String?

  var name: String { [firstName, lastName].filter { !$0.isEmpty }.joined(separator: " ") }

  /// The accounts on the selection page.
  static let listed: [MockAccount] = [
    MockAccount(
      subject: "100000000000000000001", firstName: "Asha", lastName: "Rao", email: "asha@gmail.com",
      isEmailVerified: true),
    MockAccount(
      subject: "100000000000000000002", firstName: "Ravi", lastName: "Iyer", email: "ravi@gmail.com",
      isEmailVerified: true),
    MockAccount(
      subject: "100000000000000000003", firstName: "Mina", lastName: "Das", email: "mina@example.com",
      isEmailVerified: false),
    MockAccount(
      subject: "100000000000000000004", firstName: "Noor", lastName: "Ali", email: nil, isEmailVerified: false),
  ]

  /// An account from the form. The same address, verification and domain give the same account.
  /// - Parameter hostedDomain: the organization's domain; nil or empty for a personal account.
  /// - Returns: nil if the address is not valid.
  static func typed(name: String, email: String, isVerified: Bool, hostedDomain: String? = nil) -> MockAccount? {
    let address = email.lowercased()
    guard address.utf8.count <= 254, address.split(separator: "@").count == 2,
      address.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f })
    else {
      return nil
    }
    let domain = hostedDomain.flatMap { $0.isEmpty ? nil : String($0.lowercased().prefix(253)) }
    let digest = SHA256.hash(data: Data("\(address) \(isVerified)\(domain.map { " " + $0 } ?? "")".utf8))
    let subject =
      "2" + digest.prefix(10).map { String($0 % 10) }.joined() + digest.suffix(10).map { String($0 % 10) }.joined()
    let words = name.split(separator: " ", maxSplits: 1).map { String($0.prefix(64)) }
    return MockAccount(
      subject: subject, firstName: words.first ?? "New", lastName: words.count > 1 ? words[1] : "", email: address,
      isEmailVerified: isVerified,
      hostedDomain: domain)
  }
}
