// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/strict_json.hpp"

#include <set>
#include <vector>

namespace triax::checkpoint {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf"; // which the parser would skip

/// Ends parsing: a callback cannot.
struct TooDeep {};

} // namespace

JsonProblem parse_strict(std::string_view json, Json& out) {
  if (json.starts_with(kByteOrderMark)) return {"is not valid JSON", {}};
  std::vector<std::set<std::string>> keys; // of the objects that are open
  std::string twice;
  const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxJsonDepth) throw TooDeep();
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    out = Json::parse(json, check);
  } catch (const Json::exception&) {
    return {"is not valid JSON", {}};
  } catch (const TooDeep&) {
    return {"has too many lists in lists", {}};
  }
  if (!twice.empty()) return {"has a key twice", twice};
  return {};
}

} // namespace triax::checkpoint
