import MoongateCore
import Testing

@Suite struct ParentFolderTests {
  @Test(arguments: [
    ("a/b/c", "a/b"), ("/a", "/"), ("/a/b", "/a"), ("/", "/"), ("a", ""), ("", ""), ("a/b/", "a"), ("a//b", "a"),
    ("./a", "."), ("//a", "/"),
  ]) func isThePathBeforeTheLastName(_ path: String, _ folder: String) {
    #expect(path.parentFolder == folder)
  }
}
