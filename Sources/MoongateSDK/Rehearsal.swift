/// A provider that sends messages by its own means and not by `tools`, such as another program or a modem.
///
/// The operator's test cases, simulations and comparisons use its `rehearsal` instead, so that trying out a
/// configuration sends no messages.
public protocol RehearsableProvider: Provider {
  /// A provider with the same descriptor that reads identifiers in the same way and sends its codes only to the
  /// messenger.
  func rehearsal(sending messenger: any Messenger) -> any Provider
}

/// The rehearsal of a provider whose steps wait for a user's decision elsewhere. In test cases, `right()` approves a
/// waiting step and `wrong()` refuses it.
public protocol DecidedRehearsal: Provider {
  /// Sets the user's decision. It answers the next poll only.
  func decide(_ isApproved: Bool)
}
