/// What `app.mustache` shows: a question about an app, such as whether it may receive the result of a sign-in.
package struct AppModel: PageModel {
  package static let template = PageTemplate.app

  /// A hidden field of the form.
  package struct Field: Decodable {
    let name: String
    let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Something that the user compares with what their device shows.
  package struct Fact: Decodable {
    let label: String
    /// Shown from left to right.
    let value: String?
    /// A time (RFC 3339), instead of a value.
    let time: String?

    package init(_ label: String, value: String? = nil, time: String? = nil) {
      self.label = label
      self.value = value
      self.time = time
    }
  }

  let heading: String
  let subtitle: String
  /// What an attacker could gain from an answer without thought.
  let warning: String?
  let problem: String?
  /// What the app may do, a line for each scope.
  let scopes: [String]
  let hasScopes: Bool
  /// The line above the scopes.
  let scopesLabel: String?
  let facts: [Fact]
  let hasFacts: Bool
  /// The account that the answer counts for, masked.
  let signedInAs: String?
  /// The page where the user signs in with another account.
  let other: String?
  let action: String
  let fields: [Field]
  /// The value and label of the button that agrees.
  let allow: String
  let allowLabel: String
  /// Where the app receives the result.
  let receiver: String?

  /// More than five parameters: one for each field.
  package init(
    heading: String, subtitle: String, warning: String? = nil, problem: String? = nil, scopes: [String] = [],
    scopesLabel: String? = nil, facts: [Fact] = [], signedInAs: String? = nil, other: String? = nil, action: String,
    fields: [Field] = [], allow: String, allowLabel: String, receiver: String? = nil
  ) {
    self.heading = heading
    self.subtitle = subtitle
    self.warning = warning
    self.problem = problem
    self.scopes = scopes
    hasScopes = !scopes.isEmpty
    self.scopesLabel = scopesLabel
    self.facts = facts
    hasFacts = !facts.isEmpty
    self.signedInAs = signedInAs
    self.other = other
    self.action = action
    self.fields = fields
    self.allow = allow
    self.allowLabel = allowLabel
    self.receiver = receiver
  }
}
