import Logging

extension Logger {
  /// For Hummingbird: what it says of its own listeners and connections is for who works on this program. Operators are
  /// told by the program itself, in sentences.
  var ofLibrary: Logger {
    var quiet = self
    if logLevel > .debug { quiet.logLevel = .critical }
    return quiet
  }
}
