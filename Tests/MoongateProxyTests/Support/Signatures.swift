import Foundation
import MoongateCore

/// Whether the assertion key of the key ring signed the bytes.
func verify(_ signed: Data, _ signature: Data, _ keys: KeyRing) throws -> Bool {
  RotatingKeys(keys, for: .assertions, at: ManualClock.start).signer(at: ManualClock.start)
    .hasSigned(signed, with: Array(signature))
}
