import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateSDK

/// `moongate account import FILE`: imports accounts from JSON lines, all of them or none.
struct ImportAccounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Import accounts from a file of JSON lines: either all of them or none.",
    discussion: """
      A line is {"identifiers":[{"phone":"+919999999999","verified":true},{"email":"asha@example.com","verified":false}],"first_name":"Asha",\
      "last_name":"Rao","password":"$2b$…","pin":"$argon2id$…","created_at":"2024-05-01T12:00:00Z"}. Only identifiers is required. A hash is a field with \
      the name of its provider, in Argon2 ($argon2id$, $argon2i$) or bcrypt ($2a$, $2b$, $2y$) format, or as Django, Keycloak, ASP.NET Core Identity, Firebase, passlib, Werkzeug, Node, LDAP or crypt of Unix write it (the guide lists the formats); \
      it is replaced at the next sign-in, unless bcrypt has judged only the first 72 bytes of the password. Second factors of other systems are fields too, such as `"totp":{"secret":"BASE32"}` and `"passkeys":[{"id":"…","public_key":"…","counter":0,"name":"…"}]`. With --records, the lines must be those of `account export --records`. Every bad line is listed with its number.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The file, or - for standard input.") var file: String
  @Flag(help: "Check the lines without importing them.") var dryRun = false
  @Flag(help: "Accept hashes of MD5 and hashes without a salt. The next sign-in asks for another password.") var weak =
    false
  @OptionGroup var identity: OperatorOption
  @OptionGroup var records: RecordOptions
  @Flag(help: "Print JSON.") var json = false

  private struct Report: Encodable {
    struct Line: Encodable {
      let line: Int
      let problem: String
    }

    let imported: Int
    let problems: [Line]
    /// What the hashes cost from now on.
    var notes: [String] = []
  }

  /// The contents of a file: its accounts and its problems.
  private struct Lines {
    private(set) var accounts: [ImportedAccount] = []
    /// The line of each account, from 1.
    private(set) var numbers: [Int] = []
    private(set) var problems: [Report.Line] = []

    init(_ data: Data, by reader: AccountLine) {
      var seen: [Identifier: Int] = [:]
      var ids: [String: Int] = [:]
      // The lines of names, by the form that is compared.
      var names: [String: Int] = [:]
      for (index, line) in data.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
        let number = index + 1
        guard !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }) else { continue }
        do throws(AccountLine.Problems) {
          let account = try reader.read(Data(line))
          if let id = account.id, let first = ids.updateValue(number, forKey: id) {
            problems.append(Report.Line(line: number, problem: "`id` is also used in line \(first)"))
          }
          for name in account.identifiers.map(\.identifier) {
            guard let skeleton = name.skeleton else { continue }
            guard let first = names.updateValue(number, forKey: skeleton) else { continue }
            problems.append(
              Report.Line(line: number, problem: "the name \(name.value) looks like the name in line \(first)"))
          }
          for name in account.identifiers where name.isVerified {
            if let first = seen.updateValue(number, forKey: name.identifier) {
              problems.append(
                Report.Line(line: number, problem: "\(name.identifier.value) is already verified in line \(first)"))
            }
          }
          accounts.append(account)
          numbers.append(number)
        } catch {
          problems += error.sentences.map { Report.Line(line: number, problem: $0) }
        }
      }
    }
  }

  func run() async throws {
    let data: Data
    if file == "-" {
      data = FileHandle.standardInput.readDataToEndOfFile()
    } else {
      guard let read = FileManager.default.contents(atPath: file) else {
        throw StartProblem("\(file) cannot be read.", status: .couldNotRun)
      }
      data = read
    }
    try await OperatorStore.with(configuration) { opened in
      let records = AccountRecords(try records.keys(opened), opened)
      let lines = Lines(
        data,
        by: AccountLine(
          administration: opened.administration, region: opened.gateway.region, allowsWeak: weak,
          isConfigured: { opened.generation.policies[$0] != nil }, open: records.open))
      guard lines.problems.isEmpty else {
        return try printReport(Report(imported: 0, problems: lines.problems), of: lines.accounts.count)
      }
      let costs = try await ImportedHashCosts(of: lines.accounts, opened)
      if let excess = costs.excess { throw StartProblem(excess) }
      let notes =
        try costs.notes + Self.advice(on: opened.administration.weakHashes(in: lines.accounts))
        + Self.advice(unverified: lines.accounts) + Self.advice(contested: lines.accounts)
      let administration = opened.administration.acting(as: try identity.identity("moongate account import"))
      let rejected =
        try await dryRun ? administration.conflicts(with: lines.accounts) : administration.add(lines.accounts)
      let problems = rejected.map {
        Report.Line(
          line: lines.numbers[$0],
          problem: "an account with its id, or with one of its verified identifiers or names, already exists")
      }
      let isImported = problems.isEmpty && !dryRun
      try printReport(
        Report(
          imported: isImported ? lines.accounts.count : 0, problems: problems, notes: problems.isEmpty ? notes : []),
        of: lines.accounts.count)
    }
  }

  /// What an operator does after the import of weak hashes.
  private static func advice(on weak: (passwords: Int, others: Int)) -> [String] {
    func text(_ count: Int, _ what: String, _ next: String) -> [String] {
      guard count > 0 else { return [] }
      return [
        """
        \(count) account\(count == 1 ? " has" : "s have") a weak hash of a \(what): anyone with a copy of the old \
        database can find out most of them. \(next)
        """
      ]
    }
    return text(weak.passwords, "password", "The next sign-in of each account asks for another one")
      + text(weak.others, "PIN", "Reset them with `moongate account reset`; their owners set new ones after a code")
  }

  /// What happens to accounts without a verified identifier and a user name.
  static func advice(unverified accounts: [ImportedAccount]) -> [String] {
    let count = accounts.count { account in
      !account.identifiers.contains { $0.isVerified || $0.identifier.kind.isExclusive }
    }
    guard count > 0 else { return [] }
    return [
      """
      \(count) account\(count == 1 ? " has" : "s have") no verified identifier: such an account is deleted after \
      `unverified_lifetime` (accounts.lua) without use. Raise it until its owner has signed in, or import addresses that \
      the old system confirmed with `verified: true`
      """
    ]
  }

  /// What happens to accounts that claim an address which another one of the import has verified.
  static func advice(contested accounts: [ImportedAccount]) -> [String] {
    let verified = Set(accounts.flatMap(\.identifiers).filter(\.isVerified).map(\.identifier))
    let count = accounts.count { account in
      account.identifiers.contains { !$0.isVerified && verified.contains($0.identifier) }
    }
    guard count > 0 else { return [] }
    let (claims, loses) = count == 1 ? ("account claims", "It loses") : ("accounts claim", "They lose")
    return [
      """
      \(count) \(claims) an address that another account of the file has verified. \(loses) the claim and, without a \
      user name, the password
      """
    ]
  }

  private func printReport(_ report: Report, of count: Int) throws {
    if json {
      print(try ToolJSON.text(report))
    } else {
      for problem in report.problems { print("\(file):\(problem.line): \(problem.problem)") }
      if !report.problems.isEmpty {
        print("\(report.problems.count) problem\(report.problems.count == 1 ? "" : "s"); nothing was imported")
      } else {
        print(
          dryRun
            ? "\(count) account\(count == 1 ? "" : "s") would be taken in"
            : "\(count) account\(count == 1 ? "" : "s") taken in")
      }
      for note in report.notes { LineLog.standardError("note: \(note)\n") }
    }
    if !report.problems.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }
}

/// `moongate account export`: prints all accounts as JSON lines for an import, or everything stored about one account.
struct ExportAccounts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Print all accounts as JSON lines, or everything stored about one account.",
    discussion: """
      With NAME: prints everything that is stored about this account as JSON, for a request under data-protection law. \
      Without NAME: prints all accounts in the format of `account import`, without those of an import that is not complete. The output is personal data. Hashes that this gateway made include its pepper, so they work only with the same master keys. --records adds \
      all provider records (PINs, passwords, authenticator keys), sealed with the current master key or with the key of --key. A gateway that has \
      the key imports them with `account import --records`. The audit trail records who exported what.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(
    help:
      "An account id, a phone number, an email address or a user name. Exports everything stored about this account.")
  var name: String?
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Include the hashes of PINs and passwords. Keep the output secret.") var hashes = false
  @OptionGroup var records: RecordOptions

  func run() async throws {
    if hashes, records.isWanted {
      throw StartProblem("Use either --records or --hashes: the records include the hashes.", status: .couldNotRun)
    }
    if let name { return try await exportPerson(name) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try await OperatorStore.with(configuration) { opened in
      let importers = AccountLine.importers(of: opened.administration)
      let records = AccountRecords(try records.keys(opened), opened)
      let administration = opened.administration.acting(as: try identity.identity("moongate account export"))
      try await administration.noteExport(with: hashes ? "hashes" : self.records.isWanted ? "records" : nil)
      var last: String?
      while true {
        let page = try await opened.administration.accounts(after: last, limit: 500)
        // Accounts of an import that is not complete are not there yet, and may never be.
        for account in page where !account.isPending {
          var kept: [ProviderName: String] = [:]
          if hashes {
            for importer in importers where account.credentials.contains(importer.descriptor.name) {
              kept[importer.descriptor.name] = try await opened.administration.hash(of: account.id, for: importer)
            }
          }
          let line = ExportedLine(account: account, hashes: kept, records: try await records.seal(of: account))
          print(String(decoding: try encoder.encode(line), as: UTF8.self))
        }
        guard let next = page.last?.id else { return }
        last = next
      }
    }
  }
  private func exportPerson(_ name: String) async throws {
    guard !hashes, !records.isWanted else {
      throw StartProblem(
        "--hashes and --records cannot be combined with a NAME: leave out \(name) or the options.", status: .couldNotRun
      )
    }
    try await OperatorStore.with(configuration) { opened in
      let account = try await opened.account(named: name)
      let administration = opened.administration.acting(as: try identity.identity("moongate account export"))
      guard let export = try await administration.export(account.id) else {
        throw StartProblem("There is no account \(name).")
      }
      print(try ToolJSON.text(OperatorDocument.export(export)))
    }
  }
}
