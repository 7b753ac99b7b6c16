import Crypto
import MoongateCore

/// The files that gateway.lua names, as one load found them: secrets, the logo, certificate authorities.
///
/// A class, because several readers of one load add to it. Used by one thread.
final class NamedFiles {
  /// The absolute paths of all files that were looked up, whether or not they could be read. When one of them changes,
  /// the folder is read again.
  private(set) var paths: [String] = []
  /// The contents of files without secrets, by their names in gateway.lua. They are part of the generation's id.
  private(set) var contents: [(name: String, bytes: [UInt8])] = []
  /// The SHA-256 of each file with a secret, by its path.
  ///
  /// Attack: the id of a generation is in logs and events. If it depended on a secret, anybody who reads them could
  /// test guesses of it.
  private(set) var secrets: [String: [UInt8]] = [:]

  /// Reads a file without a secret.
  /// - Parameter name: as in gateway.lua.
  func read(_ path: String, named name: String) -> Result<[UInt8], ConfigurationFiles.Failure> {
    paths.append(path)
    let result = ConfigurationFiles.read(path)
    if case .success(let bytes) = result { contents.append((name, bytes)) }
    return result
  }

  /// Reads a file with a secret, which only its owner may be able to read.
  func readSecret(_ path: String) -> Result<[UInt8], ConfigurationFiles.Failure> {
    paths.append(path)
    let result = ConfigurationFiles.read(path, isSecret: true)
    if case .success(let bytes) = result { secrets[path] = Array(SHA256.hash(data: bytes)) }
    return result
  }
}
