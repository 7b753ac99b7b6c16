/// A provider that reaches people by a way of its own and not by `tools`: another program, a modem.
///
/// In the cases of an operator's `tests/`, in simulations and in comparisons its part is played by what it gives here, so that trying out a
/// configuration sends nobody anything.
public protocol RehearsableProvider: Provider {
  /// A provider of the same descriptor that reads identifiers alike, and hands its codes to the messenger alone.
  func rehearsal(sending messenger: any Messenger) -> any Provider
}
