import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// Several instances of one provider in gateway.lua: `sms_in = phone_otp { … }`.
@Suite struct InstanceReadingTests {
  @Test func eachInstanceHasItsOwnPolicySettingsFlowsAndTitle() throws {
    let generation = try InstanceFolder.loaded().generation
    #expect(Set(generation.policies.keys) == ["sms_in", "sms_us", "pin", "door_pin"])
    #expect(generation.policies["sms_in"]?.code.length == 6 && generation.policies["sms_us"]?.code.length == 8)
    #expect(generation.policies["sms_in"]?.message == "{code} from India")
    let flows = Set(generation.flows.keys)
    #expect(
      flows.isSuperset(of: ["pin_set", "door_pin_set", "door_pin_unlock", "sms_in_change_phone", "sms_us_change_phone"])
    )
    #expect(!flows.contains("change_phone"), "phone_otp itself is not configured")
    #expect(generation.flows["door_pin_set"]?.purpose == .factor("door_pin", .set))
    #expect(generation.flow(for: .factor("door_pin", .unlock))?.name == "door_pin_unlock")
    #expect(generation.pads == ["pin", "door_pin"])
    let registry = try #require(generation.registry)
    #expect(
      registry.descriptor("sms_us")?.words?.name == "SMS (USA)"
        && registry.descriptor("phone_otp")?.words?.name == "Code by SMS")
    #expect(
      registry.ownPage(of: "sms_us") == "/auth/step/sms_us" && registry.ownPage(of: "door_pin") == "/auth/step/door_pin"
    )
    #expect(registry.ownPage(of: "pin") == "/auth/pin")
    #expect(registry["sms_us"] is any CodeProvider && registry["door_pin"] is any FullProvider)
    #expect(registry["sms_us"] is any IdentifierFormatting && registry["door_pin"] is any SecretImporting)
  }

  /// A shipped flow that offers a provider offers the instances of that provider if it is not configured itself.
  @Test func aFlowOfOneProviderOffersTheInstancesOfAnother() throws {
    let generation = try InstanceFolder.loaded().generation
    #expect(generation.flows["pin_reset"]?.steps.first?.choices == ["sms_in", "sms_us"])
    #expect(generation.flows["door_pin_reset"]?.steps.map(\.choices) == [["sms_in", "sms_us"], ["door_pin"]])
  }

  @Test func anEntryUnderTheProvidersOwnNameIsTheProvider() throws {
    let policies = [
      "policies/phone_otp.lua": "return policy \"phone_otp\" {}", "policies/sms_in.lua": nil,
      "policies/sms_us.lua": nil,
      "flows/login.lua": TestFolder.flow, "policies/door_pin.lua": nil, "policies/pin.lua": nil,
    ]
    let plain = try InstanceFolder.loaded(policies, providers: "phone_otp = { sms = outbox() }").generation
    let called = try InstanceFolder.loaded(policies, providers: "phone_otp = phone_otp { sms = outbox() }").generation
    #expect(plain.registry == nil && called.registry == nil)
    #expect(Set(plain.flows.keys) == Set(called.flows.keys) && called.flows["change_phone"] != nil)
    let titled = try InstanceFolder.loaded(policies, providers: "phone_otp = { sms = outbox(), title = \"Mobile\" }")
      .generation
    #expect(
      titled.registry?.descriptor("phone_otp")?.words?.name == "Mobile"
        && titled.registry?.ownPage(of: "phone_otp") == "/auth/verify")
  }

  @Test func filesOfAnInstanceUseItsName() {
    let instance = ShippedProviders.all[2].descriptor.instance(named: "door_pin")
    #expect(
      instance.policy.text.contains("return policy \"door_pin\" {")
        && instance.policy.file == "Plugins/PIN/policy.lua (door_pin)")
    let set = instance.flows.first { $0.name == "door_pin_set" }
    #expect(
      set?.text.contains("return flow \"door_pin_set\" {") == true
        && set?.text.contains("provider = \"door_pin\"") == true)
    #expect(set?.text.contains("{ \"door_pin\" }") == true)
    // Fields keep their names.
    #expect(instance.cases?.text.contains("enter { pin = \"739154\", new_pin = \"402917\" }") == true)
    #expect(instance.cases?.text.contains("flow \"pin_") == false)
  }

  @Test(arguments: [
    (
      "return f.account.factors.pin and f.flow.passed.pin",
      "return f.account.factors.door_pin and f.flow.passed.door_pin"
    ),
    ("f.account.factors [ 'pin' ]", "f.account.factors [ \"door_pin\" ]"),
    ("{ pin = 1, x.pin, factors..pin }", "{ pin = 1, x.pin, factors..pin }"),
    ("-- \"pin\"\nflow \"pin_set\" [[pin]]", "-- \"pin\"\nflow \"door_pin_set\" \"door_pin\""),
    ("\"a pin\" \"pin_other\"", "\"a pin\" \"pin_other\""),
    ("expect { field = \"pin\", step = \"pin\" }", "expect { field = \"pin\", step = \"door_pin\" }"),
  ]) func textsAreRenamedByWhatTheyName(_ text: String, _ expected: String) {
    let texts = InstanceTexts(of: ShippedProviders.all[2].descriptor, named: "door_pin")
    #expect(texts.renamed(text) == expected)
  }

  @Test(arguments: [
    // Attack: an entry with the name of another provider would read that provider's records.
    (
      "sms_in = phone_otp { sms = outbox() }, sms_us = phone_otp { sms = outbox() }, door_pin = pin {}, pin = password {},",
      "gateway.lua:5: providers.pin: `pin` is a built-in provider, but the entry is an instance of `password`: choose another name for the entry"
    ),
    (
      InstanceFolder.providers + "\nsms_de = phone_opt { sms = outbox() },",
      "gateway.lua:9: unknown name `phone_opt`; did you mean `phone_otp`?"
    ),
    (
      InstanceFolder.providers + "\n[\"Sms\"] = phone_otp { sms = outbox() },",
      "gateway.lua:9: providers.Sms: is not a valid provider name: use at most 48 lower-case letters, digits and _, beginning with a letter"
    ),
    (
      InstanceFolder.providers + "\napp_api = pin {},",
      "gateway.lua:9: providers.app_api: is a name of the gateway's own: choose another one"
    ),
    (
      InstanceFolder.providers + "\na_very_long_name_for_another_pin_of_this_house = pin {},",
      """
      gateway.lua:9: providers.a_very_long_name_for_another_pin_of_this_house: the name is too long: the provider \
      ships the flow `a_very_long_name_for_another_pin_of_this_house_set`, and a flow's name has at most 48 characters
      """
    ),
    (
      InstanceFolder.providers + "\nsms_de = phone_otp { smss = outbox() },",
      "gateway.lua:9: providers.sms_de.smss: unknown field; did you mean `sms`? (How SMS are sent: outbox() keeps them for the demo.)"
    ),
    (
      InstanceFolder.providers + "\nsms_de = phone_otp \"x\",",
      "gateway.lua:9: phone_otp takes a table, as in phone_otp { … }"
    ),
    (
      InstanceFolder.providers + "\ntotp = { issuer = \"x\", title = \"\" },",
      "gateway.lua:9: providers.totp.title: must be one line of plain text of 1 to 60 bytes, such as \"SMS (USA)\""
    ),
    (
      InstanceFolder.providers + "\ntotp = { issuer = \"x\", title = \"two\\nlines\" },",
      "gateway.lua:9: providers.totp.title: must be one line of plain text of 1 to 60 bytes, such as \"SMS (USA)\""
    ),
  ]) func wrongEntriesAreRefused(_ providers: String, _ expected: String) throws {
    let problems = try InstanceFolder.problems(providers: providers)
    #expect(problems.contains(expected), "\(problems)")
  }

  @Test func aConstructorIsOnlyForProviders() throws {
    let elsewhere = try InstanceFolder.problems(["policies/pin.lua": "return policy \"pin\" { limits = pin {} }"])
    #expect(elsewhere.contains { $0.hasPrefix("policies/pin.lua:1: unknown name `pin`") }, "\(elsewhere)")
    let store = try InstanceFolder.problems([
      "gateway.lua": """
      return gateway {
        public_url = "http://localhost:8080", region = pin {},
        providers = { sms_in = phone_otp { sms = outbox() }, sms_us = phone_otp { sms = outbox() }, pin = {}, door_pin = pin {} },
      }
      """
    ])
    #expect(store == ["gateway.lua:2: region: must be a text in quotes, not pin"], "\(store)")
  }

  /// Unknown names of instances in policies and routes get suggestions.
  @Test func namesAreSuggested() throws {
    let problems = try InstanceFolder.problems([
      "flows/login.lua": "return flow \"login\" { account = \"existing\", steps = { { \"sms_inn\" } } }"
    ])
    #expect(
      problems == ["flows/login.lua:1: steps[1]: unknown provider \"sms_inn\"; did you mean `sms_in`?"],
      "\(problems)")
    let policies = try InstanceFolder.problems(["policies/sms_uk.lua": "return policy \"sms_uk\" {}"])
    #expect(
      policies.count == 1 && policies[0].contains("unknown provider `sms_uk`; did you mean `sms_us`?"),
      "\(policies)")
  }

  @Test func problemsInItsPolicyNameTheInstance() throws {
    let problems = try InstanceFolder.problems(["policies/sms_us.lua": "return policy \"sms_in\" {}"])
    #expect(
      problems == [
        "policies/sms_us.lua:1: declares policy \"sms_in\", but the file is sms_us.lua: give both the same name"
      ], "\(problems)")
  }

  @Test func editorsKnowTheConstructorsAndTheTitle() {
    let text = EditorTypes(
      providers: ShippedProviders.all.map(\.descriptor) + [
        ShippedProviders.all[2].descriptor.instance(named: "door_pin")
      ]
    ).text
    #expect(
      text.contains("---@return moongate.Instance\nfunction pin(settings) end") && !text.contains("function door_pin("))
    #expect(text.contains("---@field title? string the name that users see"))
  }
}
