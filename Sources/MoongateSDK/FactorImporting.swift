/// A provider that accepts the factor of another system, such as the key of an authenticator app or the passkeys of an
/// account. `moongate account import` reads it.
///
/// Only the record is made from it. The user proves the factor at the next sign-in, as one that was set up here.
public protocol FactorImporting: Provider {
  /// The field of an import line. An instance of the provider has its own name instead.
  var importedField: String { get }

  /// The record for an imported factor.
  /// - Parameters:
  ///   - json: the value of the field, as JSON. It is untrusted.
  ///   - now: milliseconds since the Unix epoch.
  /// - Throws: what is wrong with it. The sentence continues "`field`" and does not contain the secret.
  func record(importing json: [UInt8], at now: Int64) throws(FactorImportProblem) -> [UInt8]
}

/// Why a factor of another system cannot be imported.
public struct FactorImportProblem: Error, Sendable, Equatable {
  /// Continues the name of the field, such as "must be an object with `secret`".
  public let sentence: String

  public init(_ sentence: String) { self.sentence = sentence }
}
