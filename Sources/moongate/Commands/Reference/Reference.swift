import MoongateCore
import MoongatePolicy
import MoongateSDK

/// The contents of Documentation/reference/ and `moongate help`, generated from the code.
struct Reference: Sendable {
  let pages: [ReferencePage]

  /// - Parameters:
  ///   - providers: all providers of the program.
  ///   - commandHelp: the commands of each program, as `--experimental-dump-help` prints them.
  init(providers: [ProviderDescriptor], commandHelp: [String]) throws {
    let schema = SchemaReference(providers: providers)
    pages =
      SchemaReference.Root.allCases.map { Self.page(of: $0, in: schema) } + [
        Self.facts(schema), try Self.commands(commandHelp), Self.metrics, Self.events, Self.codes, Self.headers,
        Self.api,
        Self.adminAPI,
      ]
  }

  /// Every entry with its page and anchor.
  var entries: [(entry: ReferenceEntry, place: String)] {
    pages.flatMap { page in
      page.sections.flatMap { section in section.entries.map { ($0, "\(page.file)#\(section.anchor)") } }
    }
  }

  /// The terminal text of a name; nil if the name is unknown.
  func text(of name: String) -> String? {
    if let found = entries.first(where: { $0.entry.name == name }) { return found.entry.text(page: found.place) }
    for page in pages {
      guard let section = page.sections.first(where: { $0.title == name && !$0.entries.isEmpty }) else { continue }
      let fields = section.entries.map { "  \($0.name)" }
      return
        ([name, "  \(section.summary)", ""] + fields + ["", "  Documentation/reference/\(page.file)#\(section.anchor)"])
        .joined(separator: "\n")
    }
    return nil
  }

  /// All names that `moongate help` accepts.
  var names: [String] { entries.map(\.entry.name) + pages.flatMap { $0.sections.map(\.title) } }

  // MARK: the Lua files

  private static func page(of root: SchemaReference.Root, in schema: SchemaReference) -> ReferencePage {
    let (file, title, introduction) = head(root)
    let sections = schema.tables(of: root).map { table in
      ReferenceSection(
        title: table.path, summary: table.summary, subject: "Field",
        entries: table.fields.map { field in
          ReferenceEntry(
            name: "\(table.path).\(field.name)",
            properties: ["type": field.type, "default": field.isRequired ? "required" : field.standard ?? ""],
            help: field.help)
        }, prefix: table.path + ".")
    }
    return ReferencePage(file: file, title: title, introduction: introduction, sections: sections)
  }

  private static func head(_ root: SchemaReference.Root) -> (file: String, title: String, introduction: String) {
    switch root {
    case .gateway:
      (
        "gateway.md", "gateway.lua",
        "The tables of gateway.lua. [The guide](../guides/production.md#all-settings-in-one-file) shows all of them in one file."
      )
    case .policy:
      (
        "policies.md", "policies/NAME.lua",
        "The fields of a policy. A missing field keeps its provider's default."
      )
    case .flow: ("flows.md", "flows/NAME.lua", "The fields of a flow.")
    case .route: ("routes.md", "routes.lua", "The fields of a route. The first route that matches a request wins.")
    case .accounts: ("accounts.md", "accounts.lua", "Settings for all accounts.")
    case .app:
      (
        "apps.md", "apps.lua",
        "The fields of an app, which signs its users in with OpenID Connect or by a flow of the API."
      )
    case .guarantee:
      (
        "guarantees.md", "guarantees.lua",
        "Guarantees about sessions and routes, which are proved before a change becomes active."
      )
    case .tests:
      (
        "tests.md", "tests/NAME.lua",
        "The arguments of the functions in a test case. [Functions](facts.md#functions) lists the functions."
      )
    }
  }

  private static func facts(_ schema: SchemaReference) -> ReferencePage {
    ReferencePage(
      file: "facts.md", title: "Facts and functions",
      introduction: "The facts and functions that Lua functions can use. Read a fact as `f.NAME`.",
      sections: [
        ReferenceSection(
          title: "Facts", summary: "The column \"functions of\" names the files whose functions receive the fact.",
          subject: "Fact",
          entries: schema.facts.map { fact in
            ReferenceEntry(
              name: "fact.\(fact.name)",
              properties: [
                "type": fact.signature.replacing("moongate.", with: ""),
                "functions of": fact.audience.joined(separator: ", "),
              ],
              help: fact.help)
          }, prefix: "fact."),
        ReferenceSection(
          title: "Functions", summary: "", subject: "Function",
          entries: schema.functions.map {
            ReferenceEntry(name: "function.\($0.name)", properties: ["call": $0.signature], help: $0.help)
          },
          prefix: "function."),
      ])
  }
}
