import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy

/// `moongate init FOLDER`: a configuration for production, from four answers.
struct Init: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Write a configuration for production, and tell what comes next.",
    discussion: """
      Asks four questions, or takes their answers as options: how people reach the gateway, which service it protects, where its state lies, and how \
      messages leave. A password in an answer goes into a file of its own, which nobody else may read; answer on standard input rather than by an option, \
      which lists of processes show. The folder must be empty or not there. Nothing is overwritten. Exits with 2 if it writes nothing.
      """)

  @Argument(help: "The folder for the configuration.") var folder: String
  @Option(help: "How people reach the gateway: https://auth.example.com.") var publicURL: String?
  @Option(help: "The service that it protects: http://127.0.0.1:3000.") var upstream: String?
  @Option(help: "Where its state lies: sqlite, or postgres://user@host/database.") var store: String?
  @Option(help: "How messages leave: smtp://…, twilio://…, or a site's https:// address.") var messages: String?
  @Option(
    help:
      "The folder for the master key and a SQLite store; data, in the configuration's folder, unless said otherwise.")
  var state = "data"
  @Option(help: "The country, in two letters, of phone numbers that are typed without +.") var region = "IN"
  @Option(help: "What messages and pages call the site; its host unless said otherwise.") var service: String?

  func run() async throws {
    try SetupFolder.demandEmpty(folder)
    let asked = SetupQuestions()
    let publicURL = try asked.answer(
      "How will people reach the gateway?", "https://auth.example.com", publicURL, SetupAnswers.publicURL)
    let upstream = try asked.answer(
      "Which service does it protect?", "http://127.0.0.1:3000", upstream, SetupAnswers.upstream)
    let store = try asked.answer("Where does its state lie?", "sqlite", store, SetupAnswers.store)
    let messages = try asked.answer("How do messages leave?", "smtp://localhost", messages) {
      text throws(SetupAnswers.Problem) in
      try SetupAnswers.messages(text, host: publicURL.host)
    }
    let answers = SetupAnswers(publicURL: publicURL, upstream: upstream, store: store, messages: messages)
    let files = SetupFolder(answers, state: state, region: region, service: service ?? publicURL.host)
    let isNew = !FileManager.default.fileExists(atPath: folder)
    try files.write(to: folder)
    // What it wrote is judged as a start would judge it.
    let judged = await ConfigurationFolder(path: folder, providers: try Providers.registry()).load()
    if case .failure(let refused) = judged {
      files.remove(from: folder, isNew: isNew)
      let list = refused.problems.map { "\n  \($0.message)" }.joined()
      throw StartProblem("Nothing was written: a gateway would refuse these answers.\(list)", status: .couldNotRun)
    }
    let user = ServiceUser.giveSecrets(
      files.secrets.map { "\(folder)/\($0)" } + (files.secrets.isEmpty ? [] : ["\(folder)/secrets"]))
    print("Wrote \(files.files.count) files to \(folder); `moongate check` finds nothing wrong with them.")
    print(NextSteps(folder: folder, answers: answers, state: state, user: user).text)
  }
}

/// Asks for what the command line does not say.
struct SetupQuestions {
  /// - Parameters:
  ///   - standard: the answer of an empty line.
  ///   - given: what the command line says.
  ///   - judge: reads an answer.
  /// - Throws: a sentence, with exit status 2, if the command line's answer is none, or if there is no answer.
  func answer<Value>(
    _ question: String, _ standard: String, _ given: String?, _ judge: (String) throws(SetupAnswers.Problem) -> Value
  ) throws(StartProblem) -> Value {
    if let given {
      do { return try judge(given) } catch { throw StartProblem(error.sentence, status: .couldNotRun) }
    }
    while true {
      FileHandle.standardError.write(Data("\(question) [\(standard)] ".utf8))
      guard let line = readLine() else {
        throw StartProblem("There is no answer to \"\(question)\": nothing was written.", status: .couldNotRun)
      }
      let said = line.trimmingCharacters(in: .whitespaces)
      do {
        return try judge(said.isEmpty ? standard : said)
      } catch {
        guard isatty(STDIN_FILENO) == 1 else { throw StartProblem(error.sentence, status: .couldNotRun) }
        FileHandle.standardError.write(Data("\(error.sentence)\n".utf8))
      }
    }
  }
}

/// The system user that the Debian package makes.
enum ServiceUser {
  static let name = "moongate"

  /// Gives files that root has made to the service's user, which has to read them.
  /// - Returns: the user's name; nil if the system has no such user, or if the process does not run as root.
  static func giveSecrets(_ paths: [String]) -> String? {
    guard geteuid() == 0, let entry = getpwnam(name) else { return nil }
    for path in paths { lchown(path, entry.pointee.pw_uid, entry.pointee.pw_gid) }
    return name
  }
}
