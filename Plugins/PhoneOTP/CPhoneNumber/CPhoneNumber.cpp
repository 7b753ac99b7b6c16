#include "CPhoneNumber.h"

#include <cstring>
#include <memory>
#include <string>

#include <phonenumbers/asyoutypeformatter.h>
#include <phonenumbers/phonenumber.pb.h>
#include <phonenumbers/phonenumberutil.h>

using i18n::phonenumbers::AsYouTypeFormatter;
using i18n::phonenumbers::PhoneNumber;
using i18n::phonenumbers::PhoneNumberUtil;

namespace {

// Copies text to the caller's buffer, or reports that it does not fit. A truncated number would be another number.
bool fill(char *out, size_t capacity, const std::string &text) {
  if (text.size() >= capacity) return false;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return true;
}

cphone_status status_of(PhoneNumberUtil::ErrorType error) {
  switch (error) {
    case PhoneNumberUtil::NO_PARSING_ERROR: return CPHONE_POSSIBLE;
    case PhoneNumberUtil::TOO_SHORT_AFTER_IDD:
    case PhoneNumberUtil::TOO_SHORT_NSN: return CPHONE_TOO_SHORT;
    case PhoneNumberUtil::TOO_LONG_NSN: return CPHONE_TOO_LONG;
    default: return CPHONE_NO_NUMBER;
  }
}

cphone_status status_of(PhoneNumberUtil::ValidationResult result) {
  switch (result) {
    case PhoneNumberUtil::IS_POSSIBLE: return CPHONE_POSSIBLE;
    case PhoneNumberUtil::IS_POSSIBLE_LOCAL_ONLY:
    case PhoneNumberUtil::TOO_SHORT: return CPHONE_TOO_SHORT;
    case PhoneNumberUtil::TOO_LONG: return CPHONE_TOO_LONG;
    default: return CPHONE_NO_NUMBER;
  }
}

// Whether a person could have the number. In India, a number of 8 or 13 digits can only be toll-free, so a digit of a
// mobile number was probably lost or doubled. Numbers of no country have no such types.
cphone_status possible_for_a_person(const PhoneNumberUtil &util, const PhoneNumber &number, const std::string &country) {
  const cphone_status general = status_of(util.IsPossibleNumberWithReason(number));
  if (general != CPHONE_POSSIBLE || country == "001") return general;
  for (auto kind : {PhoneNumberUtil::FIXED_LINE, PhoneNumberUtil::VOIP, PhoneNumberUtil::PERSONAL_NUMBER}) {
    if (util.IsPossibleNumberForTypeWithReason(number, kind) == PhoneNumberUtil::IS_POSSIBLE) return CPHONE_POSSIBLE;
  }
  return status_of(util.IsPossibleNumberForTypeWithReason(number, PhoneNumberUtil::MOBILE));
}

// The country of the number. libphonenumber knows no country for unassigned ranges. Then the main country of the
// calling code is returned, so that such a number cannot bypass a policy's rule by country.
std::string country_of(const PhoneNumberUtil &util, const PhoneNumber &number) {
  std::string country;
  util.GetRegionCodeForNumber(number, &country);
  if (country.empty() || country == "ZZ") util.GetRegionCodeForCountryCode(number.country_code(), &country);
  return country;
}

cphone_kind kind_of(PhoneNumberUtil::PhoneNumberType type) {
  switch (type) {
    case PhoneNumberUtil::MOBILE:
    case PhoneNumberUtil::FIXED_LINE_OR_MOBILE: return CPHONE_MOBILE;
    case PhoneNumberUtil::FIXED_LINE: return CPHONE_FIXED;
    case PhoneNumberUtil::VOIP: return CPHONE_VOIP;
    default: return CPHONE_UNKNOWN;
  }
}

cphone_status read(const std::string &digits, const std::string &region, cphone_number *out) {
  const PhoneNumberUtil &util = *PhoneNumberUtil::GetInstance();
  PhoneNumber number;
  const cphone_status parsed = status_of(util.Parse(digits, region, &number));
  if (parsed != CPHONE_POSSIBLE) return parsed;
  const std::string country = country_of(util, number);
  const cphone_status possible = possible_for_a_person(util, number, country);
  if (possible != CPHONE_POSSIBLE) return possible;

  std::string e164;
  util.Format(number, PhoneNumberUtil::E164, &e164);
  // Attack: a spelling whose E.164 form parses as another number would give one phone a second identifier with separate
  // limits. Only a text that parses to itself is accepted.
  PhoneNumber again;
  std::string e164_again;
  if (util.Parse(e164, "ZZ", &again) != PhoneNumberUtil::NO_PARSING_ERROR) return CPHONE_NO_NUMBER;
  util.Format(again, PhoneNumberUtil::E164, &e164_again);
  if (e164 != e164_again) return CPHONE_NO_NUMBER;

  std::string international;
  util.Format(number, PhoneNumberUtil::INTERNATIONAL, &international);
  if (!fill(out->e164, sizeof out->e164, e164) || !fill(out->international, sizeof out->international, international) ||
      !fill(out->country, sizeof out->country, country)) {
    return CPHONE_NO_NUMBER;
  }
  out->kind = kind_of(util.GetNumberType(number));
  out->is_valid = util.IsValidNumber(number) ? 1 : 0;
  return CPHONE_POSSIBLE;
}

}  // namespace

extern "C" {

cphone_status cphone_read(const char *digits, size_t length, const char *region, cphone_number *out) {
  if (length > CPHONE_MOST_DIGITS) return CPHONE_TOO_LONG;
  try {
    return read(std::string(digits, length), region, out);
  } catch (...) {
    return CPHONE_FAULT;
  }
}

size_t cphone_format_typed(const char *digits, size_t length, const char *region, char *out, size_t capacity) {
  if (length > CPHONE_MOST_DIGITS) return 0;
  try {
    const std::unique_ptr<AsYouTypeFormatter> formatter(PhoneNumberUtil::GetInstance()->GetAsYouTypeFormatter(region));
    std::string text;
    for (size_t index = 0; index < length; index++) formatter->InputDigit(static_cast<unsigned char>(digits[index]), &text);
    return fill(out, capacity, text) ? text.size() : 0;
  } catch (...) {
    return 0;
  }
}

int32_t cphone_calling_code(const char *region) {
  try {
    return PhoneNumberUtil::GetInstance()->GetCountryCodeForRegion(region);
  } catch (...) {
    return 0;
  }
}

}  // extern "C"
