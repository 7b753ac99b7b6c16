import MoongateCore

/// The values of a generation's policies, and the guesses that they allow: the answer to `GET /policy/values` of the
/// admin listener.
package struct PolicyValues: Sendable {
  /// The values of one file, under its name in `moongate policy show`.
  package struct Listing: Sendable {
    package let name: String
    package let values: [Value]

    package init(name: String, values: [Value]) {
      self.name = name
      self.values = values
    }
  }

  /// One value.
  package struct Value: Sendable {
    /// Such as `limits.verify.max`.
    package let path: String
    /// The value in Lua syntax.
    package let value: String
    /// The file that sets the value; nil for a default.
    package let file: String?
    package let line: Int?

    package init(path: String, value: String, file: String?, line: Int?) {
      self.path = path
      self.value = value
      self.file = file
      self.line = line
    }
  }

  /// The guesses that one provider allows; nil: unlimited.
  package struct Budget: Sendable {
    package let provider: String
    package let perDay: Int?
    package let per30Days: Int?

    package init(provider: String, perDay: Int?, per30Days: Int?) {
      self.provider = provider
      self.perDay = perDay
      self.per30Days = per30Days
    }
  }

  /// The id of the generation.
  package let generation: String
  package let listings: [Listing]
  package let budgets: [Budget]

  package init(generation: String, listings: [Listing] = [], budgets: [Budget] = []) {
    self.generation = generation
    self.listings = listings
    self.budgets = budgets
  }
}

extension JSONValue {
  static func values(_ values: PolicyValues) -> JSONValue {
    .members([
      "generation": .text(values.generation),
      "policies": .list(
        values.listings.map { listing in
          .members([
            "name": .text(listing.name),
            "values": .list(
              listing.values.map {
                .members([
                  "path": .text($0.path), "value": .text($0.value), "file": .optional($0.file),
                  "line": .optional($0.line),
                ])
              }),
          ])
        }),
      "budgets": .list(
        values.budgets.map {
          .members([
            "provider": .text($0.provider), "guesses_per_day": .optional($0.perDay),
            "guesses_per_30d": .optional($0.per30Days),
          ])
        }),
    ])
  }
}
