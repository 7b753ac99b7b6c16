import Logging

extension Logger {
  /// The log level for Hummingbird. Its messages about listeners and connections are for developers; the gateway logs
  /// its own messages for operators.
  var ofLibrary: Logger {
    var quiet = self
    if logLevel > .debug { quiet.logLevel = .critical }
    return quiet
  }
}
