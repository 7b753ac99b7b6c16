import ArgumentParser
import MoongateCore
import MoongateSDK

/// A duration in the notation of the Lua files: `90s`, `12h`, `30d`.
struct Span: ExpressibleByArgument {
  let duration: Duration

  /// The period for which `check` computes budgets.
  static let month = Span(duration: .seconds(30 * 86_400))

  /// How long a link to set a password works.
  static let day = Span(duration: .seconds(86_400))

  /// The time limit of a simulation, because a person waits for it.
  static let nineSeconds = Span(duration: .seconds(9))

  private init(duration: Duration) { self.duration = duration }

  init?(argument: String) {
    guard let duration = Duration(asWritten: argument), duration >= .seconds(1) else { return nil }
    self.duration = duration
  }

  /// The notation for the help text.
  var defaultValueDescription: String { duration.asWritten }
}

extension ProviderName: ExpressibleByArgument {
  public init?(argument: String) { self.init(rawValue: argument) }
}
