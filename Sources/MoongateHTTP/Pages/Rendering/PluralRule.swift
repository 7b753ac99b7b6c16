/// A plural category (Unicode CLDR, "Language Plural Rules").
enum PluralCategory: String, CaseIterable {
  case zero, one, two, few, many, other
}

/// The plural rule of a language for whole numbers below a million. Larger numbers, for which some languages have a
/// separate form, appear on no page.
struct PluralRule: Sendable {
  /// The categories that whole numbers have in the language.
  let categories: [PluralCategory]
  private let choose: @Sendable (Int) -> PluralCategory

  private init(_ categories: [PluralCategory], _ choose: @escaping @Sendable (Int) -> PluralCategory) {
    self.categories = categories
    self.choose = choose
  }

  func category(of number: Int) -> PluralCategory { choose(number) }

  /// The rule of a language. For an unknown language, 1 is singular and all other numbers are plural.
  /// - Parameter tag: a tag of BCP 47.
  init(of tag: String) {
    if tag.lowercased() == "pt-pt" {
      self = Self.oneIsSingular
    } else {
      self = Self.table[tag.prefix { $0 != "-" }.lowercased()] ?? Self.oneIsSingular
    }
  }

  private static let oneIsSingular = Self([.one, .other]) { $0 == 1 ? .one : .other }
  private static let zeroIsSingular = Self([.one, .other]) { $0 < 2 ? .one : .other }
  private static let oneForm = Self([.other]) { _ in .other }

  private static let arabic = Self([.zero, .one, .two, .few, .many, .other]) { number in
    switch (number, number % 100) {
    case (0, _): .zero
    case (1, _): .one
    case (2, _): .two
    case (_, 3...10): .few
    case (_, 11...99): .many
    default: .other
    }
  }
  private static let hebrew = Self([.one, .two, .other]) { $0 == 1 ? .one : $0 == 2 ? .two : .other }
  private static let russian = Self([.one, .few, .many]) { number in
    switch (number % 10, number % 100) {
    case (_, 11...14): .many
    case (1, _): .one
    case (2...4, _): .few
    default: .many
    }
  }
  private static let serbian = Self([.one, .few, .other]) { number in
    let category = russian.category(of: number)
    return category == .many ? .other : category
  }
  private static let polish = Self([.one, .few, .many]) { number in
    number == 1 ? .one : (2...4).contains(number % 10) && !(12...14).contains(number % 100) ? .few : .many
  }
  private static let czech = Self([.one, .few, .other]) { $0 == 1 ? .one : (2...4).contains($0) ? .few : .other }
  private static let slovenian = Self([.one, .two, .few, .other]) { number in
    switch number % 100 {
    case 1: .one
    case 2: .two
    case 3, 4: .few
    default: .other
    }
  }
  private static let romanian = Self([.one, .few, .other]) { number in
    number == 1 ? .one : number == 0 || (1...19).contains(number % 100) ? .few : .other
  }
  private static let lithuanian = Self([.one, .few, .other]) { number in
    if (11...19).contains(number % 100) || number % 10 == 0 { return .other }
    return number % 10 == 1 ? .one : .few
  }
  private static let latvian = Self([.zero, .one, .other]) { number in
    if (11...19).contains(number % 100) || number % 10 == 0 { return .zero }
    return number % 10 == 1 ? .one : .other
  }
  private static let welsh = Self([.zero, .one, .two, .few, .many, .other]) { number in
    switch number {
    case 0: .zero
    case 1: .one
    case 2: .two
    case 3: .few
    case 6: .many
    default: .other
    }
  }
  private static let irish = Self([.one, .two, .few, .many, .other]) { number in
    switch number {
    case 1: .one
    case 2: .two
    case 3...6: .few
    case 7...10: .many
    default: .other
    }
  }

  private static let table: [String: Self] = {
    let groups: KeyValuePairs<String, Self> = [
      "am as bn fa fr gu hi hy kn pa pt zu": zeroIsSingular, "id ja km ko lo ms my th vi zh": oneForm, "ar": arabic,
      "he": hebrew,
      "be ru uk": russian,
      "bs hr sr": serbian, "pl": polish, "cs sk": czech, "sl": slovenian, "ro": romanian, "lt": lithuanian,
      "lv": latvian, "cy": welsh, "ga": irish,
    ]
    return Dictionary(groups.flatMap { names, rule in names.split(separator: " ").map { (String($0), rule) } }) {
      first, _ in first
    }
  }()
}
