import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The folders below `pages/` with the templates of `error_pages`.
@Suite struct ErrorPageFolderTests {
  private func load(_ fields: String) throws -> Result<any PolicyGeneration, RefusedConfiguration> {
    let folder = try TestFolder([
      "routes.lua": "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\"\(fields) } }",
      "pages/errors/403.mustache": "<h1>{{title}}</h1>", "pages/errors/error.mustache": "<h1>{{title}}</h1>",
      "pages/unused/error.mustache": "{{nothing}}", "pages/logout.mustache": "x",
    ])
    let loader = ConfigurationLoader(
      providers: TestFolder.providers.map(DescribedProvider.init), environment: [:],
      pages: { files, _ in
        files.filter { !$0.folder.isEmpty }.map {
          ConfigurationProblem(location: SourceLocation(file: $0.path, line: 3), path: "", message: "was checked")
        }
      })
    return loader.load(folder: folder.scratch.path)
  }

  @Test func templatesThatARouteNamesAreChecked() throws {
    guard case .failure(let refused) = try load(", error_pages = \"errors\"") else {
      Issue.record("the templates were not checked")
      return
    }
    #expect(
      refused.problems.map(\.description) == [
        "pages/errors/403.mustache:3: was checked", "pages/errors/error.mustache:3: was checked",
      ])
  }

  @Test func otherFoldersAreNotRead() throws {
    #expect(try load("").get().pages.map(\.name) == ["logout.mustache"])
  }
}
