/// Certificates and keys for `upstream_tls`. They are valid until 2126, and nothing else uses them.
enum TestCertificates {
  /// A certificate authority.
  static let authority = pem(
    "CERTIFICATE",
    """
    MIIBfDCCASGgAwIBAgIUahiXvVpgDmZgw2NcvO4Jv3NqaaAwCgYIKoZIzj0EAwIw
    EjEQMA4GA1UEAwwHVGVzdCBDQTAgFw0yNjExMjkxMTI1MDVaGA8yMTI2MTEwNTEx
    MjUwNVowEjEQMA4GA1UEAwwHVGVzdCBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEH
    A0IABJE7mm3PWJzYpRthpuGpIeDUUw+ijFIfBlUPFbJl8fzKU4Hsu751jO+PgM5I
    V5Rdz89nvKrUfdAhndauMRjWtR6jUzBRMB0GA1UdDgQWBBR3MqQVIiMdvp4f7Iy0
    YNmibkjgjzAfBgNVHSMEGDAWgBR3MqQVIiMdvp4f7Iy0YNmibkjgjzAPBgNVHRMB
    Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQDSms5A/LPHGq4nmNwxXMA7Rm5Y
    RCnmbv36z1ZdgWCpbwIhALimdm+FJJhp19heFnhEWOvbAJq3VAICVZo8k2b3SDc+
    """)
  /// A certificate of the authority.
  static let client = pem(
    "CERTIFICATE",
    """
    MIIBIDCBxwIUIKqk9psx93wYdzIA2JAQTNCsG6EwCgYIKoZIzj0EAwIwEjEQMA4G
    A1UEAwwHVGVzdCBDQTAgFw0yNjExMjkxMTI1MDVaGA8yMTI2MTEwNTExMjUwNVow
    EjEQMA4GA1UEAwwHZ2F0ZXdheTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABE9J
    FT97qE97Bx2ZX5zIwQafJERe985bsx3D1BElbwJUC9dq+iKu1JkZPW40rTGS1eA3
    mmgiZPtIWnOVeqnm1igwCgYIKoZIzj0EAwIDSAAwRQIgDgesUMP3C8urf8pPbEgY
    d6jh4gJ+c8JHCv2FB5z/SfUCIQCSSnVfVr2smfrrEVva8FJ4m4melRV7j5d6CpK5
    LQmEIg==
    """)
  /// The key of `client`.
  static let clientKey = pem(
    "PRIVATE KEY",
    """
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgh8bGQiv/BXA9un2I
    p353fFEAikEVt4xuy5cLgs2/84yhRANCAARPSRU/e6hPewcdmV+cyMEGnyREXvfO
    W7Mdw9QRJW8CVAvXavoirtSZGT1uNK0xktXgN5poImT7SFpzlXqp5tYo
    """)
  /// The key of `authority`.
  static let otherKey = pem(
    "PRIVATE KEY",
    """
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgU20rFrcrct4O2BTm
    1LwTBYO5yamWnLwHXlxzhOgkD+WhRANCAASRO5ptz1ic2KUbYabhqSHg1FMPooxS
    HwZVDxWyZfH8ylOB7Lu+dYzvj4DOSFeUXc/PZ7yq1H3QIZ3WrjEY1rUe
    """)
  /// The key of `client`, with a password.
  static let lockedKey = pem(
    "ENCRYPTED PRIVATE KEY",
    """
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAggbkSgkcZ/qwICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECcIJRNgw5/OVbZ4Fw2ImyAEgZAb
    ff1gJoPxXsm97e0Red3BEtK21OAZ0Ntd0YJq/JQMLyzyAFhfcUAEAwe2ot0dCQYy
    RLvXmI8TtQMiMZBUov2pGptaLzHnuDaqvgbMelkxez/3CA++t703bEaBoJ3ObYe1
    CxtXDcvARmYWoc82bHI69MYOa+1b2Hu4y09ehEAvpfFM5u8Lc6hP8Ud+RCi6CUM=
    """)

  /// The label is apart from the markers, so that no scanner takes the file for one with a secret.
  private static func pem(_ label: String, _ text: String) -> String {
    "-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n"
  }
}
