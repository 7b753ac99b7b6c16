import MoongateSDK

extension Passkey {
  /// More than 60 lines: one list of what the provider declares.
  static var declaration: ProviderDescriptor {
    ProviderDescriptor(
      name: "passkey", beginFields: [HeldItem.field],
      submitFields: [credential, name, InputField(name: removed, kind: .text, isRequired: false)],
      settings: [
        SettingField(
          name: "rp_id", kind: .text, isRequired: false,
          help: "The domain of the passkeys: the host of public_url or a parent domain. Default: the host.",
          check: { SettingForms.rpID($0, of: $1) }),
        SettingField(
          name: "rp_name", kind: .text, isRequired: false, help: "The name of the site on devices.",
          standard: "Moongate"),
        SettingField(
          name: "origins", kind: .list, isRequired: false,
          help:
            "Additional origins of pages or apps that may use the passkeys, for example https://app.example.com or android:apk-key-hash:….",
          standard: [], check: { text, _ in SettingForms.origin(text) }),
        SettingField(
          name: "user_verification", kind: .choice(Rules.UserVerification.allCases.map(\.rawValue)), isRequired: false,
          help: "Whether the device asks for its PIN or a fingerprint.", standard: "required"),
        SettingField(
          name: "attestation", kind: .choice(Rules.Attestation.allCases.map(\.rawValue)), isRequired: false,
          help: "packed accepts a passkey only with a valid packed attestation; none accepts every passkey.",
          standard: "none"),
        SettingField(
          name: "attestation_roots", kind: .file, isRequired: false,
          help:
            "Manufacturer certificates in PEM. With this file, attestation = \"packed\" accepts only authenticators whose certificate chain ends in one of them."
        ),
        SettingField(
          name: "timeout", kind: .number(15...120), isRequired: false,
          help: "The time limit for using the passkey, in seconds.", standard: 120),
        SettingField(
          name: "aaguids", kind: .list, isRequired: false,
          help: "The accepted authenticator models, as UUIDs; empty accepts all.",
          standard: [], check: { text, _ in SettingForms.aaguid(text) }),
        SettingField(
          name: "counter", kind: .choice(Rules.Counter.allCases.map(\.rawValue)), isRequired: false,
          help:
            "What to do if a signature counter does not increase, which can mean a copied authenticator: warn logs it, refuse refuses the passkey.",
          standard: "warn"),
      ],
      policy: PolicySource(file: "Plugins/Passkey/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/Passkey/flows/passkey_set.lua", bytes: PackageResources.passkey_set_lua),
        PolicySource(file: "Plugins/Passkey/flows/passkey_change.lua", bytes: PackageResources.passkey_change_lua),
        PolicySource(file: "Plugins/Passkey/flows/passkey_disable.lua", bytes: PackageResources.passkey_disable_lua),
        PolicySource(file: "Plugins/Passkey/flows/passkey_reset.lua", bytes: PackageResources.passkey_reset_lua),
        PolicySource(file: "Plugins/Passkey/flows/passkey_unlock.lua", bytes: PackageResources.passkey_unlock_lua),
      ],
      cases: PolicySource(file: "Plugins/Passkey/cases.lua", bytes: PackageResources.cases_lua), identifierKinds: [],
      // A signature cannot be guessed.
      secretSpace: .max,
      outcomes: [
        Outcome(invalid, "This passkey could not be verified. Try again."),
        Outcome(expired, "That took too long. Try again.", isFailure: false),
        Outcome(notAccepted, "This kind of passkey is not accepted here. Use another device.", isFailure: false),
        Outcome(notSetUp, "No passkey is set up for this account.", isFailure: false),
        Outcome(full, "This account has 20 passkeys. Remove one first.", isFailure: false),
        Outcome(gone, "This passkey was already removed. Nothing was changed.", isFailure: false),
      ],
      facts: [isUserVerified, isBackedUp, model],
      words: StepWords(
        title: "Passkey", instruction: "Use your fingerprint, your face or your device's PIN.",
        labels: ["name": "Passkey name", "passkey": "Passkey"],
        links: [.set: "Add a passkey", .change: "Rename a passkey", .disable: "Remove a passkey"],
        page: [
          "done_set": "Passkey added.", "done_change": "Passkey saved.", "done_disable": "Passkey removed.",
          "ceremony_known": "This device already has a passkey for this account.",
          "change_item": "Rename",
          "offer_help":
            "Next time, sign in with your fingerprint, your face or your device's PIN. No code is needed.",
        ],
        notices: [
          .set: FactorNotice(subject: "Passkey added", event: "A passkey was added to your account"),
          .change: FactorNotice(subject: "Passkey changed", event: "A passkey on your account was changed"),
          .disable: FactorNotice(subject: "Passkey removed", event: "A passkey was removed from your account"),
        ], translations: PackageResources.translations),
      presentation: .ceremony(button: "Use your passkey"), role: [.keepsFactor, .keepsSeveral, .findsAccount],
      mayProveSeveralFactors: true,
      wellKnown: [relatedOrigins, endpoints])
  }
}
