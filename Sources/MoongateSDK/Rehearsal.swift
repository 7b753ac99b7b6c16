/// A provider that reaches people by a way of its own and not by `tools`: another program, a modem.
///
/// In the cases of an operator's `tests/`, in simulations and in comparisons its part is played by what it gives here,
/// so that trying out a configuration sends nobody anything.
public protocol RehearsableProvider: Provider {
  /// A provider of the same descriptor that reads identifiers alike, and hands its codes to the messenger alone.
  func rehearsal(sending messenger: any Messenger) -> any Provider
}

/// The rehearsal of a provider whose steps wait for a decision that a person makes elsewhere. In the cases of `tests/`,
/// `right()` approves at a step that waits, and `wrong()` refuses.
public protocol DecidedRehearsal: Provider {
  /// The person decides. The next poll is answered by it, and by nothing afterwards.
  func decide(_ isApproved: Bool)
}
