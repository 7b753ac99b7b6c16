/// What a reload must not change.
extension TableShape {
  static let gate = TableShape(
    name: "Gate", summary: "A reload that would change more of the recorded decisions than this is refused.",
    entries: [
      .optional("replay", "moongate.Duration", "how far back decisions are played again, at most \"7d\"", .text("24h")),
      .optional("most_flips", "string", "which share of them may change, such as \"0.5%\"", .text("0.5%")),
      .optional(
        "flips_accepted", "string", "the change that may go through all the same, as a refused reload names it"),
    ])
}
