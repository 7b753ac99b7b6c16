import MoongateCore

/// Every value of a generation's policies, and how many guesses they grant: what `GET /policy/values` of the admin
/// listener answers.
package struct PolicyValues: Sendable {
  /// The values of one file, under the name by which `moongate policy show` asks for it.
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
    /// `limits.verify.max`.
    package let path: String
    /// As a file writes it.
    package let value: String
    /// nil: nobody said it, and it is the default.
    package let file: String?
    package let line: Int?

    package init(path: String, value: String, file: String?, line: Int?) {
      self.path = path
      self.value = value
      self.file = file
      self.line = line
    }
  }

  /// The guesses that one provider grants; nil: no end.
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

  /// The generation's name.
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
