/// Identifies a function of a configuration by its path, which is the same in every generation:
/// `policies/phone_otp.verify`, `policies/phone_otp.limits.verify.max`, `flows/login.steps[2].when`,
/// `routes[4].decide`.
///
/// A flow that began under an older generation uses the active generation's function with the same name.
package struct FunctionName: Hashable, Sendable, Codable, CustomStringConvertible {
  package let path: String

  package init(_ path: String) { self.path = path }

  package var description: String { path }
}
