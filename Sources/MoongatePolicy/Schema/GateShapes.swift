/// The table `gate` of gateway.lua.
extension TableShape {
  static let gate = TableShape(
    name: "Gate",
    summary: "The limit on changed decisions: a reload that would change more recorded decisions is refused.",
    entries: [
      .optional(
        "replay", "moongate.Duration", "how far back recorded decisions are replayed, at most \"7d\"", .text("24h")),
      .optional("most_flips", "string", "the share of decisions that may change, such as \"0.5%\"", .text("0.5%")),
      .optional(
        "flips_accepted", "string",
        "the id of a refused change that is accepted nevertheless, as the refused reload names it"),
    ])
}
