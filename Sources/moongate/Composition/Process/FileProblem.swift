import Foundation

/// Why a file or folder could not be created or written: in the words of the system, with what to do.
///
/// `localizedDescription` says "The operation could not be completed." and, for many errors, only a number.
struct FileProblem: CustomStringConvertible {
  /// The value of `errno`; nil if the error has none.
  let code: Int32?
  private let fallback: String

  /// - Parameter error: an error of Foundation, such as one of `FileManager` or `Data.write`.
  init(_ error: any Error) {
    code = Self.code(of: error)
    fallback = error.localizedDescription
  }

  /// Such as `Permission denied. Let this user write there, or choose another folder.`
  var description: String {
    guard let code else { return fallback }
    return "\(String(cString: strerror(code))). \(Self.advice(code))"
  }

  private static func advice(_ code: Int32) -> String {
    switch code {
    case EACCES, EPERM: "Let this user write there, or choose another folder."
    case ENOSPC, EDQUOT: "Free some space on its disk."
    case EROFS: "Choose a folder on a file system that can be written."
    case ENOENT, ENOTDIR, EEXIST, ELOOP:
      "Check the path: every part of it must be a folder, not a file or a dangling symbolic link."
    default: "Choose another folder, or check its disk."
    }
  }

  private static func code(of error: any Error) -> Int32? {
    if let posix = error as? POSIXError { return posix.code.rawValue }
    let object = error as NSError
    if object.domain == NSPOSIXErrorDomain { return Int32(object.code) }
    if let cause = object.userInfo[NSUnderlyingErrorKey] as? any Error, let code = code(of: cause) { return code }
    guard object.domain == NSCocoaErrorDomain else { return nil }
    return switch CocoaError.Code(rawValue: object.code) {
    case .fileNoSuchFile, .fileReadNoSuchFile: ENOENT
    case .fileWriteFileExists: EEXIST
    case .fileWriteNoPermission, .fileReadNoPermission: EACCES
    case .fileWriteOutOfSpace: ENOSPC
    case .fileWriteVolumeReadOnly: EROFS
    default: nil
    }
  }
}
