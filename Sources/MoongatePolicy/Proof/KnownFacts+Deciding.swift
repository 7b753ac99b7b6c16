import MoongateCore

extension KnownFacts {
  /// What is found about decided facts.
  enum Finding {
    /// It depends on a further fact.
    case open(BooleanFact)
    /// Whether it holds.
    case decided(Bool)
  }

  /// These facts with as many further ones as it takes to decide something, where it holds.
  func decided(_ find: (KnownFacts) throws(ProofBudget.Exhausted) -> Finding) throws(ProofBudget.Exhausted)
    -> [KnownFacts]
  {
    var open = [self]
    var found: [KnownFacts] = []
    while let facts = open.popLast() {
      switch try find(facts) {
      case .open(let fact): open += [true, false].compactMap { facts.assuming(fact, $0) }
      case .decided(let holds): if holds { found.append(facts) }
      }
    }
    return found
  }
}
